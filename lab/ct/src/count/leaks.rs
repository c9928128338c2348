//! Operations that leak on purpose, with the kinds of leaks that real programs had. A run that does
//! not find all of them proves nothing.

use std::hint::black_box;

use super::Expectation::{CountLeak, PathLeak};
use super::{Operation, prepared};
use crate::controls;

/// Every leak.
pub fn all() -> Vec<Operation> {
    vec![
        Operation::new("leak/compare", |draw| {
            let right = draw.random::<32>();
            let mut secrets = draw.bytes(32);
            secrets[0].bytes = right.to_vec();
            secrets[0].bytes[31] ^= 1;
            prepared(secrets, move |guess| {
                black_box(right.iter().zip(guess).all(|(a, b)| black_box(*a) == *b));
            })
        })
        .expecting(CountLeak),
        Operation::new("leak/exponent", |draw| {
            prepared(draw.bytes(8), |exponent| {
                black_box(controls::power(3, number(exponent)));
            })
        })
        .expecting(CountLeak),
        Operation::new("leak/inverse", |draw| {
            prepared(draw.bytes(8), |bytes| {
                black_box(controls::euclid(1 + number(bytes) % (controls::PRIME - 1)));
            })
        })
        .expecting(CountLeak),
        // One bit of one secret: the least that a count can show.
        Operation::new("leak/one-bit", |draw| {
            prepared(draw.bytes(32), |bytes| {
                let is_odd = bytes[31] & 1 == 1;
                if black_box(is_odd) {
                    black_box(bytes[0].wrapping_add(1));
                }
            })
        })
        .expecting(CountLeak),
        Operation::new("leak/balanced-branch", |draw| {
            prepared(draw.bytes(32), |bytes| {
                // Two copies of one function: calls of one length.
                let branch = if bytes[31] & 1 == 1 { first } else { second };
                black_box(branch(bytes[0]));
            })
        })
        .expecting(PathLeak),
    ]
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("eight bytes"))
}

#[inline(never)]
fn first(byte: u8) -> u8 {
    black_box(byte).wrapping_add(black_box(1))
}

#[inline(never)]
fn second(byte: u8) -> u8 {
    black_box(byte).wrapping_sub(black_box(1))
}
