//! A first message made by hand, with whatever ephemeral key its author likes: an invited initiator that wants the keys not to
//! depend on any secret.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_crypto::elligator::{decode, encode};
use wraith_crypto::hash::Sha256;
use wraith_crypto::kem::{DecapsulationKey, ENCAPSULATION_KEY_BYTES};
use wraith_crypto::{AeadKey, agree, kdf};
use wraith_noise::*;

use crate::secrets::hkdf;

fn bob() -> SecretIdentity {
    SecretIdentity::from_seed([0xb; 32])
}

fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finish()
}

/// Message 1 by the definition of Noise XKhfs, with `es` as what X25519 gives; its payload is nonsense.
fn message_1(representative: &[u8; 32], es: &[u8; 32]) -> Vec<u8> {
    let chaining_key = sha256(&[b"Noise_XKhfs_25519+MLKEM768_ChaChaPoly_SHA256"]);
    let responder = bob().node_id().noise_public().unwrap();
    let mut hash = sha256(&[&chaining_key, b"wraith/2", representative]);
    hash = sha256(&[&hash, &responder]);
    hash = sha256(&[&hash, &decode(representative)]);
    let [_, key] = hkdf(&chaining_key, es);
    let key = AeadKey::new(Suite::ChaCha20Poly1305, &key);
    let mut message = representative.to_vec();
    let e1: [u8; ENCAPSULATION_KEY_BYTES] =
        DecapsulationKey::from_seed(&[1; 64]).encapsulation_key();
    for (counter, text) in [(0, e1.to_vec()), (1, vec![0xff; 300])] {
        let mut nonce = [0; 12];
        nonce[4] = counter;
        let mut sealed = text;
        let tag = key.seal(nonce, &hash, &mut sealed);
        sealed.extend(tag);
        hash = sha256(&[&hash, &sealed]);
        message.extend(sealed);
    }
    message
}

/// The two datagrams of H1, with gates, for who has the ticket.
fn h1(message: &[u8]) -> [Vec<u8>; 2] {
    let door =
        kdf::derive_parts("wraith/2 door of a ticket", &[&[0xd; 16], bob().node_id().as_bytes()]);
    let gated = |mut datagram: Vec<u8>, key: [u8; 32]| {
        let gate = kdf::keyed(&key, &kdf::hash(&datagram));
        datagram.extend(&gate[..GATE_BYTES]);
        datagram
    };
    let (front, back) = message.split_at(message.len() / 2);
    let key = kdf::derive_parts("wraith/2 gate 1, second datagram", &[&door, &kdf::hash(front)]);
    let first = [front, &[0; MAC2_BYTES]].concat();
    [gated(first, kdf::derive("wraith/2 gate 1", &door)), gated(back.to_vec(), key)]
}

fn read(representative: &[u8; 32], es: &[u8; 32]) -> Rejected {
    let h1 = h1(&message_1(representative, es));
    let mut rng = ChaCha20Rng::from_seed([2; 32]);
    let ephemeral = EphemeralKey::generate(&mut rng);
    let first = FirstDatagram::new(&DoorKey::of_ticket(&[0xd; 16], bob().node_id()), &h1[0]);
    let first = first.expect("the gate is right");
    Responder::read_h1(&bob(), &first, &h1[1], &ephemeral, &mut rng)
        .expect_err("its payload is bad")
}

/// The u-coordinates of low order that are on the curve (RFC 7748 §6.1 tells to look for what they give).
fn low_order() -> Vec<[u8; 32]> {
    let mut one = [0; 32];
    one[0] = 1;
    let eight = [
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    ];
    let hex = |text: &str| -> [u8; 32] {
        std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..][..2], 16).unwrap())
    };
    [vec![[0; 32], one], eight.map(hex).to_vec()].concat()
}

#[test]
fn an_ephemeral_key_of_low_order_is_rejected_by_whoever_it_is_sent_to() {
    // With a proper key the message is read: what is wrong with it then is its payload.
    let ephemeral = EphemeralKey::generate(&mut ChaCha20Rng::from_seed([1; 32]));
    let es = agree::x25519(ephemeral.secret(), &bob().node_id().noise_public().unwrap()).unwrap();
    let proper = read(ephemeral.representative(), &es);
    assert!(matches!(proper, Rejected::Malformed | Rejected::Version), "{proper}");

    let mut tried = 0;
    for u in low_order() {
        for tweak in [0, 1, 0x40, 0x80, 0xc1] {
            // X25519 with any secret gives zeros.
            let Some(representative) = encode(&u, tweak) else { continue };
            assert_eq!(decode(&representative), u);
            assert_eq!(read(&representative, &[0; 32]), Rejected::Unauthentic);
            tried += 1;
        }
    }
    assert!(tried >= 5, "{tried}: zero at least has representatives");
}
