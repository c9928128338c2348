//! Key agreement and signatures on NIST's P-224 and the r1 curves of brainpool (RFC 5639), for
//! which AWS-LC has little dedicated code. All inputs and outputs are bytes.
//!
//! This is our own implementation:
//!
//! - Points are in Jacobian coordinates, scalars in signed digits of five bits.
//! - P-224 has its own field arithmetic ([`p224`]). The primes of brainpool have no special form,
//!   so they use Montgomery products of N limbs in Rust.
//! - A brainpool curve has a twist with a = −3 (RFC 5639 §1.2: the twisted curves, t1), on which
//!   doublings are cheaper. All computation is on that twist, where (x, y) is (x · z², y · z³).
//!
//! The time does not depend on secrets.

mod field;
mod p224;
mod point;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use wraith_aws_lc::ec;
use wraith_kernels::detect::{Kernel, Purpose};
use zeroize::{Zeroize, Zeroizing};

use field::{Arithmetic, Field, Limbs, is_below, limbs, write, zero_mask};
use p224::P224;
use point::{Affine, BaseTable, Jacobian, Points};

/// The switch of this code. AWS-LC has the curves too, and its results are the reference.
pub(crate) static KERNEL: Kernel = Kernel::portable("P-224 and brainpool", Purpose::Keys, || {
    let curves: [(&dyn Curve, ec::Curve); 4] = [
        (p224(), ec::Curve::P224),
        (brainpool_p256r1(), ec::Curve::BrainpoolP256r1),
        (brainpool_p384r1(), ec::Curve::BrainpoolP384r1),
        (brainpool_p512r1(), ec::Curve::BrainpoolP512r1),
    ];
    let random = Zeroizing::new(crate::rand::bytes::<128>());
    curves.into_iter().all(|(own, library)| {
        let scalar = own.reduce(&random[..2 * own.bytes()]);
        scalar.is_some_and(|scalar| own.public_key(&scalar) == library.public_key(&scalar))
    })
});

/// A curve of prime order. Scalars and coordinates are big-endian, of [`Curve::bytes`] bytes;
/// points are uncompressed (SEC 1).
pub(crate) trait Curve: Send + Sync {
    /// Returns the size of a coordinate in bytes.
    fn bytes(&self) -> usize;

    /// Returns a number of twice as many bytes, modulo the order: a uniform scalar for uniform
    /// bytes. Returns `None` for any other length. The probability of zero is negligible.
    fn reduce(&self, wide: &[u8]) -> Option<Zeroizing<Vec<u8>>>;

    /// Returns whether the bytes are a point of the curve.
    fn is_point(&self, point: &[u8]) -> bool;

    /// Returns the public half of a scalar, or `None` if the scalar is out of range.
    fn public_key(&self, scalar: &[u8]) -> Option<Vec<u8>>;

    /// Returns the x of `scalar` times `point`, or `None` if one of them is out of range.
    fn agree(&self, scalar: &[u8], point: &[u8]) -> Option<Zeroizing<Vec<u8>>>;

    /// Returns r ‖ s of an ECDSA signature over a digest. A nonce must be used only once. Returns
    /// `None` if an input is out of range, or r or s is zero.
    fn sign(&self, scalar: &[u8], nonce: &[u8], digest: &[u8]) -> Option<Vec<u8>>;

    /// Returns whether r ‖ s is a signature over a digest by the private half of `point`.
    fn verify(&self, point: &[u8], digest: &[u8], signature: &[u8]) -> bool;
}

/// The parameters of a curve, in hexadecimal. z maps it to its twist.
struct Parameters {
    p: &'static str,
    b: &'static str,
    n: &'static str,
    gx: &'static str,
    gy: &'static str,
    z: &'static str,
}

struct PrimeCurve<F: Arithmetic<N>, const N: usize> {
    field: F,
    order: Field<N>,
    /// Size of a coordinate and of a scalar. The order has exactly this many bytes.
    bytes: usize,
    /// The coefficient b of the twist.
    b: F::Fe,
    base: BaseTable<F::Fe>,
    /// z² and z³, and their inverses.
    to_twin: [F::Fe; 2],
    from_twin: [F::Fe; 2],
}

