//! SSDP search for a router's UPnP description (UPnP Device Architecture 1.1 §1.3).
//!
//! The search goes to the UPnP multicast group and to the gateway. An answer is accepted only if it
//! comes from the gateway and its URL points to the gateway.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};

use super::http::Url;
use crate::gateway::Gateway;
use crate::grant::Refusal;

const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 255, 250), SSDP);
const SSDP: u16 = 1900;
/// Search targets. A router answers to several of these; routers that answer only to the last are
/// rare.
const TARGETS: [&str; 3] = [
    "urn:schemas-upnp-org:device:InternetGatewayDevice:1",
    "urn:schemas-upnp-org:device:InternetGatewayDevice:2",
    "upnp:rootdevice",
];
/// Seconds over which devices spread their answers. One second is the minimum of the standard.
const SPREAD: u32 = 1;
/// Most answers to examine. Other devices on the network answer as well.
const ANSWERS_MAX: usize = 64;
const ANSWER_BYTES_MAX: usize = 2048;
const HEADERS_MAX: usize = 32;

/// Returns the URL of the gateway's description if an answer arrives within `limit`.
pub async fn search(gateway: Gateway, limit: Duration) -> Result<Url, Refusal> {
    let socket = UdpSocket::bind((gateway.local, 0)).await?;
    // Without a bound address, the kernel would select the multicast interface. Both destinations
    // are on the gateway's network.
    let mut sent = Err(Refusal::NoAnswer);
    for target in TARGETS {
        for to in [SocketAddrV4::new(gateway.router, SSDP), GROUP] {
            let question = question(to, target);
            // A failure of one destination does not stop the other.
            match socket.send_to(question.as_bytes(), to).await {
                Ok(_) => sent = Ok(()),
                Err(error) if sent.is_err() => sent = Err(error.into()),
                Err(_) => {}
            }
        }
    }
    sent?;
    let deadline = Instant::now() + limit;
    let mut buffer = [0; ANSWER_BYTES_MAX];
    for _ in 0..ANSWERS_MAX {
        match timeout_at(deadline, socket.recv_from(&mut buffer)).await {
            Err(_) => break,
            Ok(Ok((len, SocketAddr::V4(from)))) if *from.ip() == gateway.router => {
                if let Some(url) = location(gateway.router, &buffer[..len]) {
                    return Ok(url);
                }
            }
            // An answer of another host, or the ICMP error of a closed port at the gateway.
            Ok(_) => {}
        }
    }
    Err(Refusal::NoAnswer)
}

fn question(to: SocketAddrV4, target: &str) -> String {
    format!(
        "M-SEARCH * HTTP/1.1\r\nHOST: {to}\r\nMAN: \"ssdp:discover\"\r\nMX: {SPREAD}\r\nST: {target}\r\n\r\n"
    )
}

/// Returns the URL in an answer if it points to the router.
fn location(router: Ipv4Addr, answer: &[u8]) -> Option<Url> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let parsed = head.parse(answer).ok()?;
    if !parsed.is_complete() || head.code != Some(200) {
        return None;
    }
    let place = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case("location"))?;
    Url::at(router, std::str::from_utf8(place.value).ok()?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROUTER: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 1);

    #[test]
    fn only_locations_at_the_router_are_accepted() {
        let answer = |location: &str| {
            format!(
                "HTTP/1.1 200 OK\r\nST: upnp:rootdevice\r\nLOCATION: {location}\r\nEXT:\r\n\r\n"
            )
        };
        let good = answer("http://192.168.1.1:5000/root.xml");
        assert_eq!(location(ROUTER, good.as_bytes()).unwrap().path, "/root.xml");
        assert_eq!(location(ROUTER, answer("http://192.168.1.9/root.xml").as_bytes()), None);
        assert_eq!(location(ROUTER, good.replace("200", "404").as_bytes()), None);
        assert_eq!(location(ROUTER, good.replace("LOCATION", "X").as_bytes()), None);
        for end in 0..good.len() {
            assert_eq!(location(ROUTER, &good.as_bytes()[..end]), None);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_answers_do_not_panic(head in "(HTTP/1.1 200 OK\r\n)?(LOCATION: )?", rest: Vec<u8>) {
            let _ = location(ROUTER, &[head.as_bytes(), &rest].concat());
        }
    }
}
