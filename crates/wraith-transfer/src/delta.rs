//! What both sides must see alike about a file of which the receiver has an old copy (SPEC §10.11).
//!
//! The sender names the pieces of its file, the receiver looks for them in its old copy and asks for the bytes it has not
//! found. In this direction nobody learns what they may not have: the sender's pieces are of a file that it gives away, and
//! the receiver only shows which of those bytes it lacks. Its own hashes would show things that were never offered.

use wraith_files::{CHUNK_BYTES, Cv, PIECE_AVERAGE_MAX, PIECE_AVERAGE_MIN, Piece, PieceSize, Tree};

use crate::limits::{
    DELTA_BYTES_MAX, DELTA_BYTES_MIN, FINE_PIECES_AIM, PIECE_AVERAGE_BYTES, PIECES_AIM,
};

/// Bytes of a piece in a record.
pub(crate) const PIECE_BYTES: usize = 12;

/// Bytes of a chaining value in a record.
pub(crate) const PROOF_BYTES: usize = size_of::<Cv>();

/// True if a file of so many bytes is worth it, and not too large for it. One with a position-free tree never is: its holes are
/// known without looking, and pieces of it would mean reading all of them.
pub(crate) fn suits(bytes: u64, tree: Tree) -> bool {
    tree == Tree::Blake3 && (DELTA_BYTES_MIN..=DELTA_BYTES_MAX).contains(&bytes)
}

/// Pieces of a file of so many bytes, at first.
pub(crate) fn first_size(bytes: u64) -> PieceSize {
    let average = (bytes / PIECES_AIM).next_power_of_two().max(u64::from(PIECE_AVERAGE_BYTES));
    let average = average.min(u64::from(PIECE_AVERAGE_MAX)) as u32;
    PieceSize::new(average).expect("a power of two within the bounds")
}

/// Pieces of what was not found, if knowing them more finely can be worth it: `unknown` bytes of the new file, `unused`
/// ones of the old copy, which is all that can still be found.
pub(crate) fn finer_size(first: PieceSize, unknown: u64, unused: u64) -> Option<PieceSize> {
    let average = (unknown / FINE_PIECES_AIM).next_power_of_two().max(u64::from(PIECE_AVERAGE_MIN));
    let cost = unknown / average * PIECE_BYTES as u64;
    let is_finer = average * 4 <= u64::from(first.average());
    (is_finer && cost < unused).then(|| PieceSize::new(average as u32)).flatten()
}

/// Appends a piece as records carry it.
pub(crate) fn encode_piece(piece: &Piece, out: &mut Vec<u8>) {
    out.extend_from_slice(&piece.len.to_be_bytes());
    out.extend_from_slice(&piece.hash);
}

/// The pieces in the body of a record; `None` if it is cut off.
pub(crate) fn pieces_in(body: &[u8]) -> Option<impl Iterator<Item = Piece>> {
    let (pieces, rest) = body.as_chunks::<PIECE_BYTES>();
    rest.is_empty().then(|| {
        pieces.iter().map(|&[a, b, c, d, ref hash @ ..]| Piece {
            len: u32::from_be_bytes([a, b, c, d]),
            hash: *hash,
        })
    })
}

/// The chaining values in the body of a record; `None` if it is cut off.
pub(crate) fn proofs_in(body: &[u8]) -> Option<&[Cv]> {
    let (proofs, rest) = body.as_chunks::<PROOF_BYTES>();
    rest.is_empty().then_some(proofs)
}

/// Where chunk `index` begins.
pub(crate) fn chunk_start(index: u64) -> u64 {
    index.saturating_mul(CHUNK_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stay_few_however_large_the_file_is() {
        for bytes in [DELTA_BYTES_MIN, 1 << 30, 5 << 30, 1 << 35, DELTA_BYTES_MAX] {
            let average = u64::from(first_size(bytes).average());
            assert!(bytes / average <= PIECES_AIM, "{bytes}");
        }
        assert_eq!(first_size(1 << 30).average(), PIECE_AVERAGE_BYTES);
    }

    #[test]
    fn finer_pieces_are_asked_for_only_where_they_can_pay() {
        let first = first_size(1 << 30);
        let average = |unknown, unused| finer_size(first, unknown, unused).map(PieceSize::average);
        assert_eq!(average(20 << 20, 20 << 20), Some(1024));
        // The old copy was found from end to end, but for its last piece: the rest is new.
        assert_eq!(average(20 << 20, 40 << 10), None);
        assert_eq!(average(1 << 30, 1 << 30), Some(8192));
        assert_eq!(average(2 << 30, 2 << 30), None);
        assert_eq!(average(0, 1 << 30), Some(1024));
    }

    #[test]
    fn records_carry_pieces_as_they_are() {
        let piece = Piece { len: 70_000, hash: *b"8 letter" };
        let mut body = Vec::new();
        encode_piece(&piece, &mut body);
        encode_piece(&piece, &mut body);
        assert_eq!(pieces_in(&body).unwrap().collect::<Vec<_>>(), [piece, piece]);
        assert!(pieces_in(&body[1..]).is_none() && proofs_in(&body).is_none());
        assert_eq!(proofs_in(&[7; 64]), Some(&[[7; 32]; 2][..]));
    }
}
