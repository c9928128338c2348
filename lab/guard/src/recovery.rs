//! Loss recovery and congestion control: flights of packets, and their ACKs.

use std::time::Duration;

use wraith_core::recovery::{Budget, Recovery, RecoveryConfig, SentPacket, Settled};
use wraith_core::{Algorithm, Time};

use crate::{BATCH, DATAGRAM_BYTES};

const RTT: Duration = Duration::from_millis(1);
/// Packets that one ACK reports.
const ACK_EVERY: u64 = 16;
/// Lost packets at the front of a flight.
const LOST: u64 = 4;
/// Uncounted flights, after which the buffers have grown and losses have occurred.
const WARM_UP: u64 = 40;

struct Transfer {
    recovery: Recovery<[u64; 8]>,
    out: Settled<[u64; 8]>,
    now: Time,
    next: u64,
    acked: u64,
    lost: u64,
}

impl Transfer {
    fn new() -> Self {
        let config = RecoveryConfig {
            congestion: Algorithm::default().into(),
            initial_rtt: RTT,
            max_ack_delay: RTT,
            mtu: DATAGRAM_BYTES as u16,
            seed: 1,
        };
        Self {
            recovery: Recovery::new(Time::ZERO, &config),
            out: Settled::default(),
            now: Time::ZERO,
            next: 0,
            acked: 0,
            lost: 0,
        }
    }

    /// Sends [`BATCH`] packets as the pacer allows, and acknowledges all but the first `lost`.
    fn flight(&mut self, lost: u64) {
        let first = self.next;
        while self.next < first + BATCH {
            match self.recovery.budget(self.now) {
                Budget::Bytes(bytes) => self.send(bytes / DATAGRAM_BYTES as u64, first + BATCH),
                Budget::At(time) => self.now = time,
                // The window is smaller than a batch, so the packets so far are acknowledged.
                Budget::Blocked => {
                    self.now += RTT;
                    self.ack(first + lost, self.next - 1);
                }
            }
        }
        self.now += RTT;
        for largest in (first + lost..self.next).step_by(ACK_EVERY as usize) {
            self.ack(first + lost, largest);
        }
        self.ack(first + lost, self.next - 1);
        if lost > 0 {
            self.now += RTT * 4;
            self.recovery.on_timeout(self.now, &mut self.out);
            self.lost += self.out.lost.len() as u64;
        }
    }

    fn send(&mut self, packets: u64, end: u64) {
        for pn in self.next..end.min(self.next + packets) {
            let packet = SentPacket {
                size: DATAGRAM_BYTES as u32,
                ack_eliciting: true,
                mtu_probe: false,
                ect0: false,
                frames: [pn; 8],
            };
            self.recovery.on_sent(self.now, pn, packet);
            self.next = pn + 1;
        }
    }

    fn ack(&mut self, first: u64, largest: u64) {
        if largest < first {
            return;
        }
        // The ACK repeats the ranges of earlier ACKs, as those of peers do.
        let earlier = first.saturating_sub(2 * BATCH)..=first.saturating_sub(LOST + 2);
        let ranges = [first..=largest, earlier];
        let count = if first >= 2 * BATCH { 2 } else { 1 };
        let ranges = ranges[..count].iter().cloned();
        self.recovery
            .on_ack(self.now, largest, ranges, Duration::ZERO, &mut self.out)
            .expect("these were sent");
        self.acked += self.out.acked.len() as u64;
        self.lost += self.out.lost.len() as u64;
    }
}

/// All packets arrive.
pub(crate) fn acknowledge(times: u64) {
    let mut transfer = Transfer::new();
    (0..WARM_UP + times).for_each(|_| transfer.flight(0));
    assert_eq!((transfer.acked, transfer.lost), (transfer.next, 0));
}

/// Every flight loses its first packets.
pub(crate) fn lose(times: u64) {
    let mut transfer = Transfer::new();
    (0..WARM_UP + times).for_each(|_| transfer.flight(LOST));
    assert!(transfer.lost >= (WARM_UP + times) * LOST);
    assert_eq!(transfer.acked + transfer.lost, transfer.next, "each is settled once");
}
