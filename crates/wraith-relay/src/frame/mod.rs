//! Frames between client and relay over TLS (SPEC §13.3): `length(2) ‖ type(1) ‖ body`. They also
//! carry datagrams if UDP is blocked.
//!
//! Invariant: a decoded frame is well formed and complete. Everything else is [`Malformed`] and
//! ends the connection.

mod client;
mod refusal;
mod server;

use thiserror::Error;

use crate::header::{INNER_MAX, INNER_MIN, WireId};
use crate::wire::Reader;

pub use client::{ClientFrame, Proof};
pub use refusal::Refusal;
pub use server::{ServerFrame, Welcome};

/// Version of this protocol.
pub const VERSION: u8 = 1;
/// Length of a mailbox name in bytes.
pub const MAILBOX_BYTES: usize = 16;
/// Length of a frame's length field in bytes.
pub const LENGTH_BYTES: usize = 2;
/// Type of a datagram frame: `type(1) ‖ id(8) ‖ datagram`.
const DATAGRAM: u8 = 0;
/// Bytes in front of a datagram in its frame, including the length field.
pub const DATAGRAM_FRAME_HEAD: usize = LENGTH_BYTES + 1 + 8;
/// Longest frame other than a datagram, in bytes. WELCOME is the longest; there is room to grow.
pub const CONTROL_MAX: usize = 400;
/// Longest frame without its length field, in bytes.
pub const FRAME_MAX: usize = DATAGRAM_FRAME_HEAD - LENGTH_BYTES + INNER_MAX;

/// Name of a place at a relay where a client waits to be dialled.
pub type Mailbox = [u8; MAILBOX_BYTES];

/// The other side violated the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a frame of this protocol")]
pub struct Malformed;

/// Derives a mailbox's name, which tickets contain. Only an owner of the secret can wait at it.
pub fn mailbox_of(secret: &[u8; 32]) -> Mailbox {
    let name = wraith_crypto::kdf::derive("wraith/1 relay mailbox", secret);
    *name.first_chunk().expect("longer than a name")
}

/// Appends a frame; `write` appends its body.
fn frame(out: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0, 0, kind]);
    write(out);
    let len = out.len() - start - LENGTH_BYTES;
    debug_assert!(len <= FRAME_MAX, "frames are bounded");
    out[start..start + LENGTH_BYTES].copy_from_slice(&(len as u16).to_be_bytes());
}

/// Appends a datagram frame.
pub fn put_datagram(out: &mut Vec<u8>, id: WireId, datagram: &[u8]) {
    frame(out, DATAGRAM, |out| {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(datagram);
    });
}

/// Reads a whole frame without its length. `control` reads a frame that is no datagram, by its
/// type.
fn read<'a, F>(
    bytes: &'a [u8],
    of_datagram: impl FnOnce(WireId, &'a [u8]) -> F,
    control: impl FnOnce(u8, &mut Reader<'a>) -> Option<F>,
) -> Option<F> {
    let mut reader = Reader::new(bytes);
    let frame = match reader.u8()? {
        DATAGRAM => {
            let id = reader.u64()?;
            let datagram = reader.take(reader.rest().len())?;
            if !(INNER_MIN..=INNER_MAX).contains(&datagram.len()) {
                return None;
            }
            of_datagram(id, datagram)
        }
        kind => control(kind, &mut reader)?,
    };
    reader.end(frame)
}

fn flag(byte: u8) -> Option<bool> {
    match byte {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::welcome;

    fn client_frames() -> Vec<ClientFrame<'static>> {
        let identity = Proof::Identity { node_id: [4; 32], signature: [5; 64] };
        vec![
            ClientFrame::Hello { version: 1, resume: None, proof: Proof::None },
            ClientFrame::Hello { version: 1, resume: Some((2, [3; 32])), proof: identity },
            ClientFrame::Hello { version: 9, resume: None, proof: Proof::Token([6; 32]) },
            ClientFrame::Register([7; 32]),
            ClientFrame::Unregister([8; 16]),
            ClientFrame::Dial { request: 9, mailbox: [10; 16] },
            ClientFrame::HangUp(11),
            ClientFrame::Ping(12),
            ClientFrame::UseUdp(true),
            ClientFrame::Leave,
            ClientFrame::BindFrom(15),
            ClientFrame::Datagram(13, &[14; 16]),
        ]
    }

    fn server_frames() -> Vec<ServerFrame<'static>> {
        vec![
            ServerFrame::Welcome(welcome(6, 7)),
            ServerFrame::Welcome(welcome(6, 0)),
            ServerFrame::Welcome(welcome(0, 0)),
            ServerFrame::Refused(Refusal::Other(200)),
            ServerFrame::Registered([8; 16]),
            ServerFrame::NotRegistered([9; 16], Refusal::Full),
            ServerFrame::Dialled(10, 11),
            ServerFrame::NotDialled(12, Refusal::NoMailbox),
            ServerFrame::Incoming(13, [14; 16]),
            ServerFrame::Closed(15),
            ServerFrame::Pong(16),
            ServerFrame::Draining(17),
            ServerFrame::Clock(u64::MAX),
            ServerFrame::Datagram(18, &[19; 65_000]),
        ]
    }

    /// Returns the body of the only frame in `out`.
    fn body(out: &[u8]) -> &[u8] {
        let (length, body) = out.split_first_chunk().unwrap();
        assert_eq!(usize::from(u16::from_be_bytes(*length)), body.len());
        body
    }

    #[test]
    fn frames_survive_the_wire_and_other_lengths_are_rejected() {
        for frame in client_frames() {
            let mut out = Vec::new();
            frame.encode(&mut out);
            assert!(ClientFrame::decode(body(&out)) == Ok(frame));
            if !matches!(frame, ClientFrame::Datagram(..)) {
                only_this_length(out, |bytes| ClientFrame::decode(bytes).is_ok());
            }
        }
        for frame in server_frames() {
            let mut out = Vec::new();
            frame.encode(&mut out);
            assert!(ServerFrame::decode(body(&out)) == Ok(Some(frame)));
            if !matches!(frame, ServerFrame::Datagram(..)) {
                only_this_length(out, |bytes| ServerFrame::decode(bytes).is_ok());
            }
        }
    }

    /// Checks that no other length of the frame in `out` is valid.
    fn only_this_length(mut out: Vec<u8>, is_valid: impl Fn(&[u8]) -> bool) {
        assert!(body(&out).len() <= CONTROL_MAX);
        assert!((0..body(&out).len()).all(|len| !is_valid(&body(&out)[..len])));
        out.push(0);
        assert!(!is_valid(&out[2..]));
    }

    #[test]
    fn datagrams_have_bounds_and_unknown_frames_of_a_relay_are_skipped() {
        for len in [0, INNER_MIN - 1, INNER_MAX + 1] {
            let mut bytes = vec![0; 9];
            bytes.resize(9 + len, 1);
            assert!(ClientFrame::decode(&bytes).is_err() && ServerFrame::decode(&bytes).is_err());
        }
        assert!(ServerFrame::decode(&[77, 1, 2]) == Ok(None));
        assert!(ClientFrame::decode(&[77, 1, 2]) == Err(Malformed));
    }

    #[test]
    fn a_second_port_requires_a_different_first_port() {
        for (udp_port, other_port) in [(0, 7), (7, 7)] {
            let mut out = Vec::new();
            ServerFrame::Welcome(welcome(udp_port, other_port)).encode(&mut out);
            assert!(ServerFrame::decode(body(&out)) == Err(Malformed));
        }
    }
}
