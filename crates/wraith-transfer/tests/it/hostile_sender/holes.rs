//! Senders that lie about files with holes, with either hash tree.

use super::*;

/// Both trees, each with the number of chunks of a file that may have it.
const TREES: [(Tree, u64); 2] =
    [(Tree::Blake3, 4), (Tree::PositionFree, POSITION_FREE_BYTES_MIN / CHUNK as u64)];

fn sparse((tree, chunks): (Tree, u64)) -> Entry {
    entry("a", Kind::File { size: chunks * CHUNK as u64, sparse: Some(tree) })
}

/// Lies about that file after it was requested.
fn deceive_about(
    file: (Tree, u64),
    lie: impl FnOnce(&mut Liar) + Send,
) -> (TransferError, CloseReason) {
    deceive_with(offer_of(file.1), |liar| {
        liar.list(&sparse(file));
        liar.want();
        lie(liar);
    })
}

#[test]
fn a_small_file_of_kind_5_is_refused() {
    for chunks in [1, 4, TREES[1].1 - 1] {
        let (error, told) = deceive_about((Tree::PositionFree, chunks), |_| {});
        assert_protocol(error, &told);
    }
}

#[test]
fn holes_beyond_the_file_are_refused() {
    for file in TREES {
        let end = file.1;
        for (first, count) in
            [(0, 0), (0, end + 1), (end, 1), (u64::MAX, 2), (1, u64::MAX), (0, u64::MAX)]
        {
            let hole = Header::Hole { entry: 0, first, count };
            let (error, told) = deceive_about(file, |liar| liar.record(hole, b""));
            assert_protocol(error, &told);
        }
    }
}

#[test]
fn holes_over_received_chunks_are_refused() {
    let hole = |first, count| Header::Hole { entry: 0, first, count };
    let zeros = vec![0; CHUNK];
    for file in TREES {
        let cv = file.0.chunk_cv(1, &[&zeros]);
        let chunk = Header::Chunk { entry: 0, index: 1, len: CHUNK as u32, cv };
        for records in [
            [hole(0, 2), hole(1, 1)],
            [hole(2, 2), hole(0, 4)],
            [hole(0, 3), hole(2, 2)],
            [hole(1, 1), hole(1, 1)],
            [chunk, hole(0, 4)],
            [hole(0, 4), chunk],
        ] {
            let (error, told) = deceive_about(file, |liar| {
                for record in records {
                    liar.record(record, if record == chunk { &zeros } else { b"" });
                }
            });
            assert_protocol(error, &told);
        }
    }
}

#[test]
fn a_hole_in_a_file_that_has_none_is_refused() {
    expect_protocol(|liar| {
        liar.list(&file("a", 4 * CHUNK));
        liar.want();
        liar.record(Header::Hole { entry: 0, first: 0, count: 4 }, b"");
    });
}

/// BLAKE3 of the zeros of [`POSITION_FREE_BYTES_MIN`]; computing it takes seconds.
const ZEROS_ROOT: &str = "7953bbc0a374e96ea2caa5328ebd96f3545b41c882f509e92ae850d000f3cde3";

#[test]
fn hashes_of_the_other_tree_are_no_proof() {
    let bytes = noise(1, CHUNK);
    let [(_, few), (_, many)] = TREES;
    let mut free_root = RootBuilder::of(Tree::PositionFree);
    free_root.set_zeros(0..few, few * CHUNK as u64);
    let free_root = free_root.finish(few * CHUNK as u64).unwrap();
    let blake3_root = *blake3::Hash::from_hex(ZEROS_ROOT).unwrap().as_bytes();
    for (tree, chunks, other, other_root) in [
        (Tree::Blake3, few, Tree::PositionFree, free_root),
        (Tree::PositionFree, many, Tree::Blake3, blake3_root),
    ] {
        let (error, _) = deceive_about((tree, chunks), |liar| {
            let cv = other.chunk_cv(1, &[&bytes]);
            let chunk = Header::Chunk { entry: 0, index: 1, len: CHUNK as u32, cv };
            liar.record(chunk, &bytes);
        });
        assert!(matches!(error, TransferError::Verification { .. }), "{tree:?}: {error:?}");
        let (error, _) = deceive_about((tree, chunks), |liar| {
            liar.record(Header::Hole { entry: 0, first: 0, count: chunks }, b"");
            let ending = Ending::Complete;
            liar.record(Header::End { entry: 0, ending, chunks, root: other_root }, b"");
        });
        assert!(matches!(error, TransferError::Verification { .. }), "{tree:?}: {error:?}");
    }
}

/// Without a limit the receiver would remember every range.
#[test]
fn a_file_in_more_pieces_than_a_receiver_keeps_is_refused() {
    let folders = Folders::new();
    let (error, told) = deceive_into(&folders, offer_of(HOLE_CHUNKS), |liar| {
        liar.list(&sparse((Tree::PositionFree, HOLE_CHUNKS)));
        liar.want();
        let mut records = Vec::new();
        for first in (0..70_000).map(|n| 2 * n) {
            Header::Hole { entry: 0, first, count: 1 }.encode(&mut records);
        }
        let _ = block_on(liar.data.write_chunks([records.into()]));
    });
    let what = assert_protocol(error, &told);
    assert!(what.contains("too many separate ranges"), "{what}");
    // Otherwise the next connection would continue with them.
    assert!(!folders.to().join(".a.wraith-part").exists());
}

/// Maximum file size of ext4, minus one chunk.
const HOLE_CHUNKS: u64 = (1 << 44) / CHUNK as u64 - 1;

/// Only turns a hang into a failure: hashing that many zeros takes an hour.
const HANG: Duration = Duration::from_secs(60);

#[test]
fn a_hole_of_terabytes_can_be_interrupted() {
    let (done, ended) = std::sync::mpsc::channel();
    // Not joined if it hangs.
    std::thread::spawn(move || {
        let folders = Folders::new();
        let link = link();
        let sender = link.sender.clone();
        let options = receive_options(&folders.to());
        let (cancel, progress) = (options.cancel.clone(), options.progress.clone());
        let received = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut liar = Liar::negotiate(sender, offer_of(HOLE_CHUNKS));
                liar.list(&sparse((Tree::Blake3, HOLE_CHUNKS)));
                liar.want();
                liar.record(Header::Hole { entry: 0, first: 0, count: HOLE_CHUNKS }, b"");
                while progress.bytes() == 0 {
                    std::thread::yield_now();
                }
                cancel.cancel();
                block_on(liar.connection.closed())
            });
            receive(link.receiver.clone(), options)
        });
        done.send(received).unwrap();
    });
    let received = ended.recv_timeout(HANG).expect("it goes on hashing");
    assert_eq!(received.unwrap_err(), TransferError::Cancelled { role: Role::Receiver });
}
