//! The receiving half of a stream.
//!
//! Bytes count against both windows up to the highest offset seen, whether or not they arrived in between. The half
//! is over when the application has read the end, when the peer reset it, or when, after the application stopped it,
//! the final size is known and the peer knows that it was stopped.

use std::ops::Range;
use std::time::Duration;

use super::assembler::Assembler;
use super::send::Delivery;
use super::window::Window;
use super::{Read, StreamConfig};
use crate::{BlockPool, StreamError, Time, Violation};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The application does not want more; STOP_SENDING must reach the peer.
    Stopped {
        code: u64,
        delivery: Delivery,
    },
    /// The peer gave up.
    Reset(u64),
    /// The application has read the end, or needs nothing any more.
    Over,
}

#[derive(Debug)]
pub(super) struct RecvHalf {
    state: State,
    assembler: Assembler,
    window: Window,
    window_due: bool,
    /// Highest offset seen.
    highest: u64,
    final_size: Option<u64>,
    /// The application was told that there is something to read.
    told: bool,
}

impl RecvHalf {
    pub(super) fn new(config: &StreamConfig) -> Self {
        Self {
            state: State::Open,
            assembler: Assembler::default(),
            window: Window::new(config.stream_window, config.stream_window_max),
            window_due: false,
            highest: 0,
            final_size: None,
            told: false,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        match self.state {
            State::Open => false,
            State::Stopped { delivery, .. } => {
                delivery == Delivery::Acked && self.final_size.is_some()
            }
            State::Reset(_) | State::Over => true,
        }
    }

    /// Separate ranges received.
    pub(super) fn ranges(&self) -> usize {
        self.assembler.ranges()
    }

    /// The bytes at `range` would make one more.
    pub(super) fn makes_range(&self, range: Range<u64>) -> bool {
        self.state == State::Open && self.assembler.makes_range(range)
    }

    /// Checks a frame that ends at `end`. Returns by how much it raises the highest offset; nothing is changed.
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
                return Err(Violation::final_size("the end of a stream moved"));
            }
        } else if is_final && end < self.highest {
            return Err(Violation::final_size("the end of a stream is before bytes received"));
        }
        Ok(end.saturating_sub(self.highest))
    }

    /// Takes in a frame that [`Self::check`] let pass.
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
            State::Open => 0,
            // Nobody will read them, so they are consumed as they come.
            _ => end.saturating_sub(self.highest),
        };
        self.highest = self.highest.max(end);
        if fin {
            self.final_size = Some(end);
            self.window_due = false;
        }
        if self.state != State::Open {
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

    /// Takes in a RESET_STREAM that [`Self::check`] let pass. `Some` if it ended the half: bytes discarded.
    pub(super) fn on_reset(&mut self, code: u64, final_size: u64) -> Option<Discarded> {
        let unread = match self.state {
            // Everything is here: the application may as well have it.
            State::Open if self.has_everything() => return None,
            State::Open => final_size - self.assembler.read(),
            State::Stopped { .. } => final_size - self.highest,
            State::Reset(_) | State::Over => return None,
        };
        let tell = self.state == State::Open;
        self.highest = final_size;
        self.final_size = Some(final_size);
        self.window_due = false;
        self.assembler.clear();
        self.state = State::Reset(code);
        Some(Discarded { bytes: unread, tell })
    }

    /// The next bytes; `consumed` is told how many.
    pub(super) fn read(&mut self, now: Time, srtt: Duration) -> Result<Read, StreamError> {
        match self.state {
            State::Open => {}
            State::Reset(code) => return Err(StreamError::Reset(code)),
            State::Stopped { .. } => return Err(StreamError::Closed),
            State::Over if self.is_read_to_end() => return Ok(Read::Finished),
            State::Over => return Err(StreamError::Closed),
        }
        if let Some(slice) = self.assembler.take() {
            let moved = self.window.consume(now, srtt, slice.len() as u64);
            self.window_due |= moved && self.final_size.is_none();
            return Ok(Read::Slice(slice));
        }
        if self.is_read_to_end() {
            self.state = State::Over;
            return Ok(Read::Finished);
        }
        self.told = false;
        Ok(Read::Blocked)
    }

    /// The application does not want more. Returns how many received bytes it will never read.
    pub(super) fn stop(&mut self, code: u64) -> Result<u64, StreamError> {
        if self.state != State::Open {
            return Err(StreamError::Closed);
        }
        self.state = if self.has_everything() {
            State::Over
        } else {
            State::Stopped { code, delivery: Delivery::Due }
        };
        let unread = self.highest - self.assembler.read();
        self.window_due = false;
        self.assembler.clear();
        Ok(unread)
    }

    /// The code, if a STOP_SENDING is due.
    pub(super) fn due_stop(&self) -> Option<u64> {
        match self.state {
            State::Stopped { code, delivery: Delivery::Due } => Some(code),
            _ => None,
        }
    }

    pub(super) fn set_stop_delivery(&mut self, new: Delivery) {
        if let State::Stopped { delivery, .. } = &mut self.state
            && *delivery != Delivery::Acked
        {
            *delivery = new;
        }
    }

    /// The limit, if a MAX_STREAM_DATA is due.
    pub(super) fn due_window(&self) -> Option<u64> {
        self.window_due.then(|| self.window.limit())
    }

    pub(super) fn on_window_sent(&mut self) {
        self.window_due = false;
    }

    /// The peer waits for more than `maximum`.
    pub(super) fn on_blocked(&mut self, maximum: u64) {
        if self.state == State::Open && self.final_size.is_none() {
            self.window_due |= self.window.on_blocked(maximum);
        }
    }

    pub(super) fn on_window_lost(&mut self) {
        self.window_due = self.state == State::Open && self.final_size.is_none();
    }
}

/// What a STREAM frame changed for others.
#[derive(Debug)]
pub(super) struct Arrival {
    /// The application should be told that there is something to read.
    pub(super) readable: bool,
    /// Bytes that count as consumed because nobody will read them.
    pub(super) discarded: u64,
    /// Something before the highest byte is missing.
    pub(super) gap: bool,
}

/// What a RESET_STREAM changed for others.
#[derive(Debug)]
pub(super) struct Discarded {
    /// Bytes that count as consumed because nobody will read them.
    pub(super) bytes: u64,
    /// The application should be told.
    pub(super) tell: bool,
}
