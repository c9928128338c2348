//! DER, value by value, and recursively into constructed values and octet strings.
//!
//! Invariant: each value has one encoding, so writing a decoded value returns the original bytes.

use wraith_suite::encoding::der::asn1::{
    AnyRef, BitStringRef, ObjectIdentifier, OctetStringRef, UintRef,
};
use wraith_suite::encoding::der::{Decode, Encode};

/// Deeper than keys are nested. Decoders of keys never recurse.
const DEPTH_MAX: usize = 8;

pub(crate) fn run(input: &[u8]) {
    walk(input, DEPTH_MAX);
}

fn walk(mut input: &[u8], depth: usize) {
    while let Ok((value, rest)) = AnyRef::from_der_partial(input) {
        let element = &input[..input.len() - rest.len()];
        assert_eq!(value.to_der().as_deref(), Ok(element));
        same::<u32>(element);
        same::<UintRef<'_>>(element);
        same::<BitStringRef<'_>>(element);
        same::<&OctetStringRef>(element);
        same::<ObjectIdentifier>(element);
        if depth > 0 {
            walk(value.value(), depth - 1);
        }
        input = rest;
    }
}

/// Checks that an element read as `T` is written back to the same bytes.
fn same<'a, T: Decode<'a> + Encode>(element: &'a [u8]) {
    if let Ok(value) = T::from_der(element) {
        assert_eq!(value.to_der().as_deref(), Ok(element));
    }
}
