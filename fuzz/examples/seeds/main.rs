//! Writes the seed inputs of all fuzz targets into `corpus`: one of each kind of value that is
//! decoded, and of each operation of a kernel.
//!
//! Run `cargo run -p wraith-fuzz --example seeds` after a target or its input format has changed.
//! Arguments are the beginnings of the names of the targets to write.

mod kernels;
mod keys;
mod session;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use wraith_core::frame::FrameWriter;
use wraith_discovery::message::Message as Said;
use wraith_discovery::pake::{Joiner, PROOF_LEN, TICKET_LEN, WELCOME_LEN};
use wraith_discovery::rendezvous::{ClientFrame, ServerFrame, ServerRefusal};
use wraith_discovery::{Capability, Code, CustomWay, Refusal, Ticket, TicketSide};
use wraith_files::{Entry, Kind, Mtime, RelPath, Tree};
use wraith_noise::{
    FinalHello, InitiatorHello, Parameters, Policy, ResponderHello, SecretIdentity, Suite,
};
use wraith_transfer::message::{
    Accept, Compare, DiskBusy, Excepted, Exceptions, Fetch, Hello, Lack, Message, Offer,
    ParallelPorts, Part, ReceiptBody, Refine, Span, Taken, Want,
};
use wraith_transfer::record::{Ending, Header};

fn main() -> std::io::Result<()> {
    let frames = frames();
    save("frames", &frames)?;
    save("peer", &packets(&frames))?;
    save("message", &messages().map(|message| message.to_bytes()[4..].to_vec()))?;
    save("record", &records())?;
    save("manifest", &manifests())?;
    save("hello", &hellos())?;
    save("ticket", &tickets())?;
    save(
        "code",
        &["7-crater-lemon", "1 a b", "  12-x-y", "0-a-b"].map(|text| text.as_bytes().to_vec()),
    )?;
    let journal: [&[u8]; 4] =
        [&[], &[0, 0, 150, 1], &[1, 0, 176], &[3, 0, 128, 4, 0, 128, 9, 9, 9]];
    save("journal", &journal.map(<[u8]>::to_vec))?;
    let packet: [&[u8]; 2] =
        [&[0, 0, 1, 0, 0, 9, 4, 1, 2, 3, 4, 5, 1, 0, 2, 1, 7, 7], &[1, 0, 0, 3, 0, 3, 2, 1, 1, 1]];
    save("packet", &packet.map(<[u8]>::to_vec))?;
    save("handshake", &[vec![], vec![1; 80], (0..120).collect(), vec![40; 200]])?;
    let stranger: [&[u8]; 4] = [
        &[0; 60],
        &[1, 0, 100, 5, 5, 5],
        &[2, 3, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 3, 232, 2, 3],
        &[0x82, 0xff, 0xff, 3],
    ];
    save("stranger", &stranger.map(<[u8]>::to_vec))?;
    let punch: [&[u8]; 4] = [
        &[0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0, 0, 1, 2, 0, 1, 0, 3, 0, 0, 2],
        &[1, 6, 0, 0, 0, 0, 0, 0, 1, 1, 2, 50, 0, 0, 1, 3, 50, 0, 1, 6, 2, 200, 0, 2, 1],
        &[6, 6, 6, 6, 6, 6, 6, 6, 0, 0, 8, 0, 0, 3, 7, 1, 9, 0, 1, 4, 8, 4],
        &[0; 40],
    ];
    save("punch", &punch.map(<[u8]>::to_vec))?;
    let (id, nodes) = ("i".repeat(20), "n".repeat(52));
    let signed =
        format!("1:k32:{}3:seqi7e3:sig64:{}5:token4:tokn1:v3:abc", "k".repeat(32), "s".repeat(64));
    let answers = [
        format!("d1:rd2:id20:{id}5:nodes52:{nodes}5:token4:tokne1:t4:aaaa1:y1:re"),
        format!("d1:rd2:id20:{id}{signed}e1:t4:aaaa1:y1:re"),
        "d1:eli203e5:errore1:t4:aaaa1:y1:ee".to_owned(),
        "d2:ip6:abcdef1:rd2:id20:iiiiiiiiiiiiiiiiiiiie1:t4:aaaa1:y1:re".to_owned(),
    ];
    save("dht", &answers.map(String::into_bytes))?;
    save("relay", &wraith_relay::fuzz::frames())?;
    save("rendezvous", &conversations())?;
    save("meeting", &meetings())?;
    session::save_all()?;
    keys::save_all()?;
    kernels::save_all()
}

