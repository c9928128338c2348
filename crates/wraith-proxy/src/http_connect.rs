//! Tunnel through an HTTP proxy: CONNECT (RFC 9110 §9.3.6), with basic authentication (RFC 7617).

use std::io;

use data_encoding::BASE64;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use zeroize::Zeroizing;

use crate::error::Denial;
use crate::socks5::Failure;
use crate::target::Target;
use crate::url::Credentials;

/// Maximum length of an answer's head, in bytes. Proxies in use send a few hundred.
const HEAD_BYTES_MAX: usize = 8 * 1024;
const HEADERS_MAX: usize = 64;
const HEAD_END: &[u8] = b"\r\n\r\n";

pub async fn handshake(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    credentials: Option<&Credentials>,
    target: &Target,
) -> Result<(), Failure> {
    let target = target.authority();
    let mut request =
        Zeroizing::new(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes());
    if let Some(Credentials { user, password }) = credentials {
        let pair = Zeroizing::new([user, &b":"[..], password].concat());
        request.extend_from_slice(b"Proxy-Authorization: Basic ");
        request.extend_from_slice(Zeroizing::new(BASE64.encode(&pair)).as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    stream.write_all(&request).await?;
    let head = read_head(stream).await?;
    match status(&head).ok_or(Failure::InvalidReply)? {
        // Headers that announce a body are ignored: a successful answer to CONNECT has none.
        200..=299 => Ok(()),
        401 | 407 if credentials.is_some() => Err(Failure::CredentialsRefused),
        401 | 407 => Err(Failure::CredentialsWanted),
        code => Err(Failure::Denied(denial(code))),
    }
}

/// Reads the head of the answer byte by byte: the bytes after it belong to the tunnel.
async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, Failure> {
    let mut head = Vec::with_capacity(256);
    while !head.ends_with(HEAD_END) {
        if head.len() == HEAD_BYTES_MAX {
            return Err(Failure::InvalidReply);
        }
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            // The server answered, but not like a proxy.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && !head.is_empty() => {
                return Err(Failure::InvalidReply);
            }
            Err(error) => return Err(error.into()),
        }
        // Fail at once if this cannot become a status line.
        if !head.starts_with(b"HTTP/") && !b"HTTP/".starts_with(&head) {
            return Err(Failure::InvalidReply);
        }
    }
    Ok(head)
}

fn status(head: &[u8]) -> Option<u16> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    response.parse(head).ok().filter(httparse::Status::is_complete)?;
    response.code
}

fn denial(code: u16) -> Denial {
    match code {
        403 => Denial::Forbidden,
        404 => Denial::UnknownHost,
        405 | 501 => Denial::NotOffered,
        502..=504 => Denial::Unreachable,
        code => Denial::Code(code),
    }
}
