//! The responder's side of the handshake: it reads the first message (H1, two datagrams), sends the
//! second (H2) or a cookie, and reads the third (H3) (SPEC §3.4, §3.6).
//!
//! An initiator without an access key causes no computation and gets no answer. `half_open.rs`
//! limits the work for one with an access key.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use wraith_crypto::aead::{Suite, aes_hardware};
use wraith_noise::{
    DatagramFingerprint, FinalHello, InitiatorHello, Mac1Datagram, PendingH1, Responder,
    ResponderHello, SessionKeys, h1_id, negotiate,
};

use super::Endpoint;
use super::doors::Doors;
use super::half_open::{AnsweredH1, Attempt, CompletedHandshake, H1Decision, SecondDatagram};
use super::slots::Slots;
use crate::connection::{AuthenticatedH3, Connection, parameters};
use crate::door::DoorId;
use crate::streams::Role;
use crate::{PathAddr, Time};

/// Maximum number of queued answers to H1, at most 300 KiB. Beyond it, answers are dropped as the
/// network would drop them, cookies before H2. The limit exceeds one batch of received datagrams.
const ANSWERS_MAX: usize = 256;
/// Observed address in H2 for a peer without an IP address (SPEC §3.3 always has the field).
const NO_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);

impl Endpoint {
    /// Handles an H3. The caller has checked that a connection can be added.
    pub(super) fn handle_h3(
        &mut self,
        now: Time,
        from: PathAddr,
        datagram: &Mac1Datagram<'_>,
    ) -> bool {
        let Self { doors, connections, half_opens, .. } = self;
        // While its door is full, a handshake waits for a retransmission of its H3.
        let completed = half_opens.complete(now, from, |door, responder| {
            let is_answered = has_room(doors, connections, door) && responder.is_h3(datagram);
            is_answered.then(|| responder.read_h3(datagram.bytes()).ok()).flatten()
        });
        let Some(completed) = completed else { return false };
        let door = self.doors.get(completed.door);
        if !door.is_some_and(|door| door.admits(completed.said.0.node_id)) {
            self.half_opens.on_refused(now, from, true);
            return false;
        }
        self.admit(now, from, &completed, datagram.fingerprint());
        true
    }

    fn admit(
        &mut self,
        now: Time,
        remote: PathAddr,
        completed: &CompletedHandshake<(FinalHello, SessionKeys)>,
        h3: DatagramFingerprint,
    ) {
        let CompletedHandshake { door, suite, answered_at, h1_bytes_max, said: (last, keys) } =
            completed;
        let parts = self.parts(Role::Responder, last.node_id, remote);
        let rtt = now - *answered_at;
        let h1_bytes_max = *h1_bytes_max;
        let proof = AuthenticatedH3 { suite: *suite, last, keys, h3, rtt, h1_bytes_max };
        let connection = Connection::accepted(now, parts, &proof);
        self.insert(connection, Some(*door), remote);
    }

    /// Handles the first datagram of an H1, which then waits for the second. It causes no key
    /// agreement, and no answer except a cookie or the repeated H2. The caller has checked that a
    /// connection can be added.
    pub(super) fn handle_first_of_h1(
        &mut self,
        now: Time,
        from: PathAddr,
        datagram: &Mac1Datagram<'_>,
    ) -> bool {
        let Some((access_key, door)) = self.doors.find(now, datagram) else { return false };
        let access_key = &access_key.clone();
        if !has_room(&self.doors, &self.connections, door) {
            return false;
        }
        let Self { cookies, half_opens, .. } = self;
        let datagram = datagram.bytes();
        let id = h1_id(datagram).expect("it has the length of an H1");
        let proven = cookies.shown(now, from, datagram);
        match half_opens.judge(now, from, id, proven) {
            H1Decision::Silence => return false,
            H1Decision::Waits => {}
            H1Decision::Repeat(h2) => {
                let h2 = h2.to_vec();
                self.answer(from, h2);
            }
            H1Decision::AskForCookie => {
                let cookie = cookies.ask(now, from, access_key, datagram);
                if self.answers.len() < ANSWERS_MAX {
                    self.answers.push_back((from, cookie));
                }
            }
            H1Decision::New => {
                let first = PendingH1::new(access_key, datagram)
                    .expect("mac1 was verified with this access key");
                half_opens.insert_begun(now, from, door, first, proven);
            }
        }
        true
    }

