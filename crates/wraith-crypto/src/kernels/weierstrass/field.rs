//! Numbers modulo a prime of N limbs, in Montgomery form. All operations but [`Field::invert`]'s exponent take no notice of what the numbers are.

/// Limbs of a number, the least significant first. Below the prime, and times 2^(64 N) modulo it, unless said otherwise.
pub(super) type Limbs<const N: usize> = [u64; N];

/// A prime, and what Montgomery's reduction needs of it. Its top bit is set.
pub(super) struct Field<const N: usize> {
    pub(super) prime: Limbs<N>,
    /// −1 / prime modulo 2^64.
    factor: u64,
    /// 2^(64 N) and its square, modulo the prime.
    pub(super) one: Limbs<N>,
    square: Limbs<N>,
}

impl<const N: usize> Field<N> {
    /// Of an odd prime whose top bit is set.
    pub(super) fn new(prime: Limbs<N>) -> Self {
        // Newton: each step doubles the bits that are right.
        let inverse = (0..6).fold(1u64, |inverse, _| {
            inverse.wrapping_mul(2u64.wrapping_sub(prime[0].wrapping_mul(inverse)))
        });
        let (one, _) = sub(&[0; N], &prime);
        let mut field = Self { prime, factor: inverse.wrapping_neg(), one, square: one };
        for _ in 0..64 * N {
            field.square = field.add(&field.square, &field.square);
        }
        field
    }

    #[inline]
    pub(super) fn add(&self, a: &Limbs<N>, b: &Limbs<N>) -> Limbs<N> {
        let (sum, carry) = add(a, b);
        self.subtract_once(&sum, carry)
    }

    #[inline]
    pub(super) fn sub(&self, a: &Limbs<N>, b: &Limbs<N>) -> Limbs<N> {
        let (difference, borrow) = sub(a, b);
        let mask = u64::from(borrow).wrapping_neg();
        add(&difference, &self.prime.map(|limb| limb & mask)).0
    }

    #[inline]
    pub(super) fn negate(&self, a: &Limbs<N>) -> Limbs<N> {
        self.sub(&[0; N], a)
    }

    /// `limbs` and the carry above them, less the prime unless that is larger.
    #[inline]
    pub(super) fn subtract_once(&self, limbs: &Limbs<N>, carry: bool) -> Limbs<N> {
        let (difference, borrow) = sub(limbs, &self.prime);
        select(&difference, limbs, u64::from(borrow & !carry).wrapping_neg())
    }

    /// a · b / 2^(64 N). One of the two is below the prime, the other may be any.
    #[inline]
    pub(super) fn mul(&self, a: &Limbs<N>, b: &Limbs<N>) -> Limbs<N> {
        let mut sum = [0; N];
        let mut top = 0u64;
        for &limb in b {
            let mut carry = 0;
            for j in 0..N {
                (sum[j], carry) = a[j].carrying_mul_add(limb, sum[j], carry);
            }
            let (above, overflow) = top.overflowing_add(carry);
            let factor = sum[0].wrapping_mul(self.factor);
            let (_, mut carry) = factor.carrying_mul_add(self.prime[0], sum[0], 0);
            for j in 1..N {
                (sum[j - 1], carry) = factor.carrying_mul_add(self.prime[j], sum[j], carry);
            }
            let (last, second) = above.overflowing_add(carry);
            sum[N - 1] = last;
            top = u64::from(overflow) + u64::from(second);
        }
        self.subtract_once(&sum, top != 0)
    }

    #[inline]
    pub(super) fn sqr(&self, a: &Limbs<N>) -> Limbs<N> {
        self.mul(a, a)
    }

    /// Half of it.
    #[inline]
    pub(super) fn half(&self, a: &Limbs<N>) -> Limbs<N> {
        let mask = (a[0] & 1).wrapping_neg();
        let (sum, carry) = add(a, &self.prime.map(|limb| limb & mask));
        let above = |i: usize| if i + 1 < N { sum[i + 1] } else { carry.into() };
        std::array::from_fn(|i| sum[i] >> 1 | above(i) << 63)
    }

    /// 1 / a; of zero, zero. By Fermat, four bits at a time.
    pub(super) fn invert(&self, a: &Limbs<N>) -> Limbs<N> {
        let mut powers = [self.one; 16];
        for i in 1..16 {
            powers[i] = self.mul(&powers[i - 1], a);
        }
        let mut two = [0; N];
        two[0] = 2;
        let (exponent, _) = sub(&self.prime, &two);
        let mut power = self.one;
        for i in (0..16 * N).rev() {
            for _ in 0..4 {
                power = self.sqr(&power);
            }
            let digit = exponent[i / 16] >> (4 * (i % 16)) & 15;
            power = self.mul(&power, &powers[digit as usize]);
        }
        power
    }

    /// Into Montgomery form, of any number.
    pub(super) fn enter(&self, a: &Limbs<N>) -> Limbs<N> {
        self.mul(&self.square, a)
    }

    /// Out of it.
    pub(super) fn leave(&self, a: &Limbs<N>) -> Limbs<N> {
        let mut one = [0; N];
        one[0] = 1;
        self.mul(a, &one)
    }
}

#[inline]
pub(super) fn add<const N: usize>(a: &Limbs<N>, b: &Limbs<N>) -> (Limbs<N>, bool) {
    let mut carry = false;
    let mut sum = [0; N];
    for i in 0..N {
        (sum[i], carry) = a[i].carrying_add(b[i], carry);
    }
    (sum, carry)
}

#[inline]
pub(super) fn sub<const N: usize>(a: &Limbs<N>, b: &Limbs<N>) -> (Limbs<N>, bool) {
    let mut borrow = false;
    let mut difference = [0; N];
    for i in 0..N {
        (difference[i], borrow) = a[i].borrowing_sub(b[i], borrow);
    }
    (difference, borrow)
}

/// `a`, or `b` where `mask` is all ones.
#[inline]
pub(super) fn select<const N: usize>(a: &Limbs<N>, b: &Limbs<N>, mask: u64) -> Limbs<N> {
    std::array::from_fn(|i| a[i] ^ (mask & (a[i] ^ b[i])))
}

/// All ones if the number is zero, else zero.
#[inline]
pub(super) fn zero_mask<const N: usize>(a: &Limbs<N>) -> u64 {
    let any = a.iter().fold(0, |any, limb| any | limb);
    ((any | any.wrapping_neg()) >> 63).wrapping_sub(1)
}

/// The number of 8 N bytes, most significant first.
pub(super) fn limbs<const N: usize>(bytes: &[u8]) -> Option<Limbs<N>> {
    let mut limbs = [0; N];
    let (chunks, rest) = bytes.as_chunks();
    if chunks.len() != N || !rest.is_empty() {
        return None;
    }
    for (limb, chunk) in limbs.iter_mut().rev().zip(chunks) {
        *limb = u64::from_be_bytes(*chunk);
    }
    Some(limbs)
}

/// Writes a number to 8 N bytes, most significant first.
pub(super) fn write<const N: usize>(limbs: &Limbs<N>, out: &mut [u8]) {
    for (chunk, limb) in out.chunks_exact_mut(8).zip(limbs.iter().rev()) {
        chunk.copy_from_slice(&limb.to_be_bytes());
    }
}
