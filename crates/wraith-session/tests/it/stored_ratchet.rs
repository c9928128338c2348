//! Conversations and prekeys in a vault, with killed processes and failing vaults.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use rand_chacha::ChaCha20Rng;
use wraith_session::ratchet::*;
use wraith_session::vault::{
    Durability, KeyVault, MemoryVault, NewRecord, Record, RecordError, VaultError,
};
use wraith_session::{BatchError, SecretIdentity, Session, StateError, StoreError};
use zeroize::Zeroizing;

pub use crate::ratchet_support::{open as decrypt, seal as encrypt};
use crate::stored_support::{CountingVault, FailingVault, KilledVault, Link, below, first};
use crate::support::{identity, rng};

pub fn alice() -> SecretIdentity {
    identity(1)
}

pub fn bob() -> SecretIdentity {
    identity(2)
}

pub fn prekeys(vault: Arc<dyn KeyVault>, rng: &mut ChaCha20Rng) -> PreKeys {
    let mut prekeys = PreKeys::generate(rng, &bob(), 2);
    prekeys.keep(vault, "prekeys").unwrap();
    prekeys
}

/// Starts Alice's side of a conversation, kept in `vault`.
pub fn initiate(
    vault: Arc<dyn KeyVault>,
    name: &str,
    rng: &mut ChaCha20Rng,
    bundle: &PreKeyBundle,
) -> Result<Ratchet, StoreError> {
    let mut ratchet = Ratchet::initiate(rng, &alice(), bundle).unwrap();
    ratchet.keep(vault, name).map(|()| ratchet)
}

/// Returns both sides of an established conversation: Alice in her own vault, Bob in `vault`.
fn conversation(vault: Arc<dyn KeyVault>, rng: &mut ChaCha20Rng) -> (Ratchet, Ratchet) {
    let mut prekeys = prekeys(vault.clone(), rng);
    let bundle = prekeys.bundle().unwrap();
    let alices = Arc::new(MemoryVault::default());
    let mut one = initiate(alices, "bob", rng, &bundle).unwrap();
    let first = encrypt(&mut one, rng, b"first");
    let (mut two, text) =
        Ratchet::respond_in_vault(vault, "alice", &bob(), &mut prekeys, b"", &first).unwrap();
    assert_eq!(text, b"first");
    let answer = encrypt(&mut two, rng, b"answer");
    decrypt(&mut one, &answer).unwrap();
    (one, two)
}

/// Twenty thousand messages in turns of about sixty, with two hundred restarts of each side.
#[test]
fn ratchet_messages_open_once_over_loss_and_restarts() {
    const MESSAGES: u64 = 20_000;
    const EVERY: u64 = MESSAGES / 400;
    let mut rng = rng(31);
    let vaults = [Arc::new(MemoryVault::default()), Arc::new(MemoryVault::default())];
    let mut keys = prekeys(vaults[1].clone(), &mut rng);
    let bundle = keys.bundle().unwrap();
    let one = initiate(vaults[0].clone(), "peer", &mut rng, &bundle);
    let mut sides = [Some(one.unwrap()), None];
    let mut links = [Link::default(), Link::default()];
    let (mut sent, mut opened) = (HashSet::new(), [HashSet::new(), HashSet::new()]);
    let (mut restarts, mut repeats, mut from) = ([0; 2], 0, 0);
    for index in 0..MESSAGES {
        if index % EVERY == EVERY / 2 {
            let side = (index / EVERY % 2) as usize;
            sides[side] = Ratchet::load(vaults[side].clone(), "peer").ok();
            restarts[side] += 1;
        }
        if sides[1].is_some() && below(&mut rng, 60) == 0 {
            from = 1 - from;
        }
        let text = index.to_le_bytes();
        let message = encrypt(sides[from].as_mut().unwrap(), &mut rng, &text);
        assert!(sent.insert(message.clone()), "the same message twice");
        links[from].send(&mut rng, &message);
        while let Some(message) = links[from].arrived() {
            let result = match &mut sides[1 - from] {
                Some(side) => decrypt(side, &message),
                none => {
                    let (vault, bob) = (vaults[1].clone(), bob());
                    let started =
                        Ratchet::respond_in_vault(vault, "peer", &bob, &mut keys, b"", &message);
                    let (side, text) = started.unwrap();
                    *none = Some(side);
                    Ok(text)
                }
            };
            match result {
                Ok(text) => assert!(opened[from].insert(text), "opened twice"),
                Err(DecryptError::Replayed) => repeats += 1,
                Err(why) => panic!("{why}"),
            }
        }
    }
    let duplicates: u64 = links.iter().map(|link| link.duplicates_arrived()).sum();
    let distinct: u64 = links.iter().map(|link| link.distinct_arrived()).sum();
    let total = opened.iter().map(HashSet::len).sum::<usize>() as u64;
    assert_eq!((total, repeats), (distinct, duplicates), "each that arrived opened once");
    assert!(restarts.iter().all(|count| *count >= 200) && repeats > 1000);
    assert!((13_000..15_000).contains(&total), "{total} came through");
}

