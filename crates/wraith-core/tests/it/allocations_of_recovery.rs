//! In a steady transfer, loss recovery and congestion control allocate nothing, with and without
//! loss.

use std::ops::RangeInclusive;
use std::time::Duration;

use wraith_core::recovery::{Budget, Recovery, RecoveryConfig, SentPacket, Settled};
use wraith_core::{Algorithm, Time};

use crate::counting::allocations;

const MTU: u16 = 1452;
const RTT: Duration = Duration::from_millis(1);
const ACK_EVERY: u64 = 16;
/// Packets in a flight, even if a controller allows more.
const FLIGHT_MAX: u64 = 256;
/// Packets lost at the front of a lossy flight.
const LOST_PER_ROUND: u64 = 16;
/// One in this many flights is lossy.
const LOSSY_EVERY: u32 = 20;

struct Transfer {
    recovery: Recovery<[u64; 8]>,
    out: Settled<[u64; 8]>,
    now: Time,
    next: u64,
    settled: u64,
    /// Packet numbers of the last flight that arrived.
    previous: RangeInclusive<u64>,
}

impl Transfer {
    /// Sends a flight and acknowledges it, except for the lost packets.
    fn round(&mut self, lossy: bool) {
        let start = self.next;
        while self.next - start < FLIGHT_MAX {
            match self.recovery.budget(self.now) {
                Budget::Bytes(bytes) => {
                    let room = FLIGHT_MAX - (self.next - start);
                    for _ in 0..room.min(bytes / u64::from(MTU)) {
                        let packet = SentPacket {
                            size: u32::from(MTU),
                            ack_eliciting: true,
                            mtu_probe: false,
                            ect0: false,
                            frames: [self.next; 8],
                        };
                        self.recovery.on_sent(self.now, self.next, packet);
                        self.next += 1;
                    }
                }
                Budget::At(time) => self.now = time,
                Budget::Blocked => break,
            }
        }
        self.now += RTT;
        let received = if lossy { start + LOST_PER_ROUND } else { start };
        for largest in (received..self.next).step_by(ACK_EVERY as usize).chain([self.next - 1]) {
            // ACKs repeat earlier ranges.
            let ranges = [received..=largest, self.previous.clone()];
            self.ack(largest, &ranges[..if start > 0 { 2 } else { 1 }]);
        }
        self.previous = received..=self.next - 1;
        self.now += RTT * 2;
        self.recovery.on_timeout(self.now, &mut self.out);
        self.settled += self.out.lost.len() as u64;
    }

    fn ack(&mut self, largest: u64, ranges: &[RangeInclusive<u64>]) {
        let ranges = ranges.iter().cloned();
        self.recovery
            .on_ack(self.now, largest, ranges, Duration::ZERO, &mut self.out)
            .expect("these were sent");
        self.settled += (self.out.acked.len() + self.out.lost.len()) as u64;
    }
}

#[test]
fn a_steady_transfer_with_and_without_loss_allocates_nothing() {
    [Algorithm::Bbr, Algorithm::Cubic].into_iter().for_each(steady_transfer);
}

fn steady_transfer(algorithm: Algorithm) {
    let config = RecoveryConfig {
        congestion: algorithm.into(),
        initial_rtt: RTT,
        max_ack_delay: RTT,
        mtu: MTU,
        seed: 1,
    };
    let mut transfer = Transfer {
        recovery: Recovery::new(Time::ZERO, &config),
        out: Settled::default(),
        now: Time::ZERO,
        next: 0,
        settled: 0,
        previous: 0..=0,
    };
    // Grow every buffer to its size in the steady state, including that of lost packets.
    (0..6).for_each(|_| transfer.round(false));
    (0..3000).for_each(|i| transfer.round(i % LOSSY_EVERY == 0));
    let (before, packets) = (allocations(), transfer.next);
    (0..400).for_each(|i| transfer.round(i % LOSSY_EVERY == 0));
    assert_eq!(allocations(), before, "{algorithm:?}");
    assert!(transfer.next - packets > 5_000);
    assert!(transfer.recovery.packets_lost() > 1000);
    assert_eq!(transfer.settled, transfer.next, "every packet is settled once");
}
