//! Records of a vault that an attacker has written to.
//!
//! Invariant: an accepted record encodes to the same bytes, and its state is restored or refused.
//! If the first byte is 0, the target appends a checksum, which otherwise only genuine records
//! have.

use std::sync::Arc;

use wraith_crypto::kdf;
use wraith_session::ratchet::{PreKeys, Ratchet};
use wraith_session::vault::{Durability, KeyVault, MemoryVault, NewRecord, Record};
use wraith_session::{Session, StoreError};

pub(crate) fn run(input: &[u8]) {
    let bytes = match input.split_first() {
        Some((0, body)) => [body, &kdf::hash(body)].concat(),
        _ => input.to_vec(),
    };
    let decoded = Record::decode(&bytes);
    let vault = Arc::new(MemoryVault::default());
    let stored = NewRecord { generation: 1, bytes: &bytes, durability: Durability::Process };
    vault.store("name", stored).expect("it is empty");
    let results = [
        Session::load(vault.clone(), "name").err(),
        Ratchet::load(vault.clone(), "name").err(),
        PreKeys::load(vault, "name").err(),
    ];
    let Ok(record) = decoded else {
        let is_refused = |why: &Option<StoreError>| matches!(why, Some(StoreError::Record(_)));
        assert!(results.iter().all(is_refused));
        return;
    };
    assert!(Record::encode(record.kind, record.generation, &record.state)[..] == bytes[..]);
    for (kind, result) in (1..).zip(results) {
        match result {
            Some(StoreError::Kind) => assert_ne!(record.kind, kind),
            // Loading a session stores it with the generation after the one in the record; the
            // vault holds generation 1.
            Some(StoreError::Vault(_)) => assert!(kind == 1 && record.generation != 1),
            None | Some(StoreError::State(_)) => assert_eq!(record.kind, kind),
            Some(why) => panic!("{why}"),
        }
    }
}
