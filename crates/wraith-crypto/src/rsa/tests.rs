#![allow(unsafe_code)]

use super::prime::RandomLimbs;
use super::*;
use crate::agree::ffdhe::Group;
use crate::aws::write_number;
use crate::bignum::Uint;
use crate::kernels::montgomery::{Modulus, eight};
use crate::kernels::tests::unchecked;

/// Number of rounds after which any composite number passes with a probability of at most 2^-80.
const ROUNDS: usize = 40;

fn is_available() -> bool {
    if !montgomery::is_available() {
        unchecked("this processor has no AVX-512 IFMA");
    }
    montgomery::is_available()
}

fn aws_lc_says(number: &Uint) -> bool {
    let number = crate::aws::number(&number.to_be_bytes()).unwrap();
    // SAFETY: the number is alive. If `context` is null, AWS-LC makes its own.
    let said = unsafe {
        let (context, progress) = (aws::BN_CTX_new(), ptr::null_mut());
        let said = aws::BN_is_prime_ex(number.as_ptr(), ROUNDS as i32, context, progress);
        aws::BN_CTX_free(context);
        said
    };
    assert!(said >= 0);
    said == 1
}

fn we_say(number: &Uint, pool: &mut RandomLimbs) -> bool {
    let modulus = Modulus::new(number.limbs()).unwrap();
    prime::is_probable_prime(&modulus, number.limbs(), ROUNDS, pool)
}

/// Returns the verdict, after checking that AWS-LC and our test agree.
fn is_prime(number: &Uint, pool: &mut RandomLimbs) -> bool {
    let said = we_say(number, pool);
    assert_eq!(said, aws_lc_says(number), "{}", *number.to_hex());
    said
}

fn decimal(digits: &str) -> Uint {
    digits.bytes().fold(Uint::zero(), |number, digit| {
        let tens = number.mul(&Uint::from(10)).unwrap();
        tens.add(&Uint::from(u64::from(digit - b'0'))).unwrap()
    })
}

/// Returns `2^bits - less`.
fn power_of_two_less(bits: usize, less: u64) -> Uint {
    let mut limbs = vec![0; bits / 64 + 1];
    limbs[bits / 64] = 1 << (bits % 64);
    Uint::from_limbs(limbs).unwrap().sub(&Uint::from(less)).unwrap()
}

#[test]
fn small_numbers_and_known_primes_are_what_aws_lc_says() {
    if !is_available() {
        return;
    }
    let mut pool = RandomLimbs::new();
    let primes = (5..4000).step_by(2).filter(|&n| is_prime(&Uint::from(n), &mut pool)).count();
    // 550 primes up to 4000, without 2 and 3.
    assert_eq!(primes, 548);
    let mersenne = [31, 61, 89, 107, 127, 521, 607, 1279, 2203, 2281];
    for exponent in mersenne {
        assert!(is_prime(&power_of_two_less(exponent, 1), &mut pool), "{exponent}");
        assert!(!is_prime(&power_of_two_less(exponent + 6, 1), &mut pool), "{exponent}");
    }
    assert!(is_prime(&power_of_two_less(255, 19), &mut pool));
    for group in [Group::Ffdhe2048, Group::Modp2048, Group::Ffdhe3072] {
        assert!(is_prime(group.prime(), &mut pool));
        assert!(!is_prime(&group.prime().sub(&Uint::from(2)).unwrap(), &mut pool));
    }
    // Numbers with many zeros below the lowest one (Proth), up to the supported number.
    let proths = (40..64).flat_map(|zeros| {
        let power = power_of_two_less(zeros, 0);
        (3..300).step_by(2).map(move |k| {
            power.mul(&Uint::from(k)).and_then(|product| product.add(&Uint::from(1))).unwrap()
        })
    });
    assert!(proths.filter(|number| is_prime(number, &mut pool)).count() > 100);
    // 2^64·k + 1 does not pass, prime or not.
    let found = (1..1000).map(|k| Uint::from_limbs(vec![1, k]).unwrap());
    let (taken, primes): (Vec<_>, Vec<_>) =
        found.map(|number| (we_say(&number, &mut pool), aws_lc_says(&number))).unzip();
    assert!(!taken.contains(&true) && primes.contains(&true));
}

