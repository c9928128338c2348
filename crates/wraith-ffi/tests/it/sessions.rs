//! Handshakes and sessions through the exported objects.

use std::sync::Arc;

use wraith_ffi::{Handshake, HandshakeOptions, Identity, Opened, SecretKey, Session, WraithError};

const HYBRID: &str = "Noise_XXhfs_25519+MLKEM768_ChaChaPoly_BLAKE2s";

fn options(identity: &Arc<Identity>) -> HandshakeOptions {
    HandshakeOptions { identity: Some(Arc::clone(identity)), ..HandshakeOptions::default() }
}

/// Returns both sides of a finished handshake.
fn shaken() -> (Arc<Handshake>, Arc<Handshake>) {
    let (a, b) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let initiator = Handshake::initiator(HYBRID.into(), options(&a)).unwrap();
    let responder = Handshake::responder(HYBRID.into(), options(&b)).unwrap();
    for (from, to) in [(&initiator, &responder), (&responder, &initiator), (&initiator, &responder)]
    {
        let message = from.write(b"hi".to_vec()).unwrap();
        assert_eq!(to.read(message), Ok(Some(b"hi".to_vec())));
    }
    assert_eq!(initiator.peer(), Some(b.node_id()));
    assert_eq!(responder.peer(), Some(a.node_id()));
    assert_eq!(initiator.channel_hash(), responder.channel_hash());
    (initiator, responder)
}

fn sessions() -> (Arc<Session>, Arc<Session>) {
    let (initiator, responder) = shaken();
    (initiator.into_session().unwrap(), responder.into_session().unwrap())
}

#[test]
fn a_sealed_message_opens_once_at_the_other_side() {
    let (a, b) = sessions();
    let message = a.seal(b"to b".to_vec(), b"hello".to_vec()).unwrap();
    let wrong = b.open(b"to c".to_vec(), message.clone());
    assert!(matches!(wrong, Err(WraithError::Unauthentic(_))));
    assert_eq!(b.open(b"to b".to_vec(), message.clone()), Ok(b"hello".to_vec()));
    let again = b.open(b"to b".to_vec(), message);
    assert!(matches!(again, Err(WraithError::Replayed(_))));
}

#[test]
fn a_batch_opens_each_message_independently() {
    let (a, b) = sessions();
    let texts: Vec<Vec<u8>> = (0..100_u8).map(|i| vec![i; 10]).collect();
    let mut messages = a.seal_many(Vec::new(), texts.clone()).unwrap();
    messages[7].pop();
    for (number, opened) in b.open_many(Vec::new(), messages).unwrap().into_iter().enumerate() {
        match opened {
            Opened::Text { number: n, text } => {
                assert_eq!((n, text), (number as u64, texts[number].clone()));
            }
            Opened::Rejected { .. } => assert_eq!(number, 7),
        }
    }
}

#[test]
fn a_call_out_of_turn_is_an_error_and_does_not_disturb_the_handshake() {
    let wrong_state = |result: Result<(), WraithError>| {
        assert!(matches!(result, Err(WraithError::WrongState(_))), "{result:?}");
    };
    let identity = Identity::generate().unwrap();
    let responder = Handshake::responder(HYBRID.into(), options(&identity)).unwrap();
    wrong_state(responder.write(Vec::new()).map(drop));
    wrong_state(responder.into_session().map(drop));
    let (initiator, responder) = shaken();
    wrong_state(initiator.write(Vec::new()).map(drop));
    initiator.into_session().unwrap();
    wrong_state(initiator.into_session().map(drop));
    let repeated = initiator.repeat().unwrap();
    assert_eq!(responder.read(repeated), Ok(None), "the handshake still knows its last message");
}

#[test]
fn contradictory_options_are_refused() {
    let begin = |protocol: &str, options| Handshake::initiator(protocol.into(), options).map(drop);
    let identity = Identity::generate().unwrap();
    let mut both = options(&identity);
    both.local_key = Some(SecretKey::generate().unwrap());
    let mut too_much = options(&identity);
    too_much.psk = Some(SecretKey::generate().unwrap());
    for result in [
        begin("Noise_NN_25519_ChaChaPoly_BLAKE2s", options(&identity)),
        begin(HYBRID, HandshakeOptions::default()),
        begin(HYBRID, both),
        begin(HYBRID, too_much),
    ] {
        assert!(matches!(result, Err(WraithError::InvalidInput(_))), "{result:?}");
    }
}

#[test]
fn an_unexpected_peer_identity_is_reported() {
    let (a, b, c) = (0, 1, 2);
    let all = [a, b, c].map(|seed| Identity::from_seed(vec![seed; 32]).unwrap());
    let mut expects_c = options(&all[0]);
    expects_c.peer = Some(all[2].node_id());
    let initiator = Handshake::initiator(HYBRID.into(), expects_c).unwrap();
    let responder = Handshake::responder(HYBRID.into(), options(&all[1])).unwrap();
    responder.read(initiator.write(Vec::new()).unwrap()).unwrap();
    let answer = initiator.read(responder.write(Vec::new()).unwrap());
    assert!(matches!(answer, Err(WraithError::WrongPeer(_))));
}

#[test]
fn a_restored_session_reuses_no_message_number() {
    let (a, b) = sessions();
    a.seal(Vec::new(), b"one".to_vec()).unwrap();
    let saved = a.save().unwrap();
    a.confirm(&saved).unwrap();
    let before = a.seal(Vec::new(), b"two".to_vec()).unwrap();
    let restored = Session::restore(saved.bytes()).unwrap();
    let early = restored.seal(Vec::new(), b"three".to_vec());
    assert!(matches!(early, Err(WraithError::WrongState(_))), "it is not saved yet");
    restored.confirm(&restored.save().unwrap()).unwrap();
    let after = restored.seal(Vec::new(), b"three".to_vec()).unwrap();
    assert!(before[..8] != after[..8]);
    assert_eq!(b.open(Vec::new(), before), Ok(b"two".to_vec()));
    assert_eq!(b.open(Vec::new(), after), Ok(b"three".to_vec()));
    let mut damaged = saved.bytes();
    damaged.pop();
    assert!(matches!(Session::restore(damaged), Err(WraithError::Unauthentic(_))));
}

#[test]
fn concurrent_seals_use_each_message_number_once() {
    let (a, b) = sessions();
    let messages: Vec<_> = std::thread::scope(|scope| {
        let seal = || (0..100).map(|_| a.seal(Vec::new(), vec![1]).unwrap()).collect::<Vec<_>>();
        let threads = [scope.spawn(seal), scope.spawn(seal)];
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(messages.into_iter().all(|message| b.open(Vec::new(), message).is_ok()));
}

#[test]
fn a_claimed_identity_is_no_peer_until_a_message_of_the_session_opens() {
    let [a, b] = [1, 2].map(|seed| Identity::from_seed(vec![seed; 32]).unwrap());
    let protocol = "Noise_IX_25519_ChaChaPoly_BLAKE2s";
    let initiator = Handshake::initiator(protocol.into(), options(&a)).unwrap();
    let responder = Handshake::responder(protocol.into(), options(&b)).unwrap();
    assert_eq!(responder.claimed_peer(), None);
    responder.read(initiator.write(Vec::new()).unwrap()).unwrap();
    assert_eq!((responder.peer(), responder.claimed_peer()), (None, Some(a.node_id())));
    initiator.read(responder.write(Vec::new()).unwrap()).unwrap();
    assert_eq!(initiator.claimed_peer(), initiator.peer());
}
