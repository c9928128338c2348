//! Writes frames into a packet.
//!
//! Invariant: a frame is written completely or not at all. Each method returns false and writes
//! nothing when its frame does not fit. [`FrameWriter::ack`] and [`FrameWriter::stream`] may write
//! a smaller frame than requested.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use bytes::Bytes;

use super::address::{self, ADDRESS_BYTES};
use super::{ACK_RANGES_MAX, CANDIDATES_MAX, EcnCounts, REASON_BYTES_MAX, kind};
use crate::varint;

/// Smallest fragment of stream data that is worth a frame header.
const FRAGMENT_BYTES_MIN: usize = 32;

/// The result of writing a packet's frames.
#[derive(Debug)]
pub struct Written {
    /// Total length of the frames, in bytes.
    pub len: usize,
    /// The last bytes, if they were not copied into the packet. Their place in it is still empty.
    pub tail: Option<Bytes>,
}

/// Appends frames to the payload of a packet.
#[derive(Debug)]
pub struct FrameWriter<'a> {
    buf: &'a mut [u8],
    len: usize,
    tail: Option<Bytes>,
}

impl<'a> FrameWriter<'a> {
    /// Writes into `buf`, the packet's room for frames without its tag.
    pub fn new(buf: &'a mut [u8]) -> Self {
        Self { buf, len: 0, tail: None }
    }

    /// Ends the packet.
    pub fn finish(self) -> Written {
        Written { len: self.len, tail: self.tail }
    }

    /// Ends the packet, copies an uncopied tail into place and returns the length.
    pub fn complete(self) -> usize {
        if let Some(tail) = &self.tail {
            self.buf[self.len - tail.len()..self.len].copy_from_slice(tail);
        }
        self.len
    }

