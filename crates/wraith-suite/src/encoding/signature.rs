//! Signatures of elliptic curves in DER: a SEQUENCE of the numbers r and s (RFC 3279 §2.2.3).

use der::asn1::UintRef;
use der::{Decode as _, Encode as _, Sequence};

#[derive(Sequence)]
struct Signature<'a> {
    r: UintRef<'a>,
    s: UintRef<'a>,
}

/// Encodes r ‖ s as DER.
pub(crate) fn to_der(signature: &[u8]) -> Vec<u8> {
    let (r, s) = signature.split_at(signature.len() / 2);
    let [r, s] = [r, s].map(|number| UintRef::new(number).expect("signatures are small"));
    Signature { r, s }.to_der().expect("signatures are small")
}

/// Decodes DER to r ‖ s, with `half` bytes for each.
pub(crate) fn from_der(der: &[u8], half: usize) -> Option<Vec<u8>> {
    let mut signature = vec![0; 2 * half];
    let Signature { r, s } = Signature::from_der(der).ok()?;
    for (part, number) in signature.chunks_exact_mut(half).zip([r, s]) {
        write_padded(number, part)?;
    }
    Some(signature)
}

/// Writes `number` to the end of `bytes`, which are zero. Returns `None` if it is too large.
pub(crate) fn write_padded(number: UintRef<'_>, bytes: &mut [u8]) -> Option<()> {
    let number = number.as_bytes();
    let zeros = bytes.len().checked_sub(number.len())?;
    bytes[zeros..].copy_from_slice(number);
    Some(())
}
