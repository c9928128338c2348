//! Random numbers for the time between two probes (draft §5.3.3.8).

/// Random numbers (SplitMix64) that spread bandwidth probes, so that flows do not probe in step.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeRng(pub(super) u64);

impl ProbeRng {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}
