//! Fragmentation: splits messages longer than the transport's MTU and reassembles them in any
//! order.
//!
//! ```text
//!  0 ‖ message                                        a message that fits
//!  1 ‖ id (4) ‖ index (1) ‖ count (1) ‖ part          one of up to 255 pieces
//!  2 ‖ id (4) ‖ index (2) ‖ count (2) ‖ part          one of up to 65,535
//! ```
//!
//! Numbers are little-endian. Each piece is the text of one session message: messages are split
//! before they are sealed, so that the reassembler holds only authentic pieces. Pieces of handshake
//! messages are not authenticated; give the [`Reassembler`] small limits for them. If a piece is
//! lost, only its own message is lost. A sender's ids count up from a random one. So a sender that
//! restarts is unlikely to reuse its earlier ids with a receiver that keeps running.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use rand_core::CryptoRng;
use thiserror::Error;
use zeroize::Zeroizing;

/// Upper bound of a piece's header, in bytes.
const HEAD_BYTES_MAX: usize = 9;
/// Bytes of a piece's header in a message of up to 255 pieces.
const SHORT_HEAD_BYTES: usize = 7;
/// Smallest allowed length of a piece: twice the longest header.
pub const PIECE_BYTES_MIN: usize = 2 * HEAD_BYTES_MAX;
/// Maximum number of pieces of a message.
pub const PIECES_MAX: usize = u16::MAX as usize;
/// Accounted cost of a held piece beyond its bytes.
const PIECE_COST: usize = 64;
/// Ids by which a newer message may be ahead before the pieces of an older one are dropped.
const ID_WINDOW: u32 = 64;
/// Half of the id space. An id less than this far behind another is the older one.
const HALF_ID_SPACE: u32 = 1 << 31;

/// Why a message was not split, or a piece was refused. The state is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FragmentError {
    /// A piece has too little room, or the message would need too many pieces.
    #[error("a message of {bytes} bytes cannot be split into pieces of {room} bytes")]
    Room {
        /// Length of the message.
        bytes: usize,
        /// Room for a piece.
        room: usize,
    },
    /// The bytes are no piece, or contradict another piece of the same message.
    #[error("not a piece of a message")]
    Malformed,
    /// The message is longer than allowed.
    #[error("the message is longer than {0} bytes")]
    TooLong(usize),
}

/// Splits messages into pieces.
#[derive(Clone, Debug)]
pub struct Splitter {
    next_id: u32,
}

impl Splitter {
    /// Creates a splitter and draws the id of its first message.
    #[must_use]
    pub fn new(rng: &mut impl CryptoRng) -> Self {
        Self { next_id: rng.next_u32() }
    }

    /// Splits `message` into pieces of at most `room` bytes each, in order.
    ///
    /// # Errors
    /// [`FragmentError::Room`].
    pub fn split(&mut self, message: &[u8], room: usize) -> Result<Vec<Vec<u8>>, FragmentError> {
        if message.len() < room {
            return Ok(vec![[&[0], message].concat()]);
        }
        let error = FragmentError::Room { bytes: message.len(), room };
        if room < PIECE_BYTES_MIN {
            return Err(error);
        }
        let wide = message.len().div_ceil(room - SHORT_HEAD_BYTES) > usize::from(u8::MAX);
        let part = room - if wide { HEAD_BYTES_MAX } else { SHORT_HEAD_BYTES };
        let count = u16::try_from(message.len().div_ceil(part)).map_err(|_| error)?;
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        let parts = message.chunks(part).zip(0u16..);
        Ok(parts.map(|(part, index)| piece(wide, id, index, count, part)).collect())
    }
}

fn piece(wide: bool, id: u32, index: u16, count: u16, part: &[u8]) -> Vec<u8> {
    let mut piece = Vec::with_capacity(HEAD_BYTES_MAX + part.len());
    piece.push(if wide { 2 } else { 1 });
    piece.extend_from_slice(&id.to_le_bytes());
    for number in [index, count] {
        let bytes = number.to_le_bytes();
        piece.extend_from_slice(if wide { &bytes } else { &bytes[..1] });
    }
    piece.extend_from_slice(part);
    piece
}

/// Resource limits of a [`Reassembler`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReassemblyLimits {
    /// Maximum length of a message, in bytes.
    pub message_bytes: usize,
    /// Maximum bytes held for incomplete messages, with overhead. Beyond it the oldest message is
    /// dropped.
    pub held_bytes: usize,
    /// Maximum number of incomplete messages.
    pub held_messages: usize,
}

impl Default for ReassemblyLimits {
    fn default() -> Self {
        Self { message_bytes: 1 << 20, held_bytes: 2 << 20, held_messages: 16 }
    }
}

