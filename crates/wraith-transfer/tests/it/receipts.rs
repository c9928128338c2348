//! A receipt covers every file of the offer: new ones, those of an earlier connection, and those
//! already present. It also names the missing entries and the reasons.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::common::*;
use wraith_transfer::{
    ContentDigest, Event, Exception, FileStatus, Kind, OnConflict, Receipt, ReceiveReport,
    SendOptions, SendReport,
};

/// Events about the entries of an offer at the sender, by number.
#[derive(Debug, Default)]
struct Told {
    entries: BTreeMap<u32, (String, bool)>,
    roots: BTreeMap<u32, [u8; 32]>,
    exceptions: BTreeMap<u32, Exception>,
}

impl Told {
    /// Returns the names of the entries that the receiver lacks.
    fn missing(&self) -> Vec<(&str, Exception)> {
        let named =
            |(number, exception): (&u32, &Exception)| (self.entries[number].0.as_str(), *exception);
        self.exceptions.iter().map(named).collect()
    }

    fn contents(&self) -> [u8; 32] {
        let mut contents = ContentDigest::new();
        self.roots.iter().for_each(|(number, root)| contents.add(*number, root));
        self.exceptions.iter().for_each(|(number, exception)| contents.except(*number, *exception));
        contents.digest()
    }

    /// Asserts that every file is named, and that the files reported by the receiver are in `to`.
    #[track_caller]
    fn expect_covered(&self, receipt: &Receipt, to: &Path) {
        assert_eq!(receipt.contents, self.contents());
        assert_eq!(receipt.sender, sender_identity().node_id());
        let mut verified = 0;
        for (number, (name, is_file)) in &self.entries {
            let root = self.roots.get(number);
            match (is_file, self.exceptions.contains_key(number)) {
                (true, false) => {
                    verified += 1;
                    let there = fs::read(to.join(name)).unwrap();
                    assert_eq!(root, Some(blake3::hash(&there).as_bytes()), "{name}");
                }
                (true, true) => {}
                (false, _) => assert_eq!(root, None, "{name}"),
            }
        }
        assert_eq!(receipt.verified, verified);
        assert_eq!(receipt.kept + receipt.failed, self.exceptions.len() as u64);
    }
}

/// Options that record events.
fn telling(folders: &Folders) -> (SendOptions, Arc<Mutex<Told>>) {
    let mut send = SendOptions::new(roots(&folders.from()), SECRET);
    send.node_id = Some(sender_identity().node_id());
    let told = Arc::<Mutex<Told>>::default();
    let theirs = Arc::clone(&told);
    send.events = Arc::new(move |event: Event<'_>| {
        let mut told = theirs.lock().unwrap();
        match event {
            Event::Offer(_) => *told = Told::default(),
            Event::Entry { number, entry } => {
                let is_file = matches!(entry.kind, Kind::File { .. });
                told.entries.insert(number, (entry.path.display().to_string(), is_file));
            }
            Event::Root { number, root } => {
                assert_eq!(told.roots.insert(number, root), None);
            }
            Event::Excepted { number, exception } => {
                assert_eq!(told.exceptions.insert(number, exception), None);
            }
            _ => {}
        }
    });
    (send, told)
}

fn both(send: &SendOptions, to: &Path, on_conflict: OnConflict) -> (SendReport, ReceiveReport) {
    let mut options = receive_options(to);
    options.on_conflict = on_conflict;
    let (sent, received) = transfer(send, options);
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!(sent.receipt, received.receipt);
    (sent, received)
}

/// Cuts the connection once a large file is in progress, after small ones.
fn cut_in_the_middle(folders: &Folders, send: &SendOptions) {
    let link = link();
    let (receiver, sender) = (link.receiver.clone(), link.sender.clone());
    let mut options = receive_options(&folders.to());
    let progress = Arc::clone(&options.progress);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while progress.bytes() < 4 * CHUNK as u64 && !over.load(Relaxed) {
                std::thread::yield_now();
            }
            receiver.close(0, "cut");
            sender.close(0, "cut");
        });
        // Small files get their names before the large one is complete.
        options.sync = false;
        let (sent, received) = transfer_over(link, send, options);
        over.store(true, Relaxed);
        assert!(sent.is_err() && received.is_err(), "it was not cut");
    });
}

/// Interrupts a transfer of small files and a large one.
fn interrupted() -> (Folders, SendOptions, Arc<Mutex<Told>>) {
    let folders = Folders::new();
    small_files_and_a_large_one(&folders);
    let (send, told) = telling(&folders);
    cut_in_the_middle(&folders, &send);
    (folders, send, told)
}

fn small_files_and_a_large_one(folders: &Folders) {
    for n in 0..40u8 {
        folders.file(&format!("tree/a{n}"), &noise(n, 100 + usize::from(n)));
    }
    folders.file("tree/b", &noise(77, 3 * CHUNK));
    folders.file("tree/z", &noise(99, 400 * CHUNK));
}

#[test]
fn a_receipt_covers_files_of_an_earlier_connection_with_their_roots() {
    let (folders, send, told) = interrupted();
    let (sent, received) = both(&send, &folders.to(), OnConflict::Rename);
    assert!(received.already_here > 0, "{received:?}");
    assert_eq!((sent.receipt.verified, sent.receipt.kept, sent.receipt.failed), (42, 0, 0));
    told.lock().unwrap().expect_covered(&sent.receipt, &folders.to());
    assert_eq!(tree(&folders.to()), tree(&folders.from()));
}

