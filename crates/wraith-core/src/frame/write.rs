//! Writing frames into a packet being built.
//!
//! Invariant: a frame is written whole or not at all. Each method returns false, with nothing written, when its
//! frame does not fit; the exceptions are [`FrameWriter::ack`] and [`FrameWriter::stream`], which may write a
//! smaller frame than asked for.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use bytes::Bytes;

use super::address::{self, ADDRESS_BYTES};
use super::{ACK_RANGES_MAX, CANDIDATES_MAX, EcnCounts, REASON_BYTES_MAX, kind};
use crate::varint;

/// Smallest piece of a longer run of stream bytes worth the header of a frame of its own.
const FRAGMENT_BYTES_MIN: usize = 32;

/// What was written into a packet.
#[derive(Debug)]
pub struct Written {
    /// Bytes of all frames.
    pub len: usize,
    /// The last of them, if they were not copied: their place in the packet is still empty.
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
    /// Writes into `buf`, all of the room the packet has for frames (its tag not included).
    pub fn new(buf: &'a mut [u8]) -> Self {
        Self { buf, len: 0, tail: None }
    }

    /// Ends the packet.
    pub fn finish(self) -> Written {
        Written { len: self.len, tail: self.tail }
    }

    /// Ends the packet with all bytes in their place; how many they are.
    pub fn complete(self) -> usize {
        if let Some(tail) = &self.tail {
            self.buf[self.len - tail.len()..self.len].copy_from_slice(tail);
        }
        self.len
    }

    /// Bytes written.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes still free.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.buf.len() - self.len
    }

    /// `bytes` bytes of PADDING.
    pub fn padding(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.remaining();
        if fits {
            self.buf[self.len..self.len + bytes].fill(kind::PADDING);
            self.len += bytes;
        }
        fits
    }

    /// PING.
    pub fn ping(&mut self) -> bool {
        self.numbers(kind::PING, &[])
    }

    /// ACK of `ranges`, which come from the largest down, disjoint and not adjacent. When not all fit, the highest
    /// that do are written; false if there is none or not even the first fits.
    pub fn ack(
        &mut self,
        delay_us: u64,
        ranges: impl Iterator<Item = RangeInclusive<u64>> + Clone,
        ecn: Option<EcnCounts>,
    ) -> bool {
        let mut walk = ranges.clone();
        let Some(top) = walk.next() else { return false };
        let (largest, first) = (*top.end(), top.end() - top.start());
        // Two bytes are set aside for the count, whatever it will be (at most ACK_RANGES_MAX).
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

    /// RESET_STREAM.
    pub fn reset_stream(&mut self, id: u64, code: u64, final_size: u64) -> bool {
        self.numbers(kind::RESET_STREAM, &[id, code, final_size])
    }

    /// STOP_SENDING.
    pub fn stop_sending(&mut self, id: u64, code: u64) -> bool {
        self.numbers(kind::STOP_SENDING, &[id, code])
    }

    /// STREAM with up to `available` bytes from `offset` on, as many as fit, which `fill` copies into the packet.
    /// Returns how many; `None`, with nothing written, if not even a useful part fits. The FIN bit is set if `fin`
    /// and all of them fit.
    ///
    /// A frame that reaches the end of the packet carries no length. One that would miss it by less than a length
    /// field is moved to the end by PADDING in front.
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

    /// As [`Self::stream`], but `source` need not copy: for a frame that ends the packet (then its second argument is
    /// true) it may return the bytes instead, as many as it would copy. They are [`Written::tail`] then.
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

    /// MAX_DATA.
    pub fn max_data(&mut self, maximum: u64) -> bool {
        self.numbers(kind::MAX_DATA, &[maximum])
    }

    /// MAX_STREAM_DATA.
    pub fn max_stream_data(&mut self, id: u64, maximum: u64) -> bool {
        self.numbers(kind::MAX_STREAM_DATA, &[id, maximum])
    }

    /// MAX_STREAMS.
    pub fn max_streams(&mut self, maximum: u64) -> bool {
        self.numbers(kind::MAX_STREAMS, &[maximum])
    }

    /// DATA_BLOCKED.
    pub fn data_blocked(&mut self, maximum: u64) -> bool {
        self.numbers(kind::DATA_BLOCKED, &[maximum])
    }

    /// STREAM_DATA_BLOCKED.
    pub fn stream_data_blocked(&mut self, id: u64, maximum: u64) -> bool {
        self.numbers(kind::STREAM_DATA_BLOCKED, &[id, maximum])
    }

    /// STREAMS_BLOCKED.
    pub fn streams_blocked(&mut self, maximum: u64) -> bool {
        self.numbers(kind::STREAMS_BLOCKED, &[maximum])
    }

    /// DATAGRAM.
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

    /// PATH_CHALLENGE.
    pub fn path_challenge(&mut self, challenge: [u8; 8]) -> bool {
        self.fixed(kind::PATH_CHALLENGE, &challenge)
    }

    /// PATH_RESPONSE.
    pub fn path_response(&mut self, challenge: [u8; 8]) -> bool {
        self.fixed(kind::PATH_RESPONSE, &challenge)
    }

    /// CANDIDATES, at most [`CANDIDATES_MAX`](super::CANDIDATES_MAX) of them.
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

    /// RATCHET.
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

    /// OBSERVED_ADDRESS.
    pub fn observed_address(&mut self, address: SocketAddr) -> bool {
        self.fixed(kind::OBSERVED_ADDRESS, &address::encode(address))
    }

    /// ACK_FREQUENCY.
    pub fn ack_frequency(&mut self, sequence: u64, packets: u64, max_delay_us: u64) -> bool {
        self.numbers(kind::ACK_FREQUENCY, &[sequence, packets, max_delay_us])
    }

    /// IMMEDIATE_ACK.
    pub fn immediate_ack(&mut self) -> bool {
        self.numbers(kind::IMMEDIATE_ACK, &[])
    }

    /// CLOSE. The reason is cut at a character so that it is at most [`REASON_BYTES_MAX`] bytes and fits.
    pub fn close(&mut self, code: u64, reason: &str) -> bool {
        // Two bytes for the length, whatever it will be.
        let Some(room) = self.remaining().checked_sub(1 + varint::len(code) + 2) else {
            return false;
        };
        let reason = &reason[..reason.floor_char_boundary(room.min(REASON_BYTES_MAX))];
        self.put(kind::CLOSE, &[code, reason.len() as u64]);
        self.put_bytes(reason.as_bytes());
        true
    }

    /// A frame of numbers only.
    fn numbers(&mut self, kind: u8, numbers: &[u64]) -> bool {
        let need = 1 + numbers.iter().map(|&number| varint::len(number)).sum::<usize>();
        let fits = need <= self.remaining();
        if fits {
            self.put(kind, numbers);
        }
        fits
    }

    /// A frame of constant size.
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
