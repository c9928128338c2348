//! Senders that push files without permission.

use super::*;

fn pushed(bytes: &[u8], entry: u32) -> Header {
    Header::Pushed { entry, len: bytes.len() as u32, root: small_root(bytes) }
}

#[test]
fn more_than_was_asked_for_is_refused() {
    let bytes = noise(1, 10_000);
    for len in [10_000, 0] {
        expect_protocol(|liar| {
            for entry in 0..2000 {
                liar.record(pushed(&bytes[..len], entry), &bytes[..len]);
            }
        });
    }
}

#[test]
fn a_file_pushed_twice_is_refused() {
    expect_protocol(|liar| {
        liar.record(pushed(b"once", 0), b"once");
        liar.record(pushed(b"twice", 0), b"twice");
    });
}

#[test]
fn a_pushed_file_of_another_size_or_hash_is_refused() {
    expect_protocol(|liar| {
        liar.record(pushed(b"short", 0), b"short");
        liar.list(&file("a", 6));
    });
    let (error, _) = deceive(|liar| {
        liar.record(pushed(b"right", 0), b"wrong");
        liar.list(&file("a", 5));
    });
    assert!(matches!(error, TransferError::Verification { .. }), "{error:?}");
}

/// The push has already resolved it.
#[test]
fn a_pushed_file_is_not_sent_again() {
    expect_protocol(|liar| {
        let bytes = b"right";
        liar.record(pushed(bytes, 0), bytes);
        liar.list(&file("honest", 5));
        liar.want();
        liar.record(Header::Whole { entry: 0, len: 5, root: small_root(bytes) }, bytes);
    });
}

#[test]
fn unrequested_pushes_are_refused() {
    let folders = Folders::new();
    let script = |sender: Connection| {
        let mut liar = Liar::negotiate(sender, offer());
        liar.record(pushed(b"a", 0), b"a");
        block_on(liar.connection.closed());
    };
    let mut options = receive_options(&folders.to());
    options.push = false;
    let received = beside(Role::Receiver, script, |receiver| receive(receiver, options));
    let error = received.expect_err("it was taken");
    assert!(matches!(error, TransferError::Protocol { peer: Role::Sender, .. }), "{error:?}");
}
