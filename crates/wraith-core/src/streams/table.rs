//! The live streams of a connection, by id.
//!
//! Each opener has a list of its streams, ordered by sequence number, and a count of the streams
//! that it opened. A sequence number that is below that count but not in the list belongs to a
//! removed stream. New streams are appended. A lookup first tries the position of the last lookup,
//! then the position that is right if no stream in between was removed. If both are wrong, the
//! lookup is a binary search. Memory is proportional to the live streams.

use std::collections::VecDeque;

use super::stream::Stream;
use super::{Role, StreamId};

#[derive(Debug, Default)]
struct Side {
    live: VecDeque<(u64, Box<Stream>)>,
    opened: u64,
    /// Position of the last successful lookup.
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

    /// Returns the number of streams that `opener` has opened, including removed ones.
    pub(super) fn opened(&mut self, opener: Role) -> u64 {
        self.side(opener).opened
    }

    /// Returns the number of live streams.
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

    /// Returns the stream, unless it was removed or never opened.
    #[inline]
    pub(super) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        let side = self.side(id.opener());
        side.last = side.find(id.sequence())?;
        side.live.get_mut(side.last).map(|(_, stream)| &mut **stream)
    }

    /// Removes a stream and returns its memory.
    pub(super) fn remove(&mut self, id: StreamId) -> Option<Box<Stream>> {
        let side = self.side(id.opener());
        let i = side.find(id.sequence())?;
        side.live.remove(i).map(|(_, stream)| stream)
    }

    /// Iterates over all live streams.
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

    /// Cold: successive packets carry the same stream. Thus the common lookup is small enough to be
    /// inlined.
    #[cold]
    #[inline(never)]
    fn search(&self, sequence: u64) -> Option<usize> {
        // If no stream in between was removed, the position follows from the distance to the first.
        let distance = sequence.checked_sub(self.live.front()?.0)? as usize;
        if self.live.get(distance).is_some_and(|(found, _)| *found == sequence) {
            return Some(distance);
        }
        self.live.binary_search_by_key(&sequence, |(found, _)| *found).ok()
    }
}
