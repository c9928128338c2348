//! A cancellation ends a transfer at once, at any stage and during any wait.

use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use crate::common::*;
use wraith_transfer::message::{Accept, Fetch, Hello, Message, Offer};
use wraith_transfer::{
    Cancel, Decision, Event, ParallelConnections, ReceiveOptions, Role, SendOptions, StreamSource,
    StreamTarget, TransferError, receive, serve,
};
use wraith_transport::{Connection, RecvStream, SendStream, block_on};

/// Maximum time until a cancelled transfer returns.
const PROMPT: Duration = Duration::from_millis(100);

/// Number of attempts, one of which must meet the limit: a busy machine may not schedule the thread
/// sooner.
const ATTEMPTS: usize = 5;

/// Runs `transfer` until it reports reaching its stage, cancels it, and returns its result.
fn cancelled_at<T: Send>(transfer: impl Fn(&Cancel, Sender<()>) -> T + Sync) -> T {
    let mut times = Vec::new();
    for _ in 0..ATTEMPTS {
        let (cancel, (reached, stage)) = (Cancel::default(), channel());
        let (outcome, time) = thread::scope(|scope| {
            let (transfer, handle) = (&transfer, &cancel);
            let running = scope.spawn(move || (transfer(handle, reached), Instant::now()));
            stage.recv().expect("the stage is reached");
            let start = Instant::now();
            cancel.cancel();
            let (outcome, end) = running.join().unwrap();
            (outcome, end.saturating_duration_since(start))
        });
        if time <= PROMPT {
            return outcome;
        }
        times.push(time);
    }
    panic!("not prompt: {times:?}");
}

fn is_cancelled_by<T>(outcome: &Result<T, TransferError>, by: Role) -> bool {
    matches!(outcome, Err(TransferError::Cancelled { role }) if *role == by)
}

fn say(send: &mut SendStream, message: Message) {
    block_on(send.write_all(&message.to_bytes())).unwrap();
}

/// Sends the first messages of a receiver.
fn begin_fetch(send: &mut SendStream) {
    say(send, Message::Hello(Hello { version: 1, role: Role::Receiver, features: None }));
    let (secret, instance, stream) = (SECRET, None, None);
    say(send, Message::Fetch(Fetch { secret, instance, stream, push: None }));
}

/// Accepts the control stream and answers Hello.
fn answer_hello(connection: &Connection) -> (SendStream, RecvStream) {
    let (mut send, mut recv) = block_on(connection.accept_stream()).unwrap();
    assert!(matches!(read_message(&mut recv), Message::Hello(_)));
    assert!(matches!(read_message(&mut recv), Message::Fetch(_)));
    say(&mut send, Message::Hello(Hello { version: 1, role: Role::Sender, features: None }));
    (send, recv)
}

fn empty_offer() -> Offer {
    let id = wraith_crypto::kdf::derive("wraith/1 transfer id", &SECRET);
    Offer { transfer_id: *id.first_chunk().unwrap(), data_streams: 1, ..Offer::default() }
}

fn send_options(folders: &Folders, cancel: &Cancel) -> SendOptions {
    let mut options = SendOptions::new(roots(&folders.from()), SECRET);
    options.cancel = cancel.clone();
    options
}

fn receive_with<'a>(folders: &Folders, cancel: &Cancel) -> ReceiveOptions<'a> {
    ReceiveOptions { cancel: cancel.clone(), ..receive_options(&folders.to()) }
}

/// Too large to be complete before the cancellation.
fn large() -> Folders {
    let folders = Folders::new();
    folders.file("tree/large", &noise(1, 2000 * CHUNK));
    folders
}

#[test]
fn a_transfer_cancelled_before_its_start_does_nothing() {
    let folders = Folders::new();
    folders.file("a", b"a");
    let cancel = Cancel::default();
    cancel.cancel();
    let send = send_options(&folders, &cancel);
    assert!(is_cancelled_by(&send.survey(), Role::Sender));
    assert!(is_cancelled_by(&serve(link().sender.clone(), &send), Role::Sender));
    let received = receive(link().receiver.clone(), receive_with(&folders, &cancel));
    assert!(is_cancelled_by(&received, Role::Receiver));
}

#[test]
fn a_sender_with_a_silent_receiver_can_be_cancelled() {
    let folders = Folders::new();
    let outcome = cancelled_at(|cancel, reached| {
        let link = link();
        reached.send(()).unwrap();
        serve(link.sender.clone(), &send_options(&folders, cancel))
    });
    assert!(is_cancelled_by(&outcome, Role::Sender), "{outcome:?}");
}

#[test]
fn a_sender_with_an_unanswered_offer_can_be_cancelled() {
    let folders = Folders::new();
    (0..50).for_each(|n| drop(folders.file(&format!("tree/{n}"), b"x")));
    let outcome = cancelled_at(|cancel, reached| {
        let link = link();
        let receiver = link.receiver.clone();
        thread::scope(|scope| {
            scope.spawn(move || {
                let (mut send, mut recv) = block_on(receiver.open_stream()).unwrap();
                begin_fetch(&mut send);
                assert!(matches!(read_message(&mut recv), Message::Hello(_)));
                assert!(matches!(read_message(&mut recv), Message::Offer(_)));
                reached.send(()).unwrap();
                block_on(receiver.closed());
            });
            serve(link.sender.clone(), &send_options(&folders, cancel))
        })
    });
    assert!(is_cancelled_by(&outcome, Role::Sender), "{outcome:?}");
}

