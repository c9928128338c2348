//! Peers that lie about files of which the receiver has an old copy. The old copy stays unchanged,
//! no wrong file gets its name, and each side reports the failure.

use std::fs;
use std::path::PathBuf;

use crate::lying;
use crate::lying::CHUNK;
use crate::lying::receiver::Dialler;
use crate::lying::sender::{Liar, LyingSender, file, offer_of};
use crate::support::{Outcome, World, tree};
use wraith_files::{Cutter, PieceSize, Tree};
use wraith_transfer::message::{Lack, Message, Refine, Span, Want};
use wraith_transfer::record::{Ending, Header};

const BYTES: usize = 8 * CHUNK + 777;

fn old() -> Vec<u8> {
    tree::noise(1, BYTES - 5)
}

/// Returns the new content; its first half is in the old copy.
fn new() -> Vec<u8> {
    [&old()[..4 * CHUNK], &tree::noise(2, BYTES - 4 * CHUNK)].concat()
}

/// Plays `lie` to a receiver that has the old copy and requests a delta.
fn receive(lie: impl FnOnce(&mut Liar)) -> (World, Outcome) {
    let world = World::new();
    fs::write(world.target().join("film"), old()).unwrap();
    let sender = LyingSender::listen();
    let more = ["--on-conflict", "overwrite", "--reconnect", "0"];
    let receiver = world.receive_with(&sender.ticket(), &more);
    let mut liar = sender.offer(offer_of(1, BYTES as u64));
    liar.list(&file("film", BYTES));
    liar.end_manifest();
    loop {
        let want = liar.want().expect("it wants the file");
        if want.upto == 1 {
            assert_eq!(want.delta, [0]);
            break;
        }
    }
    lie(&mut liar);
    let outcome = receiver.finish();
    (world, outcome)
}

/// Checks that the receiver ends with this code and keeps only its old copy.
#[track_caller]
fn expect_caught(code: i32, lie: impl FnOnce(&mut Liar)) {
    let (world, outcome) = receive(lie);
    outcome.expect_error(code);
    let shown: Vec<PathBuf> = tree::names(&world.target());
    let shown: Vec<_> = shown.iter().filter(|n| !n.to_string_lossy().starts_with('.')).collect();
    assert_eq!(shown, [&PathBuf::from("film")]);
    assert!(fs::read(world.target().join("film")).unwrap() == old());
}

/// Encodes the content-defined pieces of `bytes`, as in records.
fn pieces_of(bytes: &[u8], average: u32) -> Vec<u8> {
    let mut cutter = Cutter::new(PieceSize::new(average).unwrap());
    let mut body = Vec::new();
    let mut add = |piece: wraith_files::Piece| {
        body.extend_from_slice(&piece.len.to_be_bytes());
        body.extend_from_slice(&piece.hash);
    };
    cutter.feed(bytes, &mut add);
    cutter.finish().into_iter().for_each(&mut add);
    body
}

/// Sends the pieces of `pieces` and the chaining values of `content`.
fn sketch(liar: &mut Liar, pieces: &[u8], content: &[u8]) {
    let body = pieces_of(pieces, 32 * 1024);
    liar.record(Header::Sketch { entry: 0, at: 0, len: body.len() as u32 }, &body);
    let chunks = content.chunks(CHUNK).enumerate();
    let cvs: Vec<u8> =
        chunks.flat_map(|(n, chunk)| Tree::Blake3.chunk_cv(n as u64, &[chunk])).collect();
    liar.record(Header::Proofs { entry: 0, first: 0, len: cvs.len() as u32 }, &cvs);
}

/// Sends the finer pieces that the receiver requested.
fn refine(liar: &mut Liar, pieces: &[u8], asked: &Refine) {
    for span in &asked.spans {
        let bytes = &pieces[span.first as usize..(span.first + span.count) as usize];
        let body = pieces_of(bytes, asked.average);
        liar.record(Header::Sketch { entry: 0, at: span.first, len: body.len() as u32 }, &body);
    }
}

