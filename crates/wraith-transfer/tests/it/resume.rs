//! A connection is cut at any moment. Only data in flight is lost, and no verified data.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::common::*;
use wraith_transfer::{Event, FileStatus, Progress, SendOptions};

/// Sends until the receiver has `cut_at` bytes, then cuts the connection as a network would.
/// Returns the bytes that the receiver has then, including earlier ones; `None` if the transfer was
/// faster than the cut.
fn transfer_cut(folders: &Folders, cut_at: u64) -> Option<u64> {
    let send = SendOptions::new(roots(&folders.from()), SECRET);
    let progress = Arc::new(Progress::default());
    let mut options = receive_options(&folders.to());
    options.progress = Arc::clone(&progress);
    let link = link();
    let receiver = link.receiver.clone();
    let sender = link.sender.clone();
    std::thread::scope(|scope| {
        let watched = Arc::clone(&progress);
        let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let over = Arc::clone(&done);
        scope.spawn(move || {
            while watched.bytes() < cut_at && !over.load(Relaxed) {
                std::thread::yield_now();
            }
            // A code without meaning to the transfer: both sides see a lost connection.
            receiver.close(0, "cut");
            sender.close(0, "cut");
        });
        let (sent, received) = transfer_over(link, &send, options);
        done.store(true, Relaxed);
        match (sent, received) {
            (Ok(_), Ok(_)) => None,
            (_, Ok(_)) => None,
            (sent, Err(error)) => {
                assert_eq!(error.exit_code(), 6, "{error:?}");
                if let Err(error) = sent {
                    assert_eq!(error.exit_code(), 6, "{error:?}");
                }
                Some(progress.bytes())
            }
        }
    })
}

#[test]
fn a_large_file_continues_from_its_verified_chunks() {
    let folders = Folders::new();
    let total = 200 * CHUNK as u64 + 99;
    folders.file("large", &noise(1, total as usize));
    let mut has = 0;
    let mut cuts = 0;
    for cut in [10, 40, 41, 90] {
        let Some(bytes) = transfer_cut(&folders, cut * CHUNK as u64) else {
            // Faster than the cut: the file is complete.
            has = total;
            break;
        };
        cuts += 1;
        assert!(bytes >= has, "it lost what it had");
        has = bytes;
        assert!(!folders.to().join("large").exists(), "a final name before the end");
    }
    let (sent, received) = transfer_all(&folders);
    assert!(cuts > 0, "the connection was never cut");
    assert_eq!(has + received.bytes_moved, total, "a verified chunk was moved twice");
    assert_eq!(tree(&folders.to()), tree(&folders.from()));
    assert_eq!((sent.failed, received.files + received.already_here), (0, 1));
}

/// Returns the total bytes of all named files below `folder`.
fn bytes_of_files(folder: &Path) -> u64 {
    let named = |path: &PathBuf| !path.to_string_lossy().contains(".wraith-");
    let metadata = |path: PathBuf| fs::symlink_metadata(folder.join(path)).unwrap();
    let files = tree(folder).into_keys().filter(named).map(metadata).filter(|meta| meta.is_file());
    files.map(|meta| meta.len()).sum()
}

#[test]
fn many_files_continue_where_they_were_cut() {
    let folders = Folders::new();
    for i in 0..400usize {
        let len = if i % 40 == 0 { 3 * CHUNK } else { 1 + i * 100 };
        folders.file(&format!("tree/{}/{i}", i % 7), &noise(i as u8, len));
    }
    let total = bytes_of_files(&folders.from());
    let mut has = 0;
    for cut in [total / 10, total / 5, total / 4] {
        // If the transfer was faster than the cut, everything is present.
        has = transfer_cut(&folders, cut).unwrap_or(total);
    }
    let named = bytes_of_files(&folders.to());
    let again = Arc::new(AtomicU64::new(0));
    let send = SendOptions::new(roots(&folders.from()), SECRET);
    let mut options = receive_options(&folders.to());
    let counted = Arc::clone(&again);
    options.events = Arc::new(move |event: Event<'_>| {
        if let Event::File { status: FileStatus::AlreadyHere, .. } = event {
            counted.fetch_add(1, Relaxed);
        }
    });
    let (sent, received) = transfer(&send, options);
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!(tree(&folders.to()), tree(&folders.from()));
    assert_eq!(received.files + received.already_here, 400);
    assert_eq!(again.load(Relaxed), received.already_here);
    assert!(received.already_here > 0 || has == 0);
    assert!(named + received.bytes_moved <= total, "what had its name was moved again");
    // `has` may miss files that a cut connection had not inspected again. It counts files that were
    // complete on the two data threads at the cut but could no longer reach the naming thread.
    let unnamed = 2 * 3 * CHUNK as u64;
    assert!(has + received.bytes_moved <= total + unnamed, "something was moved twice");
    assert_eq!(sent.failed, 0);
}

#[test]
fn a_file_that_changed_between_two_connections_is_not_mixed() {
    let folders = Folders::new();
    folders.file("large", &noise(1, 100 * CHUNK));
    if transfer_cut(&folders, 30 * CHUNK as u64).is_none() {
        return;
    }
    folders.file("large", &noise(2, 100 * CHUNK));
    transfer_all(&folders);
    assert_eq!(tree(&folders.to()), tree(&folders.from()));
}

#[test]
fn a_file_that_changes_while_it_is_sent_fails_alone() {
    let folders = Folders::new();
    let path = folders.file("tree/changing", &noise(1, 150 * CHUNK));
    folders.file("tree/steady", b"steady");
    let send = SendOptions::new(roots(&folders.from()), SECRET);
    let progress = Arc::clone(&send.progress);
    let (sent, received) = std::thread::scope(|scope| {
        scope.spawn(move || {
            while progress.bytes() < CHUNK as u64 {
                std::thread::yield_now();
            }
            let file = fs::File::options().write(true).open(path).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, b"other", 149 * CHUNK as u64).unwrap();
        });
        transfer(&send, receive_options(&folders.to()))
    });
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!(sent.failed, received.failed);
    assert_eq!(fs::read(folders.to().join("tree/steady")).unwrap(), b"steady");
    if received.failed == 1 {
        assert!(!folders.to().join("tree/changing").exists());
        assert_eq!(received.outcome().unwrap_err().exit_code(), 10);
    }
}

#[test]
fn the_check_of_a_file_that_is_here_already_has_a_progress_of_its_own() {
    let folders = Folders::new();
    let bytes = noise(1, 400 * CHUNK);
    folders.file("large", &bytes);
    fs::create_dir_all(folders.to()).unwrap();
    fs::write(folders.to().join("large"), &bytes).unwrap();
    let (received, to_check) = transfer_with_check(&folders);
    assert_eq!((received.already_here, to_check), (1, bytes.len() as u64));
}
