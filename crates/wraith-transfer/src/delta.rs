//! Delta parameters and encodings that both sides must agree on (SPEC §10.11). The delta method is
//! used for a file of which the receiver has an old copy.
//!
//! The sender lists the pieces of its file. The receiver looks for them in its old copy and
//! requests the bytes that it lacks. This direction leaks nothing: the sender's pieces belong to a
//! file that it offers, and the receiver only reveals the parts it lacks of that file. Hashes of
//! the receiver's file would reveal content that was never offered.

use wraith_files::{CHUNK_BYTES, Cv, PIECE_AVERAGE_MAX, PIECE_AVERAGE_MIN, Piece, PieceSize, Tree};

use crate::limits::{
    DELTA_BYTES_MAX, DELTA_BYTES_MIN, FINE_PIECES_AIM, PIECE_AVERAGE_BYTES, PIECES_AIM,
};

/// Length of an encoded piece in a record, in bytes.
pub(crate) const PIECE_BYTES: usize = 12;

/// Length of a chaining value in a record, in bytes.
pub(crate) const PROOF_BYTES: usize = size_of::<Cv>();

/// Returns true if the delta method suits a file of this size. Always false for a file with a
/// position-free tree: its holes are known without reading, and cutting the file into pieces would
/// read all of them.
pub(crate) fn suits(bytes: u64, tree: Tree) -> bool {
    tree == Tree::Blake3 && (DELTA_BYTES_MIN..=DELTA_BYTES_MAX).contains(&bytes)
}

/// Returns the piece size of the first round for a file of `bytes` bytes.
pub(crate) fn first_size(bytes: u64) -> PieceSize {
    let average = (bytes / PIECES_AIM).next_power_of_two().max(u64::from(PIECE_AVERAGE_BYTES));
    let average = average.min(u64::from(PIECE_AVERAGE_MAX)) as u32;
    PieceSize::new(average).expect("a power of two within the bounds")
}

/// Returns the piece size of a second, finer round, if one can pay off. `unknown` bytes of the new
/// file have no match. At most the `unused` bytes of the old copy can still match.
pub(crate) fn finer_size(first: PieceSize, unknown: u64, unused: u64) -> Option<PieceSize> {
    let average = (unknown / FINE_PIECES_AIM).next_power_of_two().max(u64::from(PIECE_AVERAGE_MIN));
    let cost = unknown / average * PIECE_BYTES as u64;
    let is_finer = average * 4 <= u64::from(first.average());
    (is_finer && cost < unused).then(|| PieceSize::new(average as u32)).flatten()
}

/// Appends a piece in the encoding of records.
pub(crate) fn encode_piece(piece: &Piece, out: &mut Vec<u8>) {
    out.extend_from_slice(&piece.len.to_be_bytes());
    out.extend_from_slice(&piece.hash);
}

/// Decodes the pieces in the body of a record; `None` if it is cut off.
pub(crate) fn pieces_in(body: &[u8]) -> Option<impl Iterator<Item = Piece>> {
    let (pieces, rest) = body.as_chunks::<PIECE_BYTES>();
    rest.is_empty().then(|| {
        pieces.iter().map(|&[a, b, c, d, ref hash @ ..]| Piece {
            len: u32::from_be_bytes([a, b, c, d]),
            hash: *hash,
        })
    })
}

/// Decodes the chaining values in the body of a record; `None` if it is cut off.
pub(crate) fn proofs_in(body: &[u8]) -> Option<&[Cv]> {
    let (proofs, rest) = body.as_chunks::<PROOF_BYTES>();
    rest.is_empty().then_some(proofs)
}

/// Returns the offset of chunk `index`.
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
        // The old copy matched from end to end, except for its last piece: the rest is new.
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
