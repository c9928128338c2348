//! Receivers that violate the protocol over real connections. The sender must detect the violation
//! and report it.

use crate::common::*;
use wraith_transfer::message::{
    Accept, Compare, Excepted, Exceptions, FEATURE_POSITION_FREE, Fetch, Hello, Message, Part,
    ReceiptBody, Span, Want,
};
use wraith_transfer::{Role, SendOptions, TransferError, close, serve};
use wraith_transport::{CloseReason, Connection, RecvStream, SendStream, block_on};

struct Liar {
    send: SendStream,
    /// Kept open, never read.
    _recv: RecvStream,
    _streams: Vec<(SendStream, RecvStream)>,
    transfer_id: [u8; 16],
}

impl Liar {
    fn say(&mut self, message: Message) {
        let _ = block_on(self.send.write_all(&message.to_bytes()));
    }

    fn want(&mut self, upto: u64, whole: &[(u64, u64)]) {
        let whole = whole.iter().map(|&(first, count)| Span { first, count }).collect();
        self.say(Message::Want(Want { upto, whole, ..Want::default() }));
    }
}

/// Sends two small files and a large one to a receiver played by `lie`.
fn deceive(lie: impl FnOnce(&mut Liar) + Send) -> (TransferError, CloseReason) {
    let folders = Folders::new();
    folders.file("a", b"hello");
    folders.file("b", b"world");
    folders.file("c", &noise(1, 50 * CHUNK));
    let options = SendOptions::new(roots(&folders.from()), SECRET);
    let link = link();
    std::thread::scope(|scope| {
        let liar = scope.spawn(|| {
            let connection = &link.receiver;
            let (mut send, mut recv) = block_on(connection.open_stream()).unwrap();
            for message in [
                Message::Hello(Hello { version: 1, role: Role::Receiver, features: None }),
                Message::Fetch(Fetch { secret: SECRET, instance: None, stream: None, push: None }),
            ] {
                block_on(send.write_all(&message.to_bytes())).unwrap();
            }
            assert!(matches!(read_message(&mut recv), Message::Hello(_)));
            let Message::Offer(offer) = read_message(&mut recv) else { panic!("no Offer") };
            let mut streams = Vec::new();
            for _ in 0..=offer.data_streams {
                streams.push(block_on(connection.accept_stream()).unwrap());
            }
            let transfer_id = offer.transfer_id;
            let mut liar = Liar { send, _recv: recv, _streams: streams, transfer_id };
            liar.say(Message::Accept(Accept::default()));
            // The manifest has been announced by the time its first bytes arrive.
            let manifest = &mut liar._streams[0].1;
            let mut seen = 0;
            while seen < 1 + 3 * (4 + 28) + 44 {
                seen += block_on(manifest.read_chunk()).unwrap().unwrap().len();
            }
            lie(&mut liar);
            block_on(connection.closed())
        });
        let sent = serve(link.sender.clone(), &options);
        (sent.expect_err("the lie was believed"), liar.join().unwrap())
    })
}

fn expect_protocol(lie: impl FnOnce(&mut Liar) + Send) {
    let (error, told) = deceive(lie);
    assert!(matches!(error, TransferError::Protocol { .. }), "{error:?}");
    assert!(matches!(told, CloseReason::Peer { code: close::PROTOCOL, .. }), "{told:?}");
}

#[test]
fn wants_beyond_the_manifest_are_refused() {
    expect_protocol(|liar| liar.want(4, &[]));
    expect_protocol(|liar| liar.want(u64::MAX, &[(0, u64::MAX)]));
    expect_protocol(|liar| liar.want(3, &[(2, 2)]));
}

#[test]
fn every_file_is_decided_once() {
    let span = |first, count| vec![Span { first, count }];
    // There is no decision about the second file.
    expect_protocol(|liar| liar.want(3, &[(0, 1)]));
    expect_protocol(|liar| liar.want(3, &[]));
    for (skipped, blocked) in [
        (span(0, 3), span(1, 1)),
        (span(0, 3), span(2, 1)),
        (span(0, 4), vec![]),
        (vec![], span(0, u64::MAX)),
        (vec![], span(1, 0)),
        (vec![Span { first: 0, count: 2 }; 2], span(2, 1)),
    ] {
        expect_protocol(|liar| {
            liar.say(Message::Want(Want { upto: 3, skipped, blocked, ..Want::default() }));
        });
    }
}

