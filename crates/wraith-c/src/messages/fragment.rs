//! Fragmentation: splits messages longer than the transport's MTU and reassembles them.

use std::sync::Mutex;

use wraith_session::fragment::{PIECE_BYTES_MIN, Reassembler, ReassemblyLimits, Splitter};
use wraith_session::system_rng;
use zeroize::Zeroizing;

use crate::border::{c_struct, export};
use crate::table::{Kind, Table};

/// Minimum `room` for a message of several pieces, in bytes.
pub const WRAITH_PIECE_MIN: usize = 18;
const _: () = assert!(WRAITH_PIECE_MIN == PIECE_BYTES_MIN);

/// A splitter of messages.
pub type wraith_splitter_t = u64;
/// A reassembler of messages.
pub type wraith_reassembler_t = u64;

c_struct! {
    /// Limits of a reassembler. 0 stands for the default.
    pub struct wraith_reassembly_limits_t {
        /// `sizeof(wraith_reassembly_limits_t)`.
        pub struct_size: usize,
        /// Maximum message length in bytes. Default: 1 MiB.
        pub message_bytes: usize,
        /// Maximum bytes held for incomplete messages, plus 64 bytes per piece. Default: 2 MiB, or
        /// twice the maximum message length if that is more. The oldest message is evicted.
        pub held_bytes: usize,
        /// Maximum number of incomplete messages. Default: 16.
        pub held_messages: usize,
    }
}

static wraith_splitter_t: Table<Mutex<Splitter>> = Table::new(Kind::Splitter);
static wraith_reassembler_t: Table<Mutex<Reassembler>> = Table::new(Kind::Reassembler);

/// Replaces zeros by the default limits.
fn limits(given: Option<wraith_reassembly_limits_t>) -> ReassemblyLimits {
    let usual = ReassemblyLimits::default();
    let Some(given) = given else { return usual };
    let or = |given: usize, usual: usize| if given == 0 { usual } else { given };
    let message_bytes = or(given.message_bytes, usual.message_bytes);
    let enough = usual.held_bytes.max(message_bytes.saturating_mul(2));
    ReassemblyLimits {
        message_bytes,
        held_bytes: or(given.held_bytes, enough),
        held_messages: or(given.held_messages, usual.held_messages),
    }
}

export!(
    /// Creates a splitter for one direction of a session.
    pub fn wraith_splitter_new() -> Outcome<wraith_splitter_t> {
        wraith_splitter_t.add(Splitter::new(&mut system_rng()?))
    }

    /// Splits `message` into pieces, written to `out` one after the other. Each piece is `room`
    /// bytes long; the last one has the rest. Seal the pieces one by one; they may arrive in any
    /// order.
    ///
    /// A message shorter than `room` becomes one piece, which is one byte longer than the message.
    /// A longer message needs a `room` of at least `WRAITH_PIECE_MIN` and may have at most 65535
    /// pieces, otherwise `WRAITH_INVALID_INPUT`.
    pub fn wraith_splitter_split(
        splitter: Locked<wraith_splitter_t>,
        message: Bytes,
        room: usize,
        out: Buffer,
    ) -> Outcome {
        // If the buffer is too small, no message id is used up.
        let mut next = splitter.clone();
        let pieces = Zeroizing::new(next.split(message, room)?);
        out.write(&Zeroizing::new(pieces.concat()))?;
        *splitter = next;
        Ok(())
    }

    /// Frees the splitter.
    pub fn wraith_splitter_free(splitter: wraith_splitter_t) -> Outcome {
        wraith_splitter_t.free(splitter)
    }

    /// Creates a reassembler for one direction of a session, with these limits. `limits` may be
    /// NULL.
    pub fn wraith_reassembler_new(
        limits: Options<wraith_reassembly_limits_t>,
    ) -> Outcome<wraith_reassembler_t> {
        wraith_reassembler_t.add(Reassembler::new(self::limits(limits)))
    }

    /// Adds an opened piece. `*is_whole` is 1 if the piece completes a message, which is then in
    /// `out`, and otherwise 0.
    ///
    /// - `WRAITH_BUFFER_TOO_SMALL`: the piece would complete a message. It was not added.
    /// - `WRAITH_UNAUTHENTIC`: the bytes are no piece, or contradict other pieces of the message.
    /// - `WRAITH_EXHAUSTED`: the message is longer than the limit. It is discarded.
    pub fn wraith_reassembler_push(
        reassembler: Locked<wraith_reassembler_t>,
        piece: Bytes,
        out: Buffer,
        is_whole: Out<u32>,
    ) -> Outcome {
        out.room(reassembler.completed_len(piece).unwrap_or(0))?;
        let message = reassembler.push(piece)?.map(Zeroizing::new);
        is_whole.write(u32::from(message.is_some()));
        out.write(message.as_deref().map_or(&[], |message| message))
    }

    /// Returns the bytes held for incomplete messages, with 64 more per piece.
    pub fn wraith_reassembler_held(reassembler: Locked<wraith_reassembler_t>) -> Outcome<usize> {
        Ok(reassembler.held_bytes())
    }

    /// Frees the reassembler and wipes its buffers.
    pub fn wraith_reassembler_free(reassembler: wraith_reassembler_t) -> Outcome {
        wraith_reassembler_t.free(reassembler)
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_zero_are_the_defaults_and_fit_the_longest_message() {
        let usual = ReassemblyLimits::default();
        let mut given = wraith_reassembly_limits_t {
            struct_size: size_of::<wraith_reassembly_limits_t>(),
            message_bytes: 0,
            held_bytes: 0,
            held_messages: 0,
        };
        assert_eq!((limits(None), limits(Some(given))), (usual, usual));
        given.message_bytes = 10 << 20;
        assert_eq!(limits(Some(given)).held_bytes, 20 << 20);
        given.message_bytes = usize::MAX;
        assert_eq!(limits(Some(given)).held_bytes, usize::MAX);
        (given.held_bytes, given.held_messages) = (7, 8);
        let limits = limits(Some(given));
        assert_eq!((limits.held_bytes, limits.held_messages), (7, 8));
    }
}