#[test]
fn a_sender_that_was_started_anew_asks_its_own_files() {
    let (folders, ..) = interrupted();
    // The file was changed after that: the receiver's copy now differs, even if the receiver
    // reports otherwise.
    folders.file("tree/a3", &noise(200, 103));
    folders.file("tree/a4", &noise(201, 5000));
    let (send, told) = telling(&folders);
    let mut options = receive_options(&folders.to());
    options.on_conflict = OnConflict::Overwrite;
    let (sent, received) = transfer(&send, options);
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert!(received.already_here > 0, "{received:?}");
    told.lock().unwrap().expect_covered(&sent.receipt, &folders.to());
    assert_eq!(tree(&folders.to()), tree(&folders.from()));
}

#[test]
fn a_file_that_changed_after_it_was_sent_is_sent_again() {
    let (folders, send, told) = interrupted();
    assert!(folders.to().join("tree/a3").exists());
    folders.file("tree/a3", &noise(200, 103));
    let (sent, _) = both(&send, &folders.to(), OnConflict::Overwrite);
    told.lock().unwrap().expect_covered(&sent.receipt, &folders.to());
    assert_eq!(fs::read(folders.to().join("tree/a3")).unwrap(), noise(200, 103));
}

#[test]
fn a_receipt_covers_files_already_present_with_their_roots() {
    let folders = Folders::new();
    folders.file("tree/small", b"hello");
    folders.file("tree/large", &noise(1, 5 * CHUNK));
    let (send, told) = telling(&folders);
    for _ in 0..2 {
        let (sent, _) = both(&send, &folders.to(), OnConflict::Rename);
        assert_eq!(sent.receipt.verified, 2);
        assert_eq!(sent.receipt.bytes, 5 + 5 * CHUNK as u64);
        told.lock().unwrap().expect_covered(&sent.receipt, &folders.to());
    }
}

#[test]
fn a_receipt_names_skipped_files() {
    let folders = Folders::new();
    folders.file("tree/a", b"new");
    folders.file("tree/b", b"same");
    folders.file("tree/folder/c", b"nowhere");
    folders.file("tree/folder/d/e", b"nowhere");
    symlink("a", folders.from().join("tree/link")).unwrap();
    fs::create_dir(folders.to().join("tree")).unwrap();
    fs::write(folders.to().join("tree/a"), b"old").unwrap();
    fs::write(folders.to().join("tree/b"), b"same").unwrap();
    fs::write(folders.to().join("tree/folder"), b"a file").unwrap();
    fs::write(folders.to().join("tree/link"), b"a file").unwrap();
    let (send, told) = telling(&folders);
    let statuses = Arc::<Mutex<Vec<FileStatus>>>::default();
    let mut options = receive_options(&folders.to());
    let seen = Arc::clone(&statuses);
    options.on_conflict = OnConflict::Skip;
    options.events = Arc::new(move |event: Event<'_>| {
        if let Event::File { status, .. } = event {
            seen.lock().unwrap().push(status);
        }
    });
    let (sent, received) = transfer(&send, options);
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!(sent.receipt, received.receipt);
    let told = told.lock().unwrap();
    let skipped = Exception::Skipped;
    let expected = [
        ("tree/a", skipped),
        ("tree/folder", skipped),
        ("tree/folder/c", skipped),
        ("tree/folder/d", skipped),
        ("tree/folder/d/e", skipped),
        ("tree/link", skipped),
    ];
    assert_eq!(told.missing(), expected);
    told.expect_covered(&sent.receipt, &folders.to());
    assert_eq!((sent.failed, received.failed, received.skipped), (0, 0, 6));
    let statuses = statuses.lock().unwrap();
    assert_eq!(statuses.len(), 4);
    assert!(statuses.contains(&FileStatus::AlreadyHere), "an equal file is not skipped");
    assert!(sent.outcome().is_ok());
}

#[test]
fn a_receipt_covers_a_file_whose_name_was_taken_meanwhile() {
    let folders = Folders::new();
    folders.file("a", &noise(1, 200 * CHUNK));
    folders.file("b", b"first");
    let (send, told) = telling(&folders);
    let to = folders.to();
    let mut options = receive_options(&to);
    options.on_conflict = OnConflict::Skip;
    // While the large file arrives, another file takes its name.
    options.events = Arc::new(move |event: Event<'_>| {
        if matches!(event, Event::Accepted) {
            fs::create_dir(to.join("c")).unwrap();
        }
    });
    let progress = Arc::clone(&options.progress);
    let to = folders.to();
    let (sent, received) = std::thread::scope(|scope| {
        scope.spawn(move || {
            while progress.bytes() < CHUNK as u64 {
                std::thread::yield_now();
            }
            fs::write(to.join("a"), b"in the way").unwrap();
        });
        transfer(&send, options)
    });
    let (sent, received) = (sent.unwrap(), received.unwrap());
    let told = told.lock().unwrap();
    assert_eq!(told.missing(), []);
    let large = noise(1, 200 * CHUNK);
    let bytes = (large.len() + b"first".len()) as u64;
    assert_eq!((received.skipped, sent.receipt.kept, sent.receipt.bytes), (0, 0, bytes));
    assert_eq!((sent.receipt.verified, told.roots.len()), (2, 2));
    assert_eq!(sent.receipt.contents, told.contents());
    assert!(fs::read(folders.to().join("a (1)")).unwrap() == large);
    assert_eq!(fs::read(folders.to().join("a")).unwrap(), b"in the way");
}

#[test]
fn a_receipt_for_the_files_of_another_sender_is_none() {
    let folders = Folders::new();
    folders.file("a", b"x");
    let (mut send, _) = telling(&folders);
    send.node_id = Some(identity(9).node_id());
    let (sent, received) = transfer(&send, receive_options(&folders.to()));
    assert!(sent.unwrap_err().to_string().contains("another transfer"));
    assert!(received.is_err());
}
