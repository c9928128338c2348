//! A sender that lies in a stream. The receiver writes no unverified byte.

use std::process::Output;
use std::thread;

use crate::lying::sender::{LyingSender, offer_of};
use crate::support;
use crate::support::World;
use wraith_transfer::Offer;
use wraith_transfer::message::Message;
use wraith_transport::block_on;

/// Encodes a piece that follows `before`.
fn piece(before: &[u8], bytes: &[u8]) -> Vec<u8> {
    let check = blake3::hash(&[before, bytes].concat());
    [&(bytes.len() as u32).to_be_bytes()[..], check.as_bytes(), bytes].concat()
}

fn end(total: u64) -> Vec<u8> {
    [&[0; 4][..], &total.to_be_bytes()].concat()
}

/// Runs `wraith receive -o -` against this stream, which follows its first byte.
fn received(name: &str, kind: u8, script: &[u8], out: &str) -> (World, Output) {
    let world = World::new();
    let sender = LyingSender::listen();
    let ticket = sender.ticket();
    let offer = Offer { name: name.into(), stream: Some(true), ..offer_of(1, 0) };
    let bytes = [&[kind][..], script].concat();
    let sending = thread::spawn(move || {
        let mut greeted = sender.greet();
        greeted.hello();
        greeted.say(&Message::Offer(offer));
        // The receiver may close at any moment.
        if let Ok((mut stream, _unused)) = block_on(greeted.connection.open_stream()) {
            let _ = block_on(stream.write_all(&bytes));
            let _ = stream.finish();
        }
        // Ignores all messages until the receiver closes.
        block_on(greeted.connection.closed());
    });
    let out = if out == "-" { out.into() } else { world.target() };
    let mut command = world.wraith("receiver");
    let output = command.args(["receive", "--yes", "-o"]).arg(out).arg(&ticket).output().unwrap();
    sending.join().unwrap();
    (world, output)
}

#[test]
fn the_liar_can_also_be_honest_until_its_receipt() {
    let script = [piece(b"", b"one"), piece(b"one", b"two"), end(6)].concat();
    let (_world, output) = received("x", 3, &script, "-");
    assert_eq!(output.stdout, b"onetwo");
}

#[test]
fn a_piece_that_does_not_match_its_check_is_not_written() {
    let mut forged = piece(b"one", b"two");
    *forged.last_mut().unwrap() ^= 1;
    let swapped = piece(b"", b"two");
    for bad in [forged, swapped] {
        let script = [piece(b"", b"one"), bad, end(6)].concat();
        let (_world, output) = received("x", 3, &script, "-");
        assert_eq!(output.stdout, b"one");
        assert_eq!(output.status.code(), Some(8), "{output:?}");
    }
}

#[test]
fn a_malformed_stream_ends_the_transfer() {
    let good = piece(b"", b"one");
    let huge = [&u32::MAX.to_be_bytes()[..], &[0; 100]].concat();
    for (kind, script) in [
        (1, good.clone()),
        (3, [&good[..], &end(4)].concat()),
        (3, [&good[..], &end(3), b"more"].concat()),
        (3, [&good[..], &good[..20]].concat()),
        (3, good.clone()),
        (3, huge),
    ] {
        let (_world, output) = received("x", kind, &script, "-");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stdout.is_empty() || output.stdout == b"one");
    }
}

#[test]
fn a_stream_cannot_name_a_file_elsewhere() {
    let script = [piece(b"", b"one"), end(3)].concat();
    for name in ["../x", "/x", "a/b", "..", ".x.wraith-part"] {
        let (world, output) = received(name, 3, &script, "target");
        assert_eq!(output.status.code(), Some(11), "{name}: {output:?}");
        assert!(support::tree::names(&world.target()).is_empty());
        assert!(!world.path("x").exists());
    }
}
