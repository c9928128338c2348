//! Senders that lie or delay, over real connections. The receiver must report the violation, and no
//! file may appear under a final name.

mod holes;
mod pushed;

use std::fs;
use std::time::Duration;

use crate::common::*;
use bytes::Bytes;
use wraith_files::{
    Change, Entry, Kind, Mtime, POSITION_FREE_BYTES_MIN, RelPath, RootBuilder, Tree, small_root,
};
use wraith_transfer::message::{Hello, Message, Offer, Want};
use wraith_transfer::record::{Ending, Header, encode_change};
use wraith_transfer::{Role, TransferError, close, receive};
use wraith_transport::{
    CloseReason, Connection, RecvStream, SendStream, block_on, block_on_timeout,
};

/// Long enough to expose a receiver that does not wait; one that waits passes on any machine.
const EARLY: Duration = Duration::from_millis(300);

/// A sender played by a test.
struct Liar {
    connection: Connection,
    control: (SendStream, RecvStream),
    manifest: SendStream,
    data: SendStream,
    hasher: blake3::Hasher,
    entries: u64,
}

impl Liar {
    /// Sends an honest Hello and Offer.
    fn negotiate(connection: Connection, offer: Offer) -> Self {
        let (mut send, mut recv) = block_on(connection.accept_stream()).unwrap();
        assert!(matches!(read_message(&mut recv), Some(Message::Hello(_))));
        let Some(Message::Fetch(fetch)) = read_message(&mut recv) else { panic!("no Fetch") };
        assert_eq!(fetch.secret, SECRET);
        block_on(async {
            let hello = Message::Hello(Hello { version: 1, role: Role::Sender, features: None });
            send.write_all(&hello.to_bytes()).await.unwrap();
            send.write_all(&Message::Offer(offer).to_bytes()).await.unwrap();
            let (mut manifest, _) = connection.open_stream().await.unwrap();
            manifest.write_all(&[1]).await.unwrap();
            let (mut data, _) = connection.open_stream().await.unwrap();
            data.write_all(&[2]).await.unwrap();
            let control = (send, recv);
            Self { connection, control, manifest, data, hasher: blake3::Hasher::new(), entries: 0 }
        })
    }

    fn list(&mut self, entry: &Entry) {
        let mut bytes = Vec::new();
        entry.encode(&mut bytes);
        self.list_bytes(&bytes);
    }

    fn list_bytes(&mut self, entry: &[u8]) {
        let record = [&(entry.len() as u32).to_be_bytes(), entry].concat();
        self.hasher.update(&record);
        self.entries += 1;
        let _ = block_on(self.manifest.write_all(&record));
    }

    /// Writes the trailer without ending the stream.
    fn write_trailer(&mut self) {
        let hash = *self.hasher.finalize().as_bytes();
        let trailer = [&[0; 4][..], &self.entries.to_be_bytes(), &hash, &[0; 8]].concat();
        let _ = block_on(self.manifest.write_all(&trailer));
    }

    fn end_manifest(&mut self) {
        self.write_trailer();
        let _ = self.manifest.finish();
    }

    fn record(&mut self, header: Header, body: &[u8]) {
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        let _ = block_on(self.data.write_chunks([bytes.into(), Bytes::copy_from_slice(body)]));
    }

