//! The ratchet (SPEC §4.6): from time to time both sides agree on something fresh, and both directions move to keys that depend on it.
//!
//! The initiator asks, the responder answers, each with one message in two parts, and then each moves its own direction to the next
//! phase, the one that has the agreed secret in it. Only the initiator asks, so two never meet.
//!
//! Invariant: a direction does not change its phase from the first part of a message until the other side has all of it. So whoever
//! has agreed knows that the next change of the other side is the one behind the ratchet, and both have the same keys whatever is
//! lost, repeated or late. And: there is one at a time, of which the buffers are allocated once, whatever the peer sends.

use wraith_noise::{RATCHET_REQUEST_BYTES, RATCHET_RESPONSE_BYTES, Ratchet, answer_ratchet};

use super::Connection;
use crate::frame::{FrameWriter, SentFrame, SentFrames};
use crate::streams::Role;
use crate::{Time, Violation};

/// Parts of a message: each fits the smallest packet.
const PARTS: usize = 2;
/// Ratchets that an initiator may ask for at once, and then one a second. What it asks for beyond costs the responder more than packets do.
const AT_ONCE: u64 = 16;

/// The ratchet of a connection.
#[derive(Debug)]
pub(super) struct Ratcheting {
    began: Time,
    /// The number of the one under way, or of the last one. The first is 1.
    number: u64,
    /// When it was over, and what had gone over the connection by then.
    since: Time,
    bytes: u64,
    /// The initiator's half, until the response is there.
    asked: Option<Box<Ratchet>>,
    ours: Option<Box<Message>>,
    theirs: Option<Box<Message>>,
    /// We move to the next phase as soon as the peer has shown that it is in the present one.
    pub(super) advance_due: bool,
    /// The peer's next phase is the one behind the ratchet.
    peer_advances: bool,
    /// A part of ours is to be sent.
    pub(super) due: bool,
}

/// A message that is sent, or is being put together.
#[derive(Debug)]
struct Message {
    bytes: Vec<u8>,
    /// Of what we send: the parts to be sent now.
    due: [bool; PARTS],
    /// Of what we send: the parts that the peer has. Of what we receive: those that are here.
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

impl Ratcheting {
    pub(super) fn new(now: Time) -> Self {
        Self {
            began: now,
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

    /// Whether our direction must stay in its phase.
    pub(super) fn holds_phase(&self) -> bool {
        self.ours.is_some()
    }

    /// Nothing is under way: both directions are behind the last one.
    fn rests(&self) -> bool {
        self.ours.is_none() && !self.advance_due && !self.peer_advances
    }

    /// The peer has moved to its next phase.
    pub(super) fn on_peer_advanced(&mut self) {
        self.peer_advances = false;
    }

    fn numbers_max(&self, now: Time, at_once: u64) -> u64 {
        at_once.saturating_add((now - self.began).as_secs() * at_once / AT_ONCE)
    }

    fn send(&mut self, bytes: &[u8]) {
        self.ours = Some(Message::to_send(bytes));
        self.due = true;
    }

    pub(super) fn on_acked(&mut self, number: u64, part: u8) {
        let Some(ours) = self.ours.as_mut().filter(|_| number == self.number) else { return };
        ours.arrived[usize::from(part)] = true;
        ours.due[usize::from(part)] = false;
        // A request is done with when the response is there: it has to be looked at first.
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
    /// Asks for the next one if it is time for it.
    pub(super) fn begin_ratchet(&mut self, now: Time) {
        let (interval, bytes) = (self.config.ratchet_interval, self.config.ratchet_bytes);
        let used = self.stats.bytes_sent + self.stats.bytes_received - self.ratchet.bytes;
        if self.role == Role::Responder || (now - self.ratchet.since < interval && used < bytes) {
            return;
        }
        let ratchet = &mut self.ratchet;
        if !ratchet.rests() || ratchet.number >= ratchet.numbers_max(now, AT_ONCE) {
            return;
        }
        ratchet.number += 1;
        let asked = Ratchet::begin(&mut self.rng);
        ratchet.send(asked.request());
        ratchet.asked = Some(Box::new(asked));
    }

    /// Cold: some packets in minutes.
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

    /// A part of the peer's message. Parts of steps that are over, and repeated ones, are late and mean nothing.
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
            return Err(Violation::protocol("an impossible part of a ratchet"));
        }
        let is_late = match self.role {
            Role::Initiator => ratchet.asked.is_none(),
            Role::Responder => false,
        };
        if number < newest || is_late {
            return Ok(());
        }
        if self.role == Role::Responder
            && (!ratchet.rests() || number > ratchet.numbers_max(now, 2 * AT_ONCE))
        {
            return Err(Violation::protocol("a ratchet too soon"));
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

    /// The peer's message is complete.
    fn agree(&mut self, now: Time, message: &[u8]) -> Result<(), Violation> {
        const BAD: Violation = Violation::protocol("a ratchet with bad shares");
        let ratchet = &mut self.ratchet;
        let agreed = if let Ok(request) = message.try_into() {
            let (response, agreed) = answer_ratchet(request, &mut self.rng).map_err(|_| BAD)?;
            ratchet.number += 1;
            ratchet.send(&response);
            agreed
        } else {
            let asked =
                ratchet.asked.take().expect("a response is taken only where one was asked for");
            ratchet.ours = None;
            asked.finish(message.try_into().expect("it has the length of one")).map_err(|_| BAD)?
        };
        let sealed = self.sealed.as_mut().expect("frames come in packets");
        sealed.sealer.ratchet(&agreed);
        sealed.opener.ratchet(&agreed);
        ratchet.advance_due = true;
        ratchet.peer_advances = true;
        ratchet.since = now;
        ratchet.bytes = self.stats.bytes_sent + self.stats.bytes_received;
        Ok(())
    }
}
