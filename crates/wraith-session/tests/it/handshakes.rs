//! Handshakes of every kind, with damaged, duplicated and lost messages.

use proptest::prelude::*;
use wraith_session::{
    Handshake, HandshakeError, HashFunction, NodeId, Pattern, Protocol, ReadOutcome, StaticKey,
    Suite,
};

use crate::support::{handshake, identity, rng, run};

fn every_protocol() -> impl Iterator<Item = Protocol> {
    Pattern::ALL.into_iter().flat_map(|pattern| {
        let psks = (0..=pattern.messages()).map(Some).chain([None]);
        psks.flat_map(move |psk| {
            [true, false].map(|hybrid| {
                let (suite, hash) = match hybrid {
                    true => (Suite::ChaCha20Poly1305, HashFunction::Blake2s),
                    false => (Suite::Aes256Gcm, HashFunction::Sha512),
                };
                Protocol { pattern, hybrid, psk, suite, hash }
            })
        })
    })
}

#[test]
fn every_pattern_gives_a_session_and_its_identities() {
    for protocol in every_protocol() {
        let mut sides = handshake(protocol);
        let messages = run(&mut sides);
        assert_eq!(messages.len(), usize::from(protocol.pattern.messages()), "{protocol}");
        assert_eq!(sides[0].hash(), sides[1].hash());
        let told = (protocol.pattern != Pattern::NK).then(|| identity(1).node_id());
        let proved = matches!(protocol.pattern, Pattern::XX | Pattern::XK);
        assert_eq!(sides[0].peer(), Some(identity(2).node_id()), "{protocol}");
        assert_eq!(sides[1].claimed_peer(), told, "{protocol}");
        assert_eq!(sides[1].peer(), told.filter(|_| proved), "{protocol}");
        let mut sessions = sides.each_mut().map(|side| side.split().unwrap());
        assert!(
            sides.each_mut().into_iter().all(|s| s.split().err() == Some(HandshakeError::NoKeys))
        );
        for (from, to) in [(0, 1), (1, 0)] {
            let (mut sealed, mut opened) = (Vec::new(), Vec::new());
            sessions[from].seal(b"aad", b"hello", &mut sealed).unwrap();
            sessions[to].open(b"aad", &sealed, &mut opened).unwrap();
            assert_eq!(opened, b"hello");
        }
    }
}

#[test]
fn a_hybrid_handshake_carries_both_halves_of_ml_kem_768() {
    for pattern in Pattern::ALL {
        let hybrid = Protocol { pattern, ..Protocol::DEFAULT };
        let lens = |protocol| run(&mut handshake(protocol)).iter().map(Vec::len).sum::<usize>();
        let more = lens(hybrid) - lens(Protocol { hybrid: false, ..hybrid });
        assert!((1184 + 1088..=1184 + 1088 + 2 * 16).contains(&more), "{pattern:?}: {more}");
    }
}

/// Returns variants of `message` with every kind of damage that a transport can cause.
fn spoilt(message: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new(), vec![0; message.len()], vec![0xff; 65_536]];
    all.extend([1, message.len() / 2, message.len() - 1].map(|len| message[..len].to_vec()));
    all.push([message, &[0]].concat());
    for at in [0, 31, 32, message.len() / 2, message.len() - 1] {
        let mut changed = message.to_vec();
        changed[at] ^= 1;
        all.push(changed);
    }
    all
}

#[test]
fn an_unauthentic_message_changes_no_state() {
    for protocol in every_protocol() {
        let mut sides = handshake(protocol);
        let expected = run(&mut handshake(protocol));
        let mut turn = 0;
        for expected in expected {
            let message = sides[turn].write(b"payload").unwrap();
            assert_eq!(message, expected, "{protocol}: no try before it has left a trace");
            turn = 1 - turn;
            for spoilt in spoilt(&message) {
                let reader = &mut sides[turn];
                let hash = reader.hash().to_vec();
                // The first message of XX and IX has no tag: some changes of it are detected only
                // in the second.
                let mut other = handshake(protocol);
                let Err(_) = feed(&mut other, &expected_before(protocol, &expected), turn, &spoilt)
                else {
                    continue;
                };
                assert!(reader.read(&spoilt).is_err(), "{protocol}");
                assert_eq!(reader.hash(), hash);
            }
            assert_eq!(sides[turn].read(&message), Ok(ReadOutcome::Payload(b"payload".to_vec())));
        }
        assert!(sides.iter().all(Handshake::is_finished));
    }
}

