//! Conversations that start in a vault: the records that an interrupted start leaves in the vault,
//! and the effect of the same message afterwards.

use std::sync::Arc;

use rand_chacha::ChaCha20Rng;
use wraith_session::ratchet::StartError;
use wraith_session::vault::{Durability, KeyVault, MemoryVault, Record, VaultError};
use wraith_session::{StoreError, StoredPreKeys, StoredRatchet};
use zeroize::Zeroizing;

use crate::stored_ratchet::{CONFLICT, alice, bob, decrypt, encrypt, prekeys};
use crate::stored_support::{FailingVault, KilledVault};
use crate::support::rng;

/// A conversation that Alice has requested.
struct Asked {
    vault: Arc<FailingVault>,
    keys: StoredPreKeys,
    alices: StoredRatchet,
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
        let mut alices = StoredRatchet::initiate(own, "bob", &mut rng, &alice(), &bundle).unwrap();
        let first = encrypt(&mut alices, &mut rng, b"first");
        Self { vault, keys, alices, first, rng }
    }

    fn respond(&mut self) -> Result<(StoredRatchet, Vec<u8>), StoreError> {
        let vault = self.vault.clone();
        StoredRatchet::respond(vault, "alice", &bob(), &mut self.keys, b"", &self.first)
    }

    /// Returns the record of the prekeys, for restoring it later.
    fn keys_record(&self) -> Zeroizing<Vec<u8>> {
        self.vault.load("prekeys").unwrap().unwrap()
    }

    /// Simulates a kill between the store of the conversation and that of the prekeys.
    fn kill_between(&mut self) -> StoredRatchet {
        let before = self.keys_record();
        let (kept, _) = self.respond().unwrap();
        let record = Record::decode(&before).unwrap();
        self.vault.delete("prekeys").unwrap();
        // A vault accepts generations only in sequence.
        for generation in 1..=record.generation {
            self.vault.store("prekeys", generation, &before, Durability::Power).unwrap();
        }
        self.keys = StoredPreKeys::load(self.vault.clone(), "prekeys").unwrap();
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
    assert_eq!(again, Some(StoreError::Start(StartError::UnknownPreKey)), "it starts nothing");
}

#[test]
fn a_continued_conversation_is_not_started_again() {
    let mut asked = Asked::new(4);
    let mut bobs = asked.kill_between();
    let answer = encrypt(&mut bobs, &mut asked.rng, b"answer");
    assert_eq!(asked.respond().err(), Some(StoreError::Exists));
    assert_eq!(asked.keys.prekeys().save(), {
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
            let state = asked.keys.prekeys().save();
            let dying = Arc::new(KilledVault::over(asked.vault.vault.clone(), at, after));
            let mut keys = StoredPreKeys::load(dying.clone(), "prekeys").unwrap();
            let mut respond = || {
                let vault = dying.clone();
                StoredRatchet::respond(vault, "alice", &bob(), &mut keys, b"", &asked.first)
            };
            assert!(matches!(respond().err(), Some(StoreError::Vault(VaultError::Failed(_)))));
            dying.revive();
            let (mut bobs, text) = respond().unwrap();
            assert_eq!(text, b"first");
            assert_eq!(respond().err(), Some(StoreError::Start(StartError::UnknownPreKey)));
            assert!(keys.prekeys().save() != state);
            let answer = encrypt(&mut bobs, &mut asked.rng, b"answer");
            assert_eq!(decrypt(&mut asked.alices, &answer).unwrap(), b"answer");
        }
    }
}

#[test]
fn prekeys_that_are_used_elsewhere_start_nothing_and_leave_no_record() {
    let mut asked = Asked::new(6);
    let mut elsewhere = StoredPreKeys::load(asked.vault.clone(), "prekeys").unwrap();
    elsewhere.rotate(&mut asked.rng, &bob()).unwrap();
    assert_eq!(asked.respond().err(), Some(CONFLICT));
    assert_eq!(asked.vault.load("alice"), Ok(None));
    assert_eq!(asked.keys.bundle().err(), Some(CONFLICT), "for good");
}
