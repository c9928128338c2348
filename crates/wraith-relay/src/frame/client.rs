//! Frames from a client to a relay.

use super::{Mailbox, Malformed, flag, frame, put_datagram, read};
use crate::header::WireId;

/// Proof that a client may use the relay.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// None, for an open relay.
    None,
    /// `keyed(token key, exporter)`.
    Token([u8; 32]),
    /// NodeId and a signature of the exporter.
    Identity {
        /// The client's identity.
        node_id: [u8; 32],
        /// Its signature.
        signature: [u8; 64],
    },
}

/// A client's frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ClientFrame<'a> {
    /// First frame of every connection.
    Hello {
        /// Protocol version.
        version: u8,
        /// Session to resume, and the proof of its secret.
        resume: Option<(u64, [u8; 32])>,
        /// Proof of admission.
        proof: Proof,
    },
    /// Wait at the mailbox of this secret.
    Register([u8; 32]),
    /// Stop waiting at this mailbox.
    Unregister(Mailbox),
    /// Make a pair with the client that waits at a mailbox.
    Dial {
        /// Request number, repeated in the response.
        request: u32,
        /// The mailbox.
        mailbox: Mailbox,
    },
    /// Close a pair.
    HangUp(WireId),
    /// Request a PONG with the same number.
    Ping(u64),
    /// Deliver this client's datagrams over UDP (to the bound address) or over this connection.
    UseUdp(bool),
    /// End the session: its mailboxes are free, and its pairs end with the other side's session or
    /// shortly after.
    Leave,
    /// The binding messages go on with this counter, because many were not answered.
    BindFrom(u64),
    /// A datagram for the other end of a pair.
    Datagram(WireId, &'a [u8]),
}

impl<'a> ClientFrame<'a> {
    /// Appends the frame, length first.
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
            Self::Leave => frame(out, 8, |_| ()),
            Self::BindFrom(counter) => {
                frame(out, 9, |out| out.extend_from_slice(&counter.to_be_bytes()));
            }
        }
    }

    /// Decodes a whole frame, without its length.
    ///
    /// # Errors
    /// The frame is not part of this version.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        Self::read(bytes).ok_or(Malformed)
    }

    fn read(bytes: &'a [u8]) -> Option<Self> {
        read(bytes, Self::Datagram, |kind, reader| {
            Some(match kind {
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
                        2 => {
                            Proof::Identity { node_id: reader.array()?, signature: reader.array()? }
                        }
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
                8 => Self::Leave,
                9 => Self::BindFrom(reader.u64()?),
                _ => return None,
            })
        })
    }
}