    /// Returns the number of bytes written.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of free bytes.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.buf.len() - self.len
    }

    /// Writes `bytes` bytes of PADDING.
    pub fn padding(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.remaining();
        if fits {
            self.buf[self.len..self.len + bytes].fill(kind::PADDING);
            self.len += bytes;
        }
        fits
    }

    /// Writes PING.
    pub fn ping(&mut self) -> bool {
        self.numbers(kind::PING, &[])
    }

    /// Writes ACK for `ranges`, which must be in descending order, disjoint and not adjacent. If
    /// not all ranges fit, the highest ones are written. Returns false if there is no range or the
    /// first does not fit.
    pub fn ack(
        &mut self,
        delay_us: u64,
        ranges: impl Iterator<Item = RangeInclusive<u64>> + Clone,
        ecn: Option<EcnCounts>,
    ) -> bool {
        let mut walk = ranges.clone();
        let Some(top) = walk.next() else { return false };
        let (largest, first) = (*top.end(), top.end() - top.start());
        // Two bytes are reserved for the count, which is at most ACK_RANGES_MAX.
        let fixed = 1 + varint::len(largest) + varint::len(delay_us) + 2 + varint::len(first);
        let tail = ecn.map_or(0, |ecn| [ecn.ect0, ecn.ect1, ecn.ce].map(varint::len).iter().sum());
        let Some(mut room) = self.remaining().checked_sub(fixed + tail) else { return false };

        let pair = |above: u64, range: &RangeInclusive<u64>| {
            (above - range.end() - 2, range.end() - range.start())
        };
        let mut count = 0;
        let mut above = *top.start();
        for range in walk.take(ACK_RANGES_MAX as usize - 1) {
            let (gap, len) = pair(above, &range);
            let Some(left) = room.checked_sub(varint::len(gap) + varint::len(len)) else { break };
            (room, above, count) = (left, *range.start(), count + 1);
        }
        let kind = if ecn.is_some() { kind::ACK_ECN } else { kind::ACK };
        self.put(kind, &[largest, delay_us, count, first]);
        let mut above = *top.start();
        for range in ranges.skip(1).take(count as usize) {
            let (gap, len) = pair(above, &range);
            self.put_numbers(&[gap, len]);
            above = *range.start();
        }
        if let Some(EcnCounts { ect0, ect1, ce }) = ecn {
            self.put_numbers(&[ect0, ect1, ce]);
        }
        true
    }

    /// Writes RESET_STREAM.
    pub fn reset_stream(&mut self, id: u64, code: u64, final_size: u64) -> bool {
        self.numbers(kind::RESET_STREAM, &[id, code, final_size])
    }

    /// Writes STOP_SENDING.
    pub fn stop_sending(&mut self, id: u64, code: u64) -> bool {
        self.numbers(kind::STOP_SENDING, &[id, code])
    }

    /// Writes STREAM with up to `available` bytes from `offset`, as many as fit; `fill` copies them
    /// into the packet. Returns their number, or `None`, with nothing written, if no useful part
    /// fits. The FIN bit is set if `fin` and all of them fit.
    ///
    /// A frame that reaches the end of the packet has no length field. A frame that would end less
    /// than a length field before the end is moved there by PADDING in front.
    pub fn stream(
        &mut self,
        id: u64,
        offset: u64,
        available: usize,
        fin: bool,
        fill: impl FnOnce(&mut [u8]),
    ) -> Option<usize> {
        let source = |to: &mut [u8], _| {
            fill(to);
            None
        };
        self.stream_from(id, offset, available, fin, source)
    }

    /// Like [`Self::stream`], but `source` need not copy. A true second argument means that the
    /// frame ends the packet. Then `source` may return the bytes instead, exactly as many as it
    /// would copy. They become [`Written::tail`].
    #[inline]
    pub fn stream_from(
        &mut self,
        id: u64,
        offset: u64,
        available: usize,
        fin: bool,
        source: impl FnOnce(&mut [u8], bool) -> Option<Bytes>,
    ) -> Option<usize> {
        let header = 1 + varint::len(id) + varint::len(offset);
        let room = self.remaining().checked_sub(header)?;
        if room < available && room < FRAGMENT_BYTES_MIN {
            return None;
        }
        let len = available.min(room);
        let mut kind = kind::STREAM;
        if fin && len == available {
            kind |= kind::STREAM_FIN;
        }
        if len + varint::len(len as u64) <= room {
            self.put(kind | kind::STREAM_LENGTH, &[id, offset, len as u64]);
        } else {
            self.padding(room - len);
            self.put(kind, &[id, offset]);
        }
        let ends = self.remaining() == len;
        let room = &mut self.buf[self.len..self.len + len];
        self.tail = source(room, ends).filter(|tail| {
            assert!(
                ends && tail.len() == len,
                "only all bytes of the last frame may stay elsewhere"
            );
            true
        });
        self.len += len;
        Some(len)
    }

    /// Writes MAX_DATA.
    pub fn max_data(&mut self, maximum: u64) -> bool {
        self.numbers(kind::MAX_DATA, &[maximum])
    }

    /// Writes MAX_STREAM_DATA.
    pub fn max_stream_data(&mut self, id: u64, maximum: u64) -> bool {
        self.numbers(kind::MAX_STREAM_DATA, &[id, maximum])
    }

    /// Writes MAX_STREAMS.
    pub fn max_streams(&mut self, maximum: u64) -> bool {
        self.numbers(kind::MAX_STREAMS, &[maximum])
    }

    /// Writes DATA_BLOCKED.
    pub fn data_blocked(&mut self, maximum: u64) -> bool {
        self.numbers(kind::DATA_BLOCKED, &[maximum])
    }

    /// Writes STREAM_DATA_BLOCKED.
    pub fn stream_data_blocked(&mut self, id: u64, maximum: u64) -> bool {
        self.numbers(kind::STREAM_DATA_BLOCKED, &[id, maximum])
    }

    /// Writes STREAMS_BLOCKED.
    pub fn streams_blocked(&mut self, maximum: u64) -> bool {
        self.numbers(kind::STREAMS_BLOCKED, &[maximum])
    }

    /// Writes DATAGRAM.
    pub fn datagram(&mut self, data: &[u8]) -> bool {
        let room = self.remaining();
        let len = data.len() as u64;
        if room == 1 + data.len() {
            self.put(kind::DATAGRAM, &[]);
        } else if room >= 1 + varint::len(len) + data.len() {
            self.put(kind::DATAGRAM_LENGTH, &[len]);
        } else {
            return false;
        }
        self.put_bytes(data);
        true
    }

    /// Writes PATH_CHALLENGE.
    pub fn path_challenge(&mut self, challenge: [u8; 8]) -> bool {
        self.fixed(kind::PATH_CHALLENGE, &challenge)
    }

    /// Writes PATH_RESPONSE.
    pub fn path_response(&mut self, challenge: [u8; 8]) -> bool {
        self.fixed(kind::PATH_RESPONSE, &challenge)
    }

    /// Writes CANDIDATES with the first [`CANDIDATES_MAX`](super::CANDIDATES_MAX) addresses.
    #[cold]
    pub fn candidates(&mut self, sequence: u64, addresses: &[SocketAddr]) -> bool {
        let addresses = &addresses[..addresses.len().min(CANDIDATES_MAX)];
        let mut body = [0; 8 + 1 + CANDIDATES_MAX * ADDRESS_BYTES];
        let mut len = varint::write(&mut body, sequence);
        body[len] = addresses.len() as u8;
        len += 1;
        for address in addresses {
            body[len..len + ADDRESS_BYTES].copy_from_slice(&address::encode(*address));
            len += ADDRESS_BYTES;
        }
        self.fixed(kind::CANDIDATES, &body[..len])
    }

    /// Writes RATCHET.
    #[cold]
    pub fn ratchet(&mut self, number: u64, part: u8, bytes: &[u8]) -> bool {
        let len = bytes.len() as u64;
        let fits = 1 + varint::len(number) + 1 + varint::len(len) + bytes.len() <= self.remaining();
        if fits {
            self.put(kind::RATCHET, &[number]);
            self.put_bytes(&[part]);
            self.put_numbers(&[len]);
            self.put_bytes(bytes);
        }
        fits
    }

    /// Writes OBSERVED_ADDRESS.
    pub fn observed_address(&mut self, address: SocketAddr) -> bool {
        self.fixed(kind::OBSERVED_ADDRESS, &address::encode(address))
    }

    /// Writes ACK_FREQUENCY.
    pub fn ack_frequency(&mut self, sequence: u64, packets: u64, max_delay_us: u64) -> bool {
        self.numbers(kind::ACK_FREQUENCY, &[sequence, packets, max_delay_us])
    }

    /// Writes IMMEDIATE_ACK.
    pub fn immediate_ack(&mut self) -> bool {
        self.numbers(kind::IMMEDIATE_ACK, &[])
    }

    /// Writes CLOSE. The reason is cut at a character boundary so that it fits and has at most
    /// [`REASON_BYTES_MAX`] bytes.
    pub fn close(&mut self, code: u64, reason: &str) -> bool {
        // Two bytes are reserved for the length.
        let Some(room) = self.remaining().checked_sub(1 + varint::len(code) + 2) else {
            return false;
        };
        let reason = &reason[..reason.floor_char_boundary(room.min(REASON_BYTES_MAX))];
        self.put(kind::CLOSE, &[code, reason.len() as u64]);
        self.put_bytes(reason.as_bytes());
        true
    }

    /// Writes a frame that consists of nothing but numbers.
    fn numbers(&mut self, kind: u8, numbers: &[u64]) -> bool {
        let need = 1 + numbers.iter().map(|&number| varint::len(number)).sum::<usize>();
        let fits = need <= self.remaining();
        if fits {
            self.put(kind, numbers);
        }
        fits
    }

    /// Writes a frame with a body of fixed content.
    fn fixed(&mut self, kind: u8, body: &[u8]) -> bool {
        let fits = body.len() < self.remaining();
        if fits {
            self.put(kind, &[]);
            self.put_bytes(body);
        }
        fits
    }

    #[inline]
    fn put(&mut self, kind: u8, numbers: &[u64]) {
        self.buf[self.len] = kind;
        self.len += 1;
        self.put_numbers(numbers);
    }

    #[inline]
    fn put_numbers(&mut self, numbers: &[u64]) {
        for &number in numbers {
            self.len += varint::write(&mut self.buf[self.len..], number);
        }
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.buf[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}