/// Answers every request with the bytes of `content` and the pieces of `pieces`, then ends with
/// `root`.
fn answer(liar: &mut Liar, pieces: &[u8], content: &[u8], root: [u8; 32]) {
    let mut sent = 0;
    loop {
        match liar.next() {
            Some(Message::Refine(asked)) => refine(liar, pieces, &asked),
            Some(Message::Lack(lack)) => {
                let mut chunks = std::collections::BTreeMap::<u64, Vec<u8>>::new();
                for span in lack.spans {
                    for at in span.first..span.first + span.count {
                        let bytes = chunks.entry(at / CHUNK as u64).or_default();
                        bytes.push(content[at as usize]);
                    }
                }
                for (index, bytes) in chunks {
                    let len = bytes.len() as u32;
                    liar.record(Header::Patch { entry: 0, index, len }, &bytes);
                    sent += 1;
                }
                if lack.upto == BYTES.div_ceil(CHUNK) as u64 {
                    break;
                }
            }
            Some(_) => {}
            None => return,
        }
    }
    let ending = Ending::Complete;
    liar.record(Header::End { entry: 0, ending, chunks: sent, root }, b"");
}

fn root(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}

/// Returns the next message that requests bytes. Answers requests about `pieces` before it.
fn lack(liar: &mut Liar, pieces: &[u8]) -> Lack {
    loop {
        match liar.next().expect("the receiver is still there") {
            Message::Lack(lack) => return lack,
            Message::Refine(asked) => refine(liar, pieces, &asked),
            _ => {}
        }
    }
}

#[test]
fn the_liar_can_also_be_honest() {
    let (world, outcome) = receive(|liar| {
        sketch(liar, &new(), &new());
        answer(liar, &new(), &new(), root(&new()));
        while liar.next().is_some_and(|message| !matches!(message, Message::Receipt(_))) {}
        liar.connection.close(wraith_transfer::close::DONE, "");
    });
    outcome.expect_exit(0);
    assert!(fs::read(world.target().join("film")).unwrap() == new());
    let moved = outcome.last("done")["bytes_moved"].as_u64().unwrap() as usize;
    assert!(moved < 5 * CHUNK, "{moved}");
}

#[test]
fn a_false_sketch_of_the_old_copy_costs_only_fetches() {
    let claimed = [&old()[..], b"12345"].concat();
    let mut content = claimed.clone();
    content[2 * CHUNK..4 * CHUNK].copy_from_slice(&tree::noise(5, 2 * CHUNK));
    let (world, outcome) = receive(|liar| {
        sketch(liar, &claimed, &content);
        answer(liar, &claimed, &content, root(&content));
        while liar.next().is_some_and(|message| !matches!(message, Message::Receipt(_))) {}
        liar.connection.close(wraith_transfer::close::DONE, "");
    });
    outcome.expect_exit(0);
    assert!(fs::read(world.target().join("film")).unwrap() == content);
}

#[test]
fn bytes_that_do_not_fit_their_chaining_value_are_not_kept() {
    expect_caught(8, |liar| {
        sketch(liar, &new(), &new());
        answer(liar, &new(), &vec![7; BYTES], root(&new()));
    });
}

#[test]
fn a_root_that_the_chunks_do_not_make_is_not_kept() {
    expect_caught(8, |liar| {
        sketch(liar, &new(), &new());
        answer(liar, &new(), &new(), [9; 32]);
    });
}

#[test]
fn pieces_and_chaining_values_that_cannot_be_are_refused() {
    let piece = |len: u32| [&len.to_be_bytes()[..], &[1; 8]].concat();
    for (at, body) in [
        (0, piece(5)),
        (0, piece(u32::MAX)),
        (7, piece(40_000)),
        (u64::MAX, piece(40_000)),
        (0, vec![0; 11]),
        (0, piece(40_000).repeat(1000)),
    ] {
        expect_caught(1, |liar| {
            liar.record(Header::Sketch { entry: 0, at, len: body.len() as u32 }, &body);
        });
    }
    for (first, len) in [(1, 32), (0, 31), (0, 32 * 10)] {
        expect_caught(1, |liar| {
            liar.record(Header::Proofs { entry: 0, first, len }, &vec![0; len as usize]);
        });
    }
}

