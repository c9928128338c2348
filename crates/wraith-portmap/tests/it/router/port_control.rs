//! Server side of RFC 6887 and RFC 6886, written from the RFCs and independent of the client's
//! library.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;
use tokio::sync::watch;

use super::{Entry, ProtocolSupport, RouterState};

const EPOCH: u32 = 1000;
/// First external port of a server that cannot grant the requested one.
const FIRST_PORT: u16 = 40_000;
const UDP: u8 = 17;

pub async fn serve_port_control(
    socket: UdpSocket,
    state: Arc<Mutex<RouterState>>,
    count: watch::Sender<u32>,
) {
    let mut buffer = [0; 1100];
    loop {
        let (len, from) = socket.recv_from(&mut buffer).await.unwrap();
        let answer = answer(&mut state.lock().unwrap(), &buffer[..len], from);
        if let Some(answer) = answer {
            socket.send_to(&answer, from).await.unwrap();
        }
        count.send_modify(|count| *count += 1);
    }
}

fn answer(state: &mut RouterState, request: &[u8], from: SocketAddr) -> Option<Vec<u8>> {
    let enable_only = if request[0] == 2 { state.pcp.clone() } else { state.nat_pmp.clone() };
    match enable_only {
        ProtocolSupport::Silent => None,
        ProtocolSupport::Bytes(bytes) => Some(bytes),
        // Version 0, response to opcode 0, result 1: unsupported version.
        ProtocolSupport::Unsupported => Some(vec![0, 128, 0, 1, 0, 0, 0, 9]),
        ProtocolSupport::Supported if request[0] == 2 => Some(pcp(state, request, from)),
        ProtocolSupport::Supported => Some(nat_pmp(state, request, from)),
    }
}

/// RFC 6887 §11: a header of 24 bytes and a MAP payload of 36.
fn pcp(state: &mut RouterState, request: &[u8], from: SocketAddr) -> Vec<u8> {
    assert_eq!((request.len(), request[1]), (60, 1), "one MAP request without options");
    let client: [u8; 16] = request[8..24].try_into().unwrap();
    let client = Ipv6Addr::from(client).to_ipv4_mapped().unwrap();
    assert_eq!(SocketAddr::from((client, from.port())), from, "the client says who it is");
    let nonce: [u8; 12] = request[24..36].try_into().unwrap();
    assert_eq!(request[36], UDP);
    let (inside, wish) = (port(request, 40), port(request, 42));
    let to = SocketAddrV4::new(client, inside);
    let (external, lifetime) = match lifetime(request, 4) {
        0 => {
            state.mappings.retain(|_, entry| entry.to != to || entry.nonce != Some(nonce));
            (0, 0)
        }
        lifetime => grant(state, Entry { to, lifetime, nonce: Some(nonce) }, wish),
    };
    let mut answer = vec![2, 0x81, 0, 0];
    answer.extend(lifetime.to_be_bytes());
    answer.extend(EPOCH.to_be_bytes());
    answer.extend([0; 12]);
    answer.extend(nonce);
    answer.extend([UDP, 0, 0, 0]);
    answer.extend(inside.to_be_bytes());
    answer.extend(external.to_be_bytes());
    answer.extend(state.external_ip.to_ipv6_mapped().octets());
    answer
}

/// RFC 6886 §3.2 and §3.3.
fn nat_pmp(state: &mut RouterState, request: &[u8], from: SocketAddr) -> Vec<u8> {
    let mut answer = vec![0, 128 + request[1], 0, 0];
    answer.extend(EPOCH.to_be_bytes());
    if request == [0, 0] {
        answer.extend(state.external_ip.octets());
        return answer;
    }
    assert_eq!((request.len(), request[0], request[1]), (12, 0, 1), "a request for UDP");
    let SocketAddr::V4(client) = from else { panic!("the router has no other address") };
    let (inside, wish) = (port(request, 4), port(request, 6));
    let to = SocketAddrV4::new(*client.ip(), inside);
    let (external, lifetime) = match lifetime(request, 8) {
        0 => {
            state.mappings.retain(|_, entry| entry.to != to);
            (0, 0)
        }
        lifetime => grant(state, Entry { to, lifetime, nonce: None }, wish),
    };
    answer.extend(inside.to_be_bytes());
    answer.extend(external.to_be_bytes());
    answer.extend(lifetime.to_be_bytes());
    answer
}

/// Returns the port and lifetime to report.
fn grant(state: &mut RouterState, mut entry: Entry, wish: u16) -> (u16, u32) {
    entry.lifetime = state.lifetime.unwrap_or(entry.lifetime);
    let known = state.mappings.iter().find(|(_, known)| known.to == entry.to);
    let free = |port: &u16| *port != 0 && !state.mappings.contains_key(port);
    let external = known
        .map(|(port, _)| *port)
        .unwrap_or_else(|| [wish].into_iter().chain(FIRST_PORT..).find(free).unwrap());
    let lifetime = entry.lifetime;
    state.mappings.insert(external, entry);
    (state.port_said.unwrap_or(external), lifetime)
}

fn port(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn lifetime(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Maps `external` to another machine. Only the client's own mappings are ever replaced.
pub fn map_for_another_client(state: &mut RouterState, external: u16) {
    let to = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 99), 1);
    state.mappings.insert(external, Entry { to, lifetime: 3600, nonce: None });
}