#[test]
fn only_sent_entries_without_an_exception_can_be_missing() {
    let except = |liar: &mut Liar, entries: &[(u64, u64)]| {
        let entries = entries.iter().map(|&(entry, reason)| Excepted { entry, reason }).collect();
        liar.say(Message::Exceptions(Exceptions { entries }));
    };
    let skipped = |liar: &mut Liar| {
        let skipped = vec![Span { first: 0, count: 3 }];
        liar.say(Message::Want(Want { upto: 3, skipped, ..Want::default() }));
    };
    expect_protocol(|liar| except(liar, &[(0, 5)]));
    for lie in [(0, 5), (3, 5), (u64::MAX, 5), (1 << 32, 1), (2, 0), (2, 2), (2, 99)] {
        expect_protocol(|liar| {
            skipped(liar);
            except(liar, &[lie]);
        });
    }
}

#[test]
fn an_entry_is_sent_once_at_most() {
    expect_protocol(|liar| {
        liar.want(1, &[(0, 1)]);
        liar.want(1, &[(0, 1)]);
    });
    expect_protocol(|liar| (0..3).for_each(|_| liar.want(3, &[(0, 3)])));
}

#[test]
fn chunks_a_file_does_not_have_are_refused() {
    for chunks in [vec![Span { first: 50, count: 1 }], vec![Span { first: 0, count: u64::MAX }]] {
        expect_protocol(|liar| {
            let parts = vec![Part { entry: 2, chunks }];
            liar.say(Message::Want(Want { upto: 3, parts, ..Want::default() }));
        });
    }
    expect_protocol(|liar| {
        let compare = vec![Compare { entry: 9, root: [0; 32] }];
        liar.say(Message::Want(Want { upto: 3, compare, ..Want::default() }));
    });
}

#[test]
fn garbage_on_the_control_stream_is_refused() {
    expect_protocol(|liar| {
        let _ = block_on(liar.send.write_all(&u32::MAX.to_be_bytes()));
    });
    expect_protocol(|liar| {
        let _ = block_on(liar.send.write_all(&[0, 0, 0, 3, 1, 2, 3]));
    });
    expect_protocol(|liar| (0..1100).for_each(|_| liar.say(Message::Unknown(99))));
    expect_protocol(|liar| {
        liar.say(Message::Fetch(Fetch { secret: SECRET, instance: None, stream: None, push: None }))
    });
}

#[test]
fn a_receipt_that_is_forged_or_too_early_is_refused() {
    let receipt = |liar: &Liar| ReceiptBody {
        transfer_id: liar.transfer_id,
        manifest: [0; 32],
        contents: [0; 32],
        verified: 3,
        kept: 0,
        failed: 0,
        bytes: 0,
        unix_seconds: 0,
        signature: [0; 64],
        durability: None,
        sender: sender_identity().node_id().0,
    };
    expect_protocol(|liar| liar.say(Message::Receipt(receipt(liar))));
    expect_protocol(|liar| {
        let body = receipt(liar);
        let mut signed = b"wraith/1 receipt".to_vec();
        signed.extend_from_slice(&body.transfer_id);
        signed.extend_from_slice(&body.sender);
        signed.extend_from_slice(&[0; 64]);
        [body.verified, 0, 0, 0, 0].iter().for_each(|n| signed.extend_from_slice(&n.to_be_bytes()));
        let signature = receiver_identity().sign(&signed);
        liar.say(Message::Receipt(ReceiptBody { signature, ..body }));
    });
}