/// Returns the messages of a whole handshake that precede `message`.
fn expected_before(protocol: Protocol, message: &[u8]) -> Vec<Vec<u8>> {
    let all = run(&mut handshake(protocol));
    all.into_iter().take_while(|each| each != message).collect()
}

/// Returns the result of a fresh reader for `message`, after the messages that precede it.
fn feed(
    sides: &mut [Handshake; 2],
    before: &[Vec<u8>],
    reader: usize,
    message: &[u8],
) -> Result<ReadOutcome, HandshakeError> {
    for (index, earlier) in before.iter().enumerate() {
        match index % 2 == reader {
            true => drop(sides[reader].write(b"payload").unwrap()),
            false => drop(sides[reader].read(earlier).unwrap()),
        }
    }
    sides[reader].read(message)
}

#[test]
fn a_message_that_was_lost_is_repeated_as_it_was() {
    for protocol in every_protocol() {
        let mut sides = handshake(protocol);
        let mut turn = 0;
        while !sides.iter().all(Handshake::is_finished) {
            let message = sides[turn].write(b"payload").unwrap();
            assert_eq!(sides[turn].repeat(), Some(&message[..]), "lost: the same goes again");
            assert_eq!(sides[turn].write(b"other").err(), Some(HandshakeError::Turn));
            turn = 1 - turn;
            assert!(matches!(sides[turn].read(&message), Ok(ReadOutcome::Payload(_))));
            assert_eq!(
                sides[turn].read(&message),
                Ok(ReadOutcome::Repeated),
                "before it has answered"
            );
            if sides[turn].is_my_turn() {
                let mut twin = handshake(protocol);
                let before = expected_before(protocol, &message);
                feed(&mut twin, &before, turn, &message).unwrap();
                let answer = twin[turn].write(b"payload").unwrap();
                assert_eq!(twin[turn].read(&message), Ok(ReadOutcome::Repeated), "after it has");
                assert_eq!(twin[turn].repeat(), Some(&answer[..]));
            }
        }
        // The last message was lost: its writer has keys already, and repeats it for a duplicate of
        // the message before.
        let last = usize::from(protocol.pattern.messages()).wrapping_sub(1) % 2;
        let messages = run(&mut handshake(protocol));
        sides[last].split().unwrap();
        let before = &messages[messages.len() - 2];
        assert_eq!(sides[last].read(before), Ok(ReadOutcome::Repeated));
        assert_eq!(sides[last].repeat(), messages.last().map(|message| &message[..]));
    }
}

#[test]
fn each_wrong_state_has_its_error() {
    let protocol = Protocol::DEFAULT;
    let [mut one, mut two] = handshake(protocol);
    assert_eq!(two.write(b"").err(), Some(HandshakeError::Turn));
    assert_eq!(one.read(&[1; 48]), Err(HandshakeError::Turn));
    assert_eq!(one.split().err(), Some(HandshakeError::NoKeys));
    assert_eq!(one.write(&vec![0; 61_441]).err(), Some(HandshakeError::PayloadLength));
    let long = one.write(&vec![5; 61_440]).unwrap();
    assert_eq!(two.read(&long), Ok(ReadOutcome::Payload(vec![5; 61_440])));
    let needs = |builder: wraith_session::HandshakeBuilder| {
        matches!(builder.start(&mut rng(1)).err(), Some(HandshakeError::Needs(_)))
    };
    let (key, nk, xk) = (
        StaticKey::from_secret([1; 32].into()),
        Protocol { pattern: Pattern::NK, ..protocol },
        Protocol { pattern: Pattern::XK, ..protocol },
    );
    assert!(needs(Handshake::initiator(protocol)), "no static key");
    assert!(needs(Handshake::initiator(xk).local(&key)), "whom it is for");
    assert!(needs(Handshake::initiator(nk).local(&key).remote([9; 32])), "it is anonymous");
    assert!(needs(Handshake::initiator(protocol).local(&key).remote([9; 32])), "nobody is known");
    assert!(needs(Handshake::initiator(protocol).local(&key).psk([1; 32].into())));
    assert!(needs(Handshake::initiator(Protocol { psk: Some(3), ..protocol }).local(&key)));
    assert!(needs(Handshake::responder(nk).local(&key).peer(identity(1).node_id())));
    let nobody = Handshake::initiator(xk).local(&key).peer(NodeId([0; 32])).start(&mut rng(1));
    assert_eq!(nobody.err(), Some(HandshakeError::Identity));
}

