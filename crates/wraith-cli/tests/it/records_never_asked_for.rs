//! Records (parts of files) that answer no request of the receiver (Want), or that contradict the
//! manifest. The receiver ends with exit code 1 and names the sender's violation. None of the data
//! gets a final name.

use std::thread;

use crate::lying::CHUNK;
use crate::lying::sender::{Liar, LyingSender, chunk, entry, file, offer_of, whole};
use crate::support::tree;
use wraith_files::{Kind, Tree};
use wraith_transfer::message::Message;
use wraith_transfer::record::{Ending, Header};

/// Requests `small` of 5 bytes, `film` of 2 chunks and 100 bytes, and `sparse` of 4 chunks; then
/// comes a lie.
fn expect_caught(words: &str, lie: impl FnOnce(&mut Liar) + Send + 'static) {
    let (world, sender, receiver) = LyingSender::and_receiver();
    let lying = thread::spawn(move || {
        let mut liar = sender.offer(offer_of(3, 10 * CHUNK as u64));
        liar.list(&file("film", 2 * CHUNK + 100));
        liar.list(&file("small", 5));
        let sparse = Kind::File { size: 4 * CHUNK as u64, sparse: Some(Tree::Blake3) };
        liar.list(&entry(b"sparse", sparse));
        liar.decided();
        lie(&mut liar);
        liar.told();
    });
    let outcome = receiver.finish();
    lying.join().unwrap();
    let message = outcome.expect_error(1)["message"].as_str().unwrap().to_owned();
    assert!(message.contains("the sender broke") && message.contains(words), "{message}");
    for name in tree::names(&world.target()) {
        assert!(name.to_string_lossy().starts_with('.'), "{name:?} has a name");
    }
}

#[test]
fn an_unrequested_file_is_refused() {
    expect_caught("not requested", |liar| liar.whole(3, b"hello"));
    expect_caught("not requested", |liar| liar.whole(u32::MAX, b"hello"));
    expect_caught("not requested", |liar| liar.record(Header::Pulse { entry: 9, chunks: 1 }, b""));
}

#[test]
fn a_small_file_of_another_size_is_refused() {
    expect_caught("small", |liar| liar.whole(1, b"hello!"));
    expect_caught("small", |liar| liar.whole(1, b""));
    expect_caught("film", |liar| liar.whole(0, b"hello"));
    expect_caught("record length", |liar| {
        liar.record(Header::Whole { entry: 1, len: u32::MAX, root: [0; 32] }, b"");
    });
}

#[test]
fn a_chunk_beyond_the_file_twice_or_of_another_size_is_refused() {
    let bytes = tree::noise(1, CHUNK);
    const LIES: [&[(u64, usize)]; 8] = [
        &[(3, CHUNK)],
        &[(u64::MAX, CHUNK)],
        &[(u64::MAX / CHUNK as u64 + 1, CHUNK)],
        &[(0, CHUNK), (0, CHUNK)],
        &[(0, CHUNK - 1)],
        &[(2, 101)],
        &[(2, 99)],
        &[(2, 0)],
    ];
    for records in LIES {
        let bytes = bytes.clone();
        expect_caught("film", move |liar| {
            for &(index, len) in records {
                let index_of_cv = index.min(1000);
                let Header::Chunk { cv, .. } = chunk(0, index_of_cv, &bytes[..len.max(1)]) else {
                    unreachable!()
                };
                let header = Header::Chunk { entry: 0, index, len: len as u32, cv };
                liar.record(header, &bytes[..len]);
            }
        });
    }
    expect_caught("small", move |liar| liar.record(chunk(1, 0, b"hello"), b"hello"));
}

#[test]
fn holes_and_ends_that_cannot_be_are_refused() {
    for (entry, first, count) in
        [(0, 0, 1), (2, 0, 5), (2, 4, 1), (2, 0, 0), (2, u64::MAX, 2), (2, 1, u64::MAX)]
    {
        expect_caught("hole", move |liar| liar.record(Header::Hole { entry, first, count }, b""));
    }
    for (ending, chunks) in [(Ending::Complete, 0), (Ending::Identical, 0), (Ending::Different, 0)]
    {
        expect_caught("film", move |liar| {
            liar.record(Header::End { entry: 0, ending, chunks, root: [0; 32] }, b"");
        });
    }
    expect_caught("film", |liar| {
        let end = Header::End { entry: 0, ending: Ending::Changed, chunks: 9, root: [0; 32] };
        liar.record(end, b"");
        liar.record(end, b"");
    });
}

#[test]
fn streams_of_garbage_and_streams_that_end_are_refused() {
    expect_caught("record type", |liar| {
        let _ = wraith_transport::block_on(liar.data.write_all(&[200; 1000]));
    });
    expect_caught("", |liar| {
        let _ = liar.data.finish();
    });
    expect_caught("", |liar| {
        let _ = liar.manifest.finish();
    });
    expect_caught("manifest", |liar| {
        let _ = wraith_transport::block_on(liar.manifest.write_all(&[0xff; 1000]));
    });
}

#[test]
fn messages_of_the_other_role_are_refused() {
    for message in [Message::Accept(Default::default()), Message::Want(Default::default())] {
        for hello_first in [false, true] {
            let (_world, sender, receiver) = LyingSender::and_receiver();
            let mut greeted = sender.greet();
            if hello_first {
                greeted.hello();
            }
            greeted.say(&message);
            receiver.finish().expect_message(1, "instead of");
        }
    }
}

#[test]
fn a_liar_between_honest_files_leaves_those_in_place() {
    let (world, sender, receiver) = LyingSender::and_receiver();
    let mut liar = sender.offer(offer_of(2, 10));
    liar.list(&file("a", 5));
    liar.list(&file("b", 5));
    liar.end_manifest();
    liar.decided();
    liar.whole(0, b"hello");
    liar.record(whole(0, b"hello"), b"hello");
    receiver.finish().expect_error(1);
    liar.told();
    assert_eq!(std::fs::read(world.target().join("a")).unwrap(), b"hello");
    assert!(!world.target().join("b").exists());
}