#[test]
fn numbers_that_pass_weaker_tests_are_composite() {
    if !is_available() {
        return;
    }
    let mut pool = RandomLimbs::new();
    // Carmichael numbers; strong pseudoprimes to base 2 (OEIS A001262), among them Fermat's F5;
    // strong pseudoprimes to the first 4, 9, 12 and 13 primes (OEIS A014233).
    let listed = [
        "561",
        "1105",
        "1729",
        "2465",
        "2821",
        "6601",
        "8911",
        "10585",
        "41041",
        "825265",
        "2047",
        "3277",
        "4033",
        "4681",
        "8321",
        "15841",
        "29341",
        "42799",
        "49141",
        "4294967297",
        "3215031751",
        "3825123056546413051",
        "318665857834031151167461",
        "3317044064679887385961981",
    ];
    for number in listed {
        assert!(!is_prime(&decimal(number), &mut pool), "{number}");
    }
    // Chernick: (6k + 1)(12k + 1)(18k + 1) with three primes is a Carmichael number.
    let mut found = 0;
    for k in (1_u64 << 40..).take(40_000) {
        let [a, b, c] = [6, 12, 18].map(|factor| Uint::from(factor * k + 1));
        let is_small = |n: &Uint| [5, 7, 11, 13].iter().any(|p| n.limbs()[0].is_multiple_of(*p));
        if [&a, &b, &c].iter().all(|n| !is_small(n))
            && [&a, &b, &c].iter().all(|n| we_say(n, &mut pool))
        {
            let product = a.mul(&b).and_then(|product| product.mul(&c)).unwrap();
            assert!(!is_prime(&product, &mut pool));
            found += 1;
        }
    }
    assert!(found > 2, "{found}");
    // Products of two primes that are close, and p(2p - 1) and p·p.
    let p =
        prime::random(16, None, &mut pool).map(|limbs| Uint::from_limbs(limbs.to_vec()).unwrap());
    let p = p.unwrap();
    let mut next = p.add(&Uint::from(2)).unwrap();
    while !we_say(&next, &mut pool) {
        next = next.add(&Uint::from(2)).unwrap();
    }
    let doubled = p.add(&p).and_then(|sum| sum.sub(&Uint::from(1))).unwrap();
    for q in [&p, &next, &doubled] {
        assert!(!is_prime(&p.mul(q).unwrap(), &mut pool));
    }
    assert!(is_prime(&p, &mut pool) && is_prime(&next, &mut pool));
}

#[test]
fn of_eight_numbers_the_primes_are_left() {
    if !is_available() {
        return;
    }
    let mut pool = RandomLimbs::new();
    for limbs in [16, 24, 32] {
        let prime = prime::random(limbs, None, &mut pool).unwrap();
        // One to three primes among composite numbers, in any place.
        for index in 0..24 {
            let numbers: [Vec<u64>; 8] = std::array::from_fn(|lane| {
                let mut number = prime.to_vec();
                let is_prime = [0, index % 5, index / 5].contains(&((lane + index) % 8));
                number[0] = number[0].wrapping_add(if is_prime { 0 } else { 2 * index as u64 + 2 });
                number
            });
            let found = eight::pass_euler_test(&std::array::from_fn(|lane| &numbers[lane][..]));
            for (number, found) in numbers.iter().zip(found) {
                let number = Uint::from_limbs(number.clone()).unwrap();
                let exponent =
                    number.sub(&Uint::from(1)).unwrap().div_rem(&Uint::from(2)).unwrap().0;
                let power = Uint::from(2).mod_exp(&exponent, &number).unwrap();
                let last = number.sub(&Uint::from(1)).unwrap();
                assert_eq!(found, power == Uint::from(1) || power == last, "{limbs} {index}");
            }
        }
    }
}

#[test]
fn random_numbers_are_prime_if_aws_lc_says_so() {
    if !is_available() {
        return;
    }
    let (mut pool, mut primes) = (RandomLimbs::new(), 0);
    for index in 0..400 {
        let mut bytes = vec![0; 20 + index % 40];
        crate::rand::fill(&mut bytes);
        *bytes.last_mut().unwrap() |= 1;
        bytes[0] |= 1;
        let number = Uint::from_be_bytes(&bytes).unwrap();
        if !trial::has_small_divisor(number.limbs()) {
            primes += usize::from(is_prime(&number, &mut pool));
        }
    }
    assert!(primes > 0);
}