/// The steps of a process. Each one loads its state from the vault, because another process may
/// have run the steps before.
struct Steps {
    vault: Arc<KilledVault>,
    rng: ChaCha20Rng,
    received: Vec<Vec<u8>>,
}

impl Steps {
    /// Runs a step. If the process dies in it, runs it once more.
    fn step<T>(
        &mut self,
        step: impl Fn(Arc<dyn KeyVault>, &mut ChaCha20Rng) -> Result<T, StartError>,
    ) -> Result<T, StartError> {
        match step(self.vault.clone(), &mut self.rng) {
            Err(StartError::Store(StoreError::Vault(_))) => {
                self.vault.revive();
                step(self.vault.clone(), &mut self.rng)
            }
            done => done,
        }
    }

    fn encrypt(&mut self, name: &str, texts: &[&[u8]]) -> Vec<Vec<u8>> {
        let batch = self.step(|vault, rng| {
            let batch = Ratchet::load(vault, name)?.encrypt_many(rng, b"", texts);
            batch.map_err(|failed| match failed.why {
                EncryptError::Vault(why) => StoreError::Vault(why).into(),
                why => panic!("{why}"),
            })
        });
        batch.unwrap().iter().map(<[u8]>::to_vec).collect()
    }

    fn decrypt(&mut self, name: &str, messages: &[Vec<u8>]) {
        let messages: Vec<&[u8]> = messages.iter().map(|message| &message[..]).collect();
        let batch = self.step(|vault, _| {
            let batch = Ratchet::load(vault, name)?.decrypt_many(b"", &messages);
            Ok(batch.map_err(StoreError::Vault)?)
        });
        for result in batch.unwrap().iter() {
            match result {
                Ok((_, text)) => self.received.push(text.to_vec()),
                Err(why) => assert_eq!(why, DecryptError::Replayed, "it was opened and not used"),
            }
        }
    }

    fn run(&mut self) {
        self.step(|vault, rng| match PreKeys::generate(rng, &bob(), 1).keep(vault, "prekeys") {
            Err(StoreError::Exists) => Ok(()),
            kept => Ok(kept?),
        })
        .unwrap();
        let bundle = self.step(|vault, _| {
            let bundle = PreKeys::load(vault, "prekeys")?.bundle();
            Ok(bundle.map_err(StoreError::Vault)?)
        });
        let bundle = bundle.unwrap();
        self.step(|vault, rng| match initiate(vault.clone(), "bob", rng, &bundle) {
            Err(StoreError::Exists) => Ok(()),
            started => Ok(started.map(drop)?),
        })
        .unwrap();
        let first = self.encrypt("bob", &[b"first"]).remove(0);
        let started = self.step(|vault, _| {
            let mut prekeys = PreKeys::load(vault.clone(), "prekeys")?;
            Ratchet::respond_in_vault(vault, "alice", &bob(), &mut prekeys, b"", &first)
        });
        match started {
            Ok((_, text)) => self.received.push(text),
            Err(why) => assert_eq!(why, StartError::UnknownPreKey),
        }
        let answers = self.encrypt("alice", &[b"answer"]);
        self.decrypt("bob", &answers);
        let more = self.encrypt("bob", &[b"more", b"and more"]);
        self.decrypt("alice", &more);
        let last = self.encrypt("alice", &[b"last"]);
        self.decrypt("bob", &last);
    }
}