#[test]
fn an_unexpected_peer_is_named_and_a_claimed_identity_must_be_proved() {
    let key = StaticKey::of(&identity(1));
    let begin = || Handshake::initiator(Protocol::DEFAULT).local(&key);
    let mut one = begin().peer(identity(3).node_id()).start(&mut rng(1)).unwrap();
    let [_, mut two] = handshake(Protocol::DEFAULT);
    two.read(&one.write(b"").unwrap()).unwrap();
    let message = two.write(b"").unwrap();
    assert_eq!(one.read(&message), Err(HandshakeError::WrongPeer(identity(2).node_id())));

    // An impostor with its own key and another peer's NodeId.
    let mut liar = Handshake::responder(Protocol::DEFAULT)
        .local(&StaticKey::from_secret([9; 32].into()))
        .start(&mut rng(2))
        .unwrap();
    let mut one = begin().start(&mut rng(1)).unwrap();
    liar.read(&one.write(b"").unwrap()).unwrap();
    let claim = liar.write(identity(2).node_id().as_bytes()).unwrap();
    assert_eq!(one.read(&claim), Err(HandshakeError::Identity));
    assert_eq!(one.peer(), None);
}

/// The first messages of IX and IK prove nothing: those of IX are public, those of IK can be
/// replayed.
#[test]
fn a_claimed_identity_is_not_a_peer_before_proof() {
    let victim = identity(1);
    for pattern in [Pattern::IX, Pattern::IK] {
        let protocol = Protocol { pattern, hybrid: false, ..Protocol::DEFAULT };
        let first = match pattern {
            Pattern::IX => {
                let ephemeral = StaticKey::generate(&mut rng(3));
                let key = victim.node_id().noise_public().unwrap();
                [&ephemeral.public()[..], &key, victim.node_id().as_bytes()].concat()
            }
            _ => run(&mut handshake(protocol)).remove(0),
        };
        let local = StaticKey::of(&identity(2));
        let mut responder =
            Handshake::responder(protocol).local(&local).start(&mut rng(9)).unwrap();
        assert!(matches!(responder.read(&first), Ok(ReadOutcome::Payload(_))));
        responder.write(b"").unwrap();
        assert!(responder.is_finished());
        assert_eq!(responder.peer(), None, "{pattern:?}");
        assert_eq!(responder.claimed_peer(), Some(victim.node_id()));
        // The first sealed message proves the claim; without the session's keys it cannot be
        // forged.
        let mut forged = Vec::new();
        let stranger = wraith_session::Session::new(protocol.suite, &[1; 32], &[2; 32]);
        let mut stranger = stranger;
        stranger.seal(b"", b"text", &mut forged).unwrap();
        assert!(responder.split().unwrap().open(b"", &forged, &mut Vec::new()).is_err());
    }
}

#[test]
fn reflected_messages_are_refused() {
    let key = StaticKey::of(&identity(1));
    let mut one = Handshake::initiator(Protocol::DEFAULT).local(&key).start(&mut rng(1)).unwrap();
    let mut own = Handshake::responder(Protocol::DEFAULT).local(&key).start(&mut rng(2)).unwrap();
    own.read(&one.write(b"").unwrap()).unwrap();
    let message = own.write(b"").unwrap();
    assert_eq!(one.read(&message), Err(HandshakeError::WrongPeer(identity(1).node_id())));
}

/// A responder answers only the first message that it has read; other messages need another
/// responder.
#[test]
fn a_responder_answers_the_first_message_it_reads_and_no_other() {
    let [mut one, mut two] = handshake(Protocol::DEFAULT);
    let [mut stranger, _] = handshake(Protocol { hybrid: true, ..Protocol::DEFAULT });
    let first = one.write(b"").unwrap();
    let mut damaged = stranger.write(b"").unwrap();
    damaged[3] ^= 1;
    assert!(two.read(&damaged).is_ok(), "a first message of XX proves nothing");
    assert_eq!(one.read(&two.write(b"").unwrap()), Err(HandshakeError::Unauthentic));
    assert!(two.read(&first).is_err());
    let [_, mut fresh] = handshake(Protocol::DEFAULT);
    fresh.read(&first).unwrap();
    one.read(&fresh.write(b"").unwrap()).unwrap();
}

