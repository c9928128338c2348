//! What a client and a relay say to each other over TLS (SPEC §13.3): frames `length(2) ‖ type(1) ‖ body`, and datagrams where UDP
//! does not get through.
//!
//! Invariant: a frame that decodes is well formed and complete; anything else is [`Malformed`], and ends the connection.

use std::net::SocketAddr;

use thiserror::Error;

use crate::header::{INNER_MAX, INNER_MIN, WireId};
use crate::wire::{Reader, put_address};

/// The version of this protocol.
pub const VERSION: u8 = 1;
/// Bytes of a mailbox's name.
pub const MAILBOX_BYTES: usize = 16;
/// Bytes of the length in front of a frame.
pub const LENGTH_BYTES: usize = 2;
/// Type of a frame that carries a datagram: `type(1) ‖ id(8) ‖ datagram`.
const DATAGRAM: u8 = 0;
/// Bytes in front of a datagram in its frame, the length included.
pub const DATAGRAM_FRAME_HEAD: usize = LENGTH_BYTES + 1 + 8;
/// Longest frame that is not a datagram: a WELCOME is the longest there is, with room to grow.
pub const CONTROL_MAX: usize = 400;
/// Longest frame, without its length.
pub const FRAME_MAX: usize = DATAGRAM_FRAME_HEAD - LENGTH_BYTES + INNER_MAX;

/// A place at a relay where a client waits to be dialled.
pub type Mailbox = [u8; MAILBOX_BYTES];

/// The other side does not keep to the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a frame of this protocol")]
pub struct Malformed;

/// Why a relay does not do what it was asked. New ones may come: unknown numbers are [`Refusal::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Refusal {
    /// It speaks another version.
    #[error("the relay speaks another version of the protocol")]
    Version,
    /// It wants a token that was not shown, or another one.
    #[error("the relay wants a token, and this is not it")]
    Token,
    /// It is for certain identities only.
    #[error("the relay is for certain identities only, and this is none of them")]
    Identity,
    /// Too many wrong proofs, or questions, from this address in short time.
    #[error("the relay is asked too often from this address; try later")]
    TooOften,
    /// No room in all, or for this address.
    #[error("the relay is full")]
    Full,
    /// What it may carry in a day is used up.
    #[error("the relay has carried what it may carry in a day")]
    Exhausted,
    /// It is about to end.
    #[error("the relay is about to stop")]
    Draining,
    /// Nobody waits at that mailbox.
    #[error("nobody waits at this relay under that name")]
    NoMailbox,
    /// Something that this version does not know.
    #[error("the relay refuses, with reason {0}")]
    Other(u8),
}

impl Refusal {
    const KNOWN: [Self; 8] = [
        Self::Version,
        Self::Token,
        Self::Identity,
        Self::TooOften,
        Self::Full,
        Self::Exhausted,
        Self::Draining,
        Self::NoMailbox,
    ];

    fn to_wire(self) -> u8 {
        match (self, Self::KNOWN.iter().position(|known| *known == self)) {
            (Self::Other(number), _) => number,
            (_, position) => position.map_or(u8::MAX, |position| position as u8 + 1),
        }
    }

    fn from_wire(number: u8) -> Self {
        let known = usize::from(number).checked_sub(1).and_then(|i| Self::KNOWN.get(i));
        known.copied().unwrap_or(Self::Other(number))
    }
}

/// How a client shows that it may use the relay.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Not at all: the relay is open.
    None,
    /// `keyed(token key, exporter)`.
    Token([u8; 32]),
    /// NodeId and a signature of the exporter.
    Identity {
        /// Who.
        node_id: [u8; 32],
        /// Its signature.
        signature: [u8; 64],
    },
}

/// What a client says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ClientFrame<'a> {
    /// First on every connection.
    Hello {
        /// What it speaks.
        version: u8,
        /// The session to go on with, and the proof that it is one's own.
        resume: Option<(u64, [u8; 32])>,
        /// Whether it may.
        proof: Proof,
    },
    /// Wait at the mailbox of this secret.
    Register([u8; 32]),
    /// Wait there no longer.
    Unregister(Mailbox),
    /// Make a pair with who waits at a mailbox.
    Dial {
        /// Named in the answer.
        request: u32,
        /// Whom.
        mailbox: Mailbox,
    },
    /// A pair is over.
    HangUp(WireId),
    /// Answered by a PONG with the same number.
    Ping(u64),
    /// Whether datagrams for this client go by UDP (to the bound address) or by this connection.
    UseUdp(bool),
    /// For the other end of a pair.
    Datagram(WireId, &'a [u8]),
}

