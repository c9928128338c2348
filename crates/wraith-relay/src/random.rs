//! Buffered random numbers from the operating system. IDs, nonces and paddings are short, so a
//! system call for each number would cost more than its use.

use std::fmt;
use std::io;

use zeroize::Zeroize;

/// Bytes fetched at once.
const BLOCK: usize = 512;

/// Buffered random source. Bytes are wiped after use.
pub struct Random {
    block: [u8; BLOCK],
    used: usize,
}

impl Random {
    /// Creates a source and fetches the first block.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn new() -> io::Result<Self> {
        let mut random = Self { block: [0; BLOCK], used: BLOCK };
        random.refill()?;
        Ok(random)
    }

    fn refill(&mut self) -> io::Result<()> {
        getrandom::fill(&mut self.block).map_err(io::Error::other)?;
        self.used = 0;
        Ok(())
    }

    /// Returns `N` random bytes, at most 64.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        const { assert!(N <= 64) };
        if self.used + N > BLOCK {
            self.refill().expect("a system that had randomness still has it");
        }
        let taken = &mut self.block[self.used..self.used + N];
        let mut bytes = [0; N];
        bytes.copy_from_slice(taken);
        taken.zeroize();
        self.used += N;
        bytes
    }

    /// Returns a random number.
    pub fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.bytes())
    }

    /// Returns a random number below `bound`, which must be small compared to 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.u64() % bound.max(1)
    }
}

impl Drop for Random {
    fn drop(&mut self) {
        self.block.zeroize();
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Random").finish_non_exhaustive()
    }
}
