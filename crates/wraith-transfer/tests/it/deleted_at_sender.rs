//! A file is deleted at the sender before the sender has read all of it. No part of the file stays
//! at the receiver, not even under a hidden name.

use std::fs;
use std::sync::Arc;

use crate::common::*;
use wraith_transfer::{Event, FileStatus, Progress, SendOptions};

const CHUNKS: usize = 40;

/// Rate in bytes per second: slow enough that some of the file is left to delete.
const RATE: u64 = 10 << 20;

fn folders() -> Folders {
    let folders = Folders::new();
    folders.file("large", &noise(1, CHUNKS * CHUNK));
    folders
}

/// Waits until this many chunks have arrived, or the connection is over.
fn wait_for(chunks: usize, progress: &Progress, connection: &wraith_transport::Connection) {
    while progress.bytes() < (chunks * CHUNK) as u64 && connection.close_reason().is_none() {
        std::thread::yield_now();
    }
}

#[track_caller]
fn assert_nothing_stays(folders: &Folders, received: &wraith_transfer::ReceiveReport) {
    assert_eq!((received.files, received.failed), (0, 1));
    let left = roots(&folders.to());
    assert!(!left.iter().any(|path| path.to_string_lossy().contains("large")), "{left:?}");
}

#[test]
fn a_file_that_is_deleted_while_it_is_sent_leaves_nothing() {
    let folders = folders();
    let send = SendOptions::new(roots(&folders.from()), SECRET);
    let mut options = receive_options(&folders.to());
    options.rate = Some(RATE);
    let (link, progress) = (link(), Arc::clone(&options.progress));
    let receiver = link.receiver.clone();
    let received = std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_for(10, &progress, &receiver);
            fs::remove_file(folders.from().join("large")).unwrap();
        });
        transfer_over(link, &send, options).1
    });
    assert_nothing_stays(&folders, &received.unwrap());
}

#[test]
fn a_file_that_is_deleted_before_it_is_resumed_leaves_nothing() {
    let folders = folders();
    let mut send = SendOptions::new(roots(&folders.from()), SECRET);
    let mut options = receive_options(&folders.to());
    options.rate = Some(RATE);
    let (link, progress) = (link(), Arc::clone(&options.progress));
    let receiver = link.receiver.clone();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_for(10, &progress, &receiver);
            receiver.close(0, "cut");
        });
        transfer_over(link, &send, options).1.unwrap_err();
    });
    assert!(folders.to().join(".large.wraith-part").exists(), "it was faster than the cut");

    // Between being listed and being read.
    let large = folders.from().join("large");
    send.events = Arc::new(move |event: Event<'_>| match event {
        Event::Entry { .. } => fs::remove_file(&large).unwrap(),
        Event::File { status, .. } => assert_eq!(status, FileStatus::Unreadable),
        _ => {}
    });
    let (_, received) = transfer(&send, receive_options(&folders.to()));
    assert_nothing_stays(&folders, &received.unwrap());
}