/// Reassembles messages. Pieces are wiped when they are discarded or the reassembler is dropped.
#[derive(Debug)]
pub struct Reassembler {
    limits: ReassemblyLimits,
    /// Incomplete messages, oldest first.
    held: VecDeque<PartialMessage>,
    held_bytes: usize,
    /// Ids of the latest complete messages, so that duplicates of their pieces are ignored.
    done: VecDeque<u32>,
}

struct PartialMessage {
    id: u32,
    count: u16,
    bytes: usize,
    /// Plaintext, therefore wiped.
    parts: BTreeMap<u16, Zeroizing<Box<[u8]>>>,
}

/// Prints only counts, never the bytes.
impl fmt::Debug for PartialMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, count, bytes, parts } = self;
        write!(f, "message {id}: {} of {count} pieces, {bytes} bytes", parts.len())
    }
}

impl PartialMessage {
    fn cost(&self) -> usize {
        self.bytes + PIECE_COST * self.parts.len()
    }
}

impl Reassembler {
    /// Creates an empty reassembler with these limits.
    #[must_use]
    pub fn new(limits: ReassemblyLimits) -> Self {
        Self { limits, held: VecDeque::new(), held_bytes: 0, done: VecDeque::new() }
    }

    /// Returns the bytes held for incomplete messages, with their overhead.
    #[must_use]
    pub const fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Returns the length of the message that [`Self::push`] would return for this piece, or `None`
    /// if it would return none. The state is unchanged: a caller can reserve room for the message
    /// before it pushes the piece.
    #[must_use]
    pub fn completed_len(&self, piece: &[u8]) -> Option<usize> {
        let (kind, rest) = piece.split_first()?;
        let bytes = if *kind == 0 { rest.len() } else { self.completed_by(*kind, rest)? };
        (bytes <= self.limits.message_bytes).then_some(bytes)
    }

    fn completed_by(&self, kind: u8, rest: &[u8]) -> Option<usize> {
        let FragmentHeader { id, index, count, part } = FragmentHeader::read(kind, rest).ok()?;
        if self.done.contains(&id) {
            return None;
        }
        let Some(held) = self.held.iter().find(|held| held.id == id) else {
            return (count == 1).then_some(part.len());
        };
        let is_last = held.count == count
            && held.parts.len() + 1 == usize::from(count)
            && !held.parts.contains_key(&index);
        is_last.then(|| held.bytes + part.len())
    }

    /// Adds a piece. Returns the message once its last piece has arrived.
    ///
    /// # Errors
    /// [`FragmentError::Malformed`], [`FragmentError::TooLong`]. The state is unchanged, except
    /// that a message found to be too long is dropped.
    pub fn push(&mut self, piece: &[u8]) -> Result<Option<Vec<u8>>, FragmentError> {
        let (kind, rest) = piece.split_first().ok_or(FragmentError::Malformed)?;
        if *kind == 0 {
            return match rest.len() <= self.limits.message_bytes {
                true => Ok(Some(rest.to_vec())),
                false => Err(FragmentError::TooLong(self.limits.message_bytes)),
            };
        }
        let FragmentHeader { id, index, count, part } = FragmentHeader::read(*kind, rest)?;
        if self.done.contains(&id) {
            return Ok(None);
        }
        // Every check that can refuse the piece comes before the first change.
        let is_it = |held: &PartialMessage| held.id == id;
        let mut bytes = part.len();
        if let Some(at) = self.held.iter().position(is_it) {
            let held = &self.held[at];
            if held.count != count {
                return Err(FragmentError::Malformed);
            }
            if held.parts.contains_key(&index) {
                return Ok(None);
            }
            bytes += held.bytes;
            if bytes > self.limits.message_bytes {
                self.drop_message(at);
            }
        }
        if bytes > self.limits.message_bytes {
            return Err(FragmentError::TooLong(self.limits.message_bytes));
        }
        // A message this far behind will not complete, and its id will be reused.
        let is_behind = |held: &PartialMessage| {
            (ID_WINDOW + 1..HALF_ID_SPACE).contains(&id.wrapping_sub(held.id))
        };
        while let Some(old) = self.held.iter().position(is_behind) {
            self.drop_message(old);
        }
        let at = match self.held.iter().position(is_it) {
            Some(at) => at,
            None => self.start_message(id, count),
        };
        let held = &mut self.held[at];
        held.bytes += part.len();
        held.parts.insert(index, Zeroizing::new(part.into()));
        self.held_bytes += part.len() + PIECE_COST;
        if held.parts.len() == usize::from(count) {
            let whole = self.drop_message(at);
            self.done.push_back(id);
            if self.done.len() > ID_WINDOW as usize {
                self.done.pop_front();
            }
            // Allocated in full: a growing buffer would leave copies of the plaintext in memory.
            let mut message = Vec::with_capacity(whole.bytes);
            whole.parts.values().for_each(|part| message.extend_from_slice(part));
            return Ok(Some(message));
        }
        while self.held_bytes > self.limits.held_bytes && !self.held.is_empty() {
            self.drop_message(0);
        }
        Ok(None)
    }

