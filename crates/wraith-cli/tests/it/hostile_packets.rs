//! Peers and strangers that send packets no honest program sends, against a real `wraith send`.

use std::net::{SocketAddr, UdpSocket};

use crate::raw_peer::{self, RawPeer};
use crate::support::{Process, World, offering, tree};
use wraith_core::AccessKey;
use wraith_core::frame::FrameWriter;
use wraith_discovery::Ticket;

/// Starts a sender of one file in a world of its own. Returns it with its ticket.
fn sender() -> (World, Process, String, Ticket) {
    let (world, _, sender, text) = offering(3_000_000, &[]);
    let ticket = text.parse().unwrap();
    (world, sender, text, ticket)
}

/// Checks that an honest receiver still gets everything, and that both sides end well.
fn still_serves(world: &World, sender: Process, ticket: &str) {
    world.receive(ticket).succeed();
    sender.succeed();
    tree::assert_same(&world.source().join("film.mov"), &world.target().join("film.mov"));
}

/// Connects by the socket of a stranger, and checks that nothing else was sent to it.
fn only_the_invited_is_answered(socket: UdpSocket, ticket: &Ticket) {
    // The sender answers in order: once the keys are there, it has handled all earlier packets.
    let invited = RawPeer::connect_by(socket, ticket);
    assert_eq!(invited.strays(), 0, "a stranger was answered");
}

fn address(ticket: &Ticket) -> SocketAddr {
    ticket.addresses()[0]
}

/// Builds a packet payload from frames.
fn frames(write: impl FnOnce(&mut FrameWriter<'_>)) -> Vec<u8> {
    let mut buf = vec![0; 1300];
    let mut out = FrameWriter::new(&mut buf);
    write(&mut out);
    let len = out.complete();
    buf.truncate(len);
    buf
}

#[test]
fn strangers_get_no_answer_to_anything() {
    let (world, sender, text, ticket) = sender();
    let socket = raw_peer::socket(address(&ticket));
    for len in (0..1500).chain([8000, 65_000]) {
        let garbage: Vec<u8> = (0..len).map(|i: usize| (i * i + len) as u8).collect();
        socket.send(&garbage).unwrap();
    }
    only_the_invited_is_answered(socket, &ticket);
    still_serves(&world, sender, &text);
}

#[test]
fn the_node_id_without_an_access_key_gets_no_answer() {
    let (world, sender, text, ticket) = sender();
    let (socket, node) = (raw_peer::socket(address(&ticket)), ticket.node_id());
    for access_key in [AccessKey::public(node), AccessKey::of_ticket(&[7; 16], node)] {
        for datagram in raw_peer::h1(node, &access_key) {
            socket.send(&datagram).unwrap();
        }
    }
    only_the_invited_is_answered(socket, &ticket);
    still_serves(&world, sender, &text);
}

#[test]
fn a_new_peer_at_a_reused_address_is_answered() {
    let (world, sender, text, ticket) = sender();
    for frame in [0x00, 0x3f] {
        let mut gone = RawPeer::connect(address(&ticket), &ticket);
        gone.send(&[frame]);
        let socket = gone.into_socket();
        // The sender still sends packets to the peer that has gone: retransmissions, or a close.
        socket.peek(&mut [0]).unwrap();
        let peer = RawPeer::connect_by(socket, &ticket);
        assert_ne!(peer.strays(), 0);
    }
    still_serves(&world, sender, &text);
}

#[test]
fn every_broken_frame_ends_only_its_own_connection() {
    let (world, sender, text, ticket) = sender();
    let broken: Vec<(&str, Vec<u8>, u64)> = vec![
        ("an unknown frame", vec![0x3f], 1),
        ("a cut-off frame", vec![0x10], 1),
        (
            "an ACK of what was never sent",
            frames(|f| {
                f.ack(0, std::iter::once(1_000_000..=1_000_000), None);
            }),
            1,
        ),
        ("an ACK below zero", vec![0x02, 0x01, 0x00, 0x00, 0x05], 1),
        (
            "data beyond the window",
            frames(|f| {
                f.stream(0, 1 << 40, 10, false, |_| {});
            }),
            2,
        ),
        (
            "a stream beyond the limit",
            frames(|f| {
                f.stream(2 * 100_000, 0, 10, false, |_| {});
            }),
            3,
        ),
        (
            "two ends of a stream",
            {
                let mut both = frames(|f| {
                    f.reset_stream(0, 0, 100);
                });
                both.extend(frames(|f| {
                    f.reset_stream(0, 0, 99);
                }));
                both
            },
            4,
        ),
        (
            "a window for a stream of ours that is not open",
            frames(|f| {
                f.max_stream_data(1, 100);
            }),
            1,
        ),
    ];
    for (what, bytes, code) in broken {
        let mut peer = RawPeer::connect(address(&ticket), &ticket);
        assert_eq!(peer.closed_for(&bytes), code, "{what}");
    }
    still_serves(&world, sender, &text);
}

#[test]
fn random_frames_never_bring_the_sender_down() {
    let (world, mut sender, text, ticket) = sender();
    for seed in 0..40u64 {
        let mut peer = RawPeer::connect(address(&ticket), &ticket);
        let mut noise = blake3::Hasher::new().update(&seed.to_be_bytes()).finalize_xof();
        for _ in 0..20 {
            let mut bytes = vec![0; 1 + (seed as usize * 37) % 1200];
            noise.fill(&mut bytes);
            // A plausible frame type reaches deeper into the parser than a random one.
            bytes[0] = (seed % 0x22) as u8;
            peer.send(&bytes);
        }
    }
    assert!(!sender.has_ended());
    still_serves(&world, sender, &text);
}

#[test]
fn silent_peers_do_not_block_receivers() {
    let (world, sender, text, ticket) = sender();
    let idle: Vec<RawPeer> = (0..12).map(|_| RawPeer::connect(address(&ticket), &ticket)).collect();
    still_serves(&world, sender, &text);
    drop(idle);
}
