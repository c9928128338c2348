//! One message to several peers.

use rand_core::CryptoRng;
use wraith_session::ratchet::*;

use crate::ratchet_support::*;
use crate::support::{identity, rng};

/// Returns identity 0's side of a conversation with identity `peer`, and the peer's.
fn pair(rng: &mut impl CryptoRng, peer: u8) -> (Ratchet, Ratchet) {
    let (me, peer) = (identity(0), identity(peer));
    let mut prekeys = PreKeys::generate(rng, &peer, 1);
    let mut mine = Ratchet::initiate(rng, &me, &prekeys.bundle().unwrap()).unwrap();
    let first = seal(&mut mine, rng, b"first");
    let (theirs, _) = Ratchet::respond(&peer, &mut prekeys, b"", &first).unwrap();
    (mine, theirs)
}

#[test]
fn a_group_of_32_receives_messages_and_is_full() {
    let mut rng = rng(1);
    let (mut group, mut others) = (Group::new(), Vec::new());
    for peer in 1..=32 {
        let (mine, theirs) = pair(&mut rng, peer);
        group.add(mine).unwrap();
        others.push(theirs);
    }
    let (mine, _) = pair(&mut rng, 33);
    assert_eq!(group.add(mine).unwrap_err().0, GroupError::Full);
    assert_eq!(group.members().len(), GROUP_MAX);

    let messages = group.seal_for_all(&mut rng, b"", b"to all").unwrap();
    assert_eq!(messages.len(), 32);
    for (member, message) in &messages {
        let reader = others.iter_mut().find(|other| other.local_id() == *member).unwrap();
        assert_eq!(open(reader, message).unwrap(), b"to all");
        let answer = seal(reader, &mut rng, b"heard");
        let mut text = Vec::new();
        group.open(member, b"", &answer, &mut text).unwrap();
        assert_eq!(text, b"heard");
    }
}

#[test]
fn members_are_there_once_and_get_nothing_more_when_they_are_removed() {
    let mut rng = rng(2);
    let mut group = Group::new();
    let (first, mut reader) = pair(&mut rng, 1);
    let (again, _) = pair(&mut rng, 1);
    let (second, _) = pair(&mut rng, 2);
    let (_, other_identity) = pair(&mut rng, 3);
    group.add(first).unwrap();
    let (error, again) = group.add(again).unwrap_err();
    assert_eq!((error, again.peer()), (GroupError::AlreadyMember, reader.local_id()));
    assert_eq!(group.add(other_identity).unwrap_err().0, GroupError::OtherIdentity);
    group.add(second).unwrap();

    let removed = group.remove(&reader.local_id()).unwrap();
    assert_eq!(removed.peer(), reader.local_id());
    let messages = group.seal_for_all(&mut rng, b"", b"text").unwrap();
    assert_eq!(messages.len(), 1);
    assert!(open(&mut reader, &messages[0].1).is_err());
    let error = group.open(&reader.local_id(), b"", b"", &mut Vec::new());
    assert_eq!(error, Err(GroupError::NotMember));
}
