//! The receiving half of a stream.
//!
//! The windows of the stream and of the connection are used up to the highest offset received, gaps
//! included. The half is over in one of three cases:
//!
//! - the application has read the end;
//! - the peer reset it;
//! - the application stopped it, the final size is known, and the peer has acknowledged
//!   STOP_SENDING.

use std::ops::Range;
use std::time::Duration;

use super::assembler::Assembler;
use super::send::Delivery;
use super::window::Window;
use super::{Read, StreamConfig};
use crate::{BlockPool, StreamError, Time, Violation};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecvState {
    Open,
    /// The application stopped reading; STOP_SENDING must reach the peer.
    Stopped {
        code: u64,
        delivery: Delivery,
    },
    /// The peer reset the stream.
    Reset(u64),
    /// The application has read the end, or needs nothing more.
    Over,
}

#[derive(Debug)]
pub(super) struct RecvHalf {
    state: RecvState,
    assembler: Assembler,
    window: Window,
    window_due: bool,
    /// Highest offset received.
    highest: u64,
    final_size: Option<u64>,
    /// A readable event was reported to the application.
    told: bool,
}

impl RecvHalf {
    pub(super) fn new(config: &StreamConfig) -> Self {
        Self {
            state: RecvState::Open,
            assembler: Assembler::default(),
            window: Window::new(config.stream_window, config.stream_window_max),
            window_due: false,
            highest: 0,
            final_size: None,
            told: false,
        }
    }

    /// Makes this the half of a new stream. Keeps the memory of a small one.
    pub(super) fn renew(&mut self, config: &StreamConfig) {
        let Self { mut assembler, .. } = std::mem::replace(self, Self::new(config));
        assembler.renew();
        self.assembler = assembler;
    }

    pub(super) fn is_over(&self) -> bool {
        match self.state {
            RecvState::Open => false,
            RecvState::Stopped { delivery, .. } => {
                delivery == Delivery::Acked && self.final_size.is_some()
            }
            RecvState::Reset(_) | RecvState::Over => true,
        }
    }

    /// Returns the number of separate received ranges.
    pub(super) fn ranges(&self) -> usize {
        self.assembler.ranges()
    }

    /// Returns true if the bytes at `range` would form a new separate range.
    pub(super) fn makes_range(&self, range: Range<u64>) -> bool {
        self.state == RecvState::Open && self.assembler.makes_range(range)
    }

    /// Validates a frame that ends at `end`, without changing anything. Returns the increase of the
    /// highest offset.
    #[inline]
    pub(super) fn check(&self, end: u64, is_final: bool) -> Result<u64, Violation> {
        if end > self.window.limit() {
            return Err(Violation::flow_control("more bytes on a stream than allowed"));
        }
        if let Some(size) = self.final_size {
            if end > size {
                return Err(Violation::final_size("bytes beyond the end of a stream"));
            }
            if is_final && end != size {
                return Err(Violation::final_size("final size changed"));
            }
        } else if is_final && end < self.highest {
            return Err(Violation::final_size("final size below received bytes"));
        }
        Ok(end.saturating_sub(self.highest))
    }

    /// Inserts a frame that passed [`Self::check`].
    #[inline]
    pub(super) fn accept(
        &mut self,
        pool: &BlockPool,
        offset: u64,
        fin: bool,
        data: &[u8],
    ) -> Arrival {
        let end = offset + data.len() as u64;
        let discarded = match self.state {
            RecvState::Open => 0,
            // The application will not read these bytes, so they count as consumed.
            _ => end.saturating_sub(self.highest),
        };
        self.highest = self.highest.max(end);
        if fin {
            self.final_size = Some(end);
            self.window_due = false;
        }
        if self.state != RecvState::Open {
            return Arrival { readable: false, discarded, gap: false };
        }
        self.assembler.insert(pool, offset, data);
        let gap = self.assembler.front() < self.highest;
        if gap {
            self.window_due |= self.window.behind_gap(self.highest) && self.final_size.is_none();
        }
        let readable = !self.told && (self.assembler.is_readable() || self.is_read_to_end());
        self.told |= readable;
        Arrival { readable, discarded, gap }
    }

    fn is_read_to_end(&self) -> bool {
        self.final_size == Some(self.assembler.read())
    }