#[test]
fn a_process_killed_in_any_store_resumes_without_reusing_keys() {
    let all: [&[u8]; 5] = [b"first", b"answer", b"more", b"and more", b"last"];
    for after in [false, true] {
        let mut dead = 0;
        for store in 0.. {
            let vault = Arc::new(KilledVault::at(store, after));
            let mut steps = Steps { vault, rng: rng(7), received: Vec::new() };
            steps.run();
            let received: HashSet<_> = steps.received.iter().map(|text| &text[..]).collect();
            assert_eq!(received.len(), steps.received.len(), "twice, killed in store {store}");
            match steps.vault.has_died() {
                // A store that was not made has changed nothing at all.
                true if !after => assert_eq!(steps.received, all, "killed in store {store}"),
                // A store without a confirmation costs at most the messages of that step.
                true => assert!(received.len() + 2 >= all.len(), "killed in store {store}"),
                false => break,
            }
            dead += 1;
        }
        assert!(dead >= 11, "{dead} stores");
    }
}

#[test]
fn a_vault_that_fails_changes_nothing_and_the_call_can_be_made_again() {
    let mut rng = rng(1);
    let vault = Arc::new(FailingVault::default());
    let (mut one, mut two) = conversation(vault.clone(), &mut rng);
    two.set_padding(true);
    for (round, fails) in [&vault.before, &vault.after].into_iter().enumerate() {
        let messages = [b"a", b"b", b"c"].map(|text| encrypt(&mut one, &mut rng, text));
        let state = two.save();
        fails.store(true, Ordering::Relaxed);
        let mut out = b"kept".to_vec();
        let why = VaultError::Failed(if round == 0 { "before" } else { "after" }.into());
        let decrypted = two.decrypt(b"", &messages[0], &mut out);
        assert_eq!(decrypted, Err(DecryptError::Vault(why.clone())));
        let decrypted = two.decrypt_many(b"", &[&messages[1], &messages[2]]);
        assert_eq!(decrypted.err(), Some(why.clone()));
        let encrypted = two.encrypt(&mut rng, b"", b"text", &mut out);
        assert_eq!(encrypted, Err(EncryptError::Vault(why.clone())));
        let encrypted = two.encrypt_many(&mut rng, b"", &[b"text", b"text"]);
        let expected = BatchError { index: 0, why: EncryptError::Vault(why) };
        assert_eq!(encrypted.err(), Some(expected));
        assert_eq!(out, b"kept", "nobody has seen what may not be remembered");
        assert!(two.save() == state);
        fails.store(false, Ordering::Relaxed);
        assert_eq!(decrypt(&mut two, &messages[0]).unwrap(), b"a");
        let rest = two.decrypt_many(b"", &[&messages[2], b"none", &messages[1]]).unwrap();
        let expected = [Ok((0, &b"c"[..])), Err(DecryptError::Malformed), Ok((2, b"b"))];
        assert_eq!(rest.iter().collect::<Vec<_>>(), expected);
        let answer = encrypt(&mut two, &mut rng, b"text");
        assert_eq!(decrypt(&mut one, &answer).unwrap(), b"text");
        assert_eq!(one.missing(), 0, "no number was used");
    }
}

