//! Places in a datagram: the first bytes, counted from its beginning, and the last, counted from
//! its end.

/// Number of first bytes that are examined separately.
pub const HEAD: usize = 128;
/// Number of last bytes that are examined separately.
pub const TAIL: usize = 32;
/// Number of places.
pub const PLACES: usize = HEAD + TAIL;

/// Returns the places of `bytes` with their values. A byte near both ends has two places.
pub fn places(bytes: &[u8]) -> impl Iterator<Item = (usize, u8)> {
    let head = bytes.iter().take(HEAD).enumerate();
    let tail = bytes.iter().rev().take(TAIL).enumerate();
    head.chain(tail.map(|(i, byte)| (HEAD + i, byte))).map(|(place, byte)| (place, *byte))
}

/// Describes a place.
pub fn name(place: usize) -> String {
    match place.checked_sub(HEAD) {
        None => format!("byte {place}"),
        Some(from_end) => format!("byte {} from the end", from_end + 1),
    }
}
