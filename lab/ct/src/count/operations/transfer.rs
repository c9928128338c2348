//! The functions of a transfer: packets, masks, comparisons, ephemeral keys, identities, codes.

use std::hint::black_box;

use wraith_crypto::elligator::{self, EphemeralKey};
use wraith_crypto::{
    AeadKey, Implementation, MaskKey, NodeId, PacketKey, SecretIdentity, Suite, agree, equal, kdf,
    ml_kem_768,
};
use wraith_discovery::TicketSide::Creator;
use wraith_discovery::pake::{CreatorExchange, Joiner};
use wraith_discovery::{Capability, Code};
use wraith_noise::{AccessKey, H1_BYTES, MAC1_BYTES, Mac1Datagram};

use crate::count::secrets::{Draw, Secret};
use crate::count::{Operation, Prepared, prepared};
use crate::targets::elligator::{Replayed, accepted};

/// Lengths of packets: an acknowledgement, and a datagram of data.
const PACKET_BYTES: [usize; 2] = [40, 1300];

pub(super) fn all() -> Vec<Operation> {
    let mut all = packets();
    all.extend(masks());
    all.extend(comparisons());
    all.extend(ephemeral_keys());
    all.extend(agreements());
    all.extend(identities());
    all.extend(codes());
    all
}

fn packets() -> Vec<Operation> {
    let mut all = Vec::new();
    for suite in Suite::ALL {
        for implementation in Implementation::ALL {
            for len in PACKET_BYTES {
                let key = AeadKey::with_implementation(suite, &[0; 32], implementation);
                if key.is_none() || !implementation.is_available() {
                    continue;
                }
                let name = format!("packet/{suite:?}/{implementation:?}/{len}");
                all.push(Operation::new(name, move |draw| {
                    packet(suite, implementation, len, draw)
                }));
            }
        }
        all.push(Operation::new(format!("packet/{suite:?}/key"), move |draw| {
            prepared(draw.bytes(32 + 100), move |secret| {
                let (key, text) = secret.split_first_chunk().expect("32 bytes");
                let (key, mut text) = (PacketKey::new(suite, key), text.to_vec());
                black_box(key.seal(7, b"public", &mut text));
                black_box(text);
            })
        }));
    }
    all
}

/// Seals a packet, and opens it again.
fn packet(
    suite: Suite,
    implementation: Implementation,
    len: usize,
    draw: &mut Draw,
) -> Option<Prepared> {
    prepared(draw.bytes(32 + len), move |secret| {
        let (key, text) = secret.split_first_chunk().expect("32 bytes");
        let key = AeadKey::with_implementation(suite, key, implementation).expect("it is there");
        let mut text = text.to_vec();
        let tag = key.seal([7; 12], b"public", &mut text);
        text.extend(tag);
        key.open([7; 12], b"public", &mut text).expect("authentic");
        black_box(text);
    })
}

fn masks() -> [Operation; 2] {
    [
        Operation::new("mask", |draw| {
            prepared(draw.bytes(32 + 16), |secret| {
                let (key, sample) = secret.split_first_chunk().expect("32 bytes");
                let sample = sample.try_into().expect("16 bytes");
                black_box(MaskKey::new(*key).mask(sample));
            })
        }),
        Operation::new("mask/pair", |draw| {
            let sample = draw.random();
            prepared(draw.bytes(64), move |secret| {
                let (a, b) = secret.split_first_chunk().expect("32 bytes");
                let b = b.try_into().expect("32 bytes");
                black_box(MaskKey::mask_pair(&MaskKey::new(*a), &MaskKey::new(b), &sample));
            })
        }),
    ]
}

