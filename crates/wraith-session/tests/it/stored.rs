//! Sessions in a vault, with killed processes and failing vaults.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use wraith_session::vault::{KeyVault, MemoryVault, Record, RecordError, VaultError};
use wraith_session::{
    OpenError, RESERVED_NUMBERS, SealError, Session, StateError, StoreError, Suite,
};

use crate::stored_support::{CountingVault, FailingVault, Link, below, first, kept};
use crate::support::rng;

fn pair() -> [Session; 2] {
    let new = |send, receive| Session::new(Suite::Aes256Gcm, &[send; 32], &[receive; 32]);
    [new(1, 2), new(2, 1)]
}

fn stored() -> [(Arc<MemoryVault>, Session); 2] {
    pair().map(|session| {
        let vault = Arc::new(MemoryVault::default());
        (vault.clone(), kept(vault, "peer", session).unwrap())
    })
}

fn seal(session: &mut Session, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    session.seal(b"", text, &mut out).unwrap();
    out
}

fn open(session: &mut Session, message: &[u8]) -> Result<Vec<u8>, OpenError> {
    let mut out = Vec::new();
    session.open(b"", message, &mut out).map(|_| out)
}

/// One million messages, with a thousand restarts of each side.
#[test]
fn messages_open_once_and_numbers_are_unique_over_loss_and_restarts() {
    const MESSAGES: u64 = 1_000_000;
    const EVERY: u64 = MESSAGES / 2000;
    let mut rng = rng(16);
    let mut sides = stored();
    let mut links = [Link::default(), Link::default()];
    let mut sealed = [HashSet::new(), HashSet::new()];
    let mut opened = [HashSet::new(), HashSet::new()];
    let (mut restarts, mut repeats) = ([0; 2], 0);
    for index in 0..MESSAGES {
        if index % EVERY == EVERY / 2 {
            let side = (index / EVERY % 2) as usize;
            let vault = sides[side].0.clone();
            sides[side].1 = Session::load(vault, "peer").unwrap();
            restarts[side] += 1;
        }
        let from = below(&mut rng, 2) as usize;
        let message = seal(&mut sides[from].1, &index.to_le_bytes());
        assert!(sealed[from].insert(message[..8].to_vec()), "a number was used twice");
        links[from].send(&mut rng, &message);
        while let Some(message) = links[from].arrived() {
            match open(&mut sides[1 - from].1, &message) {
                Ok(text) => assert!(opened[from].insert(text), "opened twice"),
                Err(OpenError::Replayed) => repeats += 1,
                Err(why) => panic!("{why}"),
            }
        }
    }
    assert!(restarts.iter().all(|count| *count >= 1000) && repeats > 10_000);
    let total = opened.iter().map(HashSet::len).sum::<usize>();
    assert!((650_000..750_000).contains(&total), "{total} came through");
}

#[test]
fn a_vault_that_fails_loses_nothing() {
    let [one, two] = pair();
    let mut one = kept(Arc::new(MemoryVault::default()), "peer", one).unwrap();
    let vault = Arc::new(FailingVault::default());
    let mut two = kept(vault.clone(), "peer", two).unwrap();
    for fails in [&vault.before, &vault.after] {
        let message = seal(&mut one, b"text");
        fails.store(true, Ordering::Relaxed);
        let mut out = Vec::new();
        let why = two.open(b"", &message, &mut out);
        assert!(matches!(why, Err(OpenError::Vault(VaultError::Failed(_)))));
        assert!(out.is_empty(), "nobody has seen what may not be remembered");
        let mut last = None;
        for _ in 0..=RESERVED_NUMBERS {
            match two.seal(b"", b"text", &mut Vec::new()) {
                Ok(number) => last = Some(number),
                Err(why) => assert!(matches!(why, SealError::Vault(_))),
            }
        }
        fails.store(false, Ordering::Relaxed);
        assert_eq!(open(&mut two, &message), Ok(b"text".to_vec()), "the same again");
        assert_eq!(two.seal(b"", b"", &mut Vec::new()).ok(), last.map(|last| last + 1));
    }
}

#[test]
fn a_killed_process_resumes_and_reopens_no_message() {
    let [(_, mut one), (vault, mut two)] = stored();
    let messages = [seal(&mut one, b"a"), seal(&mut one, b"b")];
    open(&mut two, &messages[0]).unwrap();
    drop(two);
    let mut two = Session::load(vault, "peer").unwrap();
    assert_eq!(open(&mut two, &messages[0]), Err(OpenError::Replayed));
    assert_eq!(open(&mut two, &messages[1]), Ok(b"b".to_vec()));
}

#[test]
fn of_two_users_of_one_record_one_fails_before_using_a_number() {
    let [(vault, mut first), _] = stored();
    let mut second = Session::load(vault.clone(), "peer").unwrap();
    let mut numbers = HashSet::new();
    let mut conflict = false;
    for turn in 0..8 * RESERVED_NUMBERS {
        let session = if turn % 2 == 0 { &mut first } else { &mut second };
        match session.seal(b"", b"", &mut Vec::new()) {
            Ok(number) => assert!(numbers.insert(number)),
            Err(SealError::Vault(VaultError::Conflict)) => conflict = true,
            Err(why) => panic!("{why}"),
        }
    }
    assert!(conflict);
    let [mut session, _] = pair();
    assert_eq!(session.keep(vault.clone(), "peer"), Err(StoreError::Exists));
    assert_eq!(session.seal(b"", b"", &mut Vec::new()), Ok(0), "it is as before");
    session.keep(Arc::new(MemoryVault::default()), "other").unwrap();
    assert_eq!(session.keep(vault, "third"), Err(StoreError::Kept));
}

