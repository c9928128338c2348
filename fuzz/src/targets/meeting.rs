//! Packets of the local network to a creator (the side that made a code), which waits with its
//! code. They are encrypted with the right key, or sent as they are.

use std::time::{Duration, Instant};

use wraith_crypto::{AeadKey, Suite, TAG_BYTES, kdf};
use wraith_discovery::lan::{PACKET_LEN, open};
use wraith_discovery::message::Message;
use wraith_discovery::{Code, Creator, MAX_MESSAGE_LEN, ProofVerdict, Refusal, TicketSide};

const NAMEPLATE: u32 = 7;
const SALT: [u8; 16] = [3; 16];

/// Passes the plaintext to a creator, which must not reveal its ticket.
pub(crate) fn run(input: &[u8]) {
    assert!(open(NAMEPLATE, input).is_none(), "the key cannot be found by chance");
    let code = Code::new(NAMEPLATE, [1; 4]);
    let now = Instant::now();
    let mut creator = Creator::new(code, TicketSide::Creator, now + Duration::from_secs(3600));
    for plain in input.chunks(PACKET_LEN - SALT.len() - TAG_BYTES) {
        let Some((hello, said)) = open(NAMEPLATE, &sealed(plain)) else { continue };
        message(&said);
        // A packet without a message is the hello itself.
        let said =
            if said.is_empty() { Some(Message::Hello(hello)) } else { Message::decode(&said) };
        let Some(said) = said else { continue };
        match said {
            Message::Hello(_) => {
                let answer = creator.answer_hello(now, &hello);
                assert_eq!(creator.answer_hello(now, &hello), answer, "the same again");
            }
            Message::Proof(proof) => {
                let ticket = |_| panic!("the words cannot be found by chance");
                let verdict = creator.verify_proof(now, &hello, &proof, ticket);
                let ProofVerdict::Refused(why) = verdict else { panic!("welcome") };
                let over = (why == Refusal::Wrong).then_some(Refusal::Burned);
                assert!(over.is_none() || creator.refusal_at(now) == over, "one guess and no more");
            }
            Message::Ticket(ticket) => assert!(creator.open_ticket(&hello, &ticket).is_err()),
            _ => {}
        }
    }
}

/// Seals these bytes into a packet, as a host with the nameplate can.
fn sealed(plain: &[u8]) -> [u8; PACKET_LEN] {
    let mut packet = [0; PACKET_LEN];
    let (salt, body) = packet.split_at_mut(SALT.len());
    salt.copy_from_slice(&SALT);
    let (inside, tag) = body.split_at_mut(body.len() - TAG_BYTES);
    inside[..plain.len()].copy_from_slice(plain);
    let key = kdf::derive_parts("wraith/1 lan packet", &[&NAMEPLATE.to_be_bytes(), &SALT]);
    let key = AeadKey::new(Suite::ChaCha20Poly1305, &key);
    tag.copy_from_slice(&key.seal(Default::default(), &[], inside));
    packet
}

/// Checks that a message is refused, or that these bytes are its only encoding.
pub(super) fn message(bytes: &[u8]) {
    if let Some(message) = Message::decode(bytes) {
        assert_eq!(message.encode(), bytes);
        assert!(bytes.len() <= MAX_MESSAGE_LEN);
    }
}
