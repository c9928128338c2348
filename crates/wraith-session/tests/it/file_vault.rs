//! Sessions in a folder vault, with processes that are killed.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use tempfile::TempDir;
use wraith_session::FileVault;
use wraith_session::vault::{Durability, KeyVault, NewRecord, Record, VaultError};
use wraith_session::{OpenError, Session, StoreError, Suite};

use crate::stored_support::{first, kept};

/// Set in the child process that is to be killed.
const FOLDER: &str = "WRAITH_TEST_VAULT";

fn session(send: u8, receive: u8) -> Session {
    Session::new(Suite::Aes256Gcm, &[send; 32], &[receive; 32])
}

fn vault(folder: &Path) -> Arc<FileVault> {
    Arc::new(FileVault::open(folder).unwrap())
}

/// The child process: seals messages, opens the peer's messages, and reports both, until it is
/// killed.
#[test]
fn child_that_seals_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let vault: Arc<dyn KeyVault> = vault(Path::new(&folder));
    let mut stored = match Session::load(vault.clone(), "peer") {
        Err(StoreError::Missing) => kept(vault, "peer", session(1, 2)).unwrap(),
        loaded => loaded.unwrap(),
    };
    // The peer's messages are the same in each run.
    let mut peer = session(2, 1);
    let mut incoming = Vec::new();
    for _ in 0..100_000 {
        incoming.clear();
        peer.seal(b"", b"text", &mut incoming).unwrap();
        let mut text = Vec::new();
        match stored.open(b"", &incoming, &mut text) {
            Ok(number) => println!("\nopened {number}"),
            Err(OpenError::Replayed | OpenError::TooOld) => continue,
            Err(why) => panic!("{why}"),
        }
        let number = stored.seal(b"", b"text", &mut Vec::new()).unwrap();
        println!("\nsealed {number}");
    }
    panic!("nobody has killed it");
}

#[test]
fn a_process_that_is_killed_at_any_moment_uses_no_number_twice_and_opens_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = HashSet::new();
    let mut lines_in_all = 0;
    for round in 0..20 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "file_vault::child_that_seals_until_it_is_killed", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut count = 0;
        for line in lines.map_while(Result::ok) {
            if !(line.starts_with("opened ") || line.starts_with("sealed ")) {
                continue;
            }
            assert!(seen.insert(line.clone()), "round {round}: {line} twice");
            count += 1;
            if count == 50 + 37 * round {
                // Kill it at an arbitrary point; its earlier output is read to the end.
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(count >= 50 + 37 * round, "round {round} ended early");
        lines_in_all += count;
    }
    assert!(lines_in_all > 5000);
}

#[test]
fn one_process_at_a_time_has_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let first = FileVault::open(folder.path()).unwrap();
    let why = FileVault::open(folder.path()).err();
    assert!(matches!(why, Some(VaultError::Failed(why)) if why.contains("open elsewhere")));
    drop(first);
    assert!(FileVault::open(folder.path()).is_ok());
}

