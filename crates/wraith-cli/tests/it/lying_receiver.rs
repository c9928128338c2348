//! Receivers that lie to `wraith send`. A receiver without the secret is rejected, and the next one
//! is served. A receiver with the secret ends the transfer by its lie, and the sender reports why.

use crate::lying;
use crate::lying::receiver::{Dialler, Liar};
use crate::support::{Process, World, tree};
use wraith_discovery::Ticket;
use wraith_transfer::close;
use wraith_transfer::message::{
    Compare, Excepted, Exceptions, Fetch, Message, Part, ReceiptBody, Span, Want,
};
use wraith_transfer::{ContentDigest, Exception};
use wraith_transport::CloseReason;

/// Starts a sender of `a`, `b`, and `c` of 50 chunks.
fn sender(world: &World) -> (Process, Ticket, String) {
    let names = ["a", "b", "c"].map(|name| world.source().join(name));
    tree::file(&names[0], 1, 5);
    tree::file(&names[1], 2, 5);
    tree::file(&names[2], 3, 50 * lying::CHUNK);
    let mut sender = world.send(&names);
    let text = sender.ticket();
    (sender, text.parse().unwrap(), text)
}

/// Checks that an honest receiver still gets everything.
fn still_serves(world: &World, sender: Process, ticket: &str) {
    world.receive(ticket).succeed();
    sender.succeed();
    for name in ["a", "b", "c"] {
        tree::assert_same(&world.source().join(name), &world.target().join(name));
    }
}

/// Checks that the lie ends the transfer, and that both sides get the reason.
fn expect_caught(lie: impl FnOnce(&mut Liar)) {
    let world = World::new();
    let (sender, ticket, _) = sender(&world);
    let mut liar = Dialler::new(1).accept(&ticket);
    lie(&mut liar);
    let outcome = sender.finish();
    let error = outcome.expect_error(1);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("the receiver broke the transfer protocol"), "{message}");
    let told = liar.told();
    assert!(matches!(told, CloseReason::Peer { code: close::PROTOCOL, .. }), "{told:?}");
}

#[test]
fn wants_beyond_the_manifest_repeated_or_endless_are_refused() {
    expect_caught(|liar| liar.want(4, &[]));
    expect_caught(|liar| liar.want(u64::MAX, &[(0, u64::MAX)]));
    expect_caught(|liar| liar.want(3, &[(u64::MAX, 2)]));
    expect_caught(|liar| liar.want(3, &[(2, 2)]));
    expect_caught(|liar| (0..100_000).for_each(|_| liar.want(1, &[(0, 1)])));
    expect_caught(|liar| {
        let whole = vec![Span { first: 0, count: 1 }; 100_000];
        liar.say(&Message::Want(Want { upto: 3, whole, ..Want::default() }));
    });
}

#[test]
fn chunks_and_roots_of_unknown_files_are_refused() {
    let chunks = [
        vec![Span { first: 50, count: 1 }],
        vec![Span { first: 0, count: u64::MAX }],
        vec![Span { first: 0, count: 0 }],
        vec![Span { first: 0, count: 1 }; 2],
    ];
    for chunks in chunks {
        expect_caught(|liar| {
            let parts = vec![Part { entry: 2, chunks }];
            liar.say(&Message::Want(Want { upto: 3, parts, ..Want::default() }));
        });
    }
    expect_caught(|liar| {
        let compare = vec![Compare { entry: 9, root: [0; 32] }];
        liar.say(&Message::Want(Want { upto: 3, compare, ..Want::default() }));
    });
}

