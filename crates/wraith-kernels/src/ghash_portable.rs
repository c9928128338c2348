//! GHASH by integer multiplications, for every processor.
//!
//! The multiplication is Pornin's method ("Constant-time Mul", BearSSL). In each factor only every
//! fourth bit may be set. The integer product then holds the carry-less product in every fourth
//! bit, and the carries in the three bits between. The method is constant time on a processor whose
//! multiplication takes the same time for all operands.

/// Returns the hash after `text`, padded with zeros to a whole block, under the hash key `key`.
pub fn absorb(key: u128, hash: u128, text: &[u8]) -> u128 {
    text.chunks(16).fold(hash, |hash, block| {
        let mut padded = [0; 16];
        padded[..block.len()].copy_from_slice(block);
        multiply(hash ^ u128::from_be_bytes(padded), key)
    })
}

/// Multiplies two field elements, in which the highest bit is the coefficient of x^0.
fn multiply(a: u128, b: u128) -> u128 {
    let (a1, a0) = ((a >> 64) as u64, a as u64);
    let (b1, b0) = ((b >> 64) as u64, b as u64);
    let (low, high) = (carry_less(a0, b0), carry_less(a1, b1));
    let middle = carry_less(a0 ^ a1, b0 ^ b1) ^ low ^ high;
    let (low, high) = (low ^ middle << 64, high ^ middle >> 64);
    // In this bit order the carry-less product is too low by a factor of x.
    let high = high << 1 | low >> 127;
    let low = low << 1;
    // The lower half holds x^128 and above, where x^128 = x^7 + x^2 + x + 1. The bits that this
    // reduction shifts out of the half again are folded first.
    let out = low << 127 ^ low << 126 ^ low << 121;
    let low = low ^ out;
    high ^ low ^ low >> 1 ^ low >> 2 ^ low >> 7
}

/// Returns the carry-less product.
fn carry_less(a: u64, b: u64) -> u128 {
    let low = low_half(a, b);
    let high = low_half(a.reverse_bits(), b.reverse_bits()).reverse_bits() >> 1;
    u128::from(high) << 64 | u128::from(low)
}

/// Returns the lower half of the carry-less product.
fn low_half(a: u64, b: u64) -> u64 {
    const FOURTH: u64 = 0x1111_1111_1111_1111;
    let mut product = 0;
    for place in 0..4 {
        let mut sum = 0;
        for i in 0..4 {
            let j = (place + 4 - i) % 4;
            sum ^= (a & FOURTH << i).wrapping_mul(b & FOURTH << j);
        }
        product |= sum & FOURTH << place;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::bytes;

    /// Multiplies bit by bit, as SP 800-38D §6.3 writes it.
    fn by_bits(a: u128, b: u128) -> u128 {
        let (mut sum, mut v) = (0, b);
        for bit in (0..128).rev() {
            if a >> bit & 1 == 1 {
                sum ^= v;
            }
            v = (v >> 1) ^ ((v & 1) * (0xe1 << 120));
        }
        sum
    }

    #[test]
    fn the_multiplication_without_the_instruction_is_that_of_the_standard() {
        let random = bytes(32 * 200);
        let pairs = random.as_chunks::<32>().0.iter().map(|pair| {
            let [a, b] = [0, 16].map(|i| u128::from_be_bytes(pair[i..i + 16].try_into().unwrap()));
            (a, b)
        });
        let edges = [0, 1, 1 << 127, u128::MAX, 1 << 64];
        let edges = edges.iter().flat_map(|a| edges.iter().map(move |b| (*a, *b)));
        for (a, b) in pairs.chain(edges) {
            assert_eq!(multiply(a, b), by_bits(a, b), "{a:x} {b:x}");
        }
    }
}