/// What a session is given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    /// Number of the session.
    pub session: u64,
    /// Whether it is the one that the client asked to go on with.
    pub resumed: bool,
    /// Secret of the session; its keys are derived from it.
    pub secret: [u8; 32],
    /// Key of the masks of ids on the way up.
    pub up_mask: [u8; 32],
    /// Id of the session's bindings.
    pub binding: WireId,
    /// With this the relay's UDP port tells another socket where it is seen.
    pub observe: [u8; 32],
    /// UDP port of the relay, at the address it was reached at; 0 if it has none.
    pub udp_port: u16,
    /// A second one, which only tells sockets where they are seen; 0 if it has none.
    pub other_port: u16,
    /// Where this connection comes from.
    pub observed: SocketAddr,
}

/// What a relay says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ServerFrame<'a> {
    /// The client may use the relay.
    Welcome(Welcome),
    /// It may not, and the connection ends.
    Refused(Refusal),
    /// It waits at this mailbox now.
    Registered(Mailbox),
    /// It does not.
    NotRegistered(Mailbox, Refusal),
    /// There is a pair, whose end here is this.
    Dialled(u32, WireId),
    /// There is none.
    NotDialled(u32, Refusal),
    /// Somebody dialled a mailbox of this client; its end of the pair.
    Incoming(WireId, Mailbox),
    /// A pair is over.
    Closed(WireId),
    /// Answers a PING.
    Pong(u64),
    /// The relay makes no new pairs, and ends in so many seconds.
    Draining(u16),
    /// From the other end of a pair.
    Datagram(WireId, &'a [u8]),
}

/// The name of the mailbox of a secret: who has the secret can wait there, and nobody else. It goes into tickets.
pub fn mailbox_of(secret: &[u8; 32]) -> Mailbox {
    let name = wraith_crypto::kdf::derive("wraith/1 relay mailbox", secret);
    *name.first_chunk().expect("longer than a name")
}

/// Appends a frame whose body `write` appends.
fn frame(out: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0, 0, kind]);
    write(out);
    let len = out.len() - start - LENGTH_BYTES;
    debug_assert!(len <= FRAME_MAX, "frames are bounded");
    out[start..start + LENGTH_BYTES].copy_from_slice(&(len as u16).to_be_bytes());
}

/// Appends the frame of a datagram.
pub fn put_datagram(out: &mut Vec<u8>, id: WireId, datagram: &[u8]) {
    frame(out, DATAGRAM, |out| {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(datagram);
    });
}

fn datagram<'a>(reader: &mut Reader<'a>) -> Option<(WireId, &'a [u8])> {
    let id = reader.u64()?;
    let datagram = reader.take(reader.rest().len())?;
    (INNER_MIN..=INNER_MAX).contains(&datagram.len()).then_some((id, datagram))
}

