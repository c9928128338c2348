//! Random choices with a printed seed, so that a failure can be reproduced.

use std::time::{SystemTime, UNIX_EPOCH};

/// The SplitMix64 generator.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Uses a new seed each time, or the one in `WRAITH_TEST_SEED`.
    pub fn fresh() -> Self {
        let given = std::env::var("WRAITH_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let seed = given.unwrap_or_else(now);
        eprintln!("WRAITH_TEST_SEED={seed}");
        Self(seed)
    }

    /// Returns a number from 0 to `end` - 1.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}