    /// Returns the next Want, if the receiver is still there.
    fn want(&mut self) -> Option<Want> {
        loop {
            match read_message(&mut self.control.1)? {
                Message::Want(want) => return Some(want),
                Message::Accept(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

fn read_message(recv: &mut RecvStream) -> Option<Message> {
    let mut prefix = [0; 4];
    block_on(recv.read_exact(&mut prefix)).ok()?;
    let mut body = vec![0; u32::from_be_bytes(prefix) as usize];
    block_on(recv.read_exact(&mut body)).ok()?;
    Some(Message::from_bytes(&body).unwrap())
}

fn offer() -> Offer {
    let id = wraith_crypto::kdf::derive("wraith/1 transfer id", &SECRET);
    Offer {
        transfer_id: id[..16].try_into().unwrap(),
        name: "gift".into(),
        files: 3,
        dirs: 1,
        links: 0,
        bytes: 10 * CHUNK as u64,
        largest: 10 * CHUNK as u64,
        data_streams: 1,
        stream: None,
        left_out: None,
        no_sync: None,
        names: None,
    }
}

/// Returns an offer of one file of `chunks` chunks.
fn offer_of(chunks: u64) -> Offer {
    let bytes = chunks * CHUNK as u64;
    Offer { bytes, largest: bytes, ..offer() }
}

fn entry(path: &str, kind: Kind) -> Entry {
    let path = RelPath::parse(path.as_bytes()).unwrap();
    Entry { path, kind, mode: 0o644, mtime: Mtime::default() }
}

fn file(path: &str, size: usize) -> Entry {
    entry(path, Kind::File { size: size as u64, sparse: None })
}

/// Lets `lie` play the sender. Returns the receiver's error and the close reason sent to the liar.
fn deceive(lie: impl FnOnce(&mut Liar) + Send) -> (TransferError, CloseReason) {
    deceive_with(offer(), lie)
}

fn deceive_with(offer: Offer, lie: impl FnOnce(&mut Liar) + Send) -> (TransferError, CloseReason) {
    deceive_into(&Folders::new(), offer, lie)
}

fn deceive_into(
    folders: &Folders,
    offer: Offer,
    lie: impl FnOnce(&mut Liar) + Send,
) -> (TransferError, CloseReason) {
    let link = link();
    let sender = link.sender.clone();
    let result = std::thread::scope(|scope| {
        let liar = scope.spawn(|| {
            let mut liar = Liar::negotiate(sender, offer);
            lie(&mut liar);
            block_on(liar.connection.closed())
        });
        let received = receive(link.receiver.clone(), receive_options(&folders.to()));
        (received.expect_err("the lie was believed"), liar.join().unwrap())
    });
    for name in roots(&folders.to()) {
        let name = name.file_name().unwrap().to_string_lossy().into_owned();
        assert!(name.starts_with('.') || name == "honest", "{name} has a final name");
    }
    result
}

fn expect_protocol(lie: impl FnOnce(&mut Liar) + Send) -> String {
    let (error, told) = deceive(lie);
    assert_protocol(error, &told)
}

/// Offers a file of two chunks, and lets `lie` send it. It gets the content of both chunks.
fn expect_verification(lie: impl FnOnce(&mut Liar, &[u8]) + Send) {
    let (error, _) = deceive(|liar| {
        liar.list(&file("a", 2 * CHUNK));
        liar.end_manifest();
        liar.want();
        lie(liar, &noise(1, CHUNK));
    });
    assert!(matches!(error, TransferError::Verification { .. }), "{error:?}");
}

/// Asserts a protocol violation by the sender and returns its description.
#[track_caller]
fn assert_protocol(error: TransferError, told: &CloseReason) -> String {
    let TransferError::Protocol { peer: Role::Sender, what } = error else { panic!("{error:?}") };
    assert!(matches!(told, CloseReason::Peer { code: close::PROTOCOL, .. }), "{told:?}");
    what
}

fn chunk_of(bytes: &[u8], entry: u32, index: u64) -> Header {
    let cv = if index < 1000 && !bytes.is_empty() {
        Tree::Blake3.chunk_cv(index, &[bytes])
    } else {
        [0; 32]
    };
    Header::Chunk { entry, index, len: bytes.len() as u32, cv }
}

#[test]
fn a_small_file_with_another_root_is_not_kept() {
    let (error, told) = deceive(|liar| {
        liar.list(&file("a", 5));
        liar.end_manifest();
        liar.want();
        liar.record(Header::Whole { entry: 0, len: 5, root: small_root(b"other") }, b"hello");
    });
    assert!(matches!(error, TransferError::Verification { .. }), "{error:?}");
    assert!(matches!(told, CloseReason::Peer { code: close::VERIFICATION, .. }), "{told:?}");
}

#[test]
fn a_chunk_with_another_chaining_value_is_not_kept() {
    expect_verification(|liar, bytes| {
        liar.record(chunk_of(bytes, 0, 1), bytes);
        liar.record(chunk_of(&noise(2, CHUNK), 0, 0), bytes);
    });
}

#[test]
fn good_chunks_with_a_wrong_root_get_no_name() {
    expect_verification(|liar, bytes| {
        liar.record(chunk_of(bytes, 0, 0), bytes);
        liar.record(chunk_of(bytes, 0, 1), bytes);
        let end = Header::End { entry: 0, ending: Ending::Complete, chunks: 2, root: [9; 32] };
        liar.record(end, b"");
    });
}

#[test]
fn records_that_were_never_asked_for_are_refused() {
    let whole = |entry| Header::Whole { entry, len: 5, root: small_root(b"hello") };
    expect_protocol(|liar| {
        liar.list(&file("a", 5));
        liar.want();
        liar.record(whole(1), b"hello");
    });
    expect_protocol(|liar| {
        liar.list(&file("honest", 5));
        liar.want();
        liar.record(whole(0), b"hello");
        liar.record(whole(0), b"hello");
    });
    expect_protocol(|liar| {
        liar.list(&file("a", 5));
        liar.want();
        liar.record(whole(u32::MAX), b"hello");
    });
}

#[test]
fn chunks_outside_the_file_twice_or_of_another_size_are_refused() {
    let bytes = noise(1, CHUNK);
    let lie = |records: &[(u64, usize)]| {
        expect_protocol(|liar| {
            liar.list(&file("a", 2 * CHUNK + 100));
            liar.want();
            for &(index, len) in records {
                liar.record(chunk_of(&bytes[..len], 0, index), &bytes[..len]);
            }
        })
    };
    lie(&[(3, CHUNK)]);
    lie(&[(u64::MAX, CHUNK)]);
    lie(&[(0, CHUNK), (0, CHUNK)]);
    lie(&[(0, CHUNK - 1)]);
    lie(&[(2, CHUNK)]);
    lie(&[(2, 0)]);
}

#[test]
fn a_file_that_ends_early_twice_or_with_more_than_it_has_is_refused() {
    let end = |ending, chunks| Header::End { entry: 0, ending, chunks, root: [0; 32] };
    for headers in [
        vec![end(Ending::Complete, 0)],
        vec![end(Ending::Identical, 0)],
        vec![end(Ending::Changed, 2), end(Ending::Changed, 2)],
        vec![Header::Hole { entry: 0, first: 0, count: 2 }],
        vec![Header::Pulse { entry: 0, chunks: 4 }],
    ] {
        expect_protocol(|liar| {
            liar.list(&file("a", 2 * CHUNK));
            liar.want();
            headers.iter().for_each(|header| liar.record(*header, b""));
        });
    }
}

/// Not a lie: the sender may be able to read the file the next time.
#[test]
fn chunks_of_an_unreadable_file_are_kept_unless_it_changed() {
    for (change, is_kept) in [(None, true), (Some(Change::Replaced), false)] {
        let folders = Folders::new();
        let link = link();
        let sender = link.sender.clone();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut liar = Liar::negotiate(sender, offer());
                liar.list(&file("a", 2 * CHUNK));
                liar.end_manifest();
                liar.want();
                let (bytes, root) = (noise(1, CHUNK), encode_change(change));
                liar.record(chunk_of(&bytes, 0, 0), &bytes);
                let ending = Ending::Unreadable;
                liar.record(Header::End { entry: 0, ending, chunks: 1, root }, b"");
                assert!(matches!(read_message(&mut liar.control.1), Some(Message::Receipt(_))));
                liar.connection.close(close::DONE, "");
            });
            let received = receive(link.receiver.clone(), receive_options(&folders.to())).unwrap();
            assert_eq!(received.failed, 1);
        });
        assert_eq!(folders.to().join(".a.wraith-part").exists(), is_kept, "{change:?}");
    }
}

#[test]
fn too_many_files_at_once_are_refused() {
    let bytes = noise(1, CHUNK);
    expect_protocol(|liar| {
        for i in 0..40 {
            liar.list(&file(&format!("f{i:02}"), CHUNK + 1));
        }
        liar.end_manifest();
        liar.want();
        for i in 0..40 {
            liar.record(chunk_of(&bytes, i, 0), &bytes);
        }
    });
}

#[test]
fn a_manifest_beyond_its_offer_is_refused() {
    expect_protocol(|liar| liar.list(&file("a", 2000 * CHUNK)));
    expect_protocol(|liar| {
        for i in 0..2000 {
            liar.list(&file(&format!("{i:04}"), 0));
        }
    });
}

#[test]
fn paths_twice_or_under_files_are_refused() {
    for paths in [["a", "a"], ["b", "a"], ["a", "a/b"], ["a", "b/c"]] {
        let (error, told) = deceive(|liar| paths.iter().for_each(|path| liar.list(&file(path, 5))));
        assert!(matches!(error, TransferError::UnsafeName { .. }), "{paths:?}: {error:?}");
        assert!(matches!(told, CloseReason::Peer { code: close::UNSAFE_NAME, .. }), "{told:?}");
    }
}

#[test]
fn unsafe_names_are_refused() {
    for name in ["../a", "/etc/passwd", "a/../b", ".", "..", "", "a\0b", "a//b"] {
        let (error, _) = deceive(|liar| {
            let mut bytes = vec![1];
            bytes.extend_from_slice(&0o644u32.to_be_bytes());
            bytes.extend_from_slice(&[0; 12]);
            bytes.extend_from_slice(&(name.len() as u16).to_be_bytes());
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(&5u64.to_be_bytes());
            liar.list_bytes(&bytes);
        });
        assert_eq!(error.exit_code(), 11, "{name:?}: {error:?}");
    }
}

#[test]
fn a_manifest_that_is_garbage_or_does_not_match_its_hash_is_refused() {
    expect_protocol(|liar| liar.list_bytes(&[9; 40]));
    expect_protocol(|liar| {
        let _ = block_on(liar.manifest.write_all(&u32::MAX.to_be_bytes()));
    });
    expect_protocol(|liar| {
        liar.entries = 1;
        liar.end_manifest();
    });
    expect_protocol(|liar| {
        let _ = liar.manifest.finish();
    });
}

#[test]
fn a_manifest_with_something_behind_its_trailer_is_refused() {
    expect_protocol(|liar| {
        liar.write_trailer();
        let _ = block_on(liar.manifest.write_all(&[0]));
        let _ = liar.manifest.finish();
    });
}

/// Dropping the stream at the trailer would send a stop to a sender that is about to end the
/// stream. The sender would treat the stop as a refusal.
#[test]
fn a_manifest_counts_only_when_its_stream_has_ended() {
    let folders = Folders::new();
    let script = |sender: Connection| {
        let mut liar = Liar::negotiate(sender, offer());
        assert!(matches!(read_message(&mut liar.control.1), Some(Message::Accept(_))));
        liar.write_trailer();
        // An honest receiver sends nothing here, however long the test waits.
        let mut early = [0; 4];
        let reading = liar.control.1.read_exact(&mut early);
        assert!(block_on_timeout(reading, EARLY).is_none(), "it did not wait for the end");
        liar.manifest.finish().unwrap();
        block_on(liar.manifest.acked()).unwrap();
        assert!(matches!(read_message(&mut liar.control.1), Some(Message::Receipt(_))));
        liar.connection.close(close::DONE, "");
    };
    let options = receive_options(&folders.to());
    let received = beside(Role::Receiver, script, |receiver| receive(receiver, options));
    assert!(received.unwrap().confirmed);
}

#[test]
fn garbage_records_are_refused() {
    expect_protocol(|liar| {
        let _ = block_on(liar.data.write_all(&[200; 100]));
    });
    expect_protocol(|liar| {
        liar.record(Header::Whole { entry: 0, len: u32::MAX, root: [0; 32] }, b"");
    });
    expect_protocol(|liar| {
        let _ = liar.data.finish();
    });
}

#[test]
fn a_link_does_not_become_a_way_out() {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().to_str().unwrap().as_bytes().to_vec();
    let (error, _) = deceive(|liar| {
        liar.list(&entry("a", Kind::Symlink { target }));
        liar.list(&file("a/b", 5));
        liar.end_manifest();
    });
    assert_eq!(error.exit_code(), 11);
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}