/// Returns a number of a key, read from AWS-LC.
fn of(key: &PrivateKey, get: unsafe extern "C" fn(*const aws::RSA) -> *const aws::BIGNUM) -> Uint {
    let mut bytes = [0; 512];
    // SAFETY: the key is alive and has the number.
    assert!(unsafe { write_number(get(key.0.rsa.as_ptr()), &mut bytes) });
    Uint::from_be_bytes(&bytes).unwrap()
}

#[test]
fn keys_are_as_fips_186_5_has_them() {
    for bits in [2048_usize, 2176, 3072, 4096] {
        let key = PrivateKey::generate(bits as u32).unwrap();
        // SAFETY: the key is alive.
        assert_eq!(unsafe { aws::RSA_check_key(key.0.rsa.as_ptr()) }, 1);
        let (n, e, d) =
            (of(&key, aws::RSA_get0_n), of(&key, aws::RSA_get0_e), of(&key, aws::RSA_get0_d));
        let (p, q) = (of(&key, aws::RSA_get0_p), of(&key, aws::RSA_get0_q));
        let one = Uint::from(1);
        assert!(e == Uint::from(E) && n == p.mul(&q).unwrap() && n.bits() == bits && p > q);
        for prime in [&p, &q] {
            assert!(aws_lc_says(prime));
            // At least √2 · 2^(bits / 2 - 1).
            assert!(prime.bits() == bits / 2 && prime.mul(prime).unwrap().bits() == bits);
        }
        assert!(p.sub(&q).unwrap() > power_of_two_less(bits / 2 - 100, 0));
        let (p_less_1, q_less_1) = (p.sub(&one).unwrap(), q.sub(&one).unwrap());
        let divisor = p_less_1.gcd(&q_less_1).unwrap();
        let order = p_less_1.mul(&q_less_1.div_rem(&divisor).unwrap().0).unwrap();
        assert_eq!(d, e.mod_inverse(&order).unwrap());
        assert!(d > power_of_two_less(bits / 2, 0));
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
fn aws_lc_generates_keys_without_a_kernel() {
    let key = Key::new(generated_by_aws_lc(2048).unwrap()).map(PrivateKey).unwrap();
    assert_eq!((key.public().bytes(), of(&key, aws::RSA_get0_e)), (256, Uint::from(E)));
}

#[test]
fn a_private_exponent_is_long_above_half_of_the_bits() {
    for limbs in [16, 17, 24, 32] {
        let mut d = vec![0; 2 * limbs];
        d[..limbs].fill(u64::MAX);
        assert!(!generate::is_long(&d));
        d.fill(0);
        d[0] = 1;
        assert!(!generate::is_long(&d));
        for limb in limbs..2 * limbs {
            d[limb] = 1;
            assert!(generate::is_long(&d), "{limb}");
            d[limb] = 0;
        }
    }
}

#[test]
fn inverses_of_e_are_as_division_finds_them() {
    let bytes = crate::kernels::tests::bytes(8 * 400);
    let (chunks, _) = bytes.as_chunks::<8>();
    let limbs: Vec<u64> = chunks.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    for order in limbs.chunks(20).enumerate().map(|(index, limbs)| &limbs[..=index]) {
        let number = Uint::from_limbs(order.to_vec()).unwrap();
        assert_eq!(Uint::from(modulo_e(order)), number.rem(&Uint::from(E)).unwrap());
        let inverse = Uint::from_limbs(generate::inverse_of_e(order).to_vec()).unwrap();
        assert_eq!(inverse, Uint::from(E).mod_inverse(&number).unwrap());
        let divisor = order[0] >> (order.len() * 3);
        let quotient = Uint::from_limbs(generate::divide(order, divisor).to_vec()).unwrap();
        assert_eq!(quotient, number.div_rem(&Uint::from(divisor)).unwrap().0);
    }
    for multiple in [0, 1, E - 1, E, E + 1, E << 40, u64::MAX] {
        assert_eq!(modulo_e(&[multiple; 3]), (u128::from(multiple) * 3 % u128::from(E)) as u64);
    }
}
