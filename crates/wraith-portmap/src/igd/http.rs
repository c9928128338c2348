//! One HTTP/1.1 exchange with a router: one request, one bounded answer, then the connection is
//! closed.
//!
//! Requests go only to the router itself ([`Url::at`]). Bytes, headers and time are limited.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::grant::Refusal;

/// Time for connecting, sending and receiving together. Routers are slow but on the local network.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(3);
/// Most bytes in an answer's head and body. Real descriptions have 2–20 KiB.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Most header lines in an answer. Routers send about ten.
const HEADERS_MAX: usize = 48;
/// Most bytes in a path. Routers use an identifier and a file name.
const PATH_BYTES_MAX: usize = 1024;
const HTTP: u16 = 80;

/// A URL at a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    pub host: SocketAddrV4,
    /// Begins with `/`; visible ASCII without spaces.
    pub path: String,
}

impl Url {
    /// Parses `text` as an `http` URL at `router`. Other hosts are rejected, so an answer cannot
    /// redirect requests.
    pub fn at(router: Ipv4Addr, text: &str) -> Option<Self> {
        let rest = text.trim().strip_prefix("http://")?;
        let split = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(split);
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (authority, HTTP),
        };
        let host: Ipv4Addr = host.parse().ok()?;
        let path = if path.is_empty() { "/" } else { path };
        (host == router && port != 0 && is_path(path))
            .then(|| Self { host: SocketAddrV4::new(host, port), path: path.to_owned() })
    }

    /// Resolves `reference` against this page: a whole URL at the same router, an absolute path, or
    /// a relative one.
    pub fn join(&self, reference: &str) -> Option<Self> {
        let reference = reference.trim();
        if reference.contains("://") {
            return Self::at(*self.host.ip(), reference);
        }
        let folder = self.path.rfind('/').map_or("/", |slash| &self.path[..=slash]);
        let path = match reference.strip_prefix('/') {
            Some(rest) => format!("/{rest}"),
            None => format!("{folder}{reference}"),
        };
        is_path(&path).then_some(Self { host: self.host, path })
    }
}

fn is_path(text: &str) -> bool {
    text.len() <= PATH_BYTES_MAX
        && text.starts_with('/')
        && text.bytes().all(|b| b.is_ascii_graphic())
}

/// An HTTP answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

pub async fn get(url: &Url) -> Result<Answer, Refusal> {
    exchange(url, "GET", "", "").await
}

/// Posts XML. `headers` consists of whole lines, each with its line ending.
pub async fn post(url: &Url, headers: &str, body: &str) -> Result<Answer, Refusal> {
    let headers = format!(
        "{headers}Content-Type: text/xml; charset=\"utf-8\"\r\nContent-Length: {}\r\n",
        body.len()
    );
    exchange(url, "POST", &headers, body).await
}

async fn exchange(url: &Url, method: &str, headers: &str, body: &str) -> Result<Answer, Refusal> {
    let Url { host, path } = url;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n{body}"
    );
    let answer = async {
        let mut stream = TcpStream::connect(host).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut received = Vec::new();
        loop {
            if let Some(answer) = parse(&received, false)? {
                return Ok(answer);
            }
            let room = (ANSWER_BYTES_MAX - received.len()) as u64;
            if room == 0 {
                return Err(Refusal::Malformed);
            }
            // Reads the available bytes, at most `room`.
            if (&mut stream).take(room).read_buf(&mut received).await? == 0 {
                return parse(&received, true)?.ok_or(Refusal::Malformed);
            }
        }
    };
    timeout(EXCHANGE_TIMEOUT, answer).await.unwrap_or(Err(Refusal::NoAnswer))
}

/// End-of-body marker of an answer.
enum Framing {
    Length(usize),
    Chunked,
    UntilClosed,
}

/// Parses the answer in `bytes`; `None` means that more bytes are needed. `closed` marks the end of
/// the stream.
fn parse(bytes: &[u8], closed: bool) -> Result<Option<Answer>, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let malformed = |_| Refusal::Malformed;
    let httparse::Status::Complete(len) = head.parse(bytes).map_err(malformed)? else {
        return Ok(None);
    };
    let status = head.code.ok_or(Refusal::Malformed)?;
    let rest = &bytes[len..];
    let body = match framing(head.headers)? {
        Framing::Length(length) => rest.get(..length).map(<[u8]>::to_vec),
        Framing::Chunked => chunks(rest)?,
        Framing::UntilClosed => closed.then(|| rest.to_vec()),
    };
    Ok(body.map(|body| Answer { status, body }))
}