#[test]
fn record_files_are_private_and_the_newer_intact_one_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let vault = FileVault::open(folder.path().join("vault")).unwrap();
    let record = |generation| Record::encode(1, generation, b"state");
    let store = |vault: &FileVault, generation, durability| {
        vault.store("peer", NewRecord { generation, bytes: &record(generation), durability })
    };
    store(&vault, 1, Durability::Power).unwrap();
    store(&vault, 2, Durability::Process).unwrap();
    assert_eq!(store(&vault, 2, Durability::Process), Err(VaultError::Conflict));
    let held = || vault.load("peer").unwrap().unwrap();
    assert_eq!(held(), record(2));
    let recent = folder.path().join("vault/peer.recent");
    for path in [folder.path().join("vault/peer"), recent.clone()] {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let mode = fs::metadata(folder.path().join("vault")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    // A power cut may leave a part of the unflushed file.
    fs::write(&recent, &record(2)[..10]).unwrap();
    assert_eq!(held(), record(1));
    // The flushed file is never torn. If it is damaged, the recent one, which may be much older, is
    // no replacement.
    fs::write(&recent, &*record(2)).unwrap();
    fs::write(folder.path().join("vault/peer"), &record(1)[..20]).unwrap();
    assert_eq!(held().len(), 20);
    drop(vault);
    let vault = FileVault::open(folder.path().join("vault")).unwrap();
    let why = store(&vault, 3, Durability::Power).err();
    assert!(matches!(why, Some(VaultError::Failed(why)) if why.contains("damaged")));
    vault.delete("peer").unwrap();
    assert_eq!(vault.load("peer"), Ok(None));
    assert!(vault.store("../peer", first(&record(1))).is_err());
}

fn open(folder: &TempDir, anchor: &TempDir) -> Arc<FileVault> {
    Arc::new(FileVault::open(folder.path()).unwrap().anchored(anchor.path()).unwrap())
}

/// Returns a session in an anchored vault, with the folders of the vault and of its anchor.
fn anchored() -> (Session, TempDir, TempDir) {
    let [folder, anchor] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    (kept(open(&folder, &anchor), "peer", session(1, 2)).unwrap(), folder, anchor)
}

/// Puts back this copy of the first record, after the second was stored.
fn assert_rollback_is_noticed(folder: &TempDir, anchor: &TempDir, copy: &[u8]) {
    fs::write(folder.path().join("peer"), copy).unwrap();
    let why = Session::load(open(folder, anchor), "peer").err();
    assert_eq!(why, Some(StoreError::RolledBack { found: 1, latest: 2 }));
}

#[test]
fn a_vault_that_comes_back_from_a_copy_is_noticed_by_its_anchor() {
    let (mut stored, folder, anchor) = anchored();
    let copy = fs::read(folder.path().join("peer")).unwrap();
    stored.store().unwrap();
    drop(stored);
    assert_rollback_is_noticed(&folder, &anchor, &copy);
}

#[test]
fn an_anchor_notices_that_a_record_of_opened_messages_was_rolled_back() {
    let (mut stored, folder, anchor) = anchored();
    let (mut peer, mut message) = (session(2, 1), Vec::new());
    peer.seal(b"", b"text", &mut message).unwrap();
    let copy = fs::read(folder.path().join("peer")).unwrap();
    stored.open(b"", &message, &mut Vec::new()).unwrap();
    assert!(!folder.path().join("peer.recent").exists(), "the store was not flushed");
    drop(stored);
    assert_rollback_is_noticed(&folder, &anchor, &copy);
}

#[test]
fn opening_waits_for_no_flush_without_an_anchor_or_on_request() {
    let (mut relaxed, folder, _anchor) = anchored();
    relaxed.set_durability(Durability::Process);
    let other = tempfile::tempdir().unwrap();
    let plain = kept(vault(other.path()), "peer", session(1, 2)).unwrap();
    for (mut stored, folder) in [(relaxed, folder.path()), (plain, other.path())] {
        let (mut peer, mut message) = (session(2, 1), Vec::new());
        peer.seal(b"", b"text", &mut message).unwrap();
        stored.open(b"", &message, &mut Vec::new()).unwrap();
        assert!(folder.join("peer.recent").exists());
    }
}

#[test]
fn a_damaged_anchor_is_an_error() {
    let (stored, folder, anchor) = anchored();
    drop(stored);
    fs::write(anchor.path().join("peer.generation"), b"1").unwrap();
    let why = Session::load(open(&folder, &anchor), "peer").err();
    assert!(
        matches!(why, Some(StoreError::Vault(VaultError::Failed(why))) if why.contains("damaged"))
    );
}

#[test]
fn losing_unflushed_records_in_a_power_cut_is_not_reported_as_rollback() {
    let (mut stored, folder, anchor) = anchored();
    stored.set_durability(Durability::Process);
    let (mut peer, mut message) = (session(2, 1), Vec::new());
    peer.seal(b"", b"text", &mut message).unwrap();
    stored.open(b"", &message, &mut Vec::new()).unwrap();
    drop(stored);
    fs::remove_file(folder.path().join("peer.recent")).unwrap();
    assert!(Session::load(open(&folder, &anchor), "peer").is_ok());
}

#[test]
fn a_link_at_the_temporary_path_is_not_followed() {
    let [folder, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let target = outside.path().join("target");
    fs::write(&target, "untouched").unwrap();
    std::os::unix::fs::symlink(&target, folder.path().join("peer.new")).unwrap();
    let vault = Arc::new(FileVault::open(folder.path()).unwrap());
    kept(vault, "peer", session(1, 2)).unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "untouched");
    fs::set_permissions(outside.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let why = FileVault::open(outside.path()).err();
    assert!(matches!(why, Some(VaultError::Failed(why)) if why.contains("other users")));
}
