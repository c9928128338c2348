//! Forwarding from one end of a pair to the other.
//!
//! A received buffer holds one datagram, or a run of equal-sized ones that the kernel merged. It is
//! split into runs with the same destination. Each header is rewritten in place, so a run leaves in
//! one call. Datagrams forwarded by UDP are neither allocated nor copied.
//!
//! Invariant: a datagram received over UDP is forwarded only with the tag of an end, and only from
//! the bound address of that end's client. No other datagram is forwarded. If the tag is right but
//! the address is new, the relay may send a challenge to that address. The challenge is no longer
//! than the datagram.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::Instant;

use super::{EndNumber, Pair, Table};
use crate::header::{self, HEADER_BYTES, WireId};

/// Action for a part of a received buffer.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Forward these bytes of the buffer.
    Send {
        /// Range in the buffer.
        range: Range<usize>,
        /// Destination.
        to: SocketAddr,
    },
    /// Send this reply to the source of the buffer.
    Reply(Vec<u8>),
    /// Not a datagram of a client; the reflector may recognise it.
    Unknown(Range<usize>),
}

/// Result for a datagram that came over TLS.
#[derive(Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// Handled.
    Done,
    /// Send this datagram over UDP, header included.
    ByUdp(SocketAddr, Vec<u8>),
}

/// Adjacent datagrams with the same destination.
struct DatagramRun {
    range: Range<usize>,
    pair: usize,
    side: usize,
}

impl Table {
    /// Handles the datagrams in `buffer` from `from`, all but the last `stride` bytes long.
    pub fn forward(
        &mut self,
        now: Instant,
        from: SocketAddr,
        buffer: &mut [u8],
        stride: usize,
        actions: &mut Vec<Action>,
    ) {
        let mut run: Option<DatagramRun> = None;
        let bound = self.addresses.bound_at(from);
        let mut start = 0;
        while start < buffer.len() {
            let range = start..(start + stride).min(buffer.len());
            start = range.end;
            let datagram = &mut buffer[range.clone()];
            match self.sender_of(bound, from, datagram) {
                Sender::End(pair, side) => {
                    if !self.within_limits(now, (pair, side), true, datagram.len() - HEADER_BYTES) {
                        continue;
                    }
                    match &mut run {
                        Some(run)
                            if (run.pair, run.side) == (pair, side)
                                && run.range.end == range.start =>
                        {
                            run.range.end = range.end;
                        }
                        _ => {
                            let new = DatagramRun { range, pair, side };
                            if let Some(done) = run.replace(new) {
                                self.send_on(now, buffer, stride, done, actions);
                            }
                        }
                    }
                }
                Sender::Moved(client) => {
                    let reply = self.challenge(now, client, from, datagram.len());
                    actions.extend(reply.map(Action::Reply));
                }
                Sender::Binding(client) => match self.on_binding(now, client, from, datagram) {
                    Some(reply) => actions.push(Action::Reply(reply)),
                    None => self.metrics.unauthentic.add(1),
                },
                Sender::Unknown => actions.push(Action::Unknown(range)),
            }
        }
        if let Some(done) = run {
            self.send_on(now, buffer, stride, done, actions);
        }
    }

    /// Finds the sender of a datagram, with a bounded number of trials (see [`AddressIndex`]). A
    /// client that a NAT has moved to another IP address is found by its next binding message.
    ///
    /// [`AddressIndex`]: super::address_index::AddressIndex
    fn sender_of(&self, bound: Option<usize>, from: SocketAddr, datagram: &[u8]) -> Sender {
        if let Some((pair, side)) = bound.and_then(|client| self.end_of(client, datagram)) {
            return Sender::End(pair, side);
        }
        let id = header::read_plain_id(datagram);
        if let Some(client) = id.and_then(|id| self.bind_ids.get(&id)) {
            return Sender::Binding(*client);
        }
        for client in self.addresses.near(from.ip()).filter(|client| Some(*client) != bound) {
            if let Some((pair, side)) = self.end_of(client, datagram) {
                let is_bound = self.clients.get(client).is_some_and(|of| of.is_bound_to(from));
                // Several sessions may share a socket.
                return if is_bound { Sender::End(pair, side) } else { Sender::Moved(client) };
            }
        }
        Sender::Unknown
    }