/// Values that equal `right`, or differ from it in different places.
fn alike(right: &[u8]) -> Vec<Secret> {
    let last = right.len() - 1;
    let places = [("equal", None), ("first byte differs", Some(0)), ("last byte", Some(last))];
    let places = places.into_iter().chain([("middle byte", Some(last / 2))]);
    let changed = places.map(|(name, at)| {
        let mut value = right.to_vec();
        at.into_iter().for_each(|at: usize| value[at] ^= 0x11);
        Secret::new(name, value)
    });
    changed.collect()
}

fn comparisons() -> Vec<Operation> {
    vec![
        Operation::new("equal", |draw| {
            let right = draw.random::<32>();
            prepared(alike(&right), move |guess| {
                black_box(equal(&right, guess));
            })
        }),
        Operation::new("equal/capability", |draw| {
            let right = draw.random::<{ Capability::LEN }>();
            let known = Capability::from_bytes(right);
            prepared(alike(&right), move |guess| {
                let guess = Capability::from_bytes(guess.try_into().expect("its length"));
                black_box(known == guess);
            })
        }),
        Operation::new("equal/mac1", |draw| {
            const LEN: usize = *H1_BYTES.start();
            let (secret, responder) = (draw.random::<16>(), NodeId(draw.random()));
            let access_key = AccessKey::of_ticket(&secret, responder);
            let parts = [&secret[..], responder.as_bytes()];
            let key = kdf::derive_parts("wraith/2 door of a ticket", &parts);
            let key = kdf::derive("wraith/2 gate 1", &key);
            let rest = draw.random_bytes(LEN - MAC1_BYTES);
            let mut secrets = alike(&kdf::keyed(&key, &kdf::hash(&rest))[..MAC1_BYTES]);
            for Secret { bytes, .. } in &mut secrets {
                *bytes = [&rest, &bytes[..]].concat();
            }
            let accepts = move |datagram: &[u8]| {
                Mac1Datagram::of(datagram).is_some_and(|it| access_key.accepts(&it))
            };
            assert!(accepts(&secrets[0].bytes) && !accepts(&secrets[1].bytes), "mac1 of SPEC.md");
            prepared(secrets, move |datagram| {
                black_box(accepts(datagram));
            })
        }),
    ]
}

fn ephemeral_keys() -> Vec<Operation> {
    vec![
        // Random bytes have a public key, and that has a representative.
        Operation::new("elligator/encode", |draw| {
            let mut secrets = draw.random_secrets(32);
            for Secret { bytes, .. } in &mut secrets {
                let representative = bytes[..].try_into().expect("32 bytes");
                *bytes = elligator::decode(representative).to_vec();
            }
            prepared(secrets, |u| {
                black_box(elligator::encode(u.try_into().expect("32 bytes"), 0x40));
            })
        }),
        Operation::new("elligator/tweak", |draw| {
            let u = elligator::decode(&draw.random());
            let tweaks = [0u8, 1, 0xc0, 0xff].map(|tweak| Secret::new(tweak.to_string(), [tweak]));
            prepared(tweaks.into(), move |tweak| {
                black_box(elligator::encode(&u, tweak[0]));
            })
        }),
        Operation::new("elligator/decode", |draw| {
            prepared(draw.bytes(32), |representative| {
                black_box(elligator::decode(representative.try_into().expect("32 bytes")));
            })
        }),
        // Draws that make a key at once, with one point of low order, which the public key reveals.
        Operation::new("elligator/generate", |draw| {
            let [point] = draw.random();
            let drawn =
                (1..=6).map(|i| Secret::new(format!("random {i}"), accepted(draw.rng(), point)));
            let drawn = drawn.collect();
            prepared(draw.chosen(drawn), |bytes| {
                black_box(EphemeralKey::generate(&mut Replayed(bytes)));
            })
        }),
    ]
}

