use wraith_aws_lc::hash::Digest;

use super::*;
use crate::bignum::Uint;

/// Returns the numbers of a key in the order of RFC 8017 §A.1.2: n, e, d, p, q.
fn numbers(key: &PrivateKey) -> [Uint; 5] {
    let der = key.to_pkcs1();
    let numbers = super::numbers(&der).unwrap();
    assert_eq!(numbers[0].as_bytes(), [0], "the version");
    [1, 2, 3, 4, 5].map(|at| Uint::from_be_bytes(numbers[at].as_bytes()).unwrap())
}

#[test]
fn keys_are_as_fips_186_5_has_them() {
    for bits in [2048_usize, 2176, 3072] {
        let key = PrivateKey::generate(bits as u32).unwrap();
        let [n, e, d, p, q] = numbers(&key);
        let one = Uint::from(1);
        assert!(e == Uint::from(E) && n == p.mul(&q).unwrap() && n.bits() == bits);
        for prime in [&p, &q] {
            // At least √2 · 2^(bits / 2 - 1).
            assert!(prime.bits() == bits / 2 && prime.mul(prime).unwrap().bits() == bits);
        }
        let (larger, smaller) = if p > q { (&p, &q) } else { (&q, &p) };
        assert!(larger.sub(smaller).unwrap().bits() > bits / 2 - 100);
        let (p_less_1, q_less_1) = (p.sub(&one).unwrap(), q.sub(&one).unwrap());
        let divisor = p_less_1.gcd(&q_less_1).unwrap();
        let order = p_less_1.mul(&q_less_1.div_rem(&divisor).unwrap().0).unwrap();
        assert_eq!(d, e.mod_inverse(&order).unwrap());
        assert!(d.bits() > bits / 2);
        let (public, hash) = (key.public(), [7; 32]);
        let pss = key.sign_pss(Digest::Sha256, &hash).unwrap();
        let pkcs1 = key.sign_pkcs1(Digest::Sha256, &hash).unwrap();
        assert!(public.verify_pss(Digest::Sha256, &hash, &pss));
        assert!(public.verify_pkcs1(Digest::Sha256, &hash, &pkcs1));
        assert!(!public.verify_pss(Digest::Sha256, &[8; 32], &pss));
        let sealed = public.seal_oaep(Digest::Sha256, b"", b"text").unwrap();
        assert_eq!(*key.open_oaep(Digest::Sha256, b"", &sealed).unwrap(), *b"text");
        assert!(PrivateKey::from_pkcs8(&key.to_pkcs8()).is_some());
    }
}

#[test]
fn lengths_of_other_moduli_are_refused() {
    for bits in [1024, 2047, 2050, 4104, 8192] {
        assert!(PrivateKey::generate(bits).is_none(), "{bits}");
    }
}