#[test]
fn a_vault_failure_leaves_prekeys_unchanged() {
    let mut rng = rng(2);
    let vault = Arc::new(FailingVault::default());
    let mut keys = prekeys(vault.clone(), &mut rng);
    let mut ids = HashSet::new();
    for (round, fails) in [&vault.before, &vault.after].into_iter().enumerate() {
        let state = keys.save();
        fails.store(true, Ordering::Relaxed);
        let failures = [
            keys.bundle().map(drop).map_err(|why| StoreError::from(why).into()),
            keys.rotate(&mut rng, &bob()),
            keys.replenish(&mut rng, &bob(), 5),
        ];
        for why in failures {
            let StartError::Store(why) = why.unwrap_err() else { panic!("another failure") };
            assert!(matches!(why, StoreError::Vault(VaultError::Failed(_))), "{why:?}");
        }
        assert!(keys.save() == state);
        fails.store(false, Ordering::Relaxed);
        let bundle = keys.bundle().unwrap();
        assert!(bundle.has_one_time() && ids.insert(bundle.encode()), "handed out once");
        assert_eq!(keys.remaining(), 1 - round);
    }
    assert_eq!(keys.replenish(&mut rng, &alice(), 5), Err(StartError::Identity));
    drop(keys);
    let mut keys = PreKeys::load(vault, "prekeys").unwrap();
    assert!(!keys.bundle().unwrap().has_one_time(), "all are handed out after a restart, too");
    keys.rotate(&mut rng, &bob()).unwrap();
    keys.replenish(&mut rng, &bob(), 3).unwrap();
    assert_eq!(keys.remaining(), 3);
}

#[test]
fn of_two_that_go_on_with_one_conversation_one_fails_before_it_gives_anything_out() {
    let mut rng = rng(8);
    let vault = Arc::new(MemoryVault::default());
    let (mut one, mut first) = conversation(vault.clone(), &mut rng);
    let mut second = Ratchet::load(vault.clone(), "alice").unwrap();
    let message = encrypt(&mut one, &mut rng, b"text");
    assert_eq!(decrypt(&mut first, &message).unwrap(), b"text");
    let mut out = Vec::new();
    for _ in 0..3 {
        assert_eq!(second.decrypt(b"", &message, &mut out), Err(VaultError::Conflict.into()));
        let encrypted = second.encrypt(&mut rng, b"", b"", &mut out);
        assert_eq!(encrypted, Err(VaultError::Conflict.into()));
        assert!(second.encrypt_many(&mut rng, b"", &[b""]).is_err());
        assert!(second.decrypt_many(b"", &[&message]).is_err());
    }
    assert!(out.is_empty());
    let answer = encrypt(&mut first, &mut rng, b"answer");
    assert_eq!(decrypt(&mut one, &answer).unwrap(), b"answer");
    let mut copy = Ratchet::restore(&one.save()).unwrap();
    assert_eq!(copy.keep(vault.clone(), "alice"), Err(StoreError::Exists));
    assert_eq!(one.keep(vault, "other"), Err(StoreError::Kept));
}

#[test]
fn records_that_were_rolled_back_are_noticed_where_the_vault_counts() {
    let vault = Arc::new(MemoryVault::default());
    conversation(vault.clone(), &mut rng(9));
    let counting = |latest| Arc::new(CountingVault(vault.clone(), latest));
    let rolled_back = |found| Some(StoreError::RolledBack { found, latest: 9 });
    assert_eq!(Ratchet::load(counting(9), "alice").err(), rolled_back(2));
    assert_eq!(PreKeys::load(counting(9), "prekeys").err(), rolled_back(3));
    assert!(Ratchet::load(counting(2), "alice").is_ok());
    assert!(PreKeys::load(counting(3), "prekeys").is_ok());
}