fn framing(headers: &[httparse::Header<'_>]) -> Result<Framing, Refusal> {
    let value = |name: &str| {
        let header = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        Some(std::str::from_utf8(header.value).unwrap_or_default().trim())
    };
    if value("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        return Ok(Framing::Chunked);
    }
    match value("content-length").map(str::parse) {
        Some(Ok(length)) if length <= ANSWER_BYTES_MAX => Ok(Framing::Length(length)),
        Some(_) => Err(Refusal::Malformed),
        None => Ok(Framing::UntilClosed),
    }
}

/// Decodes a chunked body (RFC 9112 §7.1), or returns `None` until the last chunk has arrived. All
/// chunks are parsed again after each read; answers are small.
fn chunks(mut rest: &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
    let mut body = Vec::new();
    loop {
        let parsed = httparse::parse_chunk_size(rest).map_err(|_| Refusal::Malformed)?;
        let httparse::Status::Complete((start, size)) = parsed else { return Ok(None) };
        if size > ANSWER_BYTES_MAX as u64 {
            return Err(Refusal::Malformed);
        }
        let size = size as usize;
        if size == 0 {
            return Ok(Some(body));
        }
        let Some(chunk) = rest.get(start..start + size) else { return Ok(None) };
        body.extend_from_slice(chunk);
        // A chunk is followed by CRLF, which may not have arrived yet.
        rest = rest.get(start + size + 2..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROUTER: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 1);

    fn body_of(text: &str, closed: bool) -> Option<String> {
        let answer = parse(text.as_bytes(), closed).unwrap()?;
        Some(String::from_utf8(answer.body).unwrap())
    }

    #[test]
    fn only_urls_at_the_router_are_accepted() {
        let url = Url::at(ROUTER, "http://192.168.1.1:5000/root.xml").unwrap();
        assert_eq!((url.host.port(), url.path.as_str()), (5000, "/root.xml"));
        assert_eq!(Url::at(ROUTER, "http://192.168.1.1").unwrap().path, "/");
        for text in [
            "http://192.168.1.2/root.xml",
            "http://192.168.1.1:0/",
            "http://192.168.1.1:99999/",
            "https://192.168.1.1/",
            "http://router/",
            "http://192.168.1.1@10.0.0.1/",
            "http://192.168.1.1/a b",
            "http://192.168.1.1/a\r\nX: y",
            "",
        ] {
            assert_eq!(Url::at(ROUTER, text), None, "{text}");
        }
    }

    #[test]
    fn a_reference_stays_at_the_router() {
        let page = Url::at(ROUTER, "http://192.168.1.1:5000/igd/root.xml").unwrap();
        assert_eq!(page.join("/ctl").unwrap().path, "/ctl");
        assert_eq!(page.join("ctl").unwrap().path, "/igd/ctl");
        assert_eq!(page.join("http://192.168.1.1:80/x").unwrap().host.port(), 80);
        assert_eq!(page.join("http://10.0.0.1/x"), None);
        assert_eq!(page.join("/a\nb"), None);
        assert_eq!(page.join(&"a".repeat(PATH_BYTES_MAX)), None);
    }

    #[test]
    fn an_answer_ends_by_length_by_chunks_or_with_the_connection() {
        let length = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef";
        assert_eq!(body_of(length, false).unwrap(), "abc");
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n";
        assert_eq!(body_of(&format!("{chunked}\r\n"), false).unwrap(), "abcde");
        let open = "HTTP/1.0 500 Oh\r\n\r\nabc";
        assert_eq!(body_of(open, false), None);
        assert_eq!(body_of(open, true).unwrap(), "abc");
        for end in 0..length.len() - 3 {
            assert_eq!(body_of(&length[..end], false), None);
        }
    }

    #[test]
    fn lengths_beyond_the_limit_are_refused_at_once() {
        for head in [
            "Content-Length: 65537",
            "Content-Length: 99999999999999999999999",
            "Content-Length: -1",
        ] {
            let answer = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n");
            assert_eq!(parse(answer.as_bytes(), false), Err(Refusal::Malformed), "{head}");
        }
        let chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n";
        assert_eq!(parse(chunk.as_bytes(), false), Err(Refusal::Malformed));
    }

    proptest! {
        #[test]
        fn arbitrary_answers_do_not_panic(head in "(HTTP/1.1 200 OK\r\n)?((Transfer-Encoding: chunked|Content-Length: [0-9]{1,4})\r\n\r\n)?",
                                rest: Vec<u8>, closed: bool) {
            let _ = parse(&[head.as_bytes(), &rest].concat(), closed);
        }
    }
}
