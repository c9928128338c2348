//! Comparison of secrets and tags.
//!
//! All secret values of strangers and peers are compared by `wraith_crypto::equal`: mac1, mac2,
//! capabilities (of a transfer and of a service), the confirmations of a code, proofs at a relay.
//! The result is visible anyway; the position of a difference must not be.

use rand_chacha::ChaCha20Rng;
use wraith_crypto::{NodeId, kdf};
use wraith_discovery::Capability;
use wraith_noise::{AccessKey, H1_BYTES, MAC1_BYTES, Mac1Datagram};

use super::{Target, random};
use crate::measure::{Class, Plan, Times, timed};

/// Plan of operations that take nanoseconds.
const SHORT: Plan = Plan { measurements: 500_000, batch: 64 };

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "equal-where",
        classes: ["first byte differs", "last byte differs"],
        plan: SHORT,
        measure: |plan, rng| {
            equal(plan, rng, [DifferencePosition::First, DifferencePosition::Last])
        },
    },
    Target {
        name: "equal-whether",
        classes: ["equal", "first byte differs"],
        plan: SHORT,
        measure: |plan, rng| {
            equal(plan, rng, [DifferencePosition::Nowhere, DifferencePosition::First])
        },
    },
    Target {
        name: "capability-where",
        classes: ["first byte differs", "last byte differs"],
        plan: SHORT,
        measure: |plan, rng| {
            capability(plan, rng, [DifferencePosition::First, DifferencePosition::Last])
        },
    },
    Target {
        name: "capability-whether",
        classes: ["equal", "first byte differs"],
        plan: SHORT,
        measure: |plan, rng| {
            capability(plan, rng, [DifferencePosition::Nowhere, DifferencePosition::First])
        },
    },
    Target {
        name: "mac1-where",
        classes: ["first byte differs", "last byte differs"],
        plan: Plan { measurements: 300_000, batch: 1 },
        measure: |plan, rng| mac1(plan, rng, [DifferencePosition::First, DifferencePosition::Last]),
    },
    Target {
        name: "mac1-whether",
        classes: ["accepted", "first byte differs"],
        plan: Plan { measurements: 300_000, batch: 1 },
        measure: |plan, rng| {
            mac1(plan, rng, [DifferencePosition::Nowhere, DifferencePosition::First])
        },
    },
];

/// Position at which a compared value differs from the right one.
#[derive(Clone, Copy)]
enum DifferencePosition {
    Nowhere,
    First,
    Last,
}

impl DifferencePosition {
    fn apply(self, bytes: &mut [u8]) {
        let last = bytes.len() - 1;
        match self {
            Self::Nowhere => {}
            Self::First => bytes[0] ^= 1,
            Self::Last => bytes[last] ^= 1,
        }
    }
}

fn equal(plan: Plan, rng: &mut ChaCha20Rng, differs: [DifferencePosition; 2]) -> Option<Times> {
    let input = |class: Class, rng: &mut ChaCha20Rng| {
        let right: [u8; 32] = random(rng);
        let mut said = right;
        differs[class as usize].apply(&mut said);
        (right, said)
    };
    Some(timed(plan, rng, input, |(right, said)| wraith_crypto::equal(right, said)))
}

fn capability(
    plan: Plan,
    rng: &mut ChaCha20Rng,
    differs: [DifferencePosition; 2],
) -> Option<Times> {
    let input = |class: Class, rng: &mut ChaCha20Rng| {
        let right: [u8; Capability::LEN] = random(rng);
        let mut said = right;
        differs[class as usize].apply(&mut said);
        [right, said].map(Capability::from_bytes)
    };
    Some(timed(plan, rng, input, |[right, said]| right == said))
}

/// Checks the mac1 of a datagram from its bytes, as for a stranger.
fn mac1(plan: Plan, rng: &mut ChaCha20Rng, differs: [DifferencePosition; 2]) -> Option<Times> {
    const LEN: usize = *H1_BYTES.start();
    let (secret, responder) = (random(rng), NodeId(random(rng)));
    let access_key = AccessKey::of_ticket(&secret, responder);
    let key = kdf::derive_parts("wraith/2 door of a ticket", &[&secret, responder.as_bytes()]);
    let key = kdf::derive("wraith/2 gate 1", &key);
    let input = |class: Class, rng: &mut ChaCha20Rng| {
        let mut datagram: [u8; LEN] = random(rng);
        let (rest, value) = datagram.split_at_mut(LEN - MAC1_BYTES);
        value.copy_from_slice(&kdf::keyed(&key, &kdf::hash(rest))[..MAC1_BYTES]);
        differs[class as usize].apply(value);
        datagram
    };
    let accepts =
        |bytes: &[u8; LEN]| Mac1Datagram::of(bytes).is_some_and(|it| access_key.accepts(&it));
    for class in [Class::A, Class::B] {
        let is_right = matches!(differs[class as usize], DifferencePosition::Nowhere);
        assert_eq!(accepts(&input(class, rng)), is_right, "mac1 as the specification defines it");
    }
    Some(timed(plan, rng, input, accepts))
}
