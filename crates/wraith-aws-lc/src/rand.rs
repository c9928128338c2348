//! Random bytes from AWS-LC's generator, which reseeds itself regularly from the operating system,
//! and after a fork.

/// Fills `out` with random bytes. If the system has no randomness, AWS-LC aborts the process.
pub fn fill(out: &mut [u8]) {
    // SAFETY: `out` has the length passed.
    let filled = unsafe { aws_lc_sys::RAND_bytes(out.as_mut_ptr(), out.len()) };
    assert_eq!(filled, 1, "AWS-LC fills all, or ends the program");
}
