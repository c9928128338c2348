//! An application's own congestion controller: NewReno of RFC 9002 §7, plugged into a connection.
//!
//! `cargo run -p wraith-core --example own_controller` sends 4 MB in virtual time over a simulated
//! link of 20 ms that loses one datagram in 500, and prints the result.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use wraith_core::congestion::{
    Acked, Control, Controller, ControllerFactory, Lost, Metrics, Rtt, Start, initial_window,
    minimum_window,
};
use wraith_core::{
    AccessKey, ConnectionStats, Endpoint, EndpointConfig, Event, Read, StreamId, Time,
    TransportConfig,
};
use wraith_crypto::identity::SecretIdentity;

/// Creates a [`NewReno`] for each path.
#[derive(Debug)]
pub struct NewRenoFactory;

impl ControllerFactory for NewRenoFactory {
    fn name(&self) -> &'static str {
        "new-reno"
    }

    fn build(&self, start: &Start) -> Box<dyn Controller> {
        let window = initial_window(start.mtu);
        Box::new(NewReno { mtu: start.mtu, window, slow_start_threshold: u64::MAX })
    }
}

/// Adds one packet per round trip to the window, and halves it after a loss.
#[derive(Debug)]
struct NewReno {
    mtu: u16,
    window: u64,
    slow_start_threshold: u64,
}

impl Controller for NewReno {
    fn on_acked(&mut self, acked: &Acked) {
        if acked.in_recovery || !acked.window_limited {
            return;
        }
        self.window += if self.window < self.slow_start_threshold {
            acked.bytes
        } else {
            u64::from(self.mtu) * acked.bytes / self.window
        };
    }

    fn on_lost(&mut self, lost: &Lost<'_>) {
        let least = minimum_window(self.mtu);
        if lost.new_episode {
            self.window = (self.window / 2).max(least);
            self.slow_start_threshold = self.window;
        }
        if lost.persistent_congestion {
            self.window = least;
        }
    }

    // By default, `on_congestion_experienced` treats a mark (ECN CE) as a loss of zero bytes.

    fn set_mtu(&mut self, mtu: u16) {
        self.mtu = mtu;
        self.window = self.window.max(minimum_window(mtu));
    }

    fn control(&self, rtt: &Rtt) -> Control {
        // A quarter more than the window needs, so that a late timer does not leave it unused (RFC
        // 9002 §7.7).
        let rate = 1.25 * self.window as f64 / rtt.smoothed().as_secs_f64();
        Control::new(self.window, rate as u64, self.mtu)
    }

    fn state(&self) -> &'static str {
        if self.window < self.slow_start_threshold { "SlowStart" } else { "CongestionAvoidance" }
    }

    fn metrics(&self) -> Metrics {
        let mut metrics = Metrics::default();
        metrics.slow_start_threshold =
            (self.slow_start_threshold != u64::MAX).then_some(self.slow_start_threshold);
        metrics
    }
}

/// One-way delay of the link.
const DELAY: Duration = Duration::from_millis(10);
/// Interval of losses: every datagram of the sender with a multiple of this number is lost.
const LOST_EVERY: u64 = 500;
/// Maximum number of simulation steps of a transfer.
const MOMENTS_MAX: u32 = 1_000_000;

/// One end of the link, and the datagrams in flight towards it.
struct PairSide {
    endpoint: Endpoint,
    address: SocketAddr,
    arriving: VecDeque<(Time, Vec<u8>)>,
}

fn side(seed: u8, congestion: Arc<dyn ControllerFactory>) -> PairSide {
    let identity = SecretIdentity::from_seed([seed; 32]);
    // The link carries any size. With larger datagrams, there would be too few to lose one.
    let transport = TransportConfig { congestion, max_mtu: 1200, ..TransportConfig::default() };
    let config = EndpointConfig { transport, ..EndpointConfig::open(identity) };
    PairSide {
        endpoint: Endpoint::new(config, [seed; 32]),
        address: SocketAddr::from(([10, 0, 0, seed], 1000)),
        arriving: VecDeque::new(),
    }
}

/// Sends `bytes` under the controllers of `congestion`. Returns the sender's statistics and the
/// duration.
pub fn transfer(
    congestion: Arc<dyn ControllerFactory>,
    bytes: usize,
) -> (ConnectionStats, Duration) {
    let mut sides = [side(1, congestion.clone()), side(2, congestion)];
    let peer = SecretIdentity::from_seed([2; 32]).node_id();
    let remote = sides[1].address;
    let sender = sides[0]
        .endpoint
        .connect(Time::ZERO, remote, peer, &AccessKey::public(peer))
        .expect("a valid peer");
    let content = Bytes::from(vec![7; bytes]);
    let (mut outgoing, mut incoming, mut written, mut read) = (None::<StreamId>, None, 0, 0);
    let (mut now, mut sent) = (Time::ZERO, 0);
    let mut buffer = vec![0; 65536];
    for _ in 0..MOMENTS_MAX {
        for i in 0..2 {
            while sides[i].arriving.front().is_some_and(|(at, _)| *at <= now) {
                let (_, mut datagram) = sides[i].arriving.pop_front().expect("there is a front");
                let from = sides[1 - i].address;
                sides[i].endpoint.handle_datagram(now, from, None, &mut datagram);
            }
            sides[i].endpoint.handle_timeout(now);
            while let Some((handle, event)) = sides[i].endpoint.poll_event() {
                match event {
                    Event::Connected if i == 0 => {
                        let connection = sides[0].endpoint.connection(handle).expect("alive");
                        outgoing = connection.open_stream();
                    }
                    Event::StreamOpened(id) => incoming = Some((handle, id)),
                    _ => {}
                }
            }
            if let (0, Some(id)) = (i, outgoing) {
                let connection = sides[0].endpoint.connection(sender).expect("alive");
                let room = connection.send_capacity(id).min(bytes - written);
                if room > 0 {
                    connection.write(id, content.slice(written..written + room)).expect("open");
                    written += room;
                }
            }
            if let (1, Some((handle, id))) = (i, incoming) {
                let connection = sides[1].endpoint.connection(handle).expect("alive");
                while let Ok(Read::Slice(slice)) = connection.read(now, id) {
                    read += slice.len();
                }
            }
            while let Some(transmit) = sides[i].endpoint.poll_transmit(now, &mut buffer) {
                for datagram in buffer[..transmit.len].chunks(transmit.segment) {
                    sent += u64::from(i == 0);
                    if i == 1 || sent % LOST_EVERY != 0 {
                        sides[1 - i].arriving.push_back((now + DELAY, datagram.to_vec()));
                    }
                }
            }
        }
        if read == bytes {
            let connection = sides[0].endpoint.connection(sender).expect("alive");
            return (connection.stats(), now - Time::ZERO);
        }
        let arrivals = [0, 1].map(|i| sides[i].arriving.front().map(|(at, _)| *at));
        let timers = [0, 1].map(|i| sides[i].endpoint.poll_timeout());
        let next = arrivals.into_iter().chain(timers).flatten().min();
        now = now.max(next.expect("something is under way"));
    }
    panic!("{read} of {bytes} bytes by {now:?}");
}

#[allow(dead_code, reason = "a test uses this file as a module")]
fn main() {
    let (stats, time) = transfer(Arc::new(NewRenoFactory), 4_000_000);
    println!("4 MB in {time:?}: {stats:#?}");
}
