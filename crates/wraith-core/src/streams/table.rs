//! The live streams of a connection, found by id.
//!
//! One side for each opener: its streams in order of their sequence, and how many it has opened. A sequence below
//! that count which is not found belongs to a stream that is over and forgotten. Streams are added at the end. A
//! lookup first tries where the last one succeeded, then where the stream stands if none in between is forgotten;
//! otherwise it is a binary search. Memory is proportional to the live streams, not to those ever opened.

use std::collections::VecDeque;

use super::stream::Stream;
use super::{Role, StreamId};

#[derive(Debug, Default)]
struct Side {
    live: VecDeque<(u64, Box<Stream>)>,
    opened: u64,
    /// Where the last lookup succeeded.
    last: usize,
}

/// All streams of a connection.
#[derive(Debug, Default)]
pub(super) struct Table {
    initiator: Side,
    responder: Side,
}

impl Table {
    fn side(&mut self, opener: Role) -> &mut Side {
        match opener {
            Role::Initiator => &mut self.initiator,
            Role::Responder => &mut self.responder,
        }
    }

    /// Streams that `opener` has opened, dead or alive.
    pub(super) fn opened(&mut self, opener: Role) -> u64 {
        self.side(opener).opened
    }

    /// Live streams.
    pub(super) fn len(&self) -> usize {
        self.initiator.live.len() + self.responder.live.len()
    }

    /// Adds the next stream of `opener`.
    pub(super) fn open(&mut self, opener: Role, stream: Box<Stream>) -> StreamId {
        let side = self.side(opener);
        let id = StreamId::new(opener, side.opened);
        side.live.push_back((side.opened, stream));
        side.opened += 1;
        id
    }

    /// The stream, unless it is over or was never opened.
    #[inline]
    pub(super) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        let side = self.side(id.opener());
        side.last = side.find(id.sequence())?;
        side.live.get_mut(side.last).map(|(_, stream)| &mut **stream)
    }

    /// Forgets a stream.
    pub(super) fn remove(&mut self, id: StreamId) {
        let side = self.side(id.opener());
        if let Some(i) = side.find(id.sequence()) {
            side.live.remove(i);
        }
    }

    /// Every live stream.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (StreamId, &mut Stream)> {
        let initiator = self.initiator.live.iter_mut().map(|entry| (Role::Initiator, entry));
        let responder = self.responder.live.iter_mut().map(|entry| (Role::Responder, entry));
        initiator
            .chain(responder)
            .map(|(opener, (sequence, stream))| (StreamId::new(opener, *sequence), &mut **stream))
    }
}

impl Side {
    #[inline]
    fn find(&self, sequence: u64) -> Option<usize> {
        if self.live.get(self.last).is_some_and(|(found, _)| *found == sequence) {
            return Some(self.last);
        }
        self.search(sequence)
    }

    /// Cold: packets in a row are of the same stream. So the lookup of every packet is small enough to be inlined.
    #[cold]
    #[inline(never)]
    fn search(&self, sequence: u64) -> Option<usize> {
        // Without forgotten ones in between, streams stand where their distance to the first says.
        let distance = sequence.checked_sub(self.live.front()?.0)? as usize;
        if self.live.get(distance).is_some_and(|(found, _)| *found == sequence) {
            return Some(distance);
        }
        self.live.binary_search_by_key(&sequence, |(found, _)| *found).ok()
    }
}