    /// Handles the second datagram of an H1 after the first from the same address, and answers it.
    pub(super) fn handle_second_of_h1(
        &mut self,
        now: Time,
        from: PathAddr,
        datagram: &Mac1Datagram<'_>,
    ) -> bool {
        match self.half_opens.follow(now, from, datagram) {
            None => false,
            Some(SecondDatagram::Repeat(h2)) => {
                self.answer(from, h2);
                true
            }
            Some(SecondDatagram::Whole(attempt, first)) => {
                self.answer_h1(now, attempt, &first, datagram)
            }
        }
    }

    fn answer_h1(
        &mut self,
        now: Time,
        attempt: Attempt,
        first: &PendingH1,
        second: &Mac1Datagram<'_>,
    ) -> bool {
        // Further connections may have been accepted since the first datagram.
        if self.is_full() || !has_room(&self.doors, &self.connections, attempt.door) {
            self.half_opens.on_no_room(&attempt);
            return false;
        }
        let ephemeral = first.ephemeral_id();
        if !self.half_opens.is_new(now, &ephemeral, &attempt) {
            self.half_opens.on_refused(now, attempt.remote, attempt.proven);
            return false;
        }
        let mut secrets = self.secrets.draw();
        let own = self.ephemerals.take(&mut self.secrets);
        let identity = &self.config.identity;
        let read = Responder::read_h1(identity, first, second.bytes(), &own, &mut *secrets);
        let Ok((responder, hello)) = read else {
            self.half_opens.on_unauthentic(now, &attempt);
            return false;
        };
        // A copy of an H1 is as fresh as the first that arrived.
        let is_first = self.half_opens.on_authentic(now, ephemeral, &attempt);
        if is_first && !self.is_fresh(now, &hello, attempt.door, first.access_key(), &ephemeral) {
            self.half_opens.on_stale(&ephemeral);
            self.half_opens.on_refused(now, attempt.remote, attempt.proven);
            return false;
        }
        let made = self.make_h2(attempt.remote, responder, &hello);
        let Some((responder, suite, h2)) = made else {
            self.half_opens.on_refused(now, attempt.remote, attempt.proven);
            return false;
        };
        // Answers are pushed to the front, so the last one is pushed first.
        for datagram in h2.iter().rev() {
            self.answer(attempt.remote, datagram.clone());
        }
        let answered = AnsweredH1 { responder, suite, h2, second: second.fingerprint(), at: now };
        self.half_opens.insert_answered(attempt, answered);
        true
    }

    /// Builds the H2 that answers an authentic H1. Returns `None` if there is no common cipher
    /// suite.
    fn make_h2(
        &mut self,
        from: PathAddr,
        mut responder: Responder,
        hello: &InitiatorHello,
    ) -> Option<(Responder, Suite, [Vec<u8>; 2])> {
        let suite = negotiate(hello, self.config.transport.suites, aes_hardware())?;
        let answer = ResponderHello {
            suite,
            observed: from.ip().unwrap_or(NO_ADDRESS),
            parameters: parameters(&self.config.transport),
        };
        let h2 = responder.write_h2(&answer, &mut self.rng).ok()?;
        Some((responder, suite, h2))
    }

    /// Queues an H2, ahead of cookies for other initiators.
    fn answer(&mut self, to: PathAddr, h2: Vec<u8>) {
        self.answers.truncate(ANSWERS_MAX - 1);
        self.answers.push_front((to, h2));
    }
}

/// Returns whether this door is open, and more connections can come through it.
fn has_room(doors: &Doors, connections: &Slots, id: DoorId) -> bool {
    doors.get(id).is_some_and(|door| connections.count_of(id) < door.connections_max)
}