    fn start_message(&mut self, id: u32, count: u16) -> usize {
        while self.held.len() >= self.limits.held_messages.max(1) {
            self.drop_message(0);
        }
        self.held.push_back(PartialMessage { id, count, bytes: 0, parts: BTreeMap::new() });
        self.held.len() - 1
    }

    fn drop_message(&mut self, at: usize) -> PartialMessage {
        let held = self.held.remove(at).expect("it is there");
        self.held_bytes -= held.cost();
        held
    }
}

struct FragmentHeader<'a> {
    id: u32,
    index: u16,
    count: u16,
    part: &'a [u8],
}

impl<'a> FragmentHeader<'a> {
    fn read(kind: u8, rest: &'a [u8]) -> Result<Self, FragmentError> {
        let (id, rest) = rest.split_first_chunk().ok_or(FragmentError::Malformed)?;
        let id = u32::from_le_bytes(*id);
        let (index, count, part) = match (kind, rest) {
            (1, [index, count, part @ ..]) => (u16::from(*index), u16::from(*count), part),
            (2, [a, b, c, d, part @ ..]) => {
                (u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d]), part)
            }
            _ => return Err(FragmentError::Malformed),
        };
        match index < count && !part.is_empty() {
            true => Ok(Self { id, index, count, part }),
            false => Err(FragmentError::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_core::SeedableRng;

    use super::*;

    fn splitter() -> Splitter {
        Splitter { next_id: 0 }
    }

    fn small() -> Reassembler {
        Reassembler::new(ReassemblyLimits {
            message_bytes: 4000,
            held_bytes: 5000,
            held_messages: 4,
        })
    }

    #[test]
    fn every_length_is_cut_to_its_room_and_put_together_again() {
        for room in [18, 20, 50, 244] {
            for len in (0..4 * room).chain([255 * (room - 7), 255 * (room - 7) + 1, 60_000]) {
                let message: Vec<u8> = (0..len).map(|i| i as u8).collect();
                let pieces = splitter().split(&message, room).unwrap();
                assert!(pieces.iter().all(|piece| piece.len() <= room));
                let mut all = Reassembler::new(ReassemblyLimits {
                    held_bytes: 10 << 20,
                    ..ReassemblyLimits::default()
                });
                let mut whole = None;
                for piece in pieces.iter().rev() {
                    assert!(whole.is_none());
                    whole = all.push(piece).unwrap();
                }
                assert_eq!(whole.as_deref(), Some(&message[..]), "{len} in {room}");
                assert_eq!((all.held_bytes(), all.held.len()), (0, 0));
            }
        }
        let error = FragmentError::Room { bytes: 20, room: 17 };
        assert_eq!(splitter().split(&[0; 20], 17), Err(error));
        assert!(splitter().split(&[0; 11 * 65_535], 20).is_ok());
        assert!(splitter().split(&[0; 11 * 65_535 + 1], 20).is_err());
    }

    #[test]
    fn a_lost_piece_loses_its_message_only_and_is_not_held_for_ever() {
        let (mut splitter, mut all) = (splitter(), small());
        let torn = splitter.split(&[1; 100], 60).unwrap();
        assert_eq!(all.push(&torn[0]), Ok(None));
        for _ in 0..=ID_WINDOW {
            let pieces = splitter.split(&[2; 100], 60).unwrap();
            assert_eq!(all.push(&pieces[1]), Ok(None));
            assert_eq!(all.push(&pieces[0]), Ok(Some(vec![2; 100])));
            assert_eq!(all.push(&pieces[0]), Ok(None), "again");
        }
        assert_eq!(all.held_bytes(), 0);
        // The id is reused: no piece of the old message may be mixed in.
        splitter.next_id = 0;
        let pieces = splitter.split(&[3; 100], 60).unwrap();
        all.done.clear();
        assert_eq!(all.push(&pieces[1]), Ok(None));
        assert_eq!(all.push(&pieces[0]), Ok(Some(vec![3; 100])));
    }

    #[test]
    fn pieces_of_a_sender_that_begins_again_are_not_mixed_with_those_of_before() {
        let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(7);
        let mut all = small();
        let before = Splitter::new(&mut rng).split(&[b'a'; 40], 20).unwrap();
        for piece in &before[..before.len() - 1] {
            assert_eq!(all.push(piece), Ok(None));
        }
        let mut again = Splitter::new(&mut rng);
        for _ in 0..10 {
            let pieces = again.split(&[b'b'; 40], 20).unwrap();
            let whole: Vec<_> = pieces.iter().filter_map(|p| all.push(p).unwrap()).collect();
            assert_eq!(whole, [vec![b'b'; 40]]);
        }
    }

    #[test]
    fn held_memory_is_bounded_for_any_input() {
        let mut all = small();
        for id in 0..2000u32 {
            all.push(&piece(true, id, 0, 9, &[0; 300])).unwrap();
            all.push(&piece(true, id, 1, 9, &[0; 300])).unwrap();
            assert!(all.held_bytes() <= 5000 && all.held.len() <= 4);
        }
        let mut all = small();
        let mut longest = Ok(None);
        for index in 0..100 {
            longest = all.push(&piece(true, 1, index, 1000, &[0; 300]));
            assert!(all.held_bytes() <= 5000);
            if longest.is_err() {
                break;
            }
        }
        assert_eq!(longest, Err(FragmentError::TooLong(4000)));
        assert_eq!(all.held_bytes(), 0);
        assert_eq!(all.push(&[&[0][..], &[0; 4001]].concat()), Err(FragmentError::TooLong(4000)));
    }

    #[test]
    fn pieces_that_contradict_each_other_are_refused() {
        let mut all = small();
        all.push(&piece(false, 1, 0, 3, b"a")).unwrap();
        for wrong in [
            piece(false, 1, 1, 4, b"b"),
            piece(false, 1, 3, 3, b"b"),
            piece(false, 1, 1, 3, b""),
            vec![],
            vec![1, 0],
            vec![3, 0, 0, 0, 0, 0, 0, 0],
        ] {
            assert_eq!(all.push(&wrong), Err(FragmentError::Malformed), "{wrong:?}");
        }
        all.push(&piece(false, 1, 2, 3, b"c")).unwrap();
        assert_eq!(all.push(&piece(false, 1, 1, 3, b"b")), Ok(Some(b"abc".to_vec())));
    }

    #[test]
    fn a_piece_that_is_refused_gives_no_other_message_up() {
        let mut all = small();
        all.push(&piece(false, 100, 0, 2, b"b")).unwrap();
        all.push(&piece(false, 1, 0, 2, b"a")).unwrap();
        let held = all.held_bytes();
        assert_eq!(all.push(&piece(false, 100, 1, 3, b"b")), Err(FragmentError::Malformed));
        assert_eq!(all.held_bytes(), held);
        let long = piece(true, 200, 0, 2, &[0; 4001]);
        assert_eq!(all.push(&long), Err(FragmentError::TooLong(4000)));
        assert_eq!(all.held_bytes(), held);
        assert_eq!(all.push(&piece(false, 1, 1, 2, b"a")), Ok(Some(b"aa".to_vec())));
    }

    #[test]
    fn debug_output_hides_pieces() {
        let mut all = small();
        all.push(&piece(false, 1, 0, 2, &[77; 3])).unwrap();
        assert!(!format!("{all:?}").contains("77"));
    }

    proptest! {
        #[test]
        fn the_length_of_a_message_is_known_before_its_last_piece_is_taken(
            pieces in proptest::collection::vec((0..4u8, 0..6u8, 0..5u8, 0..4u8, 0..3000usize), 0..200),
        ) {
            let mut all = small();
            for (kind, id, index, count, len) in pieces {
                let part = vec![0; len];
                let piece = match kind {
                    0 => [&[0], &part[..]].concat(),
                    _ => piece(kind > 1, id.into(), index.into(), count.into(), &part),
                };
                let told = all.completed_len(&piece);
                let given = all.push(&piece).ok().flatten();
                prop_assert_eq!(told, given.map(|message| message.len()));
            }
        }

        #[test]
        fn arbitrary_pieces_never_hold_more_than_allowed(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 0..200),
        ) {
            let mut all = small();
            for mut piece in pieces {
                if let [kind, id, high @ .., _, _, _] = &mut piece[..] {
                    (*kind, *id) = (*kind % 4, *id % 8);
                    high.iter_mut().take(3).for_each(|byte| *byte = 0);
                }
                let _ = all.push(&piece);
                prop_assert!(all.held_bytes() <= 5000 && all.held.len() <= 4);
            }
        }
    }
}
