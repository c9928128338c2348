//! Transfers by code over a rendezvous server, which may be down, lie, stall, or be flooded.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{self, World, lan, tree};
use socket2::{Domain, Socket, Type};
use wraith_discovery::message::Message;
use wraith_discovery::rendezvous::{ClientFrame, ServerFrame, split};
use wraith_discovery::{Code, Creator, TicketSide};

fn film(world: &World) -> std::path::PathBuf {
    world.file("film.mov", 1, 1_000_000)
}

/// Starts a server that calls `act` for each connection. Returns its address.
fn fake(mut act: impl FnMut(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || listener.incoming().map_while(Result::ok).for_each(&mut act));
    address
}

fn next_frame(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<ClientFrame> {
    loop {
        if let Ok(Some(frame)) = split(buffer) {
            return ClientFrame::decode(&frame);
        }
        let mut bytes = [0; 1000];
        let len = stream.read(&mut bytes).ok().filter(|len| *len > 0)?;
        buffer.extend_from_slice(&bytes[..len]);
    }
}

fn say(stream: &mut TcpStream, frame: &ServerFrame) {
    let _ = stream.write_all(&frame.encode());
}

/// Returns a server's own answer to a joiner: it makes up a code with the right nameplate and plays
/// the creator.
fn made_up_answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Vec<u8>> {
    let ClientFrame::Join { nameplate, message } = next_frame(stream, buffer)? else { return None };
    let code = Code::new(nameplate, [0xaa; 4]);
    let mut creator =
        Creator::new(code, TicketSide::Creator, Instant::now() + Duration::from_secs(60));
    let Some(Message::Hello(hello)) = Message::decode(&message) else { panic!() };
    Some(Message::Answer(creator.answer_hello(Instant::now(), &hello).unwrap()).encode())
}

#[test]
fn a_code_brings_a_file_over_a_rendezvous_server() {
    let world = World::new();
    let (_server, address) = world.rendezvous();
    let film = film(&world);
    let place = ["--rendezvous", &address];
    let mut sender = world.send_by_code(&[&film], &place);
    let ready = sender.event("ready");
    assert_eq!(ready["waiting_at"], serde_json::json!([address]));
    let received = world.receive_with(ready["code"].as_str().unwrap(), &place).succeed();
    assert_eq!(received.last("met")["place"], address);
    sender.succeed();
    tree::assert_same(&film, &world.target().join("film.mov"));
}

#[test]
fn wrong_words_burn_a_code_at_a_server_and_a_late_joiner_is_informed() {
    let world = World::new();
    let (_server, address) = world.rendezvous();
    let place = ["--rendezvous", &address];
    let mut sender = world.send_by_code(&[film(&world)], &place);
    let code = sender.code();
    let number = code.split('-').next().unwrap().parse().unwrap();
    let wrong = [Code::new(number, [1; 4]), Code::new(number, [2; 4])];
    let wrong = wrong.iter().map(Code::to_string).find(|wrong| *wrong != code).unwrap();
    let received = world.receive_with(&wrong, &place).finish();
    assert!(received.expect_error(5)["message"].as_str().unwrap().contains("burned"));
    assert!(sender.finish().expect_error(5)["message"].as_str().unwrap().contains("wrong words"));
    let late = world.receive_with(&code, &[&place[..], &["--timeout", "2"]].concat()).finish();
    assert!(late.expect_error(5)["message"].as_str().unwrap().contains("burned"));
    assert!(tree::names(&world.target()).is_empty());
}

#[test]
fn a_receiver_without_a_sender_times_out() {
    let world = World::new();
    let (_server, address) = world.rendezvous();
    let more = ["--rendezvous", &address, "--timeout", "1"];
    world.receive_with("7-crater-lemon", &more).finish().expect_message(3, "number 7");
}

#[test]
fn when_the_server_is_down_the_local_network_still_works() {
    let _network = lan::own_network();
    let world = World::new();
    // A port that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let places = ["--lan", "lo", "--rendezvous", &address];
    let mut sender = world.send_by_code(&[film(&world)], &places);
    let ready = sender.event("ready");
    assert_eq!(ready["waiting_at"], serde_json::json!(["lan"]));
    let lost = sender.event("code");
    assert_eq!((&lost["state"], &lost["place"]), (&"lost".into(), &address.clone().into()));
    world.receive_with(ready["code"].as_str().unwrap(), &places).succeed();
    sender.succeed();
}

/// Starts a server that makes up an answer for each joiner, and does `act` with it.
fn fake_with_answer(
    act: impl Fn(&mut TcpStream, &mut Vec<u8>, Vec<u8>) + Send + 'static,
) -> String {
    fake(move |mut stream| {
        let mut buffer = Vec::new();
        let Some(answer) = made_up_answer(&mut stream, &mut buffer) else { return };
        act(&mut stream, &mut buffer, answer);
    })
}

#[test]
fn a_rendezvous_server_that_answers_itself_is_detected() {
    let world = World::new();
    let address = fake_with_answer(|stream, buffer, answer| {
        say(stream, &ServerFrame::Message { joiner: 0, message: answer });
        let _proof = next_frame(stream, buffer);
        let welcome = Message::Welcome(Box::new([7; wraith_discovery::pake::WELCOME_LEN]));
        say(stream, &ServerFrame::Message { joiner: 0, message: welcome.encode() });
        let _ = next_frame(stream, buffer);
    });
    let received = world.receive_with("7-crater-lemon", &["--rendezvous", &address]).finish();
    received.expect_error(5);
    assert!(tree::names(&world.target()).is_empty());
}

#[test]
fn a_server_that_talks_on_without_judging_a_guess_is_left() {
    let world = World::new();
    let address = fake_with_answer(|stream, _, answer| {
        // A valid frame of the exchange, in the wrong place.
        let again = ServerFrame::Message { joiner: 0, message: answer }.encode();
        while stream.write_all(&again).is_ok() {
            thread::sleep(Duration::from_millis(50));
        }
    });
    let received = world.receive_with("7-crater-lemon", &["--rendezvous", &address]).finish();
    let error = received.expect_error(3);
    assert!(error["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{error}");
}

#[test]
fn a_server_that_stalls_delays_neither_the_code_nor_the_end() {
    let _network = lan::own_network();
    let world = World::new();
    let mut kept = Vec::new();
    let address = fake(move |stream| kept.push(stream));
    let places = ["--lan", "lo", "--rendezvous", &address];
    let mut sender = world.send_by_code(&[film(&world)], &places);
    let ready = sender.event("ready");
    assert_eq!(ready["waiting_at"], serde_json::json!(["lan"]), "the server has not answered");
    let nobody = ["--rendezvous", &address, "--timeout", "1"];
    world.receive_with("7-crater-lemon", &nobody).finish().expect_error(3);
    world.receive_with(ready["code"].as_str().unwrap(), &places).succeed();
    sender.succeed();
}

#[test]
fn a_server_that_floods_is_left() {
    let _network = lan::own_network();
    let world = World::new();
    let address = fake(|mut stream| {
        thread::spawn(move || {
            let noise: Vec<u8> = ServerFrame::Message { joiner: 1, message: vec![7; 400] }
                .encode()
                .into_iter()
                .cycle()
                .take(65_536)
                .collect();
            while stream.write_all(&noise).is_ok() {}
        });
    });
    let more = ["--rendezvous", &address, "--timeout", "2"];
    world.receive_with("7-crater-lemon", &more).finish().expect_error(3);
    let places = ["--lan", "lo", "--rendezvous", &address];
    let mut sender = world.send_by_code(&[film(&world)], &places);
    let code = sender.code();
    world.receive_with(&code, &["--lan", "lo"]).succeed();
    sender.succeed();
}

/// Connects from another loopback address, so that limits per address count it separately.
fn connect_from(source: [u8; 4], to: SocketAddr) -> Option<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((source, 0)).into()).unwrap();
    socket.connect(&to.into()).ok()?;
    socket.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    Some(socket.into())
}

