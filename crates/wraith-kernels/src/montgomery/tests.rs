use blake3::OutputReader;

use super::*;

fn bytes(seed: &str) -> OutputReader {
    blake3::Hasher::new().update(seed.as_bytes()).finalize_xof()
}

fn limb(random: &mut OutputReader) -> u64 {
    let mut bytes = [0; 8];
    random.fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// Returns numbers below `2^bits`: 0, 1, all ones, one bit, runs of ones, and random ones.
fn numbers<const V: usize>(random: &mut OutputReader, bits: usize) -> Vec<Number<V>> {
    let whole = |limb: &mut dyn FnMut(usize) -> u64| {
        let mut number = [Lanes::default(); V];
        for (index, out) in number.iter_mut().flat_map(|lanes| &mut lanes.0).enumerate() {
            let kept = bits.saturating_sub(52 * index).min(52);
            *out = limb(index) & ((1 << kept) - 1);
        }
        number
    };
    let mut numbers = vec![
        whole(&mut |_| 0),
        whole(&mut |index| u64::from(index == 0)),
        whole(&mut |_| u64::MAX),
        whole(&mut |index| if index % 2 == 0 { u64::MAX } else { 0 }),
        whole(&mut |index| if index % 8 == 7 { 1 } else { u64::MAX }),
    ];
    for _ in 0..6 {
        numbers.push(whole(&mut |_| limb(random)));
        numbers.push(whole(&mut |_| [0, LIMB_MASK, 1][limb(random) as usize % 3]));
    }
    numbers
}

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
fn products_match<const V: usize, const UNIT: bool>() {
    let mut random = bytes("products");
    let fewest = if V == 3 { 2 } else { 8 * V - 15 };
    for steps in fewest..=8 * V {
        // Factors and products are below 2n, and 4n < 2^(52·steps).
        let bits = 52 * steps - 2;
        let mut n = numbers::<V>(&mut random, bits)[if steps % 2 == 0 { 2 } else { 5 }];
        n[0].0[0] |= 1;
        if UNIT {
            n[0].0[0] = LIMB_MASK;
        }
        n[(steps - 1) / 8].0[(steps - 1) % 8] |= 1 << ((bits - 1) % 52);
        let mut n0: u64 = 1;
        while n[0].0[0].wrapping_mul(n0) & LIMB_MASK != LIMB_MASK {
            n0 = n0.wrapping_mul(2_u64.wrapping_add(n[0].0[0].wrapping_mul(n0)));
        }
        let factors = numbers::<V>(&mut random, bits);
        for (index, a) in factors.iter().enumerate() {
            let b = &factors[(index * 7 + steps) % factors.len()];
            for b in [a, b] {
                let [mut fast, mut slow] = [[Lanes::default(); V]; 2];
                ifma::multiply::<V, UNIT>(&mut fast, a, b, &n, n0, steps);
                portable::multiply::<V, UNIT>(&mut slow, a, b, &n, n0, steps);
                assert!(
                    fast.map(|lanes| lanes.0) == slow.map(|lanes| lanes.0),
                    "{V} {steps} {index}"
                );
            }
        }
    }
}

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
#[test]
fn products_are_those_of_the_twin_at_every_length_and_with_runs_of_carries() {
    crate::tests::fast();
    if !is_available() {
        crate::tests::unchecked("this processor has no AVX-512 IFMA");
        return;
    }
    products_match::<3, false>();
    products_match::<3, true>();
    products_match::<5, false>();
    products_match::<5, true>();
    products_match::<8, true>();
    products_match::<10, false>();
    products_match::<15, true>();
    products_match::<20, false>();
    products_match::<20, true>();
}

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
#[test]
fn an_entry_is_selected_by_its_number() {
    crate::tests::fast();
    if !is_available() {
        crate::tests::unchecked("this processor has no AVX-512 IFMA");
        return;
    }
    let table: Vec<Number<5>> = (0..32).map(small).collect();
    for index in 0..32 {
        let [mut fast, mut slow] = [[Lanes([7; 8]); 5]; 2];
        ifma::select(&mut fast, &table, index);
        portable::select(&mut slow, &table, index);
        assert_eq!(fast.map(|lanes| lanes.0), table[index].map(|lanes| lanes.0));
        assert_eq!(slow.map(|lanes| lanes.0), table[index].map(|lanes| lanes.0));
    }
}

#[test]
fn limbs_of_64_bits_survive_those_of_52() {
    let mut random = bytes("limbs");
    for count in 1..129_usize {
        let limbs: Vec<u64> = (0..count).map(|_| limb(&mut random)).collect();
        let mut lanes = vec![Lanes::default(); (64 * count).div_ceil(52 * 8)];
        to_lanes(&mut lanes, &limbs);
        assert!(lanes.iter().flat_map(|lanes| lanes.0).all(|limb| limb <= LIMB_MASK));
        assert_eq!(from_lanes(&lanes, count), limbs);
    }
}
