//! A cancellation ends a transfer at once, at any stage and during any wait.

use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::*;
use wraith_transfer::message::{Accept, Fetch, Hello, Message, Offer};
use wraith_transfer::{
    Cancel, Decision, Event, Events, ParallelConnections, ReceiveOptions, Role, SendOptions,
    StreamSource, StreamTarget, TransferError, receive, serve,
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

/// Events that report the stage as reached at the event for which `is` returns true.
fn at_event(
    reached: Sender<()>,
    is: impl Fn(&Event<'_>) -> bool + Send + Sync + 'static,
) -> Arc<dyn Events> {
    Arc::new(move |event: Event<'_>| {
        if is(&event) {
            reached.send(()).unwrap();
        }
    })
}

/// Returns `cancel` for the side `by`, and one that is not used for the other side.
fn cancels(by: Role, cancel: &Cancel) -> (Cancel, Cancel) {
    match by {
        Role::Sender => (cancel.clone(), Cancel::default()),
        Role::Receiver => (Cancel::default(), cancel.clone()),
    }
}

/// Runs both sides of a transfer.
fn both_sides(send: &SendOptions, options: ReceiveOptions<'_>) -> [Result<(), TransferError>; 2] {
    let (sent, received) = transfer(send, options);
    [sent.map(drop), received.map(drop)]
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
        let silent = move |receiver: Connection| {
            let (mut send, mut recv) = block_on(receiver.open_stream()).unwrap();
            begin_fetch(&mut send);
            assert!(matches!(read_message(&mut recv), Message::Hello(_)));
            assert!(matches!(read_message(&mut recv), Message::Offer(_)));
            reached.send(()).unwrap();
            block_on(receiver.closed());
        };
        let options = send_options(&folders, cancel);
        beside(Role::Sender, silent, |sender| serve(sender, &options))
    });
    assert!(is_cancelled_by(&outcome, Role::Sender), "{outcome:?}");
}

#[test]
fn a_sender_of_which_nothing_is_wanted_yet() {
    let folders = Folders::new();
    folders.file("a", b"a");
    let outcome = cancelled_at(|cancel, reached| {
        let undecided = |receiver: Connection| {
            let (mut send, _recv) = block_on(receiver.open_stream()).unwrap();
            begin_fetch(&mut send);
            say(&mut send, Message::Accept(Accept::default()));
            block_on(receiver.closed());
        };
        let mut options = send_options(&folders, cancel);
        options.events = at_event(reached, |event| matches!(event, Event::Accepted));
        beside(Role::Sender, undecided, |sender| serve(sender, &options))
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
        let silent = |sender: Connection| {
            let _control = answer_hello(&sender);
            block_on(sender.closed());
        };
        let mut options = receive_with(&folders, cancel);
        options.events = at_event(reached, |event| matches!(event, Event::Connected { .. }));
        beside(Role::Receiver, silent, |receiver| receive(receiver, options))
    });
    assert!(is_cancelled_by(&outcome, Role::Receiver), "{outcome:?}");
}

#[test]
fn a_receiver_that_waits_for_the_names_of_a_preview_or_the_manifest() {
    for preview in [true, false] {
        let folders = Folders::new();
        let outcome = cancelled_at(|cancel, reached| {
            let nameless = |sender: Connection| {
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
            };
            let mut options = receive_with(&folders, cancel);
            options.preview = preview;
            options.events = at_event(reached, move |event| match event {
                Event::Offer(_) => preview,
                Event::Accepted => !preview,
                _ => false,
            });
            beside(Role::Receiver, nameless, |receiver| receive(receiver, options))
        });
        assert!(is_cancelled_by(&outcome, Role::Receiver), "{outcome:?}");
    }
}

/// Cancels one side of a transfer. Its receiver's decision callback waits for the end of the
/// connection instead of answering.
fn cancelled_while_asked(by: Role) -> [Result<(), TransferError>; 2] {
    let folders = Folders::new();
    folders.file("a", b"a");
    let outcomes = cancelled_at(|cancel, reached| {
        let (sending, receiving) = cancels(by, cancel);
        let mut options = receive_with(&folders, &receiving);
        options.target = folders.to().join("new");
        options.decide = Box::new(move |proposal| {
            reached.send(()).unwrap();
            block_on(proposal.connection.closed());
            Decision::Accept
        });
        both_sides(&send_options(&folders, &sending), options)
    });
    assert!(!folders.to().join("new").exists(), "the target was made for nobody");
    outcomes
}

#[test]
fn a_receiver_with_a_pending_question_can_be_cancelled() {
    let [_, received] = cancelled_while_asked(Role::Receiver);
    assert!(is_cancelled_by(&received, Role::Receiver), "{received:?}");
}

#[test]
fn a_sender_that_leaves_while_the_receivers_user_is_being_asked() {
    let [sent, received] = cancelled_while_asked(Role::Sender);
    assert!(is_cancelled_by(&sent, Role::Sender), "{sent:?}");
    assert!(is_cancelled_by(&received, Role::Sender), "{received:?}");
}

/// Cancels one side of a transfer of `folders` after some data has moved, with up to `most`
/// parallel connections.
fn cancelled_midway(folders: &Folders, by: Role, most: usize) -> [Result<(), TransferError>; 2] {
    cancelled_at(|cancel, reached| {
        let (sending, receiving) = cancels(by, cancel);
        let mut send = send_options(folders, &sending);
        let bind = |identity: fn() -> _, accept| {
            ParallelConnections::new(most, move || endpoint(identity(), accept))
        };
        send.parallel = bind(sender_identity, true).at_once();
        let mut options = receive_with(folders, &receiving);
        options.parallel = bind(receiver_identity, false);
        let progress = Arc::clone(&options.progress);
        thread::scope(|scope| {
            scope.spawn(move || {
                while progress.bytes() < 20 * CHUNK as u64 {
                    thread::yield_now();
                }
                reached.send(()).unwrap();
            });
            both_sides(&send, options)
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
            let (sending, receiving) = cancels(by, cancel);
            let (_writer, reader) = channel();
            let mut send = send_options(&folders, &sending);
            send.stream = Some(StreamSource::new("pipe".into(), None, Silence(reader)));
            send.events = at_event(reached, |event| matches!(event, Event::Accepted));
            let mut options = receive_with(&folders, &receiving);
            options.stream = StreamTarget::output(std::io::sink());
            both_sides(&send, options)
        });
        assert!(outcomes.iter().all(|outcome| is_cancelled_by(outcome, by)), "{outcomes:?}");
    }
}

#[test]
fn a_receiver_that_waits_for_the_goodbye_has_everything() {
    let folders = Folders::new();
    let report = cancelled_at(|cancel, reached| {
        let script = move |sender: Connection| {
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
        };
        let options = receive_with(&folders, cancel);
        beside(Role::Receiver, script, |receiver| receive(receiver, options))
    });
    assert!(!report.unwrap().confirmed);
}