fn save(target: &str, inputs: &[Vec<u8>]) -> std::io::Result<()> {
    let mut wanted = std::env::args().skip(1).peekable();
    if wanted.peek().is_some() && !wanted.any(|name| target.starts_with(&name)) {
        return Ok(());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    for (number, input) in inputs.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:02}")), input)?;
    }
    Ok(())
}

fn frame(write: impl FnOnce(&mut FrameWriter<'_>)) -> Vec<u8> {
    let mut buf = vec![0; 300];
    let mut out = FrameWriter::new(&mut buf);
    write(&mut out);
    let len = out.complete();
    buf.truncate(len);
    buf
}

fn frames() -> Vec<Vec<u8>> {
    let fill = |to: &mut [u8]| to.fill(b'x');
    vec![
        frame(|f| _ = f.ping()),
        frame(|f| _ = f.ack(5, [10..=12, 3..=4, 0..=0].into_iter(), None)),
        frame(|f| _ = f.stream(0, 0, 20, false, fill)),
        frame(|f| _ = f.stream(0, 20, 400, true, fill)),
        frame(|f| _ = f.stream(2, 100, 20, true, fill)),
        frame(|f| _ = f.reset_stream(0, 1, 100)),
        frame(|f| _ = f.stop_sending(0, 1)),
        vec![0x3f, 1],
        (0..64).collect(),
        (0..32).flat_map(|kind| [kind, 0x41, 0, 2, 3, 4, 5, 6]).collect(),
    ]
}

/// Each frame alone, all frames in one connection of a dialling peer, and ratchets.
///
/// An input holds the direction of the dial and the parameters, then length, control byte and
/// frames of each packet.
fn packets(frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let parameters = [100, 20, 100, 20, 100, 20, 100, 5, 0, 100, 11, 100, 15];
    let packet = |frame: &Vec<u8>| {
        let len = frame.len() - 1;
        [&[len as u8, (len >> 8) as u8], &frame[..]].concat()
    };
    let with = |who: u8, packets: Vec<u8>| [&[who], &parameters[..], &packets].concat();
    let alone = frames.iter().map(|frame| with(0, packet(frame)));
    alone
        .chain([with(0, frames.iter().flat_map(packet).collect())])
        .chain([0, 1].map(|who| with(who, ratchets(3))))
        .chain([2, 4, 64].into_iter().flat_map(|odd| [0, 1].map(|who| with(who, ratchet(odd)))))
        .collect()
}

/// Returns `count` well-formed ratchets.
fn ratchets(count: usize) -> Vec<u8> {
    // Both parts, each with an acknowledgement of everything received and a request for one. Then
    // the second part three times; from the middle one on, packets use the new keys.
    let again = packet_of(1 | 24, 128);
    [ratchet(0), again.clone(), packet_of(1 | 24, 128 | 32), again].concat().repeat(count)
}

/// Both parts of a ratchet; `odd` changes the second one.
fn ratchet(odd: u8) -> Vec<u8> {
    [packet_of(24, 128), packet_of(1 | 24 | odd, 128)].concat()
}

/// A PING, and a part of a ratchet as `how` describes it.
fn packet_of(how: u8, control: u8) -> Vec<u8> {
    vec![0, control, 1, how]
}

/// One message of each kind, and one of an unknown kind.
fn messages() -> [Message; 13] {
    let span = Span { first: 3, count: 4 };
    [
        Message::Hello(Hello {
            version: 1,
            role: wraith_transfer::Role::Receiver,
            features: Some(1),
        }),
        Message::Fetch(Fetch {
            secret: [1; 16],
            instance: Some(7),
            stream: Some(true),
            push: Some(65_536),
        }),
        Message::Offer(Offer { name: "film".into(), files: 3, bytes: 1 << 40, ..Offer::default() }),
        Message::Accept(Accept { have: Some(9), rate: Some(1 << 20), parallel: Some(2) }),
        Message::Want(Want {
            upto: 1000,
            whole: vec![span],
            parts: vec![Part { entry: 9, chunks: vec![span] }],
            compare: vec![Compare { entry: 10, root: [4; 32] }],
            delta: vec![9, 10],
            skipped: vec![span],
            blocked: vec![Span { first: 7, count: 1 }],
            kept: vec![Compare { entry: 11, root: [8; 32] }],
        }),
        Message::Exceptions(Exceptions { entries: vec![Excepted { entry: 9, reason: 5 }] }),
        Message::Receipt(ReceiptBody {
            transfer_id: [1; 16],
            manifest: [2; 32],
            contents: [3; 32],
            verified: 4,
            kept: 5,
            failed: 6,
            bytes: 7,
            unix_seconds: 8,
            signature: [9; 64],
            durability: Some(1),
            sender: [5; 32],
        }),
        Message::Refine(Refine { entry: 9, average: 1024, spans: vec![span] }),
        Message::Lack(Lack { entry: 9, upto: 10, spans: vec![span] }),
        Message::Taken(Taken { bytes: 1 << 40 }),
        Message::ParallelPorts(ParallelPorts { ports: vec![1, 50_000] }),
        Message::DiskBusy(DiskBusy {}),
        Message::Unknown(1 << 20),
    ]
}

/// One record of each kind, and each ending.
fn records() -> Vec<Vec<u8>> {
    let root = [7; 32];
    let end = |ending| Header::End { entry: 4, ending, chunks: 6, root };
    let headers = [
        Header::Whole { entry: 1, len: 1000, root },
        Header::Chunk { entry: 2, index: 3, len: 1 << 18, cv: root },
        Header::Hole { entry: 3, first: 4, count: 5 },
        end(Ending::Complete),
        end(Ending::Changed),
        end(Ending::Unreadable),
        end(Ending::Identical),
        end(Ending::Different),
        Header::Sketch { entry: 5, at: 6, len: 24 },
        Header::Proofs { entry: 5, first: 6, len: 64 },
        Header::Patch { entry: 5, index: 6, len: 7 },
        Header::Pushed { entry: 5, len: 6, root: [7; 32] },
        Header::Pulse { entry: 5, chunks: 7 },
    ];
    let encoded = |header: Header| {
        let mut out = Vec::new();
        header.encode(&mut out);
        out
    };
    headers.into_iter().map(encoded).collect()
}

fn manifests() -> Vec<Vec<u8>> {
    let entry = |path: &[u8], kind| {
        let path = RelPath::parse(path).expect("a safe name");
        let mut out = Vec::new();
        Entry { path, kind, mode: 0o644, mtime: Mtime { s: -1, ns: 5 } }.encode(&mut out);
        out
    };
    let entries = [
        entry(b"a", Kind::Dir),
        entry(b"a/disk.img", Kind::File { size: 1 << 40, sparse: Some(Tree::PositionFree) }),
        entry(b"a/film.mov", Kind::File { size: 1 << 33, sparse: None }),
        entry(
            "a/\u{e4}\u{202e}\x1b".as_bytes(),
            Kind::File { size: 0, sparse: Some(Tree::Blake3) },
        ),
        entry(b"a/link", Kind::Symlink { target: b"../../etc".to_vec() }),
    ];
    let all = entries.concat();
    entries.into_iter().chain([all]).collect()
}

fn hellos() -> Vec<Vec<u8>> {
    let parameters = Parameters { initial_max_data: 1 << 20, ..Parameters::default() };
    let first = InitiatorHello {
        suites: Policy::Default.packet_suites(),
        aes_hardware: true,
        unix_seconds: 3,
    };
    let second = ResponderHello {
        suite: Suite::Aes256Gcm,
        observed: SocketAddr::from(([192, 0, 2, 1], 5)),
        parameters,
    };
    let last = FinalHello { node_id: SecretIdentity::from_seed([1; 32]).node_id(), parameters };
    [(0, first.encode()), (1, second.encode()), (2, last.encode())]
        .map(|(which, payload)| [&[which], &payload[..], &[0; 10]].concat())
        .into()
}

/// Tickets as text, and as bytes without their checksum.
fn tickets() -> Vec<Vec<u8>> {
    let node_id = SecretIdentity::from_seed([1; 32]).node_id();
    let addresses: Vec<SocketAddr> =
        vec![([192, 0, 2, 1], 5).into(), ([1, 2, 3, 4, 5, 6, 7, 8], 6).into()];
    let ticket = Ticket::new(node_id, Capability::from_bytes([7; 16]), addresses);
    let bytes = ticket.encode();
    let unchecked = [&[0], &bytes[..bytes.len() - 4]].concat();
    let of_service = ticket.clone().of_service().to_string().into_bytes();
    let way = |kind| CustomWay::new(kind, *b"elsewhere").expect("a short address");
    let with_ways = ticket.at(ticket.reach().clone().with([way(300), way(4)])).encode();
    let with_ways = [&[0], &with_ways[..with_ways.len() - 4]].concat();
    let whole = [&[1], &bytes[..]].concat();
    vec![ticket.to_string().into_bytes(), unchecked, whole, of_service, with_ways]
}

/// One of each message between the joiner and the creator of a code.
fn said() -> [Said; 7] {
    [
        Said::Hello(Joiner::new(&Code::new(7, [2; 4]), TicketSide::Creator).hello()),
        Said::Answer([2; 32]),
        Said::Proof([3; PROOF_LEN]),
        Said::Welcome(Box::new([4; WELCOME_LEN])),
        Said::Ticket(Box::new([5; TICKET_LEN])),
        Said::Refused(Refusal::Burned),
        Said::Ack,
    ]
}

/// Every frame to a rendezvous server, and every frame from one.
fn conversations() -> Vec<Vec<u8>> {
    let message = |n: usize| said()[n].encode();
    let seen = SocketAddr::from(([192, 0, 2, 1], 5));
    let client = [
        ClientFrame::Open { nameplate: 7, exact: true },
        ClientFrame::Join { nameplate: 7, message: message(0) },
        ClientFrame::Send { joiner: 0, message: message(2) },
        ClientFrame::Ping,
        ClientFrame::Close(Refusal::Used),
    ];
    let server = [
        ServerFrame::Opened { nameplate: 7, seen },
        ServerFrame::Joined { seen: ([1, 2, 3, 4, 5, 6, 7, 8], 6).into() },
        ServerFrame::Arrived { joiner: 3, message: message(0) },
        ServerFrame::Message { joiner: 3, message: message(3) },
        ServerFrame::Left { joiner: 3 },
        ServerFrame::Pong,
        ServerFrame::Refused(ServerRefusal::Burned),
    ];
    let client: Vec<_> = client.iter().flat_map(ClientFrame::encode).collect();
    let server: Vec<_> = server.iter().flat_map(ServerFrame::encode).collect();
    vec![client, server]
}

/// Plaintexts of packets on the local network: each message alone, and all messages of one joiner
/// in sequence.
fn meetings() -> Vec<Vec<u8>> {
    const PLAIN_LEN: usize = wraith_discovery::lan::PACKET_LEN - 32;
    let [Said::Hello(hello), ..] = said() else { unreachable!("the first is a hello") };
    let plain = |said: &Said| {
        let message = if matches!(said, Said::Hello(_)) { vec![] } else { said.encode() };
        let mut plain = [&(message.len() as u16).to_be_bytes()[..], &hello, &message].concat();
        plain.resize(PLAIN_LEN, 0);
        plain
    };
    let alone: Vec<_> = said().iter().map(plain).collect();
    let all = alone.concat();
    alone.into_iter().chain([all]).collect()
}
