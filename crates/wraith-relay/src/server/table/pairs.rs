//! The pairs of a relay: made by a dial, and closed by either side or with its session.
//!
//! Invariant: the pairs of an address equal those in its account ([`Sources`](super::sources::Sources)).

use std::sync::Arc;
use std::time::Instant;

use super::{DIALLER, PAIRS_PER_CLIENT, Pair, PairEnd, Table};
use crate::frame::{Mailbox, Refusal, ServerFrame};
use crate::header::{Direction, TagKey, WireId, down_mask};
use crate::server::rate::{Bucket, PairDemand};

impl Table {
    /// Makes a pair of a client and the client that waits at `mailbox`, and notifies the waiting
    /// client. Returns the ID of the caller's end.
    pub fn dial(
        &mut self,
        now: Instant,
        number: usize,
        mailbox: &Mailbox,
    ) -> Result<WireId, Refusal> {
        let result = self.make_pair(now, number, mailbox);
        if result.is_err() {
            self.metrics.dials_refused.add(1);
        }
        result
    }

    fn make_pair(
        &mut self,
        now: Instant,
        number: usize,
        mailbox: &Mailbox,
    ) -> Result<WireId, Refusal> {
        let source = self.clients.get(number).ok_or(Refusal::Full)?.source;
        if self.draining {
            return Err(Refusal::Draining);
        }
        if !self.dials.allow(source, now) {
            return Err(Refusal::TooOften);
        }
        if !self.day.take(self.limits.day_bytes, now, 0) {
            return Err(Refusal::Exhausted);
        }
        let waiting = self.mailboxes.get(mailbox).copied().filter(|waiting| *waiting != number);
        let waiting = waiting.ok_or(Refusal::NoMailbox)?;
        let peer = self.clients.get(waiting).ok_or(Refusal::NoMailbox)?;
        let link = Arc::clone(peer.link.as_ref().ok_or(Refusal::NoMailbox)?);
        if self.pairs.len() >= self.limits.pairs || peer.pairs.len() >= PAIRS_PER_CLIENT {
            return Err(Refusal::Full);
        }
        self.sources.add_pair(&self.limits, source)?;
        let ends = [number, waiting].map(|client| self.new_end(client));
        let ids = [ends[0].id, ends[1].id];
        let pair = self.pairs.insert(Pair {
            ends,
            made: now,
            used: now,
            bucket: Bucket::new(now),
            usage: PairDemand::default(),
            place: 0,
        });
        for (side, client) in [number, waiting].into_iter().enumerate() {
            self.targets.insert(ids[side], (pair, side));
            let Some(client) = self.clients.get_mut(client) else { continue };
            client.pairs.push(pair);
        }
        link.push_control(|out| ServerFrame::Incoming(ids[1], *mailbox).encode(out));
        self.metrics.pairs_made.add(1);
        self.metrics.pairs.set(self.pairs.len() as u64);
        Ok(ids[0])
    }

    fn new_end(&mut self, client: usize) -> PairEnd {
        let id = self.draw();
        let secret = self.clients.get(client).map(|client| client.secret).unwrap_or_default();
        PairEnd {
            client,
            id,
            up_tag: TagKey::new(&secret, id, Direction::Up),
            down_tag: TagKey::new(&secret, id, Direction::Down),
            down_mask: down_mask(&secret),
            has_sent: false,
        }
    }

    /// Closes a pair at the request of one end's client.
    pub fn hang_up(&mut self, number: usize, id: WireId) {
        if let Some((pair, side)) = self.targets.get(&id).copied()
            && self.pairs.get(pair).is_some_and(|pair| pair.ends[side].client == number)
        {
            self.close_pair(pair, Some(number));
        }
    }

    /// Removes a pair and notifies its clients, except the client `by` that closed it.
    pub(super) fn close_pair(&mut self, number: usize, by: Option<usize>) {
        let Some(pair) = self.pairs.remove(number) else { return };
        let dialler = self.clients.get(pair.ends[DIALLER].client).map(|client| client.source);
        if let Some(source) = dialler {
            self.sources.remove_pair(source);
        }
        for end in pair.ends {
            self.targets.remove(&end.id);
            let Some(client) = self.clients.get_mut(end.client) else { continue };
            client.pairs.retain(|of| *of != number);
            if by == Some(end.client) {
                continue;
            }
            match &client.link {
                Some(link) => link.push_control(|out| ServerFrame::Closed(end.id).encode(out)),
                None => client.closed_while_disconnected.push(end.id),
            }
        }
        self.metrics.pairs.set(self.pairs.len() as u64);
        if self.draining && !self.has_pairs() {
            self.drained.notify_one();
        }
    }
}
