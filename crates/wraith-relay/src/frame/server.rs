//! Frames from a relay to a client.

use std::net::SocketAddr;

use super::{Mailbox, Malformed, Refusal, flag, frame, put_datagram, read};
use crate::header::WireId;
use crate::wire::{Reader, put_address};

/// Parameters of a session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    /// ID of the session.
    pub session: u64,
    /// Whether the requested session was resumed.
    pub resumed: bool,
    /// Secret from which the session's keys are derived.
    pub secret: [u8; 32],
    /// ID of the relay's binding messages.
    pub binding: WireId,
    /// Secret with which another socket queries its observed address.
    pub observe: [u8; 32],
    /// The relay's UDP port at the same address; 0 if it has none.
    pub udp_port: u16,
    /// The second UDP port, which only reports observed addresses; 0 if there is none.
    pub other_port: u16,
    /// Observed source address of this connection.
    pub observed: SocketAddr,
}

/// A relay's frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ServerFrame<'a> {
    /// The client is admitted.
    Welcome(Welcome),
    /// The client is refused, and the connection ends.
    Refused(Refusal),
    /// The client now waits at this mailbox.
    Registered(Mailbox),
    /// The registration was refused.
    NotRegistered(Mailbox, Refusal),
    /// A pair was made; holds the request number and the ID of the client's end.
    Dialled(u32, WireId),
    /// The request for a pair was refused.
    NotDialled(u32, Refusal),
    /// A peer dialled a mailbox of this client; holds the ID of the client's end.
    Incoming(WireId, Mailbox),
    /// A pair was closed.
    Closed(WireId),
    /// Answers a PING.
    Pong(u64),
    /// The relay makes no new pairs, and stops in this many seconds.
    Draining(u16),
    /// The relay's wall clock in seconds since 1970, after WELCOME.
    Clock(u64),
    /// A datagram from the other end of a pair.
    Datagram(WireId, &'a [u8]),
}

impl<'a> ServerFrame<'a> {
    /// Appends the frame, length first.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let id = |out: &mut Vec<u8>, id: &WireId| out.extend_from_slice(&id.to_be_bytes());
        match self {
            Self::Datagram(id, datagram) => put_datagram(out, *id, datagram),
            Self::Welcome(welcome) => frame(out, 1, |out| {
                out.extend_from_slice(&welcome.session.to_be_bytes());
                out.push(u8::from(welcome.resumed));
                out.extend_from_slice(&welcome.secret);
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
            Self::Clock(seconds) => {
                frame(out, 11, |out| out.extend_from_slice(&seconds.to_be_bytes()));
            }
        }
    }

    /// Decodes a whole frame, without its length. Returns `Ok(None)` for an unknown type, which is
    /// skipped.
    ///
    /// # Errors
    /// The frame is malformed.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<Self>, Malformed> {
        match bytes.first() {
            None => Err(Malformed),
            Some(0..=11) => Self::read(bytes).map(Some).ok_or(Malformed),
            Some(_) => Ok(None),
        }
    }

    fn read(bytes: &'a [u8]) -> Option<Self> {
        read(bytes, Self::Datagram, |kind, reader| {
            Some(match kind {
                1 => Self::Welcome(welcome(reader)?),
                2 => Self::Refused(Refusal::from_wire(reader.u8()?)),
                3 => Self::Registered(reader.array()?),
                4 => Self::NotRegistered(reader.array()?, Refusal::from_wire(reader.u8()?)),
                5 => Self::Dialled(reader.u32()?, reader.u64()?),
                6 => Self::NotDialled(reader.u32()?, Refusal::from_wire(reader.u8()?)),
                7 => Self::Incoming(reader.u64()?, reader.array()?),
                8 => Self::Closed(reader.u64()?),
                9 => Self::Pong(reader.u64()?),
                10 => Self::Draining(reader.u16()?),
                11 => Self::Clock(reader.u64()?),
                _ => return None,
            })
        })
    }
}

fn welcome(reader: &mut Reader<'_>) -> Option<Welcome> {
    let welcome = Welcome {
        session: reader.u64()?,
        resumed: flag(reader.u8()?)?,
        secret: reader.array()?,
        binding: reader.u64()?,
        observe: reader.array()?,
        udp_port: reader.u16()?,
        other_port: reader.u16()?,
        observed: reader.address()?,
    };
    let is_second = welcome.udp_port != 0 && welcome.other_port != welcome.udp_port;
    (welcome.other_port == 0 || is_second).then_some(welcome)
}
