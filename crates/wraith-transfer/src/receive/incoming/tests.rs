use proptest::prelude::*;
use tracing::Span;
use wraith_crypto::NodeId;
use wraith_files::{CHUNK_BYTES, Entry, Kind, Mtime, TargetDir, Tree, small_root};

use super::*;
use crate::content_digest::ContentDigest;
use crate::limits::OPEN_FILES_MAX;
use crate::progress::Progress;
use crate::receipt::Receipt;
use crate::receive::assembly::{Assembly, Uses};
use crate::receive::books::Books;
use crate::receive::completed_files::CompletedFiles;
use crate::receive::name_rules::NameRules;
use crate::receive::preview::Conflicts;
use crate::record::Ending;

const A: PeerId = PeerId(0);
const B: PeerId = PeerId(1);
const CHUNKS: u64 = 6;

/// Content of [`CHUNKS`] chunks, the last of them short.
fn content() -> Vec<u8> {
    let mut bytes = vec![0; (CHUNKS as usize - 1) * CHUNK_BYTES + 1000];
    blake3::Hasher::new().update(b"content").finalize_xof().fill(&mut bytes);
    bytes
}

fn chunk_of(bytes: &[u8], index: u64) -> Vec<u8> {
    bytes.chunks(CHUNK_BYTES).nth(index as usize).unwrap().to_vec()
}

/// Returns a file of `size` bytes that is wanted as a whole.
fn file(size: usize) -> Arc<Incoming> {
    let path = RelPath::parse(b"file").unwrap();
    let kind = Kind::File { size: size as u64, sparse: None };
    let entry = Entry { path: path.clone(), kind, mode: 0o644, mtime: Mtime { s: 1, ns: 0 } };
    let placed = Placed { entry, offered: path, may_replace: true };
    Arc::new(Incoming::new(0, placed, Wanted::Whole, LocalCopies::default()))
}

/// Calls `act` with the assembly of a transfer into an empty folder, without a connection.
fn with_assembly<T>(act: impl FnOnce(&Assembly<'_>, &std::path::Path) -> T) -> T {
    let dir = tempfile::tempdir().unwrap();
    let target = TargetDir::open(dir.path()).unwrap();
    let (progress, span, part_key) = (Progress::default(), Span::none(), [2; 32]);
    let books = Books::new(&(), &progress, &span);
    let completed = CompletedFiles::open(&target, &[1; 16], &part_key, b"boot").unwrap();
    let names = NameRules::new(Conflicts::default());
    let keys = (&[1; 16], part_key);
    let assembly = Assembly::new(&books, &target, keys, names, completed, Uses::default());
    act(&assembly, dir.path())
}

/// A chunk as a peer sends it: its bytes, and the chaining value of `claimed`.
fn send(
    assembly: &Assembly<'_>,
    file: &Arc<Incoming>,
    peer: PeerId,
    index: u64,
    (bytes, claimed): (&[u8], &[u8]),
) -> Result<bool, TransferError> {
    let cv = Tree::Blake3.chunk_cv(index, &[claimed]);
    // In pieces, as blocks of a stream are.
    let (first, second) = bytes.split_at(bytes.len() / 3);
    file.receive_chunk(assembly, peer, index, &[first, second], cv)
}

fn end(
    assembly: &Assembly<'_>,
    file: &Arc<Incoming>,
    peer: PeerId,
    (ending, chunks): (Ending, u64),
) -> Result<bool, TransferError> {
    file.receive_end(assembly, peer, (ending, chunks, small_root(&content())))
}

/// Asserts that the file is in place with the right content, and in the books once.
fn assert_complete(assembly: &Assembly<'_>, dir: &std::path::Path, file: &Incoming) {
    assert!(file.is_resolved());
    assert!(std::fs::read(dir.join("file")).unwrap() == content());
    let mut contents = ContentDigest::new();
    contents.add(0, &small_root(&content()));
    let receipt = assembly.books.receipt(Receipt::unsigned([0; 16], NodeId([0; 32]), 0));
    assert_eq!(receipt.contents, contents.digest());
    assert_eq!((receipt.verified, receipt.bytes), (1, content().len() as u64));
    // All part files are closed.
    assert!((0..OPEN_FILES_MAX).all(|_| assembly.begin_part()) && !assembly.begin_part());
}

/// What the second peer does with its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conduct {
    Honest,
    /// Sends other bytes than it announces, after so many chunks.
    LiesAfter(u64),
    /// Ends its share after so many chunks: it can no longer read the file.
    LeavesAfter(u64),
}

