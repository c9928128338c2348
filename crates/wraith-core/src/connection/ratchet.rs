//! The ratchet (SPEC §4.6): both sides periodically agree on a fresh secret, and both directions
//! move to keys that depend on it.
//!
//! The initiator sends a request and the responder sends a response, each as one message in two
//! fragments. Each side then moves its own sending direction to the next key phase, whose keys
//! depend on the agreed secret. Only the initiator requests, so two ratchets never collide.
//!
//! Invariants:
//!
//! - From the first fragment of its message until the peer has the whole message, a side does not
//!   change its sending phase. So a side that has the secret knows that the peer's next phase is
//!   the ratcheted one. Both derive the same keys despite loss, repetition and delay.
//! - At most one ratchet is in progress. Its buffers are allocated once, so the peer cannot grow
//!   them.

use std::time::Duration;

use wraith_noise::{RATCHET_REQUEST_BYTES, RATCHET_RESPONSE_BYTES, Ratchet, respond_to_ratchet};

use super::Connection;
use crate::frame::{FrameWriter, SentFrame, SentFrames};
use crate::streams::Role;
use crate::token_bucket::TokenBucket;
use crate::{Time, Violation};

/// Fragments per message; each fits the smallest packet.
const PARTS: usize = 2;
/// Maximum rate, in ratchets per second, of an initiator's requests and of a responder's answers. A
/// ratchet costs more than packets do. An initiator requests again only after the answer, so a
/// delayed request never brings later ones closer together. An initiator that keeps to half of the
/// responder's rate is never refused.
const ASKED_PER_SECOND: u64 = 1;
const ANSWERED_PER_SECOND: u64 = 2;
/// Burst of both rates: 16 requests and 32 answers.
const BURST: Duration = Duration::from_secs(16);

/// The ratchet of a connection.
#[derive(Debug)]
pub(super) struct RatchetState {
    /// Budget of ratchets.
    rate: TokenBucket,
    /// Number of the current or last ratchet, from 1.
    number: u64,
    /// Time at which the last ratchet was agreed, and the connection's bytes up to then.
    since: Time,
    bytes: u64,
    /// The initiator's secret half, until the response is complete.
    asked: Option<Box<Ratchet>>,
    ours: Option<Box<Message>>,
    theirs: Option<Box<Message>>,
    /// This side's sending direction moves to the next phase once the peer has followed the current
    /// one.
    pub(super) advance_due: bool,
    /// The peer's next phase is the ratcheted one.
    peer_advances: bool,
    /// A fragment of this side's message is to be sent.
    pub(super) due: bool,
}

/// A message being sent, or being reassembled.
#[derive(Debug)]
struct Message {
    bytes: Vec<u8>,
    /// Sending: the fragments to send now.
    due: [bool; PARTS],
    /// Sending: the fragments that the peer acknowledged. Receiving: the fragments that arrived.
    arrived: [bool; PARTS],
}

impl Message {
    fn to_send(bytes: &[u8]) -> Box<Self> {
        Box::new(Self { bytes: bytes.to_vec(), due: [true; PARTS], arrived: [false; PARTS] })
    }

    fn to_receive(len: usize) -> Box<Self> {
        Box::new(Self { bytes: vec![0; len], due: [false; PARTS], arrived: [false; PARTS] })
    }

    fn part(&mut self, part: usize) -> &mut [u8] {
        let len = self.bytes.len() / PARTS;
        &mut self.bytes[part * len..][..len]
    }

    fn is_complete(&self) -> bool {
        self.arrived == [true; PARTS]
    }
}

impl RatchetState {
    pub(super) fn new(now: Time, role: Role) -> Self {
        let per_second = match role {
            Role::Initiator => ASKED_PER_SECOND,
            Role::Responder => ANSWERED_PER_SECOND,
        };
        Self {
            rate: TokenBucket::new(per_second, BURST),
            number: 0,
            since: now,
            bytes: 0,
            asked: None,
            ours: None,
            theirs: None,
            advance_due: false,
            peer_advances: false,
            due: false,
        }
    }

    /// Returns true while this side's sending direction must stay in its phase.
    pub(super) fn holds_phase(&self) -> bool {
        self.ours.is_some()
    }

    /// Returns true if no ratchet is in progress: both directions use the keys of the last one.
    fn rests(&self) -> bool {
        self.ours.is_none() && !self.advance_due && !self.peer_advances
    }

    /// Records that the peer moved to its next phase.
    pub(super) fn on_peer_advanced(&mut self) {
        self.peer_advances = false;
    }

    fn send(&mut self, bytes: &[u8]) {
        self.ours = Some(Message::to_send(bytes));
        self.due = true;
    }

    pub(super) fn on_acked(&mut self, number: u64, part: u8) {
        let Some(ours) = self.ours.as_mut().filter(|_| number == self.number) else { return };
        ours.arrived[usize::from(part)] = true;
        ours.due[usize::from(part)] = false;
        // A request is kept until the response was verified.
        if ours.is_complete() && self.asked.is_none() {
            self.ours = None;
        }
    }

    pub(super) fn on_lost(&mut self, number: u64, part: u8) {
        let Some(ours) = self.ours.as_mut().filter(|_| number == self.number) else { return };
        let part = usize::from(part);
        ours.due[part] |= !ours.arrived[part];
        self.due |= ours.due[part];
    }
}

