//! Reads frames from an opened payload.
//!
//! [`Frames`] yields each frame in order and stops after the first error. Authentic but malformed
//! bytes are an error, never a panic; the caller then closes the connection.

use super::address::{self, ADDRESS_BYTES};
use super::{AckFrame, CANDIDATES_MAX, CandidatesFrame, Frame, Malformed, REASON_BYTES_MAX, kind};
use crate::varint;

const SHORT: Malformed = Malformed("frame cut short");
const FAMILY: Malformed = Malformed("unknown address family");

/// Iterator over the frames of one payload.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    rest: &'a [u8],
    /// Nothing was read yet. An empty payload is an error (SPEC §5).
    fresh: bool,
}

impl<'a> Frames<'a> {
    /// Reads `payload`, the sealed part of a packet without its tag.
    pub fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload, fresh: true }
    }

    fn read(&mut self) -> Result<Frame<'a>, Malformed> {
        let (&kind, rest) = self.rest.split_first().ok_or(Malformed("empty packet"))?;
        self.rest = rest;
        // Most packets of a transfer carry STREAM or ACK, so these are matched first.
        if (kind::STREAM..=kind::STREAM_LAST).contains(&kind) {
            return self.stream(kind);
        }
        if matches!(kind, kind::ACK | kind::ACK_ECN) {
            let (ack, rest) = AckFrame::read(self.rest, kind == kind::ACK_ECN)?;
            self.rest = rest;
            return Ok(Frame::Ack(ack));
        }
        Ok(match kind {
            kind::PADDING => self.padding(),
            kind::PING => Frame::Ping,
            kind::RESET_STREAM => Frame::ResetStream {
                id: self.number()?,
                code: self.number()?,
                final_size: self.number()?,
            },
            kind::STOP_SENDING => Frame::StopSending { id: self.number()?, code: self.number()? },
            kind::MAX_DATA => Frame::MaxData(self.number()?),
            kind::MAX_STREAM_DATA => {
                Frame::MaxStreamData { id: self.number()?, maximum: self.number()? }
            }
            kind::MAX_STREAMS => Frame::MaxStreams(self.number()?),
            kind::DATA_BLOCKED => Frame::DataBlocked(self.number()?),
            kind::STREAM_DATA_BLOCKED => {
                Frame::StreamDataBlocked { id: self.number()?, maximum: self.number()? }
            }
            kind::STREAMS_BLOCKED => Frame::StreamsBlocked(self.number()?),
            kind::DATAGRAM => Frame::Datagram(std::mem::take(&mut self.rest)),
            kind::DATAGRAM_LENGTH => Frame::Datagram(self.counted()?),
            kind::PATH_CHALLENGE => Frame::PathChallenge(*self.array()?),
            kind::PATH_RESPONSE => Frame::PathResponse(*self.array()?),
            kind::CANDIDATES => self.candidates()?,
            kind::OBSERVED_ADDRESS => self.observed_address()?,
            kind::ACK_FREQUENCY => Frame::AckFrequency {
                sequence: self.number()?,
                packets: self.number()?,
                max_delay_us: self.number()?,
            },
            kind::IMMEDIATE_ACK => Frame::ImmediateAck,
            kind::CLOSE => self.close()?,
            kind::RATCHET => {
                let (number, [part]) = (self.number()?, *self.array()?);
                Frame::Ratchet { number, part, bytes: self.counted()? }
            }
            _ => return Err(Malformed("unknown frame type")),
        })
    }

    #[inline]
    fn stream(&mut self, kind: u8) -> Result<Frame<'a>, Malformed> {
        let id = self.number()?;
        let offset = self.number()?;
        let data = if kind & kind::STREAM_LENGTH != 0 {
            self.counted()?
        } else {
            std::mem::take(&mut self.rest)
        };
        if offset + data.len() as u64 > varint::MAX {
            return Err(Malformed("stream offset above 2^62"));
        }
        Ok(Frame::Stream { id, offset, fin: kind & kind::STREAM_FIN != 0, data })
    }

    fn padding(&mut self) -> Frame<'a> {
        let run = self.rest.iter().position(|&byte| byte != 0).unwrap_or(self.rest.len());
        self.rest = &self.rest[run..];
        Frame::Padding
    }

    fn observed_address(&mut self) -> Result<Frame<'a>, Malformed> {
        let address = address::decode(self.array()?).ok_or(FAMILY)?;
        Ok(Frame::ObservedAddress(address))
    }

    fn candidates(&mut self) -> Result<Frame<'a>, Malformed> {
        let sequence = self.number()?;
        let [count] = *self.array()?;
        if usize::from(count) > CANDIDATES_MAX {
            return Err(Malformed("too many candidates"));
        }
        let len = usize::from(count) * ADDRESS_BYTES;
        let (addresses, rest) = self.rest.split_at_checked(len).ok_or(SHORT)?;
        self.rest = rest;
        let (addresses, _) = addresses.as_chunks();
        if addresses.iter().any(|address| address::decode(address).is_none()) {
            return Err(FAMILY);
        }
        Ok(Frame::Candidates(CandidatesFrame { sequence, addresses }))
    }

    fn close(&mut self) -> Result<Frame<'a>, Malformed> {
        let code = self.number()?;
        let reason = self.counted()?;
        if reason.len() > REASON_BYTES_MAX {
            return Err(Malformed("CLOSE reason too long"));
        }
        let reason =
            std::str::from_utf8(reason).map_err(|_| Malformed("CLOSE reason is not UTF-8"))?;
        Ok(Frame::Close { code, reason })
    }

    #[inline]
    fn number(&mut self) -> Result<u64, Malformed> {
        let (value, rest) = varint::read(self.rest).ok_or(SHORT)?;
        self.rest = rest;
        Ok(value)
    }

    #[inline]
    fn counted(&mut self) -> Result<&'a [u8], Malformed> {
        let len = usize::try_from(self.number()?).map_err(|_| SHORT)?;
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(SHORT)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], Malformed> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(SHORT)?;
        self.rest = rest;
        Ok(array)
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() && !self.fresh {
            return None;
        }
        self.fresh = false;
        let frame = self.read();
        if frame.is_err() {
            self.rest = &[];
        }
        Some(frame)
    }
}
