use crate::agree::PrivateKey as _;

use super::*;

/// Computes `floor(2^8062 · value)` from a series of fractions; `terms` sums it in units of
/// 2^-8192.
fn digits(terms: impl FnOnce(&Uint) -> Uint) -> Vec<u64> {
    let mut unit = vec![0; 128];
    unit.push(1);
    let value = terms(&Uint::from_limbs(unit).unwrap());
    // Drops the last 130 of 8192 bits after the binary point; they include the rounding errors.
    let divisor = Uint::from_limbs(vec![0, 0, 4]).unwrap();
    value.div_rem(&divisor).unwrap().0.limbs().to_vec()
}

fn divide(number: &Uint, by: u64) -> Uint {
    number.div_rem(&Uint::from(by)).unwrap().0
}

#[test]
fn the_digits_are_those_of_e() {
    let e = digits(|unit| {
        let (mut sum, mut term, mut count) = (unit.clone(), unit.clone(), 1);
        while !term.is_zero() {
            term = divide(&term, count);
            sum = sum.add(&term).unwrap();
            count += 1;
        }
        sum
    });
    assert_eq!(e, E);
}

/// Machin: π = 16 arctan(1/5) - 4 arctan(1/239).
#[test]
fn the_digits_are_those_of_pi() {
    let arctan = |unit: &Uint, inverse: u64| {
        let (mut plus, mut minus) = (Uint::zero(), Uint::zero());
        let (mut power, mut odd) = (divide(unit, inverse), 1);
        while !power.is_zero() {
            let sum = if odd % 4 == 1 { &mut plus } else { &mut minus };
            *sum = sum.add(&divide(&power, odd)).unwrap();
            power = divide(&power, inverse * inverse);
            odd += 2;
        }
        plus.sub(&minus).unwrap()
    };
    let pi = digits(|unit| {
        let first = arctan(unit, 5).mul(&Uint::from(16)).unwrap();
        first.sub(&arctan(unit, 239).mul(&Uint::from(4)).unwrap()).unwrap()
    });
    assert_eq!(pi, PI);
}

#[test]
fn a_prime_has_64_ones_at_each_end_and_twice_its_order_below() {
    for group in Group::ALL {
        let prime = group.prime();
        assert_eq!(prime.bits(), group.bits());
        assert_eq!((prime.limbs()[0], prime.limbs().last()), (u64::MAX, Some(&u64::MAX)));
        let order = &group.field().order;
        assert_eq!(order.add(order).unwrap().add(&Uint::from(1)).unwrap(), *prime);
        // Euler's criterion: 2 is a square, so it generates the subgroup of order q.
        assert_eq!(Uint::from(2).mod_exp(order, prime).unwrap(), Uint::from(1));
    }
}

#[test]
fn a_new_key_is_as_short_as_it_may_be_and_comes_back_from_its_bytes() {
    for group in Group::ALL {
        let key = PrivateKey::generate(group).unwrap();
        let raw = key.to_raw();
        assert_eq!(raw.len(), group.exponent_bits().div_ceil(8));
        let again = PrivateKey::from_raw(group, &raw).unwrap();
        assert_eq!(again.public_key(), key.public_key());
        assert_eq!(again.exponent.bits, group.exponent_bits());
        assert_eq!(key.public_key().len(), group.bytes());
        assert_eq!(format!("{key:?}"), format!("PrivateKey {{ group: {group:?}, .. }}"));
    }
}

/// The check that is omitted (see the module documentation), and its whole price.
#[test]
fn a_peer_of_order_2q_learns_the_parity_of_the_private_key_and_nothing_else() {
    let group = Group::Ffdhe2048;
    let peer = PrivateKey::generate(group).unwrap().public_key();
    let negated = group.prime().sub(&Uint::from_be_bytes(&peer).unwrap()).unwrap();
    let order = &group.field().order;
    assert_ne!(negated.mod_exp(order, group.prime()).unwrap(), Uint::from(1));
    let mut twin = vec![0; group.bytes()];
    negated.write_be_bytes(&mut twin).unwrap();
    for last in [0x10, 0x11] {
        let key = PrivateKey::from_raw(group, &[7, 7, 7, last]).unwrap();
        let [secret, other] = [&peer, &twin].map(|peer| {
            let secret = key.agree(peer).unwrap();
            Uint::from_be_bytes(&secret).unwrap()
        });
        match last % 2 {
            0 => assert_eq!(other, secret),
            _ => assert_eq!(other.add(&secret).unwrap(), *group.prime()),
        }
    }
}
