//! Frames between a rendezvous server and its clients (SPEC §11.5): `length(2) ‖ type(1) ‖ body`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use wraith_crypto::wire_enum;

use crate::place::{MAX_MESSAGE_LEN, Refusal};
use crate::reach::encode_address;

/// Version of this protocol.
pub const VERSION: u8 = 1;
/// Longest frame without its length field, in bytes: a message behind type, version and nameplate.
pub const MAX_FRAME_LEN: usize = 6 + MAX_MESSAGE_LEN;
const LENGTH_LEN: usize = 2;
const ADDRESS_LEN: usize = 19;

/// A client's frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientFrame {
    /// Waits at this nameplate, or at another one unless `exact` is set.
    Open { nameplate: u32, exact: bool },
    /// Joins the creator at this nameplate, with the first message.
    Join { nameplate: u32, message: Vec<u8> },
    /// A message to this joiner; from a joiner to the creator, `joiner` is 0.
    Send { joiner: u32, message: Vec<u8> },
    /// Keeps the connection alive.
    Ping,
    /// Stops waiting, for this reason.
    Close(Refusal),
}

/// A server's frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerFrame {
    /// The client waits at this nameplate; contains its observed address.
    Opened { nameplate: u32, seen: SocketAddr },
    /// The creator has the first message; contains the joiner's observed address.
    Joined { seen: SocketAddr },
    /// A new joiner and its first message.
    Arrived { joiner: u32, message: Vec<u8> },
    /// A message from this joiner; from the creator to a joiner, `joiner` is 0.
    Message { joiner: u32, message: Vec<u8> },
    /// This joiner left; to a joiner, the creator left.
    Left { joiner: u32 },
    /// Answers a ping.
    Pong,
    /// The request failed.
    Refused(ServerRefusal),
}

wire_enum! {
    /// Reason of a server's refusal.
    pub enum ServerRefusal {
        /// No creator waits at this nameplate.
        Nobody = 1,
        /// Another creator waits at this nameplate.
        Taken = 2,
        /// Too many requests from this address.
        TooFast = 3,
        /// The server or the nameplate has no room.
        Full = 4,
        /// The frame is malformed or of another version.
        Malformed = 5,
        /// The creator was found by another joiner.
        Used = 6,
        /// A joiner guessed wrong.
        Burned = 7,
        /// The creator's code has expired.
        Expired = 8,
    }
}

impl ServerRefusal {
    /// Returns the refusal for late joiners at a nameplate that was closed for this reason.
    pub const fn after(closed: Refusal) -> Self {
        match closed {
            Refusal::Used => Self::Used,
            Refusal::Burned | Refusal::Wrong => Self::Burned,
            Refusal::Expired => Self::Expired,
            Refusal::Unfit | Refusal::Unknown => Self::Nobody,
        }
    }
}

impl ClientFrame {
    /// Encodes the frame with its length.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Open { nameplate, exact } => {
                frame(1, &[&[VERSION], &nameplate.to_be_bytes(), &[u8::from(*exact)]])
            }
            Self::Join { nameplate, message } => {
                frame(2, &[&[VERSION], &nameplate.to_be_bytes(), message])
            }
            Self::Send { joiner, message } => frame(3, &[&joiner.to_be_bytes(), message]),
            Self::Ping => frame(4, &[]),
            Self::Close(why) => frame(5, &[&[why.byte()]]),
        }
    }

    /// Decodes a frame without its length.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, body) = bytes.split_first()?;
        Some(match (kind, body) {
            (1, [VERSION, a, b, c, d, exact @ (0 | 1)]) => {
                Self::Open { nameplate: u32::from_be_bytes([*a, *b, *c, *d]), exact: *exact == 1 }
            }
            (2, [VERSION, rest @ ..]) => {
                let (nameplate, message) = numbered(rest)?;
                Self::Join { nameplate, message }
            }
            (3, rest) => {
                let (joiner, message) = numbered(rest)?;
                Self::Send { joiner, message }
            }
            (4, []) => Self::Ping,
            (5, [why]) => Self::Close(Refusal::from_byte(*why)?),
            _ => return None,
        })
    }
}

impl ServerFrame {
    /// Encodes the frame with its length.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Opened { nameplate, seen } => {
                frame(17, &[&nameplate.to_be_bytes(), &encode_address(*seen)])
            }
            Self::Joined { seen } => frame(18, &[&encode_address(*seen)]),
            Self::Arrived { joiner, message } => frame(19, &[&joiner.to_be_bytes(), message]),
            Self::Message { joiner, message } => frame(20, &[&joiner.to_be_bytes(), message]),
            Self::Left { joiner } => frame(21, &[&joiner.to_be_bytes()]),
            Self::Pong => frame(22, &[]),
            Self::Refused(why) => frame(23, &[&[why.byte()]]),
        }
    }

    /// Decodes a frame without its length.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, body) = bytes.split_first()?;
        Some(match (kind, body) {
            (17, _) => {
                let (nameplate, seen) = body.split_first_chunk()?;
                Self::Opened {
                    nameplate: u32::from_be_bytes(*nameplate),
                    seen: parse_address(seen)?,
                }
            }
            (18, _) => Self::Joined { seen: parse_address(body)? },
            (19, _) => {
                let (joiner, message) = numbered(body)?;
                Self::Arrived { joiner, message }
            }
            (20, _) => {
                let (joiner, message) = numbered(body)?;
                Self::Message { joiner, message }
            }
            (21, _) => Self::Left { joiner: u32::from_be_bytes(body.try_into().ok()?) },
            (22, []) => Self::Pong,
            (23, [why]) => Self::Refused(ServerRefusal::from_byte(*why)?),
            _ => return None,
        })
    }
}

