//! Conversations that start in a vault: the records that an interrupted start leaves in the vault,
//! and the effect of the same message afterwards.

use std::sync::Arc;

use rand_chacha::ChaCha20Rng;
use wraith_session::StoreError;
use wraith_session::ratchet::{PreKeys, Ratchet, StartError};
use wraith_session::vault::{KeyVault, MemoryVault, NewRecord, Record, VaultError};
use zeroize::Zeroizing;

use crate::stored_ratchet::{bob, decrypt, encrypt, initiate, prekeys};
use crate::stored_support::{FailingVault, KilledVault, first};
use crate::support::rng;

/// A conversation that Alice has requested.
struct Asked {
    vault: Arc<FailingVault>,
    keys: PreKeys,
    alices: Ratchet,
    first: Vec<u8>,
    rng: ChaCha20Rng,
}

impl Asked {
    fn new(seed: u64) -> Self {
        let mut rng = rng(seed);
        let vault = Arc::new(FailingVault::default());
        let mut keys = prekeys(vault.clone(), &mut rng);
        let bundle = keys.bundle().unwrap();
        let own = Arc::new(MemoryVault::default());
        let mut alices = initiate(own, "bob", &mut rng, &bundle).unwrap();
        let first = encrypt(&mut alices, &mut rng, b"first");
        Self { vault, keys, alices, first, rng }
    }

    fn respond(&mut self) -> Result<(Ratchet, Vec<u8>), StartError> {
        let vault = self.vault.clone();
        Ratchet::respond_in_vault(vault, "alice", &bob(), &mut self.keys, b"", &self.first)
    }

    /// Returns the record of the prekeys, for restoring it later.
    fn keys_record(&self) -> Zeroizing<Vec<u8>> {
        self.vault.load("prekeys").unwrap().unwrap()
    }

    /// Simulates a kill between the store of the conversation and that of the prekeys.
    fn kill_between(&mut self) -> Ratchet {
        let before = self.keys_record();
        let (kept, _) = self.respond().unwrap();
        let record = Record::decode(&before).unwrap();
        self.vault.delete("prekeys").unwrap();
        // A vault accepts generations only in sequence.
        for generation in 1..=record.generation {
            let record = NewRecord { generation, ..first(&before) };
            self.vault.store("prekeys", record).unwrap();
        }
        self.keys = PreKeys::load(self.vault.clone(), "prekeys").unwrap();
        kept
    }
}

#[test]
fn an_interrupted_start_resumes_without_loss() {
    let mut asked = Asked::new(3);
    drop(asked.kill_between());
    let (mut bobs, text) = asked.respond().unwrap();
    assert_eq!(text, b"first");
    let answer = encrypt(&mut bobs, &mut asked.rng, b"answer");
    assert_eq!(decrypt(&mut asked.alices, &answer).unwrap(), b"answer");
    let again = asked.respond().err();
    assert_eq!(again, Some(StartError::UnknownPreKey), "it starts nothing");
}

#[test]
fn a_continued_conversation_is_not_started_again() {
    let mut asked = Asked::new(4);
    let mut bobs = asked.kill_between();
    let answer = encrypt(&mut bobs, &mut asked.rng, b"answer");
    assert_eq!(asked.respond().err(), Some(StoreError::Exists.into()));
    assert_eq!(asked.keys.save(), {
        let record = Record::decode(&asked.keys_record()).unwrap();
        record.state
    });
    assert_eq!(decrypt(&mut asked.alices, &answer).unwrap(), b"answer");
    let more = encrypt(&mut asked.alices, &mut asked.rng, b"more");
    assert_eq!(decrypt(&mut bobs, &more).unwrap(), b"more", "it is not disturbed");
}

#[test]
fn a_start_whose_vault_fails_can_be_made_again() {
    for at in 0..2 {
        for after in [false, true] {
            let mut asked = Asked::new(5);
            let state = asked.keys.save();
            let dying = Arc::new(KilledVault::over(asked.vault.vault.clone(), at, after));
            let mut keys = PreKeys::load(dying.clone(), "prekeys").unwrap();
            let mut respond = || {
                let vault = dying.clone();
                Ratchet::respond_in_vault(vault, "alice", &bob(), &mut keys, b"", &asked.first)
            };
            let Some(StartError::Store(why)) = respond().err() else { panic!("it starts") };
            assert!(matches!(why, StoreError::Vault(VaultError::Failed(_))));
            dying.revive();
            let (mut bobs, text) = respond().unwrap();
            assert_eq!(text, b"first");
            assert_eq!(respond().err(), Some(StartError::UnknownPreKey));
            assert!(keys.save() != state);
            let answer = encrypt(&mut bobs, &mut asked.rng, b"answer");
            assert_eq!(decrypt(&mut asked.alices, &answer).unwrap(), b"answer");
        }
    }
}

#[test]
fn prekeys_that_are_used_elsewhere_start_nothing_and_leave_no_record() {
    let mut asked = Asked::new(6);
    let mut elsewhere = PreKeys::load(asked.vault.clone(), "prekeys").unwrap();
    elsewhere.rotate(&mut asked.rng, &bob()).unwrap();
    let conflict = StoreError::Vault(VaultError::Conflict);
    assert_eq!(asked.respond().err(), Some(conflict.into()));
    assert_eq!(asked.vault.load("alice"), Ok(None));
    assert_eq!(asked.keys.bundle().err(), Some(VaultError::Conflict), "for good");
}

#[test]
fn a_conversation_and_its_prekeys_are_both_kept_or_neither() {
    let mut asked = Asked::new(7);
    let none = StoreError::OneKept;
    let in_memory = Ratchet::respond(&bob(), &mut asked.keys, b"", &asked.first);
    assert_eq!(in_memory.err(), Some(none.clone().into()));
    let (vault, first) = (asked.vault.clone(), asked.first.clone());
    let mut copy = PreKeys::restore(&asked.keys.save()).unwrap();
    let started = Ratchet::respond_in_vault(vault.clone(), "alice", &bob(), &mut copy, b"", &first);
    assert_eq!(started.err(), Some(none.into()));
    assert_eq!((vault.load("alice"), copy.save()), (Ok(None), asked.keys.save()), "as before");
    assert!(asked.respond().is_ok());
}
