//! A model of a TCP flow with CUBIC, the most common neighbour at a bottleneck.
//!
//! It has the window of RFC 9438, slow start without HyStart, an acknowledgement for every packet,
//! and no pacing: the behaviour of a common kernel whose socket always has data. It carries no
//! content and retransmits nothing, because only its share of the link matters: packets are
//! numbered, and the receiver returns each number.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use wraith_core::Time;
use wraith_sim::link::Datagram;

use crate::host::{FULL_DATAGRAM, Host, Progress};

/// RFC 9438 §4.6: window after a loss, as a fraction of the one before.
const BETA: f64 = 0.7;
/// RFC 9438 §5: growth in packets per second cubed.
const C: f64 = 0.4;
/// RFC 6928.
const INITIAL_WINDOW: f64 = 10.0;
/// RFC 5681 §3.1, in packets.
const MINIMUM_WINDOW: f64 = 2.0;
/// RFC 6675: a packet is lost when three later ones arrived.
const REORDERING: u64 = 3;
/// Linux' TCP_RTO_MIN.
const TIMEOUT_MIN: Duration = Duration::from_millis(200);
/// RFC 6298 §2.1.
const TIMEOUT_INITIAL: Duration = Duration::from_secs(1);
/// Bytes of an acknowledgement: a TCP header with timestamps and one SACK block.
const ACK_BYTES: usize = 44;
const NUMBER_BYTES: usize = 8;

/// A sender of numbered packets under CUBIC, without an end.
#[derive(Debug)]
pub struct ModelSender {
    from: SocketAddr,
    to: SocketAddr,
    started: bool,
    next_number: u64,
    /// Packets in flight, oldest first.
    in_flight: VecDeque<InFlight>,
    /// Packets in flight that are not acknowledged.
    outstanding: u64,
    window: f64,
    slow_start_threshold: f64,
    window_max: f64,
    epoch: Option<Epoch>,
    /// Losses of packets before this number belong to an earlier reduction.
    recovery_ends: u64,
    smoothed_rtt: Option<Duration>,
    timeout: Duration,
    last_progress: Time,
    lost: u64,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    number: u64,
    sent_at: Time,
    acknowledged: bool,
}

/// Growth since the last reduction (RFC 9438 §4.2 and §4.3).
#[derive(Clone, Copy, Debug)]
struct Epoch {
    since: Time,
    plateau: f64,
    k: f64,
    reno_window: f64,
}

/// A receiver that returns the number of every packet.
#[derive(Debug, Default)]
pub struct ModelReceiver {
    delivered: u64,
    answers: VecDeque<Datagram>,
}

/// Both ends of a flow between two addresses.
pub fn pair(addresses: (SocketAddr, SocketAddr)) -> (ModelSender, ModelReceiver) {
    let (from, to) = addresses;
    let sender = ModelSender {
        from,
        to,
        started: false,
        next_number: 0,
        in_flight: VecDeque::new(),
        outstanding: 0,
        window: INITIAL_WINDOW,
        slow_start_threshold: f64::INFINITY,
        window_max: 0.0,
        epoch: None,
        recovery_ends: 0,
        smoothed_rtt: None,
        timeout: TIMEOUT_INITIAL,
        last_progress: Time::ZERO,
        lost: 0,
    };
    (sender, ModelReceiver::default())
}

impl ModelSender {
    fn on_acknowledged(&mut self, now: Time, number: u64) {
        let oldest = self.in_flight.front().map_or(self.next_number, |packet| packet.number);
        let index = number.checked_sub(oldest).and_then(|index| usize::try_from(index).ok());
        let Some(packet) = index.and_then(|index| self.in_flight.get_mut(index)) else { return };
        if std::mem::replace(&mut packet.acknowledged, true) {
            return;
        }
        self.outstanding -= 1;
        let rtt = now.since(packet.sent_at);
        let smoothed = self.smoothed_rtt.map_or(rtt, |old| old * 7 / 8 + rtt / 8);
        self.smoothed_rtt = Some(smoothed);
        self.timeout = (smoothed * 2).max(TIMEOUT_MIN);
        self.last_progress = now;
        if number >= self.recovery_ends {
            self.grow(now, smoothed);
        }
        self.settle(number);
    }

    /// Removes settled packets from the front: acknowledged, or lost because much later packets
    /// arrived.
    fn settle(&mut self, largest: u64) {
        while let Some(oldest) = self.in_flight.front().copied() {
            let lost = !oldest.acknowledged && oldest.number + REORDERING <= largest;
            if !oldest.acknowledged && !lost {
                break;
            }
            self.in_flight.pop_front();
            if lost {
                self.lost += 1;
                self.outstanding -= 1;
                self.reduce(oldest.number);
            }
        }
    }

    fn grow(&mut self, now: Time, rtt: Duration) {
        if self.window < self.slow_start_threshold {
            self.window += 1.0;
            return;
        }
        let window = self.window;
        let plateau = self.window_max.max(window);
        let epoch = self.epoch.get_or_insert_with(|| {
            let k = ((plateau - window) / C).cbrt();
            Epoch { since: now, plateau, k, reno_window: window }
        });
        let time = (now.since(epoch.since) + rtt).as_secs_f64();
        let cubic = C * (time - epoch.k).powi(3) + epoch.plateau;
        epoch.reno_window += 3.0 * (1.0 - BETA) / (1.0 + BETA) / window;
        let target = cubic.clamp(window, 1.5 * window).max(epoch.reno_window);
        self.window += (target - window) / window;
    }

