use std::os::unix::fs::PermissionsExt;
use std::time::SystemTime;

use super::*;
use crate::state::commit::CommitStep;
use crate::state::commit::faults::{self, Fault};

fn home() -> (tempfile::TempDir, StateDir) {
    let folder = tempfile::tempdir().unwrap();
    let home = StateDir::in_folder(folder.path());
    (folder, home)
}

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

fn open(home: &StateDir, names: &[&str]) -> Result<UnfinishedSend, StateError> {
    UnfinishedSend::open(home, &paths(names), &Recipient::Bearer)
}

fn for_code(home: &StateDir, max: usize) -> UnfinishedSend {
    UnfinishedSend::open(home, &paths(&["/a"]), &Recipient::Code { max: Some(max) }).unwrap()
}

fn admit(send: &UnfinishedSend, node: wraith_crypto::NodeId) {
    let (is_admitted, written) = send.admit(node);
    written.unwrap();
    assert!(is_admitted);
}

#[test]
fn the_same_paths_get_the_same_secret_and_port_again() {
    let (_folder, home) = home();
    let first = open(&home, &["/a", "/b"]).unwrap();
    first.remember(4433).unwrap();
    let secret = first.capability().clone();
    drop(first);
    let again = open(&home, &["/a", "/b"]).unwrap();
    assert_eq!((again.capability(), again.port()), (&secret, Some(4433)));
    let other = open(&home, &["/a/b"]).unwrap();
    assert_ne!(other.capability(), &secret);
}

#[test]
fn receivers_come_and_go_without_the_secret_ever_being_off_the_disk() {
    let (folder, home) = home();
    let first = open(&home, &["/a"]).unwrap();
    first.remember(4433).unwrap();
    let secret = first.capability().clone();
    let path = folder.path().join(FOLDER).join(Recipient::Bearer.record_name(&paths(&["/a"])));
    let node = |n| wraith_crypto::SecretIdentity::from_seed([n; 32]).node_id();
    for n in 0..2 * MAX_RECEIVERS as u8 {
        faults::set(Some(Fault::Error(CommitStep::Rename)));
        first.add_receiver(node(100)).unwrap_err();
        faults::set(None);
        let mut there = SendRecord { port: None, receivers: vec![], allowlist: None, owned: None };
        let capability = there.read(&fs::read_to_string(&path).unwrap());
        assert_eq!(capability.as_ref(), Some(&secret), "a full disk leaves what was there");
        first.add_receiver(node(n)).unwrap();
    }
    first.remove_receiver(node(100)).unwrap();
    (0..MAX_RECEIVERS as u8 + 14).for_each(|n| first.remove_receiver(node(n)).unwrap());
    drop(first);
    let again = open(&home, &["/a"]).unwrap();
    assert_eq!((again.capability(), again.port()), (&secret, Some(4433)));
    assert_eq!(again.receivers(), [node(31), node(30)]);
}

#[test]
fn a_record_of_another_version_is_no_record_and_a_newer_one_left_alone() {
    let (folder, home) = home();
    let path = folder.path().join(FOLDER).join(Recipient::Bearer.record_name(&paths(&["/a"])));
    drop(open(&home, &["/a"]).unwrap());
    let secret = BASE32_NOPAD.encode(&[3; Capability::LEN]);
    let record = |version| {
        // The trailing blanks are those of a record that was longer before.
        let text = format!("{{\"version\":{version},\"capability\":\"{secret}\",\"port\":5}}    ");
        fs::write(&path, &text).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        text
    };
    record(1);
    let before = open(&home, &["/a"]).unwrap();
    assert_eq!(before.port(), None);
    assert_ne!(before.capability().as_bytes(), &[3; Capability::LEN]);
    drop(before);
    let newer = record(3);
    let old = SystemTime::now() - MAX_AGE - Duration::from_secs(60);
    File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    let error = open(&home, &["/a"]).unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Newer);
    assert_eq!(fs::read_to_string(&path).unwrap(), newer);
}

