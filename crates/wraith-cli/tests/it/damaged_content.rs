//! Content that does not match its hashes. The receiver ends with exit code 8, and no damaged file
//! gets its final name. Chunks verified before are kept, and an honest sender of the same transfer
//! completes it.

use std::thread;

use crate::lying::sender::{Liar, LyingSender, chunk, file, offer_of, whole};
use crate::lying::{CHUNK, SECRET};
use crate::support::{Outcome, Process, World, journal, tree};
use wraith_files::Tree;
use wraith_transfer::SendOptions;
use wraith_transfer::record::{Ending, Header};

const SIZE: usize = 10 * CHUNK + 77;

/// Returns the true content of `film`.
fn content() -> Vec<u8> {
    tree::noise(1, SIZE)
}

/// Offers `film` and lists it like an honest sender.
fn offer(world: &World, sender: &LyingSender) -> Liar {
    let film = world.source().join("film");
    std::fs::write(&film, content()).unwrap();
    tree::set_mode(&film, 0o644);
    tree::set_time(&film, 0, 0);
    let mut liar = sender.offer(offer_of(1, SIZE as u64));
    liar.list(&file("film", SIZE));
    liar.end_manifest();
    liar.decided();
    liar
}

/// Checks that the receiver has detected the lie: it ends with 8 and a message, and without the
/// file.
fn expect_caught(world: &World, receiver: Process, liar: Liar) -> Outcome {
    let outcome = receiver.finish();
    let message = outcome.expect_error(8)["message"].as_str().unwrap().to_owned();
    assert!(message.contains("film") && message.contains("hash"), "{message}");
    assert!(!world.target().join("film").exists());
    liar.told();
    outcome
}

/// Completes the same transfer with an honest sender. Returns the number of bytes it had to send.
fn finish_honestly(world: &World, sender: LyingSender) -> u64 {
    let receiver = world.receive(&sender.ticket());
    let film = world.source().join("film");
    let serving = thread::spawn(move || {
        let options = SendOptions::new(vec![film], SECRET);
        wraith_transfer::serve(sender.accept(), &options).unwrap();
    });
    let outcome = receiver.succeed();
    serving.join().unwrap();
    tree::assert_same(&world.source().join("film"), &world.target().join("film"));
    assert!(tree::leftovers(&world.target()).is_empty());
    outcome.last("done")["bytes_moved"].as_u64().unwrap()
}

#[test]
fn chunks_before_a_damaged_one_stay_and_only_the_rest_is_fetched_from_an_honest_sender() {
    let (world, sender, receiver) = LyingSender::and_receiver();
    let mut liar = offer(&world, &sender);
    let content = content();
    let mut chunks = content.chunks(CHUNK);
    for index in 0..6 {
        let bytes = chunks.next().unwrap();
        liar.record(chunk(0, index, bytes), bytes);
    }
    let mut damaged = chunks.next().unwrap().to_vec();
    damaged[12_345] ^= 1;
    let cv = Tree::Blake3.chunk_cv(6, &[&content[6 * CHUNK..7 * CHUNK]]);
    liar.record(Header::Chunk { entry: 0, index: 6, len: CHUNK as u32, cv }, &damaged);
    expect_caught(&world, receiver, liar);
    assert_eq!(journal::verified_chunks(&world.target(), "film"), 6);
    let moved = finish_honestly(&world, sender);
    assert_eq!(moved, (SIZE - 6 * CHUNK) as u64);
}

#[test]
fn a_hash_of_another_position_is_refused() {
    let (world, sender, receiver) = LyingSender::and_receiver();
    let mut liar = offer(&world, &sender);
    let bytes = &content()[..CHUNK];
    let cv = Tree::Blake3.chunk_cv(0, &[bytes]);
    liar.record(Header::Chunk { entry: 0, index: 1, len: CHUNK as u32, cv }, bytes);
    expect_caught(&world, receiver, liar);
    assert_eq!(finish_honestly(&world, sender), SIZE as u64);
}

#[test]
fn chunks_that_are_true_but_do_not_make_the_root_get_no_name() {
    let (world, sender, receiver) = LyingSender::and_receiver();
    let mut liar = offer(&world, &sender);
    for (index, bytes) in content().chunks(CHUNK).enumerate() {
        liar.record(chunk(0, index as u64, bytes), bytes);
    }
    let chunks = SIZE.div_ceil(CHUNK) as u64;
    liar.record(Header::End { entry: 0, ending: Ending::Complete, chunks, root: [9; 32] }, b"");
    expect_caught(&world, receiver, liar);
    // The receiver cannot tell which chunk was wrong, so it keeps none.
    assert_eq!(finish_honestly(&world, sender), SIZE as u64);
}

#[test]
fn damaged_small_files_leave_those_before_them_in_place() {
    let (world, sender, receiver) = LyingSender::and_receiver();
    let mut liar = sender.offer(offer_of(3, 100));
    ["a", "film", "z"].iter().for_each(|name| liar.list(&file(name, 6)));
    liar.end_manifest();
    liar.decided();
    liar.whole(0, b"honest");
    liar.record(whole(1, b"honest"), b"gotcha");
    liar.whole(2, b"honest");
    expect_caught(&world, receiver, liar);
    assert_eq!(std::fs::read(world.target().join("a")).unwrap(), b"honest");
    assert!(!world.target().join("z").exists(), "nothing counts after a lie");
}