impl Connection {
    /// Requests the next ratchet if it is due.
    pub(super) fn begin_ratchet(&mut self, now: Time) {
        let (interval, bytes) = (self.config.ratchet_interval, self.config.ratchet_bytes);
        let used = self.stats.bytes_sent + self.stats.bytes_received - self.ratchet.bytes;
        if self.role == Role::Responder || (now - self.ratchet.since < interval && used < bytes) {
            return;
        }
        let ratchet = &mut self.ratchet;
        if !ratchet.rests() || !ratchet.rate.take(now, 1) {
            return;
        }
        ratchet.number += 1;
        let asked = Ratchet::begin(&mut *self.secrets.draw());
        ratchet.send(asked.request());
        ratchet.asked = Some(Box::new(asked));
    }

    /// Cold: a few packets in minutes.
    #[cold]
    pub(super) fn write_ratchet(&mut self, out: &mut FrameWriter<'_>, sent: &mut SentFrames) {
        let ratchet = &mut self.ratchet;
        let Some(ours) = ratchet.ours.as_mut() else {
            ratchet.due = false;
            return;
        };
        for part in 0..PARTS {
            let index = part as u8;
            if ours.due[part] && out.ratchet(ratchet.number, index, ours.part(part)) {
                sent.push(SentFrame::Ratchet { number: ratchet.number, part: index });
                ours.due[part] = false;
            }
        }
        ratchet.due = ours.due.contains(&true);
    }

    /// Handles a fragment of the peer's message. Fragments of finished ratchets and repeated
    /// fragments are late and are ignored.
    pub(super) fn on_ratchet(
        &mut self,
        now: Time,
        number: u64,
        part: u8,
        bytes: &[u8],
    ) -> Result<(), Violation> {
        let ratchet = &mut self.ratchet;
        let (newest, len) = match self.role {
            Role::Initiator => (ratchet.number, RATCHET_RESPONSE_BYTES),
            Role::Responder => (ratchet.number + 1, RATCHET_REQUEST_BYTES),
        };
        if number > newest || usize::from(part) >= PARTS || bytes.len() != len / PARTS {
            return Err(Violation::protocol("invalid ratchet fragment"));
        }
        let is_late = match self.role {
            Role::Initiator => ratchet.asked.is_none(),
            Role::Responder => false,
        };
        if number < newest || is_late {
            return Ok(());
        }
        // The first fragment starts the ratchet and counts against the budget.
        let begins = self.role == Role::Responder && ratchet.theirs.is_none();
        if begins && (!ratchet.rests() || !ratchet.rate.take(now, 1)) {
            return Err(Violation::protocol("ratchet requested too early"));
        }
        let theirs = ratchet.theirs.get_or_insert_with(|| Message::to_receive(len));
        let part = usize::from(part);
        if !theirs.arrived[part] {
            theirs.part(part).copy_from_slice(bytes);
            theirs.arrived[part] = true;
        }
        match ratchet.theirs.take_if(|theirs| theirs.is_complete()) {
            Some(message) => self.agree(now, &message.bytes),
            None => Ok(()),
        }
    }

    /// Handles the peer's complete message.
    fn agree(&mut self, now: Time, message: &[u8]) -> Result<(), Violation> {
        const BAD: Violation = Violation::protocol("invalid ratchet shares");
        let ratchet = &mut self.ratchet;
        let agreed = if let Ok(request) = message.try_into() {
            let (response, agreed) =
                respond_to_ratchet(request, &mut *self.secrets.draw()).map_err(|_| BAD)?;
            ratchet.number += 1;
            ratchet.send(&response);
            agreed
        } else {
            let asked = ratchet.asked.take().expect("responses without a request are ignored");
            ratchet.ours = None;
            asked.finish(message.try_into().expect("the length was checked")).map_err(|_| BAD)?
        };
        let sealed = self.sealed.as_mut().expect("frames exist only after the handshake");
        sealed.sealer.ratchet(&agreed);
        sealed.opener.ratchet(&agreed);
        ratchet.advance_due = true;
        ratchet.peer_advances = true;
        ratchet.since = now;
        ratchet.bytes = self.stats.bytes_sent + self.stats.bytes_received;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_core::{Rng, SeedableRng};

    use super::*;

    fn rate(role: Role) -> TokenBucket {
        RatchetState::new(Time::ZERO, role).rate
    }

    #[test]
    fn an_initiator_that_has_not_asked_for_long_asks_sixteen_times_in_a_row() {
        let mut rate = rate(Role::Initiator);
        let now = Time::ZERO + Duration::from_secs(3600);
        assert_eq!((0..1000).take_while(|_| rate.take(now, 1)).count(), 16);
        assert!(rate.take(now + Duration::from_secs(1), 1));
    }

    /// Returns a random duration up to `longest`, mostly far shorter.
    fn up_to(rng: &mut ChaCha20Rng, longest: Duration) -> Duration {
        longest
            .div_f64(f64::from(1 << (rng.next_u32() % 16)))
            .mul_f64(f64::from(rng.next_u32()) / f64::from(u32::MAX))
    }

    #[test]
    fn delays_never_make_a_responder_refuse_a_ratchet() {
        for seed in 0..200 {
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let [mut asks, mut answers] = [Role::Initiator, Role::Responder].map(rate);
            let mut now = Time::ZERO;
            for _ in 0..200 {
                while !asks.take(now, 1) {
                    now += Duration::from_millis(1);
                }
                now += up_to(&mut rng, Duration::from_secs(20));
                assert!(answers.take(now, 1), "seed {seed}");
                now += up_to(&mut rng, Duration::from_secs(20));
            }
        }
    }
}