#[test]
fn a_ticket_from_a_code_stays_valid_for_its_joiner_after_a_crash() {
    let (_folder, home) = home();
    let open_for_code = || for_code(&home, 1);
    let node = |n| wraith_crypto::SecretIdentity::from_seed([n; 32]).node_id();
    let first = open_for_code();
    first.remember(4433).unwrap();
    let secret = first.capability().clone();
    assert!(!first.admits(node(1)), "a capability that was not brought is good for nobody");
    admit(&first, node(1));
    drop(first);
    let again = open_for_code();
    assert_eq!((again.capability(), again.allowed()), (&secret, Some(vec![node(1)])));
    assert!(again.admits(node(1)) && !again.admits(node(2)));
    // The bearer ticket of the same paths is another one.
    let bearer = open(&home, &["/a"]).unwrap();
    assert_ne!(bearer.capability(), &secret);
    assert!(bearer.admits(node(2)));
    // So are the tickets for the makers of two different codes.
    let invitation = |tag| {
        let recipient = Recipient::Invitation([tag; 20]);
        UnfinishedSend::open(&home, &paths(&["/a"]), &recipient).unwrap()
    };
    let (one, other) = (invitation(1), invitation(2));
    one.remember(1).unwrap();
    admit(&one, node(1));
    other.remember(2).unwrap();
    assert!(other.capability() != one.capability() && one.capability() != &secret);
    drop((one, other));
    assert_eq!(invitation(1).allowed(), Some(vec![node(1)]));
    assert_eq!(invitation(2).allowed(), Some(vec![]));
}

#[test]
fn a_stopped_send_by_code_is_kept_only_for_receivers_that_accepted() {
    let (_folder, home) = home();
    let open = || for_code(&home, 2);
    let node = |n| wraith_crypto::SecretIdentity::from_seed([n; 32]).node_id();
    let begun = open();
    begun.remember(1).unwrap();
    let secret = begun.capability().clone();
    admit(&begun, node(1));
    admit(&begun, node(2));
    begun.record_accepted(node(2)).unwrap();
    begun.end_run(|_| false);
    drop(begun);
    let again = open();
    assert_eq!((again.capability(), again.allowed()), (&secret, Some(vec![node(2)])));
    again.remove_receiver(node(2)).unwrap();
    again.end_run(|_| false);
    drop(again);
    assert_ne!(open().capability(), &secret);
}

#[test]
fn a_renewed_send_invalidates_earlier_tickets() {
    let (_folder, home) = home();
    let open = || for_code(&home, 1);
    let node = wraith_crypto::SecretIdentity::from_seed([1; 32]).node_id();
    let mut first = open();
    let secret = first.capability().clone();
    first.remember(1).unwrap();
    admit(&first, node);
    first.record_accepted(node).unwrap();
    first.renew().unwrap();
    assert_eq!((first.port(), first.allowed()), (None, Some(Vec::new())));
    first.remember(2).unwrap();
    let renewed = first.capability().clone();
    drop(first);
    let again = open();
    assert!(again.capability() == &renewed && renewed != secret && !again.admits(node));
}

#[test]
fn a_finished_send_is_forgotten() {
    let (_folder, home) = home();
    let first = open(&home, &["/a"]).unwrap();
    first.remember(1).unwrap();
    let secret = first.capability().clone();
    first.forget();
    let next = open(&home, &["/a"]).unwrap();
    assert_ne!(next.capability(), &secret);
    assert_eq!(next.port(), None);
}

#[test]
fn two_sends_at_once_never_share_a_secret() {
    let (_folder, home) = home();
    let first = open(&home, &["/a"]).unwrap();
    first.remember(1).unwrap();
    let second = open(&home, &["/a"]).unwrap();
    assert_ne!(first.capability(), second.capability());
    second.remember(2).unwrap();
    second.forget();
    let secret = first.capability().clone();
    drop(first);
    assert_eq!(open(&home, &["/a"]).unwrap().capability(), &secret);
}

#[test]
fn a_damaged_record_is_replaced() {
    let (folder, home) = home();
    let first = open(&home, &["/a"]).unwrap();
    first.remember(1).unwrap();
    drop(first);
    let path = folder.path().join(FOLDER).join(Recipient::Bearer.record_name(&paths(&["/a"])));
    fs::write(&path, b"{\"version\":1,\"capab").unwrap();
    let next = open(&home, &["/a"]).unwrap();
    assert_eq!(next.port(), None);
    next.remember(7).unwrap();
    drop(next);
    assert_eq!(open(&home, &["/a"]).unwrap().port(), Some(7));
}

#[test]
fn a_record_older_than_a_week_is_forgotten() {
    let (folder, home) = home();
    let first = open(&home, &["/a"]).unwrap();
    first.remember(1).unwrap();
    drop(first);
    let path = folder.path().join(FOLDER).join(Recipient::Bearer.record_name(&paths(&["/a"])));
    let old = SystemTime::now() - MAX_AGE - Duration::from_secs(60);
    File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    assert_eq!(open(&home, &["/a"]).unwrap().port(), None);
}
