//! Places in a datagram: the first bytes, counted from its beginning, and the last, counted from its end.

/// First bytes that are looked at one by one.
pub const HEAD: usize = 128;
/// Last bytes that are.
pub const TAIL: usize = 32;
/// Places in all.
pub const PLACES: usize = HEAD + TAIL;

/// The places that `bytes` has, with what stands there. A byte near both ends has two.
pub fn places(bytes: &[u8]) -> impl Iterator<Item = (usize, u8)> {
    let head = bytes.iter().take(HEAD).enumerate();
    let tail = bytes.iter().rev().take(TAIL).enumerate();
    head.chain(tail.map(|(i, byte)| (HEAD + i, byte))).map(|(place, byte)| (place, *byte))
}

/// A place in words.
pub fn name(place: usize) -> String {
    match place.checked_sub(HEAD) {
        None => format!("byte {place}"),
        Some(from_end) => format!("byte {} from the end", from_end + 1),
    }
}