#[test]
fn garbage_in_place_of_messages_is_refused() {
    expect_caught(|liar| liar.write(&u32::MAX.to_be_bytes()));
    expect_caught(|liar| liar.write(&[&8u32.to_be_bytes()[..], &[0xff; 8]].concat()));
    expect_caught(|liar| (0..2000).for_each(|_| liar.say(&Message::Unknown(99))));
    expect_caught(|liar| {
        liar.say(&Message::Fetch(Fetch {
            secret: [0; 16],
            instance: None,
            stream: None,
            push: None,
        }))
    });
    expect_caught(|liar| {
        // A Want with a list of a huge declared length.
        let cbor = [0x82, 0x05, 0xa2, 0x00, 0x03, 0x01, 0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        liar.write(&[&(cbor.len() as u32).to_be_bytes()[..], &cbor].concat());
    });
}

#[test]
fn a_forged_receipt_never_makes_a_success() {
    let receipt = |liar: &Liar, signature| {
        Message::Receipt(ReceiptBody {
            transfer_id: liar.offer.transfer_id,
            manifest: [0; 32],
            contents: [0; 32],
            verified: 3,
            kept: 0,
            failed: 0,
            bytes: liar.offer.bytes,
            unix_seconds: 0,
            signature,
            durability: None,
            sender: [0; 32],
        })
    };
    expect_caught(|liar| liar.say(&receipt(liar, [0; 64])));
    expect_caught(|liar| {
        liar.skip(3, &[(0, 3)]);
        liar.say(&receipt(liar, [7; 64]));
    });
}

/// Returns a receipt signed by the identity with seed 1, changed by `say`.
fn signed(liar: &Liar, ticket: &Ticket, say: impl FnOnce(&mut ReceiptBody)) -> Message {
    let mut body = ReceiptBody {
        transfer_id: liar.offer.transfer_id,
        manifest: liar.manifest_hash(),
        contents: ContentDigest::new().digest(),
        verified: 0,
        kept: 0,
        failed: 0,
        bytes: 0,
        unix_seconds: 1,
        signature: [0; 64],
        durability: None,
        sender: ticket.node_id().0,
    };
    say(&mut body);
    body.signature = lying::receiver::signature(1, &body);
    Message::Receipt(body)
}

/// Sets the true content: all three files are skipped.
fn skipped(body: &mut ReceiptBody) {
    let mut contents = ContentDigest::new();
    (0..3).for_each(|entry| contents.except(entry, Exception::Skipped));
    (body.contents, body.kept) = (contents.digest(), 3);
}

/// Checks the sender's exit code for a receiver that takes nothing and signs this receipt.
#[track_caller]
fn expect_exit(code: i32, say: impl FnOnce(&mut ReceiptBody)) {
    let world = World::new();
    let (sender, ticket, _) = sender(&world);
    let mut liar = Dialler::new(1).accept(&ticket);
    liar.skip(3, &[(0, 3)]);
    let receipt = signed(&liar, &ticket, |body| {
        skipped(body);
        say(body);
    });
    liar.say(&receipt);
    sender.finish().expect_exit(code);
    liar.told();
}

#[test]
fn a_receipt_with_wrong_figures_is_refused() {
    // The truth is accepted, so the other failures come from the lies.
    expect_exit(0, |_| {});
    let with = |body: &mut ReceiptBody, change: &dyn Fn(&mut ContentDigest)| {
        let mut contents = ContentDigest::new();
        change(&mut contents);
        body.contents = contents.digest();
    };
    // It claims all files, with some roots or without any.
    expect_exit(8, |body| (body.verified, body.kept, body.bytes) = (3, 0, 13_107_210));
    expect_exit(8, |body| {
        (body.verified, body.kept) = (3, 0);
        with(body, &|contents| (0..3).for_each(|entry| contents.add(entry, &[7; 32])));
    });
    // One file is left out, one counts twice, one was never offered, one has another reason.
    expect_exit(8, |body| body.kept = 2);
    expect_exit(8, |body| {
        with(body, &|contents| (0..2).for_each(|n| contents.except(n, Exception::Skipped)));
    });
    expect_exit(8, |body| {
        with(body, &|contents| {
            [0, 1, 1].into_iter().for_each(|n| contents.except(n, Exception::Skipped));
        });
    });
    expect_exit(8, |body| {
        with(body, &|contents| (0..4).for_each(|n| contents.except(n, Exception::Skipped)));
    });
    expect_exit(8, |body| (body.kept, body.failed) = (0, 3));
    // It is for another manifest, another transfer, another sender.
    expect_exit(1, |body| body.manifest = [0; 32]);
    expect_exit(1, |body| body.transfer_id = [0; 16]);
    expect_exit(1, |body| body.sender = [0; 32]);
}

#[test]
fn a_receipt_signed_by_another_identity_is_refused() {
    let world = World::new();
    let (sender, ticket, _) = sender(&world);
    let mut liar = Dialler::new(1).accept(&ticket);
    liar.skip(3, &[(0, 3)]);
    let Message::Receipt(mut body) = signed(&liar, &ticket, skipped) else { unreachable!() };
    body.signature = lying::receiver::signature(2, &body);
    liar.say(&Message::Receipt(body));
    sender.finish().expect_error(1);
    liar.told();
}

#[test]
fn a_false_root_in_a_want_is_ignored_and_never_confirmed() {
    let world = World::new();
    let (sender, ticket, _) = sender(&world);
    let mut liar = Dialler::new(1).accept(&ticket);
    let compare = (0..3).map(|entry| Compare { entry, root: [7; 32] }).collect();
    liar.say(&Message::Want(Want { upto: 3, compare, ..Want::default() }));
    // The sender sends each file completely, because it has computed the roots itself.
    liar.read_data(2 + 2 * (41 + 5) + 50 * (49 + lying::CHUNK) + 46);
    let receipt = signed(&liar, &ticket, |body| {
        let mut contents = ContentDigest::new();
        (0..3).for_each(|entry| contents.add(entry, &[7; 32]));
        (body.contents, body.verified, body.bytes) = (contents.digest(), 3, liar.offer.bytes);
    });
    liar.say(&receipt);
    sender.finish().expect_message(8, "differ from the data sent");
    liar.told();
}

#[test]
fn exceptions_for_unsent_entries_are_refused() {
    for entry in [0, 3, u64::MAX] {
        expect_caught(|liar| {
            liar.skip(3, &[(0, 3)]);
            let entries = vec![Excepted { entry, reason: 5 }];
            liar.say(&Message::Exceptions(Exceptions { entries }));
        });
    }
    // No decision about the second file.
    expect_caught(|liar| liar.want(3, &[(0, 1), (2, 1)]));
}

#[test]
fn callers_without_the_secret_are_sent_away_and_the_receiver_is_served() {
    let world = World::new();
    let (sender, ticket, text) = sender(&world);
    let dialler = Dialler::new(1);

    let mut guesser = dialler.dial(&ticket);
    guesser.hello();
    guesser.fetch([0; 16]);
    let told = guesser.told();
    assert!(matches!(told, CloseReason::Peer { code: close::WRONG_SECRET, .. }), "{told:?}");

    for garbage in [
        &[0xff; 100][..],
        &Message::Accept(Default::default()).to_bytes(),
        &Message::Want(Want::default()).to_bytes(),
        &[&3u32.to_be_bytes()[..], &[0xff; 3]].concat(),
    ] {
        let mut caller = dialler.dial(&ticket);
        caller.write(garbage);
        let told = caller.told();
        assert!(matches!(told, CloseReason::Peer { code: close::PROTOCOL, .. }), "{told:?}");
    }

    let mut early = dialler.dial(&ticket);
    early.hello();
    early.write(&Message::Want(Want::default()).to_bytes());
    let told = early.told();
    assert!(matches!(told, CloseReason::Peer { code: close::PROTOCOL, .. }), "{told:?}");
    still_serves(&world, sender, &text);
}

#[test]
fn a_second_receiver_with_the_same_ticket_does_not_disturb_the_first() {
    let world = World::new();
    let (sender, ticket, text) = sender(&world);
    let first = Dialler::new(1).accept(&ticket);
    let outcome = world.receive(&text).finish();
    outcome.expect_error(4);
    first.connection.close(close::CANCELLED, "");
    still_serves(&world, sender, &text);
}