/// The received bytes cannot be a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidFrameLength;

/// Removes the first whole frame from the front of the buffer.
///
/// # Errors
/// [`InvalidFrameLength`]
pub fn split(buffer: &mut Vec<u8>) -> Result<Option<Vec<u8>>, InvalidFrameLength> {
    let Some((length, rest)) = buffer.split_first_chunk::<LENGTH_LEN>() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes(*length));
    if length == 0 || length > MAX_FRAME_LEN {
        return Err(InvalidFrameLength);
    }
    let Some(frame) = rest.get(..length) else { return Ok(None) };
    let frame = frame.to_vec();
    buffer.drain(..LENGTH_LEN + length);
    Ok(Some(frame))
}

fn frame(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length = 1 + parts.iter().map(|part| part.len()).sum::<usize>();
    debug_assert!(length <= MAX_FRAME_LEN);
    let mut out = Vec::with_capacity(LENGTH_LEN + length);
    out.extend_from_slice(&(length as u16).to_be_bytes());
    out.push(kind);
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}

fn numbered(bytes: &[u8]) -> Option<(u32, Vec<u8>)> {
    let (nameplate, message) = bytes.split_first_chunk()?;
    (message.len() <= MAX_MESSAGE_LEN).then(|| (u32::from_be_bytes(*nameplate), message.to_vec()))
}

fn parse_address(bytes: &[u8]) -> Option<SocketAddr> {
    let bytes: &[u8; ADDRESS_LEN] = bytes.try_into().ok()?;
    let ip: [u8; 16] = bytes[1..17].try_into().ok()?;
    let ip: IpAddr = match bytes[0] {
        4 if ip[4..] == [0; 12] => Ipv4Addr::new(ip[0], ip[1], ip[2], ip[3]).into(),
        6 => Ipv6Addr::from(ip).into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_be_bytes([bytes[17], bytes[18]])))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn client_frames() -> Vec<ClientFrame> {
        let message = vec![7; MAX_MESSAGE_LEN];
        vec![
            ClientFrame::Open { nameplate: 7, exact: false },
            ClientFrame::Open { nameplate: u32::MAX, exact: true },
            ClientFrame::Join { nameplate: 7, message: message.clone() },
            ClientFrame::Send { joiner: 3, message },
            ClientFrame::Send { joiner: 3, message: vec![] },
            ClientFrame::Ping,
            ClientFrame::Close(Refusal::Burned),
        ]
    }

    fn server_frames() -> Vec<ServerFrame> {
        let message = vec![7; MAX_MESSAGE_LEN];
        vec![
            ServerFrame::Opened { nameplate: 7, seen: "1.2.3.4:5".parse().unwrap() },
            ServerFrame::Joined { seen: "[2001:db8::1]:5".parse().unwrap() },
            ServerFrame::Arrived { joiner: 1, message: message.clone() },
            ServerFrame::Message { joiner: 0, message },
            ServerFrame::Left { joiner: 9 },
            ServerFrame::Pong,
            ServerFrame::Refused(ServerRefusal::Expired),
        ]
    }

    #[test]
    fn frames_survive_a_stream_split_at_any_byte() {
        let (clients, servers) = (client_frames(), server_frames());
        let stream: Vec<u8> = clients
            .iter()
            .map(ClientFrame::encode)
            .chain(servers.iter().map(ServerFrame::encode))
            .flatten()
            .collect();
        for step in [1, 2, 3, 100, stream.len()] {
            let (mut buffer, mut got) = (Vec::new(), Vec::new());
            for piece in stream.chunks(step) {
                buffer.extend_from_slice(piece);
                while let Some(frame) = split(&mut buffer).unwrap() {
                    got.push(frame);
                }
            }
            let (from_clients, from_server) = got.split_at(clients.len());
            let decoded: Vec<_> =
                from_clients.iter().map(|f| ClientFrame::decode(f).unwrap()).collect();
            assert_eq!(decoded, clients);
            let decoded: Vec<_> =
                from_server.iter().map(|f| ServerFrame::decode(f).unwrap()).collect();
            assert_eq!(decoded, servers);
            assert!(buffer.is_empty());
        }
    }

    #[test]
    fn lengths_that_no_frame_has_are_refused_before_anything_is_kept() {
        for length in [0, MAX_FRAME_LEN as u16 + 1, u16::MAX] {
            assert_eq!(split(&mut length.to_be_bytes().to_vec()), Err(InvalidFrameLength));
        }
    }

    #[test]
    fn another_version_is_malformed() {
        let mut open = ClientFrame::Open { nameplate: 7, exact: false }.encode()[2..].to_vec();
        open[1] = 2;
        assert_eq!(ClientFrame::decode(&open), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_refused_or_encode_to_themselves(
            kind in 0..30_u8,
            body in prop::collection::vec(any::<u8>(), 0..MAX_FRAME_LEN),
            versioned: bool,
        ) {
            let version: &[u8] = if versioned { &[VERSION] } else { &[] };
            let bytes = [&[kind][..], version, &body].concat();
            if let Some(frame) = ClientFrame::decode(&bytes) {
                prop_assert_eq!(&frame.encode()[2..], &bytes);
            }
            if let Some(frame) = ServerFrame::decode(&bytes) {
                prop_assert_eq!(&frame.encode()[2..], &bytes);
            }
        }

        #[test]
        fn a_stream_of_anything_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let mut buffer = bytes;
            while let Ok(Some(frame)) = split(&mut buffer) {
                let _ = (ClientFrame::decode(&frame), ServerFrame::decode(&frame));
            }
        }
    }
}