fn agreements() -> Vec<Operation> {
    fn ciphertexts(draw: &mut Draw, key: &ml_kem_768::DecapsulationKey) -> Vec<Secret> {
        let public = key.encapsulation_key();
        let mut right = || ml_kem_768::encapsulate(&public, &draw.random()).expect("a key").0;
        let (one, other, mut tampered) = (right(), right(), right());
        tampered[5] ^= 1;
        let random = draw.random_bytes(ml_kem_768::CIPHERTEXT_BYTES);
        vec![
            Secret::new("for this key 1", one),
            Secret::new("for this key 2", other),
            Secret::new("one bit differs", tampered),
            Secret::new("random", random),
        ]
    }
    vec![
        Operation::new("x25519", |draw| {
            let public = agree::x25519_public(&draw.random());
            prepared(draw.bytes(32), move |secret| {
                black_box(agree::x25519(secret.try_into().expect("32 bytes"), &public));
            })
        }),
        Operation::new("x25519/public", |draw| {
            prepared(draw.bytes(32), |secret| {
                black_box(agree::x25519_public(secret.try_into().expect("32 bytes")));
            })
        }),
        Operation::new("ml-kem-768/decapsulate", |draw| {
            let key = ml_kem_768::DecapsulationKey::from_seed(&draw.random());
            prepared(ciphertexts(draw, &key), move |ciphertext| {
                black_box(key.decapsulate(ciphertext.try_into().expect("its length")));
            })
        }),
        Operation::new("ml-kem-768/encapsulate", |draw| {
            let key = ml_kem_768::DecapsulationKey::from_seed(&draw.random()).encapsulation_key();
            prepared(draw.bytes(32), move |seed| {
                black_box(ml_kem_768::encapsulate(&key, seed.try_into().expect("32 bytes")));
            })
        }),
    ]
}

fn identities() -> Vec<Operation> {
    vec![
        Operation::new("identity/from-seed", |draw| {
            prepared(draw.bytes(32), |seed| {
                black_box(SecretIdentity::from_seed(seed.try_into().expect("32 bytes")));
            })
        }),
        Operation::new("identity/sign", |draw| {
            prepared(draw.bytes(32), |seed| {
                let identity = SecretIdentity::from_seed(seed.try_into().expect("32 bytes"));
                black_box(identity.sign(b"public"));
            })
        }),
        Operation::new("identity/noise-static", |draw| {
            prepared(draw.bytes(32), |seed| {
                let identity = SecretIdentity::from_seed(seed.try_into().expect("32 bytes"));
                black_box(identity.noise_static());
            })
        }),
    ]
}

/// Bytes of a code's words.
const WORDS_BYTES: usize = 4;
const NAMEPLATE: u32 = 7;

fn codes() -> [Operation; 2] {
    /// Codes whose text has one length.
    fn words(draw: &mut Draw) -> Vec<Secret> {
        let mut secrets: Vec<Secret> = Vec::new();
        while secrets.len() < 6 {
            let bytes: [u8; WORDS_BYTES] = draw.random();
            let text = Code::new(NAMEPLATE, bytes).to_string();
            if secrets.first().is_none_or(|first| first.name.len() == text.len()) {
                secrets.push(Secret::new(text, bytes));
            }
        }
        draw.chosen(secrets)
    }
    let code = |bytes: &[u8]| Code::new(NAMEPLATE, bytes.try_into().expect("their length"));
    [
        Operation::new("code/joiner", move |draw| {
            let other = code(&draw.random::<WORDS_BYTES>());
            let hello = Joiner::new(&other, Creator).hello();
            let answer = CreatorExchange::new(&other, Creator, &hello).expect("a hello").answer();
            prepared(words(draw), move |bytes| {
                let _ = black_box(Joiner::new(&code(bytes), Creator).process_answer(&answer));
            })
        }),
        Operation::new("code/creator", move |draw| {
            let hello = Joiner::new(&code(&draw.random::<WORDS_BYTES>()), Creator).hello();
            prepared(words(draw), move |bytes| {
                let _ = black_box(CreatorExchange::new(&code(bytes), Creator, &hello));
            })
        }),
    ]
}