/// On a silent line, the side that has an answer repeats it once for a duplicate. Then the line is
/// silent again.
#[test]
fn two_sides_that_repeat_for_each_other_come_to_an_end() {
    for protocol in every_protocol() {
        let messages = run(&mut handshake(protocol));
        for (index, message) in messages.iter().enumerate() {
            let mut sides = handshake(protocol);
            run(&mut sides);
            let (mut on_the_way, mut to, mut count) = (Some(message.clone()), 1 - index % 2, 0);
            while let Some(message) = on_the_way.take() {
                count += 1;
                assert!(count <= 3, "{protocol}: message {index}");
                on_the_way = match sides[to].read(&message) {
                    Ok(ReadOutcome::Repeated) => sides[to].repeat().map(<[u8]>::to_vec),
                    _ => None,
                };
                to = 1 - to;
            }
        }
    }
}

#[test]
fn keys_of_small_order_are_refused() {
    let protocol = Protocol { hybrid: false, ..Protocol::DEFAULT };
    for point in [[0; 32], core::array::from_fn(|i| u8::from(i == 0))] {
        let [_, mut responder] = handshake(protocol);
        assert!(responder.read(&point).is_ok(), "the first message of XX is only read");
        assert_eq!(responder.write(b"").err(), Some(HandshakeError::BadKey));
        let [mut initiator, _] = handshake(protocol);
        initiator.write(b"").unwrap();
        let message = [&point[..], &[0; 32 + 16 + 16]].concat();
        assert_eq!(initiator.read(&message), Err(HandshakeError::Unauthentic));
    }
}

#[test]
fn sides_that_differ_in_anything_do_not_meet() {
    let protocol = Protocol { psk: Some(3), ..Protocol::DEFAULT };
    let side = |initiator: bool, psk: u8, prologue: &[u8], protocol: Protocol| {
        let make = if initiator { Handshake::initiator } else { Handshake::responder };
        let byte = if initiator { 1 } else { 2 };
        let builder = make(protocol).local(&StaticKey::of(&identity(byte))).psk([psk; 32].into());
        builder.prologue(prologue).start(&mut rng(u64::from(byte))).unwrap()
    };
    let meets = |mut sides: [Handshake; 2]| {
        for turn in [0, 1, 0] {
            let Ok(message) = sides[turn].write(b"") else { return false };
            if sides[1 - turn].read(&message).is_err() {
                return false;
            }
        }
        true
    };
    assert!(meets([side(true, 1, b"a", protocol), side(false, 1, b"a", protocol)]));
    assert!(!meets([side(true, 1, b"a", protocol), side(false, 2, b"a", protocol)]));
    assert!(!meets([side(true, 1, b"a", protocol), side(false, 1, b"b", protocol)]));
    let other = Protocol { hash: HashFunction::Sha256, ..protocol };
    assert!(!meets([side(true, 1, b"a", protocol), side(false, 1, b"a", other)]));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_no_message(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
        let [mut initiator, _] = handshake(Protocol::DEFAULT);
        initiator.write(b"").unwrap();
        prop_assert!(initiator.read(&bytes).is_err());
        prop_assert!(!initiator.is_finished());
    }
}

#[test]
fn the_length_of_each_message_is_known_in_advance() {
    for protocol in every_protocol() {
        let mut sides = handshake(protocol);
        for number in 0..usize::from(protocol.pattern.messages()) {
            let (payload, from) = (vec![7; 10 * number], number % 2);
            let len = sides[from].written_len(payload.len());
            let message = sides[from].write(&payload).unwrap();
            assert_eq!(len, Ok(message.len()), "{protocol} {number}");
            assert_eq!(sides[1 - from].payload_len(message.len()), payload.len());
            let read = sides[1 - from].read(&message);
            assert_eq!(read, Ok(ReadOutcome::Payload(payload)));
            assert_eq!(sides[1 - from].payload_len(message.len()), 0, "a duplicate");
        }
    }
}