fn number<const N: usize>(hex: &str) -> Limbs<N> {
    let bytes = data_encoding::HEXLOWER.decode(hex.as_bytes()).expect("constants are hex");
    limbs(&bytes)
}

impl<F: Arithmetic<N>, const N: usize> PrimeCurve<F, N> {
    fn new(field: F, parameters: &Parameters) -> Self {
        let enter = |hex: &str| field.enter(&number(hex));
        let z = enter(parameters.z);
        let square = field.sqr(&z);
        let cube = field.mul(&square, &z);
        let b = field.mul(&enter(parameters.b), &field.sqr(&cube));
        let x = field.mul(&enter(parameters.gx), &square);
        let y = field.mul(&enter(parameters.gy), &cube);
        let bytes = parameters.n.len() / 2;
        Self {
            order: Field::new(number(parameters.n)),
            bytes,
            b,
            base: field.base_table(&Affine { x, y }, 8 * bytes),
            to_twin: [square, cube],
            from_twin: [field.invert(&square), field.invert(&cube)],
            field,
        }
    }

    /// Parses a scalar, in the usual form.
    fn scalar(&self, bytes: &[u8]) -> Option<Zeroizing<Limbs<N>>> {
        if bytes.len() != self.bytes {
            return None;
        }
        let scalar = Zeroizing::new(limbs(bytes));
        (is_below(&scalar, &self.order.prime) & (zero_mask(&scalar) == 0)).then_some(scalar)
    }

    /// Parses a point and maps it to the twist.
    fn point(&self, bytes: &[u8]) -> Option<Affine<F::Fe>> {
        let (4, coordinates) = bytes.split_first().map(|(&form, rest)| (form, rest))? else {
            return None;
        };
        if coordinates.len() != 2 * self.bytes {
            return None;
        }
        let (x, y) = coordinates.split_at(self.bytes);
        let (x, y) = (limbs(x), limbs(y));
        let field = &self.field;
        if !is_below(&x, field.prime()) || !is_below(&y, field.prime()) {
            return None;
        }
        let x = field.mul(&field.enter(&x), &self.to_twin[0]);
        let y = field.mul(&field.enter(&y), &self.to_twin[1]);
        let three = field.add(&field.double(&x), &x);
        let right = field.add(&field.sub(&field.mul(&field.sqr(&x), &x), &three), &self.b);
        let difference = field.normalize(&field.sub(&field.sqr(&y), &right));
        (field.zero_mask(&difference) != 0).then_some(Affine { x, y })
    }

    /// Maps the x of a point of the twist to the curve, in the usual form.
    fn x(&self, point: &Affine<F::Fe>) -> Limbs<N> {
        self.field.leave(&self.field.mul(&point.x, &self.from_twin[0]))
    }

    /// Returns whether the x of a point of the twist, mapped to the curve, is `x`. Needs no
    /// division.
    fn has_x(&self, point: &Jacobian<F::Fe>, x: &Limbs<N>) -> bool {
        let field = &self.field;
        if !is_below(x, field.prime()) {
            return false;
        }
        let x = field.mul(&field.mul(&field.enter(x), &self.to_twin[0]), &field.sqr(&point.z));
        field.zero_mask(&field.sub(&x, &point.x)) != 0
    }

    /// Returns the leftmost bits of a digest, as many as the order has, modulo the order.
    fn digest(&self, digest: &[u8]) -> Limbs<N> {
        let number = limbs(&digest[..digest.len().min(self.bytes)]);
        self.order.subtract_once(&number, false)
    }
}

impl<F: Arithmetic<N>, const N: usize> Curve for PrimeCurve<F, N> {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn reduce(&self, wide: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        if wide.len() != 2 * self.bytes {
            return None;
        }
        let (high, low) = wide.split_at(wide.len() - 8 * N);
        let (high, low) = (Zeroizing::new(limbs(high)), Zeroizing::new(limbs(low)));
        let (order, one) = (&self.order, limbs(&[1]));
        let low = Zeroizing::new(order.mul(&order.enter(&low), &one));
        let mut sum = order.add(&order.enter(&high), &low);
        let mut bytes = Zeroizing::new(vec![0; self.bytes]);
        write(&sum, &mut bytes);
        sum.zeroize();
        Some(bytes)
    }