impl<'a> ClientFrame<'a> {
    /// Appends it, length first.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Datagram(id, datagram) => put_datagram(out, *id, datagram),
            Self::Hello { version, resume, proof } => frame(out, 1, |out| {
                out.push(*version);
                out.push(u8::from(resume.is_some()));
                if let Some((session, proof)) = resume {
                    out.extend_from_slice(&session.to_be_bytes());
                    out.extend_from_slice(proof);
                }
                match proof {
                    Proof::None => out.push(0),
                    Proof::Token(proof) => {
                        out.push(1);
                        out.extend_from_slice(proof);
                    }
                    Proof::Identity { node_id, signature } => {
                        out.push(2);
                        out.extend_from_slice(node_id);
                        out.extend_from_slice(signature);
                    }
                }
            }),
            Self::Register(secret) => frame(out, 2, |out| out.extend_from_slice(secret)),
            Self::Unregister(mailbox) => frame(out, 3, |out| out.extend_from_slice(mailbox)),
            Self::Dial { request, mailbox } => frame(out, 4, |out| {
                out.extend_from_slice(&request.to_be_bytes());
                out.extend_from_slice(mailbox);
            }),
            Self::HangUp(id) => frame(out, 5, |out| out.extend_from_slice(&id.to_be_bytes())),
            Self::Ping(number) => frame(out, 6, |out| out.extend_from_slice(&number.to_be_bytes())),
            Self::UseUdp(udp) => frame(out, 7, |out| out.push(u8::from(*udp))),
        }
    }

    /// Reads a whole frame, without its length.
    ///
    /// # Errors
    /// It is none of this version's.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        Self::read(bytes).ok_or(Malformed)
    }

    fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let frame = match reader.u8()? {
            DATAGRAM => {
                let (id, datagram) = datagram(&mut reader)?;
                Self::Datagram(id, datagram)
            }
            1 => {
                let version = reader.u8()?;
                let resume = match reader.u8()? {
                    0 => None,
                    1 => Some((reader.u64()?, reader.array()?)),
                    _ => return None,
                };
                let proof = match reader.u8()? {
                    0 => Proof::None,
                    1 => Proof::Token(reader.array()?),
                    2 => Proof::Identity { node_id: reader.array()?, signature: reader.array()? },
                    _ => return None,
                };
                Self::Hello { version, resume, proof }
            }
            2 => Self::Register(reader.array()?),
            3 => Self::Unregister(reader.array()?),
            4 => Self::Dial { request: reader.u32()?, mailbox: reader.array()? },
            5 => Self::HangUp(reader.u64()?),
            6 => Self::Ping(reader.u64()?),
            7 => Self::UseUdp(flag(reader.u8()?)?),
            _ => return None,
        };
        reader.end(frame)
    }
}

impl<'a> ServerFrame<'a> {
    /// Appends it, length first.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let id = |out: &mut Vec<u8>, id: &WireId| out.extend_from_slice(&id.to_be_bytes());
        match self {
            Self::Datagram(id, datagram) => put_datagram(out, *id, datagram),
            Self::Welcome(welcome) => frame(out, 1, |out| {
                out.extend_from_slice(&welcome.session.to_be_bytes());
                out.push(u8::from(welcome.resumed));
                out.extend_from_slice(&welcome.secret);
                out.extend_from_slice(&welcome.up_mask);
                out.extend_from_slice(&welcome.binding.to_be_bytes());
                out.extend_from_slice(&welcome.observe);
                out.extend_from_slice(&welcome.udp_port.to_be_bytes());
                out.extend_from_slice(&welcome.other_port.to_be_bytes());
                put_address(out, welcome.observed);
            }),
            Self::Refused(why) => frame(out, 2, |out| out.push(why.to_wire())),
            Self::Registered(mailbox) => frame(out, 3, |out| out.extend_from_slice(mailbox)),
            Self::NotRegistered(mailbox, why) => frame(out, 4, |out| {
                out.extend_from_slice(mailbox);
                out.push(why.to_wire());
            }),
            Self::Dialled(request, end) => frame(out, 5, |out| {
                out.extend_from_slice(&request.to_be_bytes());
                id(out, end);
            }),
            Self::NotDialled(request, why) => frame(out, 6, |out| {
                out.extend_from_slice(&request.to_be_bytes());
                out.push(why.to_wire());
            }),
            Self::Incoming(end, mailbox) => frame(out, 7, |out| {
                id(out, end);
                out.extend_from_slice(mailbox);
            }),
            Self::Closed(end) => frame(out, 8, |out| id(out, end)),
            Self::Pong(number) => frame(out, 9, |out| out.extend_from_slice(&number.to_be_bytes())),
            Self::Draining(seconds) => {
                frame(out, 10, |out| out.extend_from_slice(&seconds.to_be_bytes()));
            }
        }
    }

    /// Reads a whole frame, without its length. A type that this version does not know is `Ok(None)`, to be skipped.
    ///
    /// # Errors
    /// It is malformed.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<Self>, Malformed> {
        match bytes.first() {
            None => Err(Malformed),
            Some(0..=10) => Self::read(bytes).map(Some).ok_or(Malformed),
            Some(_) => Ok(None),
        }
    }

    fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let frame = match reader.u8()? {
            DATAGRAM => {
                let (id, datagram) = datagram(&mut reader)?;
                Self::Datagram(id, datagram)
            }
            1 => Self::Welcome(welcome(&mut reader)?),
            2 => Self::Refused(Refusal::from_wire(reader.u8()?)),
            3 => Self::Registered(reader.array()?),
            4 => Self::NotRegistered(reader.array()?, Refusal::from_wire(reader.u8()?)),
            5 => Self::Dialled(reader.u32()?, reader.u64()?),
            6 => Self::NotDialled(reader.u32()?, Refusal::from_wire(reader.u8()?)),
            7 => Self::Incoming(reader.u64()?, reader.array()?),
            8 => Self::Closed(reader.u64()?),
            9 => Self::Pong(reader.u64()?),
            10 => Self::Draining(reader.u16()?),
            _ => return None,
        };
        reader.end(frame)
    }
}