#[test]
fn a_sender_of_which_nothing_is_wanted_yet() {
    let folders = Folders::new();
    folders.file("a", b"a");
    let outcome = cancelled_at(|cancel, reached| {
        let link = link();
        let receiver = link.receiver.clone();
        thread::scope(|scope| {
            scope.spawn(move || {
                let (mut send, _recv) = block_on(receiver.open_stream()).unwrap();
                begin_fetch(&mut send);
                say(&mut send, Message::Accept(Accept::default()));
                block_on(receiver.closed());
            });
            let mut options = send_options(&folders, cancel);
            options.events = Arc::new(move |event: Event<'_>| {
                if matches!(event, Event::Accepted) {
                    reached.send(()).unwrap();
                }
            });
            serve(link.sender.clone(), &options)
        })
    });
    assert!(is_cancelled_by(&outcome, Role::Sender), "{outcome:?}");
}

#[test]
fn a_receiver_with_a_silent_sender_can_be_cancelled() {
    let folders = Folders::new();
    let outcome = cancelled_at(|cancel, reached| {
        let link = link();
        reached.send(()).unwrap();
        receive(link.receiver.clone(), receive_with(&folders, cancel))
    });
    assert!(is_cancelled_by(&outcome, Role::Receiver), "{outcome:?}");
}

#[test]
fn a_receiver_without_an_offer_can_be_cancelled() {
    let folders = Folders::new();
    let outcome = cancelled_at(|cancel, reached| {
        let link = link();
        let sender = link.sender.clone();
        thread::scope(|scope| {
            scope.spawn(move || {
                let _control = answer_hello(&sender);
                block_on(sender.closed());
            });
            let mut options = receive_with(&folders, cancel);
            options.events = Arc::new(move |event: Event<'_>| {
                if matches!(event, Event::Connected { .. }) {
                    reached.send(()).unwrap();
                }
            });
            receive(link.receiver.clone(), options)
        })
    });
    assert!(is_cancelled_by(&outcome, Role::Receiver), "{outcome:?}");
}

#[test]
fn a_receiver_that_waits_for_the_names_of_a_preview_or_the_manifest() {
    for preview in [true, false] {
        let folders = Folders::new();
        let outcome = cancelled_at(|cancel, reached| {
            let link = link();
            let sender = link.sender.clone();
            thread::scope(|scope| {
                scope.spawn(move || {
                    let (mut send, _recv) = answer_hello(&sender);
                    say(&mut send, Message::Offer(empty_offer()));
                    let opened = block_on(async {
                        let (mut manifest, _) = sender.open_stream().await.ok()?;
                        manifest.write_all(&[1]).await.ok()?;
                        let (mut data, _) = sender.open_stream().await.ok()?;
                        data.write_all(&[2]).await.ok()?;
                        Some((manifest, data))
                    });
                    block_on(sender.closed());
                    // Kept open until then, unless it was closed before.
                    drop(opened);
                });
                let mut options = receive_with(&folders, cancel);
                options.preview = preview;
                options.events = Arc::new(move |event: Event<'_>| match event {
                    Event::Offer(_) if preview => reached.send(()).unwrap(),
                    Event::Accepted if !preview => reached.send(()).unwrap(),
                    _ => {}
                });
                receive(link.receiver.clone(), options)
            })
        });
        assert!(is_cancelled_by(&outcome, Role::Receiver), "{outcome:?}");
    }
}

/// Runs a transfer. Its receiver's decision callback waits for the end of the connection instead of
/// answering.
fn ask<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    folders: &'env Folders,
    (sending, receiving): (Cancel, Cancel),
    reached: Sender<()>,
) -> [Result<(), TransferError>; 2] {
    let Link { sender, receiver, endpoints: _endpoints } = link();
    let sent = scope.spawn(move || serve(sender, &send_options(folders, &sending)));
    let mut options = receive_with(folders, &receiving);
    options.target = folders.to().join("new");
    options.decide = Box::new(move |proposal| {
        reached.send(()).unwrap();
        block_on(proposal.connection.closed());
        Decision::Accept
    });
    let received = receive(receiver, options);
    [sent.join().unwrap().map(drop), received.map(drop)]
}

#[test]
fn a_receiver_with_a_pending_question_can_be_cancelled() {
    let folders = Folders::new();
    folders.file("a", b"a");
    let [_, received] = cancelled_at(|cancel, reached| {
        let cancels = (Cancel::default(), cancel.clone());
        thread::scope(|scope| ask(scope, &folders, cancels, reached))
    });
    assert!(is_cancelled_by(&received, Role::Receiver), "{received:?}");
    assert!(!folders.to().join("new").exists(), "the target was made for nobody");
}

