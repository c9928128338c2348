//! The streams of one side, without threads.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use wraith_core::streams::Read;
use wraith_core::{CloseReason, Connection, Event, StreamId, Time};

/// The streams of one side: bytes that wait for room, and bytes that wait for the rest of their
/// message.
#[derive(Debug, Default)]
pub(super) struct Streams {
    outgoing: BTreeMap<StreamId, VecDeque<Bytes>>,
    pub(super) incoming: BTreeMap<StreamId, Vec<u8>>,
    readable: Vec<StreamId>,
    pub(super) closed: Option<CloseReason>,
}

impl Streams {
    pub(super) fn on_event(&mut self, event: Event) {
        match event {
            Event::StreamOpened(id) | Event::Readable(id) => self.readable.push(id),
            Event::Closed(reason) => self.closed = Some(reason),
            _ => {}
        }
    }

    /// Appends all new bytes to the streams' buffers.
    pub(super) fn read(&mut self, now: Time, connection: &mut Connection) {
        for id in std::mem::take(&mut self.readable) {
            while let Ok(Read::Slice(slice)) = connection.read(now, id) {
                self.incoming.entry(id).or_default().extend_from_slice(&slice);
            }
        }
    }

    pub(super) fn write(&mut self, id: StreamId, bytes: impl Into<Bytes>) {
        self.outgoing.entry(id).or_default().push_back(bytes.into());
    }

    pub(super) fn queued(&self, id: StreamId) -> usize {
        self.outgoing.get(&id).map_or(0, |queue| queue.iter().map(Bytes::len).sum())
    }

    /// Hands the waiting bytes to the core, as far as it has room.
    pub(super) fn flush(&mut self, connection: &mut Connection) {
        for (&id, queue) in &mut self.outgoing {
            while let Some(mut bytes) = queue.pop_front() {
                let room = connection.send_capacity(id).min(bytes.len());
                let later = bytes.split_off(room);
                if !bytes.is_empty() {
                    connection.write(id, bytes).expect("the peer reads every stream");
                }
                if !later.is_empty() {
                    queue.push_front(later);
                    break;
                }
            }
        }
    }
}

/// Takes a length and that many bytes from the front.
pub(super) fn take_prefixed(bytes: &mut Vec<u8>) -> Option<Vec<u8>> {
    let len = u32::from_be_bytes(*bytes.first_chunk()?) as usize;
    if bytes.len() < 4 + len {
        return None;
    }
    let rest = bytes.split_off(4 + len);
    Some(std::mem::replace(bytes, rest).split_off(4))
}
