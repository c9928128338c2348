//! Kernels: inner loops of algorithms for which no library has code, or only slower code. The head
//! of each kernel states its purpose, its source and its speed.
//!
//! The processor's features select a kernel at run time. Each kernel is tested against a reference:
//! portable code or AWS-LC.

#[cfg(target_arch = "x86_64")]
mod adx;
pub(crate) mod aes;
#[cfg(target_arch = "x86_64")]
pub(crate) mod chacha20;
mod digits;
pub(crate) mod ghash;
mod inverse;
pub(crate) mod keccak;
pub(crate) mod keccak_lanes;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod limbs;
pub(crate) mod montgomery;
#[cfg(target_arch = "x86_64")]
pub(crate) mod p256;
#[cfg(target_arch = "x86_64")]
pub(crate) mod poly1305;
#[cfg(target_arch = "x86_64")]
pub(crate) mod product;
pub(crate) mod sha2_lanes;
pub(crate) mod sha512;
pub(crate) mod siphash;
pub(crate) mod sm2;
pub(crate) mod sm3;
pub(crate) mod sm4;
#[cfg(target_arch = "x86_64")]
mod transpose;
pub(crate) mod weierstrass;

#[cfg(test)]
pub(crate) mod tests {
    /// Reports past the test harness that a kernel was not tested here, for a reason that no
    /// installation could change.
    pub(crate) fn unchecked(why: &str) {
        let thread = std::thread::current();
        let line = format!("unchecked: {}: {why}\n", thread.name().unwrap_or("a test"));
        std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
    }

    /// Returns `len` pseudorandom bytes, the same in each run. They have no pattern that a wrong
    /// kernel could match by chance.
    pub(crate) fn bytes(len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        blake3::Hasher::new().update(b"kernels").finalize_xof().fill(&mut out);
        out
    }
}