fn conduct() -> impl Strategy<Value = Conduct> {
    prop_oneof![
        Just(Conduct::Honest),
        (0..3u64).prop_map(Conduct::LiesAfter),
        (0..3u64).prop_map(Conduct::LeavesAfter),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn two_peers_complete_a_file_whoever_lies_or_leaves(
        order in Just((0..CHUNKS).collect::<Vec<_>>()).prop_shuffle(),
        // At least one chunk is asked of each.
        of_b in 1u64..(1 << CHUNKS) - 1,
        conduct in conduct(),
        ends_early in any::<bool>(),
    ) {
        with_assembly(|assembly, dir| {
            let bytes = content();
            let file = file(bytes.len());
            let owner = |index: u64| if of_b & (1 << index) != 0 { B } else { A };
            for index in 0..CHUNKS {
                prop_assert_eq!(file.ask(owner(index), index..index + 1).count(), 1);
            }
            let (mut sent_a, mut sent_b, mut gone) = (0, 0, false);
            for &index in &order {
                let chunk = chunk_of(&bytes, index);
                let mut other = chunk.clone();
                other[0] ^= 1;
                if owner(index) == A {
                    prop_assert!(!send(assembly, &file, A, index, (&chunk, &chunk)).unwrap());
                    sent_a += 1;
                } else if !gone {
                    gone = match conduct {
                        Conduct::LiesAfter(after) if after == sent_b => {
                            let sent = send(assembly, &file, B, index, (&other, &chunk));
                            let is_found = matches!(sent, Err(TransferError::Verification { .. }));
                            prop_assert!(is_found, "{sent:?}");
                            true
                        }
                        Conduct::LeavesAfter(after) if after == sent_b => {
                            let ending = (Ending::Unreadable, sent_b);
                            prop_assert_eq!(
                                end(assembly, &file, B, ending).unwrap(),
                                true,
                                "B is done with it, but the file is not"
                            );
                            true
                        }
                        _ => {
                            prop_assert!(!send(assembly, &file, B, index, (&chunk, &chunk)).unwrap());
                            sent_b += 1;
                            false
                        }
                    };
                    if gone {
                        // Nothing more is accepted from it.
                        prop_assert!(send(assembly, &file, B, index, (&chunk, &chunk)).is_err());
                    }
                }
            }
            prop_assert!(!file.is_resolved());
            let left = file.ask(A, 0..u64::MAX);
            let of_b: u64 = (0..CHUNKS).filter(|&index| owner(index) == B).count() as u64;
            prop_assert_eq!(left.count(), of_b - sent_b, "all that B left goes to A, once");
            let all_of_a = sent_a + left.count();
            if !gone {
                end(assembly, &file, B, (Ending::Complete, sent_b)).unwrap();
            }
            if ends_early && !left.is_empty() {
                prop_assert!(!end(assembly, &file, A, (Ending::Complete, all_of_a)).unwrap());
            }
            for index in left.iter().flatten() {
                let chunk = chunk_of(&bytes, index);
                send(assembly, &file, A, index, (&chunk, &chunk)).unwrap();
            }
            if !ends_early || left.is_empty() {
                prop_assert!(end(assembly, &file, A, (Ending::Complete, all_of_a)).unwrap());
            }
            assert_complete(assembly, dir, &file);
            Ok(())
        })?;
    }
}

#[test]
fn a_lie_that_only_the_root_shows_is_blamed_on_a_peer_that_sent_everything() {
    with_assembly(|assembly, dir| {
        let bytes = content();
        let send_all = |file: &Arc<Incoming>, peer, chunks: Range<u64>, lies| {
            file.ask(peer, chunks.clone());
            for index in chunks.clone() {
                let mut chunk = chunk_of(&bytes, index);
                chunk[0] ^= u8::from(lies);
                send(assembly, file, peer, index, (&chunk, &chunk)).unwrap();
            }
            end(assembly, file, peer, (Ending::Complete, chunks.end - chunks.start))
        };
        let shared = file(bytes.len());
        shared.ask(B, 3..CHUNKS);
        send_all(&shared, A, 0..3, false).unwrap();
        send_all(&shared, B, 3..CHUNKS, true).unwrap();
        let [.., failed] = assembly.books.totals();
        assert_eq!(failed, 1, "any of them may have lied");
        let of_b = file(bytes.len());
        let blamed = send_all(&of_b, B, 0..CHUNKS, true);
        assert!(matches!(blamed, Err(TransferError::Verification { .. })), "{blamed:?}");
        assert!(!dir.join("file").exists());
        let of_a = file(bytes.len());
        assert!(send_all(&of_a, A, 0..CHUNKS, false).unwrap());
        assert!(std::fs::read(dir.join("file")).unwrap() == bytes);
    });
}
