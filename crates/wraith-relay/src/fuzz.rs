//! Fuzz targets for frames in both directions. They panic on a defect and are not part of the
//! public API.

use std::net::SocketAddr;

use crate::frame::{ClientFrame, LENGTH_BYTES, Proof, Refusal, ServerFrame, Welcome};

/// Decodes a frame. A decoded frame must encode and decode to the same value.
pub fn frame(bytes: &[u8]) {
    let mut again = Vec::new();
    if let Ok(frame) = ClientFrame::decode(bytes) {
        frame.encode(&mut again);
        assert!(ClientFrame::decode(&again[LENGTH_BYTES..]) == Ok(frame));
    }
    again.clear();
    if let Ok(Some(frame)) = ServerFrame::decode(bytes) {
        frame.encode(&mut again);
        assert!(ServerFrame::decode(&again[LENGTH_BYTES..]) == Ok(Some(frame)));
    }
}

/// Returns valid frames without their lengths, as a seed corpus.
pub fn frames() -> Vec<Vec<u8>> {
    let mailbox = [8; 16];
    let identity = Proof::Identity { node_id: [4; 32], signature: [5; 64] };
    let client = [
        ClientFrame::Hello { version: 1, resume: None, proof: Proof::Token([6; 32]) },
        ClientFrame::Hello { version: 1, resume: Some((2, [3; 32])), proof: identity },
        ClientFrame::Register([7; 32]),
        ClientFrame::Unregister(mailbox),
        ClientFrame::Dial { request: 9, mailbox },
        ClientFrame::Ping(12),
        ClientFrame::UseUdp(true),
        ClientFrame::Leave,
        ClientFrame::BindFrom(15),
    ];
    let server = [
        ServerFrame::Welcome(welcome(6, 7)),
        ServerFrame::NotRegistered(mailbox, Refusal::Token),
        ServerFrame::NotDialled(9, Refusal::Version),
        ServerFrame::Incoming(3, mailbox),
        ServerFrame::Draining(30),
        ServerFrame::Clock(31),
        ServerFrame::Datagram(13, &[14; 16]),
    ];
    let client = client.into_iter().map(|frame| encoded(|out| frame.encode(out)));
    client.chain(server.into_iter().map(|frame| encoded(|out| frame.encode(out)))).collect()
}

/// Returns a valid WELCOME.
pub(crate) fn welcome(udp_port: u16, other_port: u16) -> Welcome {
    Welcome {
        session: 1,
        resumed: true,
        secret: [2; 32],
        binding: 4,
        observe: [5; 32],
        udp_port,
        other_port,
        observed: SocketAddr::from(([192, 0, 2, 1], 7)),
    }
}

fn encoded(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out.split_off(LENGTH_BYTES)
}