    fn has_everything(&self) -> bool {
        self.final_size == Some(self.assembler.front())
    }

    /// Handles a RESET_STREAM that passed [`Self::check`]. Returns the discarded bytes if it ended
    /// the half.
    pub(super) fn on_reset(&mut self, code: u64, final_size: u64) -> Option<Discarded> {
        let unread = match self.state {
            // All bytes arrived, so the application still gets them.
            RecvState::Open if self.has_everything() => return None,
            RecvState::Open => final_size - self.assembler.read(),
            RecvState::Stopped { .. } => final_size - self.highest,
            RecvState::Reset(_) | RecvState::Over => return None,
        };
        let tell = self.state == RecvState::Open;
        self.highest = final_size;
        self.final_size = Some(final_size);
        self.window_due = false;
        self.assembler.clear();
        self.state = RecvState::Reset(code);
        Some(Discarded { bytes: unread, tell })
    }

    /// Returns the next bytes, and counts them as consumed in the stream's window.
    pub(super) fn read(&mut self, now: Time, srtt: Duration) -> Result<Read, StreamError> {
        match self.state {
            RecvState::Open => {}
            RecvState::Reset(code) => return Err(StreamError::Reset(code)),
            RecvState::Stopped { .. } => return Err(StreamError::Closed),
            RecvState::Over if self.is_read_to_end() => return Ok(Read::Finished),
            RecvState::Over => return Err(StreamError::Closed),
        }
        if let Some(slice) = self.assembler.take() {
            let moved = self.window.consume(now, srtt, slice.len() as u64);
            self.window_due |= moved && self.final_size.is_none();
            return Ok(Read::Slice(slice));
        }
        if self.is_read_to_end() {
            self.state = RecvState::Over;
            return Ok(Read::Finished);
        }
        self.told = false;
        Ok(Read::Blocked)
    }

    /// Stops reading. Returns the number of received bytes that will never be read.
    pub(super) fn stop(&mut self, code: u64) -> Result<u64, StreamError> {
        if self.state != RecvState::Open {
            return Err(StreamError::Closed);
        }
        self.state = if self.has_everything() {
            RecvState::Over
        } else {
            RecvState::Stopped { code, delivery: Delivery::Due }
        };
        let unread = self.highest - self.assembler.read();
        self.window_due = false;
        self.assembler.clear();
        Ok(unread)
    }

    /// Returns the error code if a STOP_SENDING is due.
    pub(super) fn due_stop(&self) -> Option<u64> {
        match self.state {
            RecvState::Stopped { code, delivery: Delivery::Due } => Some(code),
            _ => None,
        }
    }

    pub(super) fn set_stop_delivery(&mut self, new: Delivery) {
        if let RecvState::Stopped { delivery, .. } = &mut self.state
            && *delivery != Delivery::Acked
        {
            *delivery = new;
        }
    }

    /// Returns the limit if a MAX_STREAM_DATA is due.
    pub(super) fn due_window(&self) -> Option<u64> {
        self.window_due.then(|| self.window.limit())
    }

    pub(super) fn on_window_sent(&mut self) {
        self.window_due = false;
    }

    /// Handles STREAM_DATA_BLOCKED: the peer is blocked at `maximum`.
    pub(super) fn on_blocked(&mut self, maximum: u64) {
        if self.state == RecvState::Open && self.final_size.is_none() {
            self.window_due |= self.window.on_blocked(maximum);
        }
    }

    pub(super) fn on_window_lost(&mut self) {
        self.window_due = self.state == RecvState::Open && self.final_size.is_none();
    }
}

/// Effects of a STREAM frame outside the stream.
#[derive(Debug)]
pub(super) struct Arrival {
    /// A readable event is due.
    pub(super) readable: bool,
    /// Bytes that count as consumed because they will never be read.
    pub(super) discarded: u64,
    /// Bytes below the highest offset are missing.
    pub(super) gap: bool,
}

/// Effects of a RESET_STREAM outside the stream.
#[derive(Debug)]
pub(super) struct Discarded {
    /// Bytes that count as consumed because they will never be read.
    pub(super) bytes: u64,
    /// A reset event is due.
    pub(super) tell: bool,
}