/// Returns the peak memory of a process so far, in KiB.
fn peak_memory_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[test]
fn a_flood_takes_bounded_memory_and_blocks_no_receiver() {
    /// A few MiB for the program, and 4096 × 9 KiB for the maximum number of connections.
    const MOST_KIB: u64 = 48 * 1024;
    let world = World::new();
    let (server, address) = world.rendezvous();
    let to: SocketAddr = address.parse().unwrap();
    let mut held = Vec::new();
    for n in 0..600_u32 {
        let source = [127, 0, 1, 1 + (n % 40) as u8];
        let Some(mut stream) = connect_from(source, to) else { continue };
        let frame = match n % 4 {
            0 => ClientFrame::Open { nameplate: 1 + n, exact: false }.encode(),
            1 => ClientFrame::Join { nameplate: 1 + n % 100, message: vec![0; 400] }.encode(),
            2 => ClientFrame::Ping.encode().repeat(500),
            _ => vec![0xff; 3000],
        };
        // The server may close the connection at once.
        let _ = stream.write_all(&frame);
        held.push(stream);
    }
    let place = ["--rendezvous", &address];
    let mut sender = world.send_by_code(&[film(&world)], &place);
    let code = sender.code();
    world.receive_with(&code, &place).succeed();
    sender.succeed();
    match peak_memory_kib(server.pid()) {
        Some(kib) => assert!(kib < MOST_KIB, "{kib} KiB"),
        None => support::skipped("/proc does not tell here how much memory a process has used"),
    }
}