    fn is_point(&self, point: &[u8]) -> bool {
        self.point(point).is_some()
    }

    fn public_key(&self, scalar: &[u8]) -> Option<Vec<u8>> {
        let product = self.field.multiply_base(&*self.scalar(scalar)?, &self.base);
        let point = self.field.affine(&product);
        let y = self.field.leave(&self.field.mul(&point.y, &self.from_twin[1]));
        let mut bytes = vec![4; 1 + 2 * self.bytes];
        write(&self.x(&point), &mut bytes[1..=self.bytes]);
        write(&y, &mut bytes[1 + self.bytes..]);
        Some(bytes)
    }

    fn agree(&self, scalar: &[u8], point: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let scalar = self.scalar(scalar)?;
        let mut product = self.field.multiply(&scalar, &self.point(point)?, 8 * self.bytes);
        let mut x = self.x(&self.field.affine(&product));
        let mut bytes = Zeroizing::new(vec![0; self.bytes]);
        write(&x, &mut bytes);
        product.zeroize();
        x.zeroize();
        Some(bytes)
    }

    fn sign(&self, scalar: &[u8], nonce: &[u8], digest: &[u8]) -> Option<Vec<u8>> {
        let order = &self.order;
        let (scalar, nonce) = (self.scalar(scalar)?, self.scalar(nonce)?);
        let point = self.field.affine(&self.field.multiply_base(&nonce, &self.base));
        let r = order.subtract_once(&self.x(&point), false);
        // s = (e + r · d) / k. A product with one factor in Montgomery form is in the usual form.
        let product = Zeroizing::new(order.mul(&order.enter(&r), &scalar));
        let sum = Zeroizing::new(order.add(&product, &self.digest(digest)));
        let inverse = Zeroizing::new(order.enter(&order.invert_usual(&nonce)));
        let s = order.mul(&inverse, &sum);
        if zero_mask(&r) | zero_mask(&s) != 0 {
            return None;
        }
        let mut signature = vec![0; 2 * self.bytes];
        write(&r, &mut signature[..self.bytes]);
        write(&s, &mut signature[self.bytes..]);
        Some(signature)
    }

    fn verify(&self, point: &[u8], digest: &[u8], signature: &[u8]) -> bool {
        let check = || {
            let (r, s) = signature.split_at_checked(self.bytes)?;
            let (r, s) = (self.scalar(r)?, self.scalar(s)?);
            let point = self.point(point)?;
            let (order, field) = (&self.order, &self.field);
            let inverse = order.enter(&order.invert_usual(&s));
            let (u, v) = (order.mul(&inverse, &self.digest(digest)), order.mul(&inverse, &r));
            let sum = field.add_public(
                &field.multiply_base_public(&u, &self.base),
                &field.multiply_public(&v, &point),
            );
            // r is reduced modulo the order, so the x may be larger by the order.
            let (larger, carry) = field::add(&r, &order.prime);
            let is_x = self.has_x(&sum, &r) || !carry && self.has_x(&sum, &larger);
            Some(is_x && !field.is_infinity(&sum))
        };
        check() == Some(true)
    }
}

/// Returns P-224 (secp224r1). Its table is built on first use.
pub(crate) fn p224() -> &'static dyn Curve {
    const PARAMETERS: Parameters = Parameters {
        p: "ffffffffffffffffffffffffffffffff000000000000000000000001",
        b: "b4050a850c04b3abf54132565044b0b7d7bfd8ba270b39432355ffb4",
        n: "ffffffffffffffffffffffffffff16a2e0b8f03e13dd29455c5c2a3d",
        gx: "b70e0cbd6bb4bf7f321390b94a03c1d356c21122343280d6115c1d21",
        gy: "bd376388b5f723fb4c22dfe6cd4375a05a07476444d5819985007e34",
        z: "01",
    };
    static CURVE: OnceLock<PrimeCurve<P224, 4>> = OnceLock::new();
    CURVE.get_or_init(|| PrimeCurve::new(P224::new(number(PARAMETERS.p)), &PARAMETERS))
}

