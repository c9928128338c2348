//! Key pairs of P-256. Invariant: for private keys at the edges and others, the kernel has the public
//! keys of AWS-LC, and refuses the same numbers. There is no portable twin: AWS-LC is in its place.

use crate::input::Input;

pub(crate) fn run(input: &[u8]) {
    /// The order of the base point, most significant limb first.
    const N: [u64; 4] = [
        0xffff_ffff_0000_0000,
        0xffff_ffff_ffff_ffff,
        0xbce6_faad_a717_9e84,
        0xf3b9_cac2_fc63_2551,
    ];
    let scalar = super::kernel_sm2::number(&mut Input(input), &N);
    let expected = wraith_aws_lc::ec::Curve::P256.public_key(&scalar);
    #[cfg(target_arch = "x86_64")]
    if let Some(kernel) = crate::levels::fastest(wraith_kernels::p256::P256::new) {
        let found = kernel.public_key(&scalar).map(|key| key.to_vec());
        assert_eq!(found, expected, "AWS-LC");
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = expected;
}