#[test]
fn a_record_that_was_rolled_back_is_noticed_where_the_vault_counts() {
    let [(vault, _), _] = stored();
    let counting = |latest| Arc::new(CountingVault(vault.clone(), latest));
    let why = Session::load(counting(7), "peer").err();
    assert_eq!(why, Some(StoreError::RolledBack { found: 1, latest: 7 }));
    assert!(Session::load(counting(1), "peer").is_ok());
}

#[test]
fn a_session_continues_with_a_new_key_after_a_restart() {
    for (messages, bytes, batch) in [(u32::MAX, 1000, 0), (100, u64::MAX, 250), (3, 500, 40)] {
        let mut rekey = wraith_session::RekeyLimits::default();
        (rekey.messages, rekey.bytes) = (messages, bytes);
        let [(vault, mut one), (_, mut two)] = stored();
        let mut sealed = HashSet::new();
        let mut by_epoch: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for round in 0..30 {
            one.set_rekey(rekey);
            let texts = vec![&[0; 100][..]; batch];
            let many = one.seal_many(b"", &texts).unwrap();
            let mut all: Vec<Vec<u8>> = many.iter().map(<[u8]>::to_vec).collect();
            all.extend((0..round % 13).map(|_| seal(&mut one, &[0; 100])));
            for message in all {
                let number = u64::from_le_bytes(message[..8].try_into().unwrap());
                assert!(sealed.insert(number));
                let (count, total) = by_epoch.entry(number >> 20).or_default();
                (*count, *total) = (*count + 1, *total + 100);
                assert!(*count <= u64::from(messages) && *total <= bytes);
                assert_eq!(open(&mut two, &message).unwrap().len(), 100);
            }
            drop(one);
            one = Session::load(vault.clone(), "peer").unwrap();
        }
    }
}

#[test]
fn a_session_that_a_vault_did_not_take_seals_nothing_by_itself() {
    let vault = Arc::new(FailingVault::default());
    vault.before.store(true, Ordering::Relaxed);
    let [mut session, _] = pair();
    let why = session.keep(vault.clone(), "peer");
    assert!(matches!(why, Err(StoreError::Vault(_))));
    let sealed = session.seal(b"", b"", &mut Vec::new());
    assert_eq!(sealed, Err(SealError::NotSaved), "its numbers may be in the vault");
    vault.before.store(false, Ordering::Relaxed);
    session.keep(vault, "peer").unwrap();
    assert_eq!(session.seal(b"", b"", &mut Vec::new()), Ok(0));
}

#[test]
fn an_old_owner_does_not_overwrite_a_recreated_record() {
    let [(vault, mut old), _] = stored();
    for _ in 0..5 {
        old.store().unwrap();
    }
    vault.delete("peer").unwrap();
    let [session, _] = pair();
    let mut new = kept(vault.clone(), "peer", session).unwrap();
    assert_eq!(old.store(), Err(VaultError::Conflict));
    new.store().unwrap();
}

#[test]
fn an_invalid_record_is_refused_with_the_reason() {
    let [(vault, _), _] = stored();
    let record = vault.load("peer").unwrap().unwrap();
    let load = |bytes: &[u8]| {
        let vault = MemoryVault::default();
        vault.store("peer", first(bytes)).unwrap();
        Session::load(Arc::new(vault), "peer").err()
    };
    for len in 0..record.len() {
        assert_eq!(load(&record[..len]), Some(StoreError::Record(RecordError::Damaged)));
    }
    for at in 0..record.len() {
        let mut changed = record.to_vec();
        changed[at] ^= 1;
        assert_eq!(load(&changed), Some(StoreError::Record(RecordError::Damaged)), "byte {at}");
    }
    let state = Record::decode(&record).unwrap().state;
    assert_eq!(load(&Record::encode(9, 1, &state)), Some(StoreError::Kind));
    assert_eq!(load(&Record::encode(1, 1, &[1])), Some(StoreError::State(StateError::Malformed)));
    assert_eq!(load(&Record::encode(1, 1, &[3])), Some(StoreError::State(StateError::Version(3))));
    for name in ["", "a/b", "..", "ä", &"x".repeat(65)] {
        let why = Session::load(Arc::new(MemoryVault::default()), name).err();
        assert_eq!(why, Some(StoreError::Name), "{name}");
    }
    let missing = Session::load(Arc::new(MemoryVault::default()), "nobody").err();
    assert_eq!(missing, Some(StoreError::Missing));
}

#[test]
fn batches_are_stored_once_and_larger_ones_than_are_reserved_are_no_exception() {
    let [(_, mut one), (vault, mut two)] = stored();
    let texts = vec![&b"text"[..]; 5 * RESERVED_NUMBERS as usize];
    let batch = one.seal_many(b"", &texts).unwrap();
    let mut messages: Vec<&[u8]> = batch.iter().collect();
    messages.push(messages[0]);
    let generation = |vault: &MemoryVault| {
        Record::decode(&vault.load("peer").unwrap().unwrap()).unwrap().generation
    };
    let before = generation(&vault);
    let opened = two.open_many(b"", &messages).unwrap();
    assert_eq!(generation(&vault), before + 1);
    let results: Vec<_> = opened.iter().collect();
    assert!(results[..texts.len()].iter().all(|r| matches!(r, Ok((_, b"text")))));
    assert_eq!(results[texts.len()], Err(OpenError::Replayed));
    two.open_many(b"", &messages[..3]).unwrap();
    assert_eq!(generation(&vault), before + 1, "what is none is not stored");
}