#[test]
fn an_end_before_all_wants_is_refused() {
    for chunks in [0, 9] {
        let end = |root| Header::End { entry: 0, ending: Ending::Complete, chunks, root };
        expect_caught(1, |liar| liar.record(end(root(&new())), b""));
        expect_caught(1, |liar| {
            sketch(liar, &tree::noise(9, BYTES), &new());
            let root = root(&new());
            liar.record(Header::End { entry: 0, ending: Ending::Identical, chunks: 0, root }, b"");
        });
    }
    expect_caught(1, |liar| {
        sketch(liar, &new()[..], &new());
        liar.record(Header::Patch { entry: 0, index: 0, len: 5 }, b"never");
    });
}

#[test]
fn bytes_outside_the_want_are_refused() {
    let zeros = vec![0; CHUNK];
    for lie in [0, 1, 2, 3] {
        expect_caught(1, |liar| {
            // The receiver has zeros anyway, but they do not match the chaining values.
            let claimed = vec![0; BYTES];
            sketch(liar, &claimed, &new());
            let lack = lack(liar, &claimed);
            let index = lack.spans[0].first / CHUNK as u64;
            let chunk = &new()[index as usize * CHUNK..][..CHUNK];
            assert_eq!(lack.spans[0], Span { first: 0, count: BYTES as u64 });
            let patch = |index: u64, len: usize| Header::Patch { entry: 0, index, len: len as u32 };
            match lie {
                0 => liar.record(patch(index, 7), &zeros[..7]),
                1 => {
                    liar.record(patch(index, CHUNK), chunk);
                    liar.record(patch(index, CHUNK), chunk);
                }
                2 => liar.record(patch(99, CHUNK), &zeros),
                _ => liar.record(lying::sender::chunk(0, index, chunk), chunk),
            }
        });
    }
}

#[test]
fn sketch_pieces_without_an_old_copy_are_refused() {
    let (world, sender, receiver) = LyingSender::and_receiver();
    let mut liar = sender.offer(offer_of(1, BYTES as u64));
    liar.list(&file("film", BYTES));
    liar.end_manifest();
    liar.decided();
    sketch(&mut liar, &new(), &new());
    receiver.finish().expect_error(1);
    assert!(!world.target().join("film").exists());
}

#[test]
fn a_want_for_unknown_content_is_refused() {
    let span = |first, count| Span { first, count };
    let bytes = BYTES as u64;
    let lack = |upto, spans: &[Span]| Message::Lack(Lack { entry: 0, upto, spans: spans.to_vec() });
    let refine = |average, spans: &[Span]| {
        Message::Refine(Refine { entry: 0, average, spans: spans.to_vec() })
    };
    for lie in [
        lack(0, &[]),
        lack(10, &[]),
        lack(u64::MAX, &[]),
        lack(1, &[span(CHUNK as u64, 1)]),
        lack(9, &[span(0, bytes + 1)]),
        lack(9, &[span(0, 0)]),
        lack(9, &[span(5, 5), span(9, 5)]),
        lack(9, &[span(u64::MAX, 2)]),
        lack(9, &(0..20_000).map(|n| span(2 * n, 1)).collect::<Vec<_>>()),
        refine(1000, &[span(0, 5000)]),
        refine(2, &[span(0, 5000)]),
        refine(1024, &[span(0, bytes + 1)]),
        refine(1024, &[span(9, 5), span(5, 2)]),
    ] {
        let world = World::new();
        fs::write(world.source().join("film"), new()).unwrap();
        let mut sender = world.send_with(&[world.source().join("film")], &["--reconnect", "0"]);
        let ticket = sender.ticket().parse().unwrap();
        let mut liar = Dialler::new(1).accept(&ticket);
        let whole = vec![span(0, 1)];
        liar.say(&Message::Want(Want { upto: 1, whole, delta: vec![0], ..Want::default() }));
        // Nothing reads the message until a worker has the file.
        while !sender.has_ended() {
            liar.say(&lie);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let shown = format!("{lie:?}");
        let error = sender.finish();
        let error = error.expect_error(1)["message"].as_str().unwrap().to_owned();
        assert!(error.contains("broke the transfer protocol"), "{shown}: {error}");
    }
}
