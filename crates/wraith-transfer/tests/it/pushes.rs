//! Small files sent with the offer, before they are requested, save a round trip and change nothing
//! else.

use std::fs;
use std::time::Duration;

use wraith_files::OnConflict;
use wraith_transfer::SendOptions;
use wraith_transport::block_on;

use crate::common::*;

/// A tree with some pushed and some requested files.
fn some_files() -> Folders {
    let folders = Folders::new();
    for n in 0..40_u8 {
        folders.file(&format!("d/{n:02}"), &noise(n, 3000 + 100 * usize::from(n)));
    }
    folders.file("empty", b"");
    folders.file("large", &noise(99, 3 * CHUNK));
    folders
}

#[test]
fn pushed_and_requested_files_make_one_tree() {
    let folders = some_files();
    let (sent, received) = transfer_all(&folders);
    assert_eq!(tree(&folders.from()), tree(&folders.to()));
    assert_eq!((sent.files, received.files), (42, 42));
    assert_eq!(sent.bytes_moved, received.bytes_moved);
    assert_eq!(sent.bytes, sent.bytes_moved);
}

#[test]
fn a_receiver_that_declines_pushes_gets_none() {
    let folders = some_files();
    let send = SendOptions::new(roots(&folders.from()), SECRET);
    let mut options = receive_options(&folders.to());
    options.push = false;
    let (sent, received) = transfer(&send, options);
    assert_eq!(sent.unwrap().bytes_moved, received.unwrap().bytes_moved);
    assert_eq!(tree(&folders.from()), tree(&folders.to()));
}

#[test]
fn a_pushed_file_does_not_take_the_place_of_one_that_stays() {
    let folders = some_files();
    fs::create_dir(folders.to().join("d")).unwrap();
    fs::write(folders.to().join("d/00"), b"mine").unwrap();
    let send = SendOptions::new(roots(&folders.from()), SECRET);
    let mut options = receive_options(&folders.to());
    options.on_conflict = OnConflict::Skip;
    let (sent, received) = transfer(&send, options);
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!(fs::read(folders.to().join("d/00")).unwrap(), b"mine");
    assert_eq!((received.files, received.skipped), (41, 1));
    assert_eq!((sent.files, sent.failed), (41, 0));
}

#[test]
fn a_pushed_file_that_is_here_already_is_left_as_it_is() {
    let folders = some_files();
    let content = fs::read(folders.from().join("d/00")).unwrap();
    fs::create_dir(folders.to().join("d")).unwrap();
    fs::write(folders.to().join("d/00"), content).unwrap();
    let before = fs::metadata(folders.to().join("d/00")).unwrap();
    let (_, received) = transfer_all(&folders);
    let after = fs::metadata(folders.to().join("d/00")).unwrap();
    assert_eq!((received.files, received.already_here), (41, 1));
    assert_eq!(
        std::os::unix::fs::MetadataExt::ino(&before),
        std::os::unix::fs::MetadataExt::ino(&after)
    );
}

/// The pushed content is that of the file at the time of the push; the receipt covers exactly that.
#[test]
fn a_pushed_file_may_change_before_it_is_asked_for() {
    let folders = Folders::new();
    let path = folders.file("a", &noise(1, 5000));
    let send = SendOptions::new(vec![path.clone()], SECRET);
    let mut options = receive_options(&folders.to());
    // The callback holds back Accept and Want; the pushed files have long been read.
    options.decide = Box::new(move |_| {
        std::thread::park_timeout(Duration::from_millis(300));
        fs::write(&path, b"another").unwrap();
        wraith_transfer::Decision::Accept
    });
    let (sent, received) = transfer(&send, options);
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!((sent.failed, received.failed), (0, 0));
    assert_eq!(fs::read(folders.to().join("a")).unwrap(), noise(1, 5000));
}

/// A verified file is not sent again, however small it is.
#[test]
fn after_a_loss_nothing_is_pushed() {
    // On a busy machine everything may be over before the first file is reported; then nothing is
    // lost.
    let lost = |folders: &Folders| {
        let send = SendOptions::new(roots(&folders.from()), SECRET);
        let link = link();
        let connection = link.receiver.clone();
        let mut options = receive_options(&folders.to());
        options.events = std::sync::Arc::new(CloseAtTheFirstFile(connection));
        let (sent, received) = transfer_over(link, &send, options);
        sent.is_err() && received.is_err()
    };
    let folders = (0..20).map(|_| some_files()).find(lost).expect("a connection is lost");
    let here = tree(&folders.to().join("d")).len() as u64;
    assert!(here > 0);
    let (sent, received) = transfer_all(&folders);
    assert_eq!(tree(&folders.from()), tree(&folders.to()));
    assert!(received.already_here >= 1, "{received:?}");
    assert_eq!(sent.bytes_moved, received.bytes_moved);
}

struct CloseAtTheFirstFile(wraith_transport::Connection);

impl wraith_transfer::Events for CloseAtTheFirstFile {
    fn event(&self, event: wraith_transfer::Event<'_>) {
        if matches!(event, wraith_transfer::Event::File { .. }) {
            self.0.close(1, "enough");
            // This thread waits until the connection is closed, so there is no receipt.
            block_on(self.0.closed());
        }
    }
}
