//! Content of the benchmarks.

/// Bytes without a short period, so that swapped positions are detected.
pub(crate) fn content(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u8).collect()
}