    fn reduce(&mut self, number: u64) {
        if number < self.recovery_ends {
            return;
        }
        self.recovery_ends = self.next_number;
        // RFC 9438 §4.7, fast convergence.
        let share = if self.window < self.window_max { (1.0 + BETA) / 2.0 } else { 1.0 };
        self.window_max = self.window * share;
        self.window = (self.window * BETA).max(MINIMUM_WINDOW);
        self.slow_start_threshold = self.window;
        self.epoch = None;
    }
}

impl Host for ModelSender {
    fn start(&mut self, now: Time) {
        self.started = true;
        self.last_progress = now;
    }

    fn receive(&mut self, now: Time, datagram: Datagram) {
        let number = datagram.bytes.first_chunk::<NUMBER_BYTES>().copied();
        let number = number.expect("a receiver of the model returns numbers");
        self.on_acknowledged(now, u64::from_le_bytes(number));
    }

    fn wake(&mut self, now: Time) {
        if self.next().is_some_and(|at| at <= now) {
            // RFC 5681: all packets count as lost, and slow start begins anew.
            self.lost += std::mem::take(&mut self.outstanding);
            self.in_flight.clear();
            self.reduce(self.recovery_ends);
            self.window = MINIMUM_WINDOW;
            self.timeout *= 2;
            self.last_progress = now;
        }
    }

    fn transmit(&mut self, now: Time, out: &mut Vec<Datagram>) {
        let room = (self.window as u64).saturating_sub(self.outstanding);
        for _ in 0..if self.started { room } else { 0 } {
            let mut bytes = vec![0; usize::from(FULL_DATAGRAM)];
            bytes[..NUMBER_BYTES].copy_from_slice(&self.next_number.to_le_bytes());
            out.push(Datagram::new(self.from, self.to, bytes));
            let packet = InFlight { number: self.next_number, sent_at: now, acknowledged: false };
            self.in_flight.push_back(packet);
            self.outstanding += 1;
            self.next_number += 1;
        }
    }

    fn next(&mut self) -> Option<Time> {
        (!self.in_flight.is_empty()).then(|| self.last_progress + self.timeout)
    }

    fn ended(&self) -> bool {
        false
    }

    fn progress(&mut self) -> Progress {
        Progress { packets_sent: self.next_number, packets_lost: self.lost, ..Progress::default() }
    }
}

impl Host for ModelReceiver {
    fn start(&mut self, _: Time) {}

    fn receive(&mut self, _: Time, mut datagram: Datagram) {
        self.delivered += datagram.bytes.len() as u64;
        datagram.bytes.truncate(ACK_BYTES);
        let Datagram { from, to, bytes, .. } = datagram;
        self.answers.push_back(Datagram::new(to, from, bytes));
    }

    fn wake(&mut self, _: Time) {}

    fn transmit(&mut self, _: Time, out: &mut Vec<Datagram>) {
        out.extend(self.answers.drain(..));
    }

    fn next(&mut self) -> Option<Time> {
        None
    }

    fn ended(&self) -> bool {
        false
    }

    fn progress(&mut self) -> Progress {
        Progress { delivered: self.delivered, ..Progress::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Cell;
    use crate::network::{Network, receiver_address, sender_address};

    const CELL: Cell = Cell::new(Duration::from_millis(50), 10);

    /// Shares of the capacity that flows got in the second half of a minute, when each started 5 s
    /// after the previous one.
    fn shares(flows: usize) -> Vec<f64> {
        let link = CELL.link();
        let mut network = Network::new(1, link.up, link.down);
        for flow in 0..flows {
            let (sender, receiver) = pair((sender_address(flow), receiver_address(flow)));
            let starts = Time::ZERO + Duration::from_secs(5) * flow as u32;
            network.add_flow(starts, Box::new(sender), Box::new(receiver));
        }
        let half = Duration::from_secs(30);
        let mut delivered = |until| {
            network.run_until(Time::ZERO + until);
            let progress = network.progress();
            progress.iter().map(|flow| flow.receiver.delivered as f64).collect::<Vec<_>>()
        };
        let (before, after) = (delivered(half), delivered(2 * half));
        let shares = before.iter().zip(after);
        shares.map(|(before, after)| (after - before) / CELL.capacity_bytes(half)).collect()
    }

    #[test]
    fn alone_it_fills_a_link_with_a_full_queue() {
        let shares = shares(1);
        assert!(shares[0] > 0.97 && shares[0] < 1.001, "{shares:?}");
    }

    #[test]
    fn two_of_them_come_to_share_a_link() {
        let shares = shares(2);
        assert!(shares[0] + shares[1] > 0.97 && shares[0] + shares[1] < 1.001, "{shares:?}");
        assert!(shares.iter().all(|share| *share > 0.25), "{shares:?}");
    }

    #[test]
    fn a_loss_takes_three_tenths_of_the_window_and_the_plateau_is_reached_again() {
        let (mut sender, _) = pair((sender_address(0), receiver_address(0)));
        sender.window = 100.0;
        sender.next_number = 1;
        sender.reduce(0);
        assert!((sender.window - 70.0).abs() < 1e-9);
        // RFC 9438 §4.2: K = cbrt(30 / 0.4) = 4.2 s.
        let rtt = Duration::from_millis(100);
        let mut now = Time::ZERO;
        let mut at_plateau = None;
        while now < Time::ZERO + Duration::from_secs(6) {
            for _ in 0..sender.window as u64 {
                sender.grow(now, rtt);
            }
            now += rtt;
            if sender.window > 99.0 {
                at_plateau.get_or_insert(now);
            }
        }
        let seconds = at_plateau.unwrap().since(Time::ZERO).as_secs_f64();
        assert!((2.5..5.5).contains(&seconds), "{seconds}");
    }
}