fn welcome(reader: &mut Reader<'_>) -> Option<Welcome> {
    let welcome = Welcome {
        session: reader.u64()?,
        resumed: flag(reader.u8()?)?,
        secret: reader.array()?,
        up_mask: reader.array()?,
        binding: reader.u64()?,
        observe: reader.array()?,
        udp_port: reader.u16()?,
        other_port: reader.u16()?,
        observed: reader.address()?,
    };
    let is_second = welcome.udp_port != 0 && welcome.other_port != welcome.udp_port;
    (welcome.other_port == 0 || is_second).then_some(welcome)
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
            ClientFrame::Datagram(13, &[14; 16]),
        ]
    }

    fn welcome_with(udp_port: u16, other_port: u16) -> Welcome {
        Welcome {
            session: 1,
            resumed: true,
            secret: [2; 32],
            up_mask: [3; 32],
            binding: 4,
            observe: [5; 32],
            udp_port,
            other_port,
            observed: "192.0.2.1:7".parse().unwrap(),
        }
    }

    fn server_frames() -> Vec<ServerFrame<'static>> {
        vec![
            ServerFrame::Welcome(welcome_with(6, 7)),
            ServerFrame::Welcome(welcome_with(6, 0)),
            ServerFrame::Welcome(welcome_with(0, 0)),
            ServerFrame::Refused(Refusal::Other(200)),
            ServerFrame::Registered([8; 16]),
            ServerFrame::NotRegistered([9; 16], Refusal::Full),
            ServerFrame::Dialled(10, 11),
            ServerFrame::NotDialled(12, Refusal::NoMailbox),
            ServerFrame::Incoming(13, [14; 16]),
            ServerFrame::Closed(15),
            ServerFrame::Pong(16),
            ServerFrame::Draining(17),
            ServerFrame::Datagram(18, &[19; 65_000]),
        ]
    }

    /// The body of the one frame in `out`.
    fn body(out: &[u8]) -> &[u8] {
        let (length, body) = out.split_first_chunk().unwrap();
        assert_eq!(usize::from(u16::from_be_bytes(*length)), body.len());
        body
    }

    #[test]
    fn frames_come_back_as_they_were_and_nothing_shorter_or_longer_is_one() {
        for frame in client_frames() {
            let mut out = Vec::new();
            frame.encode(&mut out);
            assert!(ClientFrame::decode(body(&out)) == Ok(frame));
            if matches!(frame, ClientFrame::Datagram(..)) {
                continue;
            }
            assert!(body(&out).len() <= CONTROL_MAX);
            assert!(
                (0..body(&out).len()).all(|len| ClientFrame::decode(&body(&out)[..len]).is_err())
            );
            out.push(0);
            assert!(ClientFrame::decode(&out[2..]).is_err());
        }
        for frame in server_frames() {
            let mut out = Vec::new();
            frame.encode(&mut out);
            assert!(ServerFrame::decode(body(&out)) == Ok(Some(frame)));
            if matches!(frame, ServerFrame::Datagram(..)) {
                continue;
            }
            assert!(body(&out).len() <= CONTROL_MAX);
            assert!(
                (0..body(&out).len()).all(|len| ServerFrame::decode(&body(&out)[..len]).is_err())
            );
            out.push(0);
            assert!(ServerFrame::decode(&out[2..]).is_err());
        }
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
    fn a_second_port_is_another_one_beside_a_first() {
        for (udp_port, other_port) in [(0, 7), (7, 7)] {
            let mut out = Vec::new();
            ServerFrame::Welcome(welcome_with(udp_port, other_port)).encode(&mut out);
            assert!(ServerFrame::decode(body(&out)) == Err(Malformed));
        }
    }

    #[test]
    fn a_refusal_keeps_its_number() {
        for number in 0..=u8::MAX {
            assert_eq!(Refusal::from_wire(number).to_wire(), number);
        }
    }
}