#[test]
fn a_sender_that_leaves_while_the_receivers_user_is_being_asked() {
    let folders = Folders::new();
    folders.file("a", b"a");
    let [sent, received] = cancelled_at(|cancel, reached| {
        let cancels = (cancel.clone(), Cancel::default());
        thread::scope(|scope| ask(scope, &folders, cancels, reached))
    });
    assert!(is_cancelled_by(&sent, Role::Sender), "{sent:?}");
    assert!(is_cancelled_by(&received, Role::Sender), "{received:?}");
    assert!(!folders.to().join("new").exists(), "the target was made for nobody");
}

/// Cancels one side of a transfer of `folders` after some data has moved, with up to `most`
/// parallel connections.
fn cancelled_midway(folders: &Folders, by: Role, most: usize) -> [Result<(), TransferError>; 2] {
    cancelled_at(|cancel, reached| {
        let Link { sender, receiver, endpoints: _endpoints } = link();
        let (sending, receiving) = match by {
            Role::Sender => (cancel.clone(), Cancel::default()),
            Role::Receiver => (Cancel::default(), cancel.clone()),
        };
        let mut send = send_options(folders, &sending);
        let bind = |identity: fn() -> _, accept| {
            ParallelConnections::new(most, move || endpoint(identity(), accept))
        };
        send.parallel = bind(sender_identity, true).at_once();
        let mut options = receive_with(folders, &receiving);
        options.parallel = bind(receiver_identity, false);
        let progress = Arc::clone(&options.progress);
        thread::scope(|scope| {
            let sent = scope.spawn(move || serve(sender, &send));
            scope.spawn(move || {
                while progress.bytes() < 20 * CHUNK as u64 {
                    thread::yield_now();
                }
                reached.send(()).unwrap();
            });
            let received = receive(receiver, options);
            [sent.join().unwrap().map(drop), received.map(drop)]
        })
    })
}

#[test]
fn either_side_of_a_transfer_that_is_under_way() {
    let folders = large();
    for by in [Role::Sender, Role::Receiver] {
        for most in [0, 3] {
            let [sent, received] = cancelled_midway(&folders, by, most);
            assert!(is_cancelled_by(&sent, by), "{sent:?}");
            assert!(is_cancelled_by(&received, by), "{received:?}");
            assert!(!folders.to().join("tree/large").exists());
        }
    }
    let moved = transfer_all(&folders).1.bytes_moved;
    assert!(moved < 2000 * CHUNK as u64, "nothing was kept: {moved}");
    assert_eq!(tree(&folders.to()), tree(&folders.from()));
}

/// A pipe without data, until the other end is dropped.
struct Silence(Receiver<()>);

impl Read for Silence {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        self.0.recv().map_or(Ok(0), |()| Ok(0))
    }
}

#[test]
fn either_side_of_a_stream_that_brings_nothing() {
    for by in [Role::Sender, Role::Receiver] {
        let folders = Folders::new();
        let outcomes = cancelled_at(|cancel, reached| {
            let Link { sender, receiver, endpoints: _endpoints } = link();
            let (sending, receiving) = match by {
                Role::Sender => (cancel.clone(), Cancel::default()),
                Role::Receiver => (Cancel::default(), cancel.clone()),
            };
            let (_writer, reader) = channel();
            let mut send = send_options(&folders, &sending);
            send.stream = Some(StreamSource::new("pipe".into(), None, Silence(reader)));
            send.events = Arc::new(move |event: Event<'_>| {
                if matches!(event, Event::Accepted) {
                    reached.send(()).unwrap();
                }
            });
            let mut options = receive_with(&folders, &receiving);
            options.stream = StreamTarget::output(std::io::sink());
            thread::scope(|scope| {
                let sent = scope.spawn(move || serve(sender, &send));
                let received = receive(receiver, options);
                [sent.join().unwrap().map(drop), received.map(drop)]
            })
        });
        assert!(outcomes.iter().all(|outcome| is_cancelled_by(outcome, by)), "{outcomes:?}");
    }
}

#[test]
fn a_receiver_that_waits_for_the_goodbye_has_everything() {
    let folders = Folders::new();
    let report = cancelled_at(|cancel, reached| {
        let link = link();
        let sender = link.sender.clone();
        thread::scope(|scope| {
            scope.spawn(move || {
                let (mut send, mut recv) = answer_hello(&sender);
                say(&mut send, Message::Offer(empty_offer()));
                let (mut manifest, _) = block_on(sender.open_stream()).unwrap();
                let hash = blake3::hash(b"");
                let trailer = [&[1][..], &[0; 4], &[0; 8], hash.as_bytes(), &[0; 8]].concat();
                block_on(manifest.write_all(&trailer)).unwrap();
                manifest.finish().unwrap();
                let (mut data, _) = block_on(sender.open_stream()).unwrap();
                block_on(data.write_all(&[2])).unwrap();
                while !matches!(read_message(&mut recv), Message::Receipt(_)) {}
                reached.send(()).unwrap();
                block_on(sender.closed());
            });
            receive(link.receiver.clone(), receive_with(&folders, cancel))
        })
    });
    assert!(!report.unwrap().confirmed);
}
