//! Client side of SOCKS5 (RFC 1928), with user name and password (RFC 1929).
//!
//! ```text
//! greeting   5 ‖ n ‖ n methods            choice    5 ‖ method
//! password   1 ‖ user ‖ password          verdict   1 ‖ status        (each with a byte of length)
//! request    5 ‖ command ‖ 0 ‖ address    reply     5 ‖ code ‖ 0 ‖ address
//! address    1 ‖ IPv4(4) ‖ port(2)   3 ‖ length ‖ name ‖ port(2)   4 ‖ IPv6(16) ‖ port(2)
//! ```
//!
//! Invariant: every length is known before the field is read, and no field is longer than 255
//! bytes.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use zeroize::Zeroizing;

use crate::error::Denial;
use crate::target::Target;
use crate::url::Credentials;

const VERSION: u8 = 5;
const PASSWORD_VERSION: u8 = 1;
const NO_AUTHENTICATION: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
const NONE_ACCEPTABLE: u8 = 0xff;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
/// Maximum length of the address at the start of a datagram: kind, IPv6 address, port.
pub const ADDRESS_BYTES_MAX: usize = 1 + 16 + 2;

/// Command of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Connect = 1,
    UdpAssociate = 3,
}

/// Reason why a handshake failed.
#[derive(Debug)]
pub enum Failure {
    Io(io::Error),
    /// The answer violates the protocol.
    InvalidReply,
    CredentialsWanted,
    CredentialsRefused,
    Denied(Denial),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Performs the whole handshake. Returns the address that the proxy has bound, if the reply has
/// one.
pub async fn handshake(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    credentials: Option<&Credentials>,
    command: Command,
    target: &Target,
) -> Result<Option<SocketAddr>, Failure> {
    let greeting: &[u8] = match credentials {
        Some(_) => &[VERSION, 2, NO_AUTHENTICATION, USER_AND_PASSWORD],
        None => &[VERSION, 1, NO_AUTHENTICATION],
    };
    stream.write_all(greeting).await?;
    let [version, method] = read(stream).await?;
    if version != VERSION {
        return Err(Failure::InvalidReply);
    }
    match (method, credentials) {
        (NO_AUTHENTICATION, _) => {}
        (USER_AND_PASSWORD, Some(credentials)) => authenticate(stream, credentials).await?,
        (NONE_ACCEPTABLE, None) => return Err(Failure::CredentialsWanted),
        (NONE_ACCEPTABLE, Some(_)) => return Err(Failure::CredentialsRefused),
        _ => return Err(Failure::InvalidReply),
    }
    let mut request = vec![VERSION, command as u8, 0];
    write_target(&mut request, target);
    stream.write_all(&request).await?;
    let [version, code, _reserved, kind] = read(stream).await?;
    if version != VERSION {
        return Err(Failure::InvalidReply);
    }
    if code != 0 {
        return Err(Failure::Denied(denial(code)));
    }
    bound(stream, kind).await
}

async fn authenticate(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    credentials: &Credentials,
) -> Result<(), Failure> {
    let Credentials { user, password } = credentials;
    let mut message = Zeroizing::new(Vec::with_capacity(3 + user.len() + password.len()));
    message.push(PASSWORD_VERSION);
    for text in [user, password] {
        message.push(text.len() as u8);
        message.extend_from_slice(text);
    }
    stream.write_all(&message).await?;
    match read(stream).await? {
        [PASSWORD_VERSION, 0] => Ok(()),
        [PASSWORD_VERSION, _] => Err(Failure::CredentialsRefused),
        _ => Err(Failure::InvalidReply),
    }
}

/// Reads the address of a reply. Some proxies send the name of an interface instead; it is skipped.
async fn bound(
    stream: &mut (impl AsyncRead + Unpin),
    kind: u8,
) -> Result<Option<SocketAddr>, Failure> {
    let ip = match kind {
        IPV4 => Some(IpAddr::from(read::<4>(stream).await?)),
        IPV6 => Some(IpAddr::from(read::<16>(stream).await?)),
        NAME => {
            let [len] = read(stream).await?;
            stream.read_exact(&mut [0; 255][..usize::from(len)]).await?;
            None
        }
        _ => return Err(Failure::InvalidReply),
    };
    let port = u16::from_be_bytes(read(stream).await?);
    Ok(ip.map(|ip| SocketAddr::new(ip, port)))
}

async fn read<const N: usize>(stream: &mut (impl AsyncRead + Unpin)) -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Maps a reply code (RFC 1928 §6).
fn denial(code: u8) -> Denial {
    match code {
        2 => Denial::Forbidden,
        3..=6 => Denial::Unreachable,
        7 | 8 => Denial::NotOffered,
        code => Denial::Code(code.into()),
    }
}

/// Appends kind, address or name, and port.
pub fn write_target(out: &mut Vec<u8>, target: &Target) {
    match target {
        Target::Address(address) => {
            match address.ip() {
                IpAddr::V4(ip) => {
                    out.push(IPV4);
                    out.extend(ip.octets());
                }
                IpAddr::V6(ip) => {
                    out.push(IPV6);
                    out.extend(ip.octets());
                }
            }
            out.extend(address.port().to_be_bytes());
        }
        Target::Name(name, port) => {
            out.extend([NAME, name.len() as u8]);
            out.extend(name.as_bytes());
            out.extend(port.to_be_bytes());
        }
    }
}

/// Reads the address at the start of `bytes`. Returns it with its length, or `None` if it is a name
/// or truncated.
pub fn read_address(bytes: &[u8]) -> Option<(SocketAddr, usize)> {
    let (&kind, rest) = bytes.split_first()?;
    let (ip, rest) = match kind {
        IPV4 => {
            let (ip, rest) = rest.split_first_chunk::<4>()?;
            (IpAddr::V4(Ipv4Addr::from(*ip)), rest)
        }
        IPV6 => {
            let (ip, rest) = rest.split_first_chunk::<16>()?;
            (IpAddr::V6(Ipv6Addr::from(*ip)), rest)
        }
        _ => return None,
    };
    let (port, rest) = rest.split_first_chunk::<2>()?;
    Some((SocketAddr::new(ip, u16::from_be_bytes(*port)), bytes.len() - rest.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn addresses_survive_the_wire(ip: std::net::IpAddr, port: u16, rest: Vec<u8>) {
            let mut bytes = Vec::new();
            write_target(&mut bytes, &Target::Address(SocketAddr::new(ip, port)));
            let len = bytes.len();
            for end in 0..len {
                prop_assert_eq!(read_address(&bytes[..end]), None);
            }
            bytes.extend(rest);
            prop_assert_eq!(read_address(&bytes), Some((SocketAddr::new(ip, port), len)));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
            let _ = read_address(&bytes);
        }
    }
}