    /// Returns the end from which client `number` sent `datagram`, if it did.
    #[inline]
    fn end_of(&self, number: usize, datagram: &[u8]) -> Option<EndNumber> {
        let id = header::read_id(&self.clients.get(number)?.up_mask, datagram)?;
        let (pair, side) = *self.targets.get(&id)?;
        let end = &self.pairs.get(pair)?.ends[side];
        (end.client == number && end.up_tag.matches(datagram)).then_some((pair, side))
    }

    /// Charges `bytes` from end `side` of `pair` to all limits. Returns false if they are dropped.
    fn within_limits(
        &mut self,
        now: Instant,
        (pair, side): (usize, usize),
        by_udp: bool,
        bytes: usize,
    ) -> bool {
        let Self { pairs, clients, sources, limits, shares, day, metrics, .. } = self;
        let Some(pair) = pairs.get_mut(pair) else { return false };
        pair.used = now;
        pair.ends[side].has_sent = true;
        let Pair { ends, bucket, usage, place, .. } = pair;
        let allowed = bucket.take(limits.pair_rate, now, bytes)
            && clients.get(ends[side].client).is_some_and(|client| {
                let source = client.udp_source.filter(|_| by_udp).unwrap_or(client.source);
                sources.take_bytes(now, limits.address_rate, source, bytes)
            })
            && shares.take(limits.total_rate, now, usage, place, bytes)
            && day.take(limits.day_bytes, now, bytes);
        if !allowed {
            metrics.limited.add(1);
        }
        allowed
    }

    /// Rewrites the headers of a run for the other end, and appends its action.
    fn send_on(
        &mut self,
        now: Instant,
        buffer: &mut [u8],
        stride: usize,
        run: DatagramRun,
        actions: &mut Vec<Action>,
    ) {
        let Some(pair) = self.pairs.get(run.pair) else { return };
        let to = &pair.ends[1 - run.side];
        let datagrams = buffer[run.range.clone()].chunks_mut(stride);
        let count = datagrams.len() as u64;
        let bytes = run.range.len() as u64 - count * HEADER_BYTES as u64;
        if let Some(address) = self.udp_address(now, to.client) {
            datagrams.for_each(|datagram| {
                header::write(&to.down_mask, &to.down_tag, to.id, datagram);
            });
            actions.push(Action::Send { range: run.range, to: address });
        } else if let Some(link) =
            self.clients.get(to.client).and_then(|client| client.link.as_ref())
        {
            for datagram in datagrams {
                if !link.push_datagram(to.id, &datagram[HEADER_BYTES..]) {
                    self.metrics.overflowed.add(1);
                }
            }
        } else {
            self.metrics.unreachable.add(count);
            return;
        }
        self.metrics.forwarded.add(count);
        self.metrics.forwarded_bytes.add(bytes);
    }

    /// Handles a datagram from end `id` over the connection of client `number`.
    pub fn forward_frame(
        &mut self,
        now: Instant,
        number: usize,
        id: WireId,
        datagram: &[u8],
    ) -> Forwarded {
        let Some((pair, side)) = self.targets.get(&id).copied() else {
            return Forwarded::Done;
        };
        let is_own = self.pairs.get(pair).is_some_and(|pair| pair.ends[side].client == number);
        if !is_own || !self.within_limits(now, (pair, side), false, datagram.len()) {
            return Forwarded::Done;
        }
        let Some(to) = self.pairs.get(pair).map(|pair| &pair.ends[1 - side]) else {
            return Forwarded::Done;
        };
        self.metrics.forwarded.add(1);
        self.metrics.forwarded_bytes.add(datagram.len() as u64);
        if let Some(address) = self.udp_address(now, to.client) {
            let mut whole = vec![0; HEADER_BYTES + datagram.len()];
            whole[HEADER_BYTES..].copy_from_slice(datagram);
            header::write(&to.down_mask, &to.down_tag, to.id, &mut whole);
            return Forwarded::ByUdp(address, whole);
        }
        match self.clients.get(to.client).and_then(|client| client.link.as_ref()) {
            Some(link) if link.push_datagram(to.id, datagram) => {}
            Some(_) => self.metrics.overflowed.add(1),
            None => self.metrics.unreachable.add(1),
        }
        Forwarded::Done
    }
}

/// Sender of a datagram.
#[derive(Clone, Copy, Debug)]
enum Sender {
    /// An end, from the bound address of its client: its pair and its side.
    End(usize, usize),
    /// A client, from another address.
    Moved(usize),
    /// Possibly a binding message of a client.
    Binding(usize),
    Unknown,
}
