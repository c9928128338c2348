//! A code is tried once. An attacker that answered the first try could test one guess of the words
//! with the proof. It gets no second guess when the user types the code again.

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::support::{Outcome, Process, World, expect_arrival, lan, other_words, tree};
use wraith_discovery::message::Message;
use wraith_discovery::rendezvous::{ClientFrame, ServerFrame, split};
use wraith_discovery::{Code, Creator, TicketSide};

const LOOPBACK: &[&str] = &["--lan", "lo"];
const CODE: &str = "7-crater-lemon";

fn film(world: &World) -> PathBuf {
    world.file("film.mov", 1, 1_000_000)
}

/// Checks that the message says that the code is used up, since when, and not to try it again.
#[track_caller]
fn assert_used_up(outcome: &Outcome) {
    let error = outcome.expect_error(5);
    let (message, hint) = (error["message"].as_str().unwrap(), error["hint"].as_str().unwrap());
    assert!(message.contains("already tried this code, at 20"), "{error}");
    assert!(hint.contains("new code") && !hint.contains("again with"), "{error}");
}

/// The server's behaviour towards a joiner, after it has answered in place of the code's creator.
#[derive(Clone, Copy)]
enum Then {
    /// It keeps the proof and sends nothing more.
    Silence,
    /// It claims that the exchange is unknown, so that the client might send another proof.
    Unknown,
}

/// Starts a guessing rendezvous server, which answers in place of the creator and takes the proof.
/// Returns its address, and the numbers of hellos and proofs it has got.
fn guessing(then: Then) -> (String, Arc<[AtomicUsize; 2]>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let counts = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let theirs = Arc::clone(&counts);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let counts = Arc::clone(&theirs);
            std::thread::spawn(move || guess(stream, then, &counts));
        }
    });
    (address, counts)
}

fn guess(mut stream: TcpStream, then: Then, counts: &[AtomicUsize; 2]) {
    use std::io::{Read, Write};
    let mut buffer = Vec::new();
    let mut say = {
        let mut stream = stream.try_clone().unwrap();
        move |message: Message| {
            let frame = ServerFrame::Message { joiner: 0, message: message.encode() };
            let _ = stream.write_all(&frame.encode());
        }
    };
    loop {
        while let Ok(Some(frame)) = split(&mut buffer) {
            match ClientFrame::decode(&frame) {
                Some(ClientFrame::Join { nameplate, message }) => {
                    counts[0].fetch_add(1, SeqCst);
                    let code = Code::new(nameplate, [0xaa; 4]);
                    let expires = Instant::now() + Duration::from_secs(60);
                    let mut creator = Creator::new(code, TicketSide::Creator, expires);
                    let Some(Message::Hello(hello)) = Message::decode(&message) else { return };
                    say(Message::Answer(creator.answer_hello(Instant::now(), &hello).unwrap()));
                }
                Some(ClientFrame::Send { message, .. }) => {
                    if let Some(Message::Proof(_)) = Message::decode(&message) {
                        counts[1].fetch_add(1, SeqCst);
                    }
                    if let Then::Unknown = then {
                        say(Message::Refused(wraith_discovery::Refusal::Unknown));
                    }
                }
                _ => {}
            }
        }
        let mut bytes = [0; 1000];
        match stream.read(&mut bytes) {
            Ok(len) if len > 0 => buffer.extend_from_slice(&bytes[..len]),
            _ => return,
        }
    }
}

#[test]
fn an_impostor_of_the_creator_gets_one_proof_per_code() {
    for then in [Then::Silence, Then::Unknown] {
        let world = World::new();
        let (server, counts) = guessing(then);
        let place = ["--rendezvous", &server];
        let first = world.receive_with(CODE, &place).finish();
        let error = first.expect_error(3);
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.contains("new code") && !hint.contains("does not work again"), "{error}");
        assert_eq!(counts[1].load(SeqCst), 1);
        let hellos = counts[0].load(SeqCst);
        assert_used_up(&world.receive_with(CODE, &place).finish());
        assert_used_up(&world.receive_with("7 CRAT lemo", &place).finish());
        let counts = [counts[0].load(SeqCst), counts[1].load(SeqCst)];
        assert_eq!(counts, [hellos, 1], "nothing was sent for a code that is used up");
    }
}

#[test]
fn a_receiver_that_is_killed_when_its_proof_has_left_does_not_make_it_again() {
    let world = World::new();
    let (server, counts) = guessing(Then::Silence);
    let place = ["--rendezvous", &server];
    let receiver = world.receive_with(CODE, &place);
    let deadline = Instant::now() + Duration::from_secs(60);
    while counts[1].load(SeqCst) == 0 {
        assert!(Instant::now() < deadline, "no proof came");
        std::thread::yield_now();
    }
    receiver.kill();
    assert_used_up(&world.receive_with(CODE, &place).finish());
    assert_eq!(counts[1].load(SeqCst), 1);

    // The file with the spent code is readable only by its owner, and contains no word of the code.
    let file = world.path("home-receiver").join("spent-codes");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains("crater") && !text.contains("lemon"), "{text}");
}

#[test]
fn a_sender_tries_a_receivers_code_once_too() {
    let world = World::new();
    let film = film(&world);
    let _network = lan::own_network();
    let mut command = world.wraith("receiver");
    command.args(["receive", "--json", "--yes", "--code", "-o"]).arg(world.target()).args(LOOPBACK);
    let mut receiver = Process::start("receive", &mut command);
    let wrong = other_words(receiver.event("waiting")["code"].as_str().unwrap());
    let more = [LOOPBACK, &["--code", &wrong]].concat();
    world.send_by_code(&[&film], &more).finish().expect_error(5);
    receiver.finish().expect_error(5);
    assert_used_up(&world.send_by_code(&[&film], &more).finish());
}

#[test]
fn an_unanswered_code_stays_usable_and_a_completed_one_is_used_up() {
    let _network = lan::own_network();
    let world = World::new();
    let film = film(&world);
    let nobody = [LOOPBACK, &["--timeout", "1"]].concat();
    for _ in 0..2 {
        let error = world.receive_with(CODE, &nobody).finish();
        assert!(error.expect_error(3)["message"].as_str().unwrap().contains("number 7"));
    }
    let mut sender = world.send_by_code(&[&film], LOOPBACK);
    let code = sender.code();
    world.receive_with(&code, LOOPBACK).succeed();
    sender.succeed();
    assert_used_up(&world.receive_with(&code, LOOPBACK).finish());
}

#[test]
fn a_sender_for_an_invitation_resumes_with_the_same_command() {
    let _network = lan::own_network();
    let world = World::new();
    let film = film(&world);
    tree::file(&film, 1, 30_000_000);
    let mut command = world.wraith("receiver");
    command.args(["receive", "--json", "--yes", "--code", "-o"]).arg(world.target()).args(LOOPBACK);
    let mut receiver = Process::start("receive", &mut command);
    let code = receiver.event("waiting")["code"].as_str().unwrap().to_owned();
    let more = [LOOPBACK, &["--code", &code, "--rate", "3M"]].concat();
    let mut sender = world.send_by_code(&[&film], &more);
    sender.event("accept");
    sender.kill();
    let again = world.send_by_code(&[&film], &[LOOPBACK, &["--code", &code]].concat());
    expect_arrival(receiver, again, &film, &world.target());
}