#[test]
fn a_receiver_that_never_reads_costs_a_bounded_amount_and_can_be_cancelled() {
    let folders = Folders::new();
    folders.file("large", &noise(1, 400 * CHUNK));
    let options = SendOptions::new(roots(&folders.from()), SECRET);
    let link = link();
    let result = std::thread::scope(|scope| {
        let sending = scope.spawn(|| serve(link.sender.clone(), &options));
        let Accepting { mut send, mut manifest, .. } = accept(&link.receiver, None);
        let mut seen = 0;
        while seen < 1 + 4 + 29 + 44 {
            seen += block_on(manifest.read_chunk()).unwrap().unwrap().len();
        }
        let want = Want { upto: 1, whole: vec![Span { first: 0, count: 1 }], ..Want::default() };
        block_on(send.write_all(&Message::Want(want).to_bytes())).unwrap();
        options.cancel.cancel();
        let result = sending.join().unwrap();
        let told = block_on(link.receiver.closed());
        assert!(matches!(told, CloseReason::Peer { code: close::CANCELLED, .. }), "{told:?}");
        result
    });
    assert_eq!(result.unwrap_err().exit_code(), 130);
    assert!(options.progress.bytes() < 300 * CHUNK as u64);
}

/// A receiver that has accepted, with the beginning of the manifest on its way.
struct Accepting {
    send: SendStream,
    /// Kept, so that the stream is not stopped.
    _recv: RecvStream,
    manifest: RecvStream,
    _manifest_send: SendStream,
}

/// Accepts any offer, as a receiver with these features.
fn accept(connection: &Connection, features: Option<u64>) -> Accepting {
    let (mut send, mut recv) = block_on(connection.open_stream()).unwrap();
    for message in [
        Message::Hello(Hello { version: 1, role: Role::Receiver, features }),
        Message::Fetch(Fetch { secret: SECRET, instance: None, stream: None, push: None }),
        Message::Accept(Accept::default()),
    ] {
        block_on(send.write_all(&message.to_bytes())).unwrap();
    }
    assert!(matches!(read_message(&mut recv), Message::Hello(_)));
    assert!(matches!(read_message(&mut recv), Message::Offer(_)));
    let (manifest_send, manifest) = block_on(connection.accept_stream()).unwrap();
    Accepting { send, _recv: recv, manifest, _manifest_send: manifest_send }
}

/// Returns the entry kind of a sparse terabyte in the manifest for a receiver with these features.
fn kind_for(features: Option<u64>) -> Option<u8> {
    let folders = Folders::new();
    let path = folders.file("disk.img", b"");
    if let Err(error) = std::fs::File::options().write(true).open(path).unwrap().set_len(1 << 40) {
        skipped(&format!("no terabyte can be made here: {error}"));
        return None;
    }
    let options = SendOptions::new(roots(&folders.from()), SECRET);
    let link = link();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let connection = &link.receiver;
            let Accepting { mut manifest, .. } = accept(connection, features);
            let mut begin = [0; 6];
            block_on(manifest.read_exact(&mut begin)).unwrap();
            connection.close(0, "seen");
            begin[5]
        });
        assert!(serve(link.sender.clone(), &options).is_err());
        Some(receiver.join().unwrap())
    })
}

#[test]
fn position_free_trees_need_a_receiver_that_supports_them() {
    let known = FEATURE_POSITION_FREE;
    for (features, kind) in [(None, 2), (Some(3), 2), (Some(known), 5), (Some(known | 3), 5)] {
        if let Some(told) = kind_for(features) {
            assert_eq!(told, kind, "{features:?}");
        }
    }
}

#[test]
fn of_a_file_with_a_position_free_tree_no_old_copy_is_asked_about() {
    let folders = Folders::new();
    let path = folders.file("disk.img", b"");
    // Otherwise its size would be suitable.
    std::fs::File::options().write(true).open(path).unwrap().set_len(20 << 30).unwrap();
    let options = SendOptions::new(roots(&folders.from()), SECRET);
    let link = link();
    let sent = std::thread::scope(|scope| {
        scope.spawn(|| {
            let connection = &link.receiver;
            let features = Some(FEATURE_POSITION_FREE | 1);
            let Accepting { mut send, mut manifest, .. } = accept(connection, features);
            block_on(manifest.read_exact(&mut [0; 6])).unwrap();
            let whole = vec![Span { first: 0, count: 1 }];
            let want = Want { upto: 1, whole, delta: vec![0], ..Want::default() };
            block_on(send.write_all(&Message::Want(want).to_bytes())).unwrap();
            block_on(connection.closed())
        });
        serve(link.sender.clone(), &options)
    });
    assert!(matches!(sent.unwrap_err(), TransferError::Protocol { .. }));
}