#[test]
fn an_invalid_conversation_record_is_refused_with_the_reason() {
    let vault = Arc::new(MemoryVault::default());
    conversation(vault.clone(), &mut rng(10));
    type Load = fn(Arc<dyn KeyVault>) -> Option<StoreError>;
    let loads: [(&str, u8, Load); 2] = [
        ("alice", 2, |vault| Ratchet::load(vault, "alice").err()),
        ("prekeys", 3, |vault| PreKeys::load(vault, "prekeys").err()),
    ];
    for (name, kind, load) in loads {
        let load = |bytes: &[u8]| {
            let vault = MemoryVault::default();
            vault.store(name, first(bytes)).unwrap();
            load(Arc::new(vault))
        };
        let record = vault.load(name).unwrap().unwrap();
        assert_eq!(load(&record), None);
        for len in 0..record.len() {
            assert_eq!(load(&record[..len]), Some(StoreError::Record(RecordError::Damaged)));
        }
        for at in 0..record.len() {
            let mut changed = record.to_vec();
            changed[at] ^= 1;
            assert_eq!(load(&changed), Some(StoreError::Record(RecordError::Damaged)));
        }
        let state = Record::decode(&record).unwrap().state;
        assert_eq!(load(&Record::encode(1, 1, &state)), Some(StoreError::Kind));
        let wrong = |state: &[u8]| load(&Record::encode(kind, 1, state));
        assert_eq!(wrong(&state[..9]), Some(StoreError::State(StateError::Malformed)));
        assert_eq!(wrong(&[9]), Some(StoreError::State(StateError::Version(9))));
    }
    let session = Session::load(vault.clone(), "alice").err();
    assert_eq!(session, Some(StoreError::Kind));
    assert_eq!(Ratchet::load(vault.clone(), "a/b").err(), Some(StoreError::Name));
    assert_eq!(PreKeys::load(vault, "nobody").err(), Some(StoreError::Missing));
}

/// A vault that records each store and its durability.
#[derive(Default)]
struct RecordingVault(MemoryVault, Mutex<Vec<(String, Durability)>>);

impl KeyVault for RecordingVault {
    fn store(&self, name: &str, record: NewRecord<'_>) -> Result<(), VaultError> {
        self.1.lock().unwrap().push((name.to_owned(), record.durability));
        self.0.store(name, record)
    }

    fn load(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, VaultError> {
        self.0.load(name)
    }

    fn delete(&self, name: &str) -> Result<(), VaultError> {
        self.0.delete(name)
    }
}

#[test]
fn each_call_stores_once_in_order_and_durably_by_default() {
    let mut rng = rng(11);
    let vault = Arc::new(RecordingVault::default());
    let (mut one, mut two) = conversation(vault.clone(), &mut rng);
    let take = || std::mem::take(&mut *vault.1.lock().unwrap());
    let power = |names: &[&str]| -> Vec<_> {
        names.iter().map(|name| ((*name).to_owned(), Durability::Power)).collect()
    };
    // Created, handed out; started, consumed; answered.
    assert_eq!(take(), power(&["prekeys", "prekeys", "alice", "prekeys", "alice"]));
    let messages = [b"a", b"b"].map(|text| encrypt(&mut one, &mut rng, text));
    assert!(decrypt(&mut two, b"none").is_err());
    assert!(two.decrypt_many(b"", &[b"none", b"none"]).is_ok());
    assert_eq!(take(), power(&[]), "what is none is not stored");
    two.decrypt_many(b"", &[&messages[0], &messages[1]]).unwrap();
    two.encrypt_many(&mut rng, b"", &[b"c", b"d", b"e"]).unwrap();
    assert_eq!(take(), power(&["alice", "alice"]), "once for a batch");
    two.set_durability(Durability::Process);
    encrypt(&mut two, &mut rng, b"text");
    assert_eq!(take(), [("alice".to_owned(), Durability::Process)]);
}

#[test]
fn a_failure_of_a_batch_names_the_message_and_stores_nothing() {
    let mut rng = rng(12);
    let vault = Arc::new(RecordingVault::default());
    let (_, mut two) = conversation(vault.clone(), &mut rng);
    let (stores, state) = (vault.1.lock().unwrap().len(), two.save());
    let long = vec![0; PLAINTEXT_BYTES_MAX + 1];
    let why = two.encrypt_many(&mut rng, b"", &[b"short", &long]).err();
    assert_eq!(why, Some(BatchError { index: 1, why: EncryptError::TooLong }));
    assert_eq!(vault.1.lock().unwrap().len(), stores);
    assert!(two.save() == state);
}
