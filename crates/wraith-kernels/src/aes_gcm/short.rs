//! Access to less than a block by two overlapping words, without touching the bytes after the text
//! and without a function call.
#![allow(unsafe_code)]

/// Returns the `n` bytes at `from` as the lowest bytes of a number.
///
/// # Safety
/// The bytes are readable and shorter than a block.
#[inline]
pub(super) unsafe fn load(from: *const u8, n: usize) -> u128 {
    // SAFETY: every read is within the `n` bytes.
    unsafe {
        match n {
            8.. => {
                let last = from.add(n - 8).cast::<u64>().read_unaligned();
                u128::from(from.cast::<u64>().read_unaligned()) | u128::from(last) << (8 * (n - 8))
            }
            4.. => {
                let last = from.add(n - 4).cast::<u32>().read_unaligned();
                u128::from(from.cast::<u32>().read_unaligned()) | u128::from(last) << (8 * (n - 4))
            }
            0 => 0,
            _ => {
                let byte = |i: usize| u128::from(from.add(i).read()) << (8 * i);
                byte(0) | byte(n / 2) | byte(n - 1)
            }
        }
    }
}

/// Writes the `n` lowest bytes of `number` to `to`, in the layout of [`load`]. Returns `number`
/// with all other bytes cleared.
///
/// # Safety
/// The bytes are writable and shorter than a block.
#[inline]
pub(super) unsafe fn store(to: *mut u8, n: usize, number: u128) -> u128 {
    // SAFETY: every write is within the `n` bytes.
    unsafe {
        match n {
            8.. => {
                to.cast::<u64>().write_unaligned(number as u64);
                to.add(n - 8).cast::<u64>().write_unaligned((number >> (8 * (n - 8))) as u64);
            }
            4.. => {
                to.cast::<u32>().write_unaligned(number as u32);
                to.add(n - 4).cast::<u32>().write_unaligned((number >> (8 * (n - 4))) as u32);
            }
            0 => {}
            _ => {
                for i in [0, n / 2, n - 1] {
                    to.add(i).write((number >> (8 * i)) as u8);
                }
            }
        }
    }
    number & ((1 << (8 * n)) - 1)
}