/// Returns brainpoolP256r1. Its table is built on first use.
pub(crate) fn brainpool_p256r1() -> &'static dyn Curve {
    const PARAMETERS: Parameters = Parameters {
        p: "a9fb57dba1eea9bc3e660a909d838d726e3bf623d52620282013481d1f6e5377",
        b: "26dc5c6ce94a4b44f330b5d9bbd77cbf958416295cf7e1ce6bccdc18ff8c07b6",
        n: "a9fb57dba1eea9bc3e660a909d838d718c397aa3b561a6f7901e0e82974856a7",
        gx: "8bd2aeb9cb7e57cb2c4b482ffc81b7afb9de27e1e3bd23c23a4453bd9ace3262",
        gy: "547ef835c3dac4fd97f8461a14611dc9c27745132ded8e545c1d54c72f046997",
        z: "3e2d4bd9597b58639ae7aa669cab9837cf5cf20a2c852d10f655668dfc150ef0",
    };
    static CURVE: OnceLock<PrimeCurve<Field<4>, 4>> = OnceLock::new();
    CURVE.get_or_init(|| PrimeCurve::new(Field::new(number(PARAMETERS.p)), &PARAMETERS))
}

/// Returns brainpoolP384r1. Its table is built on first use.
pub(crate) fn brainpool_p384r1() -> &'static dyn Curve {
    const PARAMETERS: Parameters = Parameters {
        p: "8cb91e82a3386d280f5d6f7e50e641df152f7109ed5456b412b1da197fb71123acd3a729901d1a71874700133107ec53",
        b: "04a8c7dd22ce28268b39b55416f0447c2fb77de107dcd2a62e880ea53eeb62d57cb4390295dbc9943ab78696fa504c11",
        n: "8cb91e82a3386d280f5d6f7e50e641df152f7109ed5456b31f166e6cac0425a7cf3ab6af6b7fc3103b883202e9046565",
        gx: "1d1c64f068cf45ffa2a63a81b7c13f6b8847a3e77ef14fe3db7fcafe0cbd10e8e826e03436d646aaef87b2e247d4af1e",
        gy: "8abe1d7520f9c2a45cb1eb8e95cfd55262b70b29feec5864e19c054ff99129280e4646217791811142820341263c5315",
        z: "4ad935a569a53b30f8f30976e9b19942445cb42e704dc86f30be612560eb628bd9fd696d08604c94bae95c74ab7ec337",
    };
    static CURVE: OnceLock<PrimeCurve<Field<6>, 6>> = OnceLock::new();
    CURVE.get_or_init(|| PrimeCurve::new(Field::new(number(PARAMETERS.p)), &PARAMETERS))
}

/// Returns brainpoolP512r1. Its table is built on first use.
pub(crate) fn brainpool_p512r1() -> &'static dyn Curve {
    const PARAMETERS: Parameters = Parameters {
        p: "aadd9db8dbe9c48b3fd4e6ae33c9fc07cb308db3b3c9d20ed6639cca703308717d4d9b009bc66842aecda12ae6a380e62881ff2f2d82c68528aa6056583a48f3",
        b: "3df91610a83441caea9863bc2ded5d5aa8253aa10a2ef1c98b9ac8b57f1117a72bf2c7b9e7c1ac4d77fc94cadc083e67984050b75ebae5dd2809bd638016f723",
        n: "aadd9db8dbe9c48b3fd4e6ae33c9fc07cb308db3b3c9d20ed6639cca70330870553e5c414ca92619418661197fac10471db1d381085ddaddb58796829ca90069",
        gx: "81aee4bdd82ed9645a21322e9c4c6a9385ed9f70b5d916c1b43b62eef4d0098eff3b1f78e2d0d48d50d1687b93b97d5f7c6d5047406a5e688b352209bcb9f822",
        gy: "7dde385d566332ecc0eabfa9cf7822fdf209f70024a57b1aa000c55b881f8111b2dcde494a5f485e5bca4bd88a2763aed1ca2b2fa8f0540678cd1e0f3ad80892",
        z: "12ee58e6764838b69782136f0f2d3ba06e27695716054092e60a80bedb212b64e585d90bce13761f85c3f1d2a64e3be8fea2220f01eba5eeb0f35dbd29d922ab",
    };
    static CURVE: OnceLock<PrimeCurve<Field<8>, 8>> = OnceLock::new();
    CURVE.get_or_init(|| PrimeCurve::new(Field::new(number(PARAMETERS.p)), &PARAMETERS))
}
