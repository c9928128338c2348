//! Classifies the NAT of this machine by real sockets. It uses the addresses that two servers see,
//! the answers that get through, and whether a socket reaches another by its external address.
//!
//! ```text
//! question   kind(1) ‖ id(8)         kind: who answers too, before the one that was asked
//! answer     id(8) ‖ the asker's address as text
//! ```
//!
//! The protocol is used only with [`serve`] in a closed lab, so there is nothing to authenticate.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::{Serialize, Serializer};

use wraith_core::nat::{
    Allocation, Filtering, Mapping, ObservedAddress, allocation, filtering, mapping,
};

/// UDP ports of a server, at each of its addresses.
const PORTS: [u16; 2] = [3478, 3479];
/// TCP ports: the one that every network lets through if it lets anything through, and one that a
/// strict network blocks.
const TCP_PORTS: [u16; 2] = [443, 8443];
const ID_BYTES: usize = 8;
const QUESTION_BYTES: usize = 1 + ID_BYTES;
/// Only the asked server answers.
const ASKED: u8 = 0;
const OTHER_PORT: u8 = 1;
const OTHER_ADDRESS: u8 = 2;
/// The lab has no delay: a server that does not answer in this time, three times, is unreachable.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(300);
const ATTEMPTS: u64 = 3;
/// Wait for another server's answer after that of the asked one, although it was sent before it.
const QUIET: Duration = Duration::from_millis(150);
/// Number of sockets that determine the allocation of ports.
const SOCKETS: usize = 6;

/// Two addresses of the server, of one family.
#[derive(Debug, clap::Args)]
pub struct Servers {
    /// Two addresses of the server
    #[arg(long, num_args = 2, required = true)]
    servers: Vec<IpAddr>,
}

/// Result of a probe.
#[derive(Debug, Serialize)]
struct Report {
    /// `None` if UDP is blocked.
    udp: Option<Udp>,
    tcp_443: bool,
    tcp_other: bool,
}

#[derive(Debug, Serialize)]
struct Udp {
    local: SocketAddr,
    observed: SocketAddr,
    #[serde(serialize_with = "shown")]
    mapping: Mapping,
    #[serde(serialize_with = "shown")]
    filtering: Filtering,
    #[serde(serialize_with = "shown")]
    allocation: Allocation,
    hairpin: bool,
}

/// Serializes a value by its name.
fn shown<S: Serializer>(kind: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(kind)
}

/// Answers at all ports of these addresses until standard input is closed; prints `ready`.
pub fn run_servers(args: &Servers) -> Result<()> {
    let mut sockets = Vec::new();
    for address in &args.servers {
        for port in PORTS {
            sockets.push(UdpSocket::bind((*address, port)).with_context(|| address.to_string())?);
        }
        for port in TCP_PORTS {
            let listener = TcpListener::bind((*address, port))?;
            thread::spawn(move || listener.incoming().for_each(drop));
        }
    }
    for at in 0..sockets.len() {
        let all = sockets.iter().map(UdpSocket::try_clone).collect::<io::Result<Vec<_>>>()?;
        thread::spawn(move || answer(&all, at));
    }
    println!("ready");
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Answers at socket number `at`. Sockets are in the order address, port.
fn answer(sockets: &[UdpSocket], at: usize) -> io::Result<()> {
    let mut buffer = [0; 64];
    loop {
        let (len, from) = sockets[at].recv_from(&mut buffer)?;
        let ([kind, id @ ..], QUESTION_BYTES) = (&buffer[..len], len) else { continue };
        let answer = [id, from.to_string().as_bytes()].concat();
        let other = match *kind {
            OTHER_PORT => Some(at ^ 1),
            OTHER_ADDRESS => Some(at ^ 3),
            _ => None,
        };
        if let Some(other) = other {
            // An unreachable host counts as a loss.
            let _ = sockets[other].send_to(&answer, from);
        }
        let _ = sockets[at].send_to(&answer, from);
    }
}

/// Prints the result as one line of JSON.
pub fn probe(args: &Servers) -> Result<()> {
    let servers: [IpAddr; 2] = args.servers[..].try_into()?;
    ensure!(servers[0].is_ipv4() == servers[1].is_ipv4(), "both servers of one family");
    let reaches = |port| {
        TcpStream::connect_timeout(&SocketAddr::new(servers[0], port), ANSWER_TIMEOUT).is_ok()
    };
    let report = Report {
        udp: udp(servers)?,
        tcp_443: reaches(TCP_PORTS[0]),
        tcp_other: reaches(TCP_PORTS[1]),
    };
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

fn udp([a, b]: [IpAddr; 2]) -> Result<Option<Udp>> {
    let [first, other_port] = PORTS.map(|port| SocketAddr::new(b, port));
    let begin = SocketAddr::new(a, PORTS[0]);
    let socket = bound(a)?;
    let Some(observed) = query(&socket, begin, ASKED)?.seen else { return Ok(None) };
    let local = SocketAddr::new(address_towards(begin)?, socket.local_addr()?.port());
    let see = |by| -> Result<ObservedAddress> {
        let at = query(&socket, by, ASKED)?.seen.context("one of two answers")?;
        Ok(ObservedAddress { by, at })
    };
    let observations = [ObservedAddress { by: begin, at: observed }, see(first)?, see(other_port)?];
    let mapping = mapping(&[local.ip()], local.port(), &observations).context("two are enough")?;

    // This socket has sent to one endpoint only.
    let fresh = bound(a)?;
    let filtering = filtering(
        query(&fresh, begin, OTHER_ADDRESS)?.other,
        query(&fresh, begin, OTHER_PORT)?.other,
    );

    let mut ports = Vec::new();
    let mut sockets = Vec::new();
    for _ in 0..SOCKETS {
        let socket = bound(a)?;
        let seen = query(&socket, begin, ASKED)?.seen.context("it was answered before")?;
        ports.push((socket.local_addr()?.port(), seen.port()));
        sockets.push((socket, seen));
    }
    let hairpin = hairpin(&sockets[0].0, sockets[1].1)? && hairpin_arrives(&sockets[1].0)?;
    let allocation = allocation(&ports).context("several are enough")?;
    Ok(Some(Udp { local, observed, mapping, filtering, allocation, hairpin }))
}

/// Answers to one question.
#[derive(Debug)]
struct Answered {
    /// Address that the asked server saw.
    seen: Option<SocketAddr>,
    /// Whether the answer of another server got through.
    other: bool,
}

fn query(socket: &UdpSocket, to: SocketAddr, kind: u8) -> Result<Answered> {
    let mut answered = Answered { seen: None, other: false };
    let mut buffer = [0; 128];
    for attempt in 0..ATTEMPTS {
        let id = [attempt.to_be_bytes()[7], kind, 0, 0, 0, 0, 0, 1];
        socket.send_to(&[&[kind][..], &id].concat(), to)?;
        let mut deadline = Instant::now() + ANSWER_TIMEOUT;
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            socket.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            // An ICMP message that reports an unreachable host counts as silence.
            let Ok((len, from)) = socket.recv_from(&mut buffer) else { continue };
            let Some(text) = buffer[..len].strip_prefix(&id) else { continue };
            if from != to {
                answered.other = true;
            } else if answered.seen.is_none() {
                answered.seen = Some(std::str::from_utf8(text)?.parse()?);
                deadline = deadline.min(Instant::now() + QUIET);
            }
            if answered.seen.is_some() && (answered.other || kind == ASKED) {
                return Ok(answered);
            }
        }
        if answered.seen.is_some() {
            break;
        }
    }
    Ok(answered)
}

/// Sends to the external address of another socket of this machine. Returns whether the send
/// succeeded.
fn hairpin(socket: &UdpSocket, outside: SocketAddr) -> Result<bool> {
    Ok(socket.send_to(b"hairpin", outside).is_ok())
}

fn hairpin_arrives(socket: &UdpSocket) -> Result<bool> {
    socket.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let mut buffer = [0; 16];
    Ok(socket.recv(&mut buffer).is_ok_and(|len| &buffer[..len] == b"hairpin"))
}

/// Binds a socket of the address family of `like`, at a port chosen by the system.
fn bound(like: IpAddr) -> io::Result<UdpSocket> {
    let any: IpAddr =
        if like.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    UdpSocket::bind((any, 0))
}

/// Returns our own address on the route to `to`; sends nothing.
fn address_towards(to: SocketAddr) -> io::Result<IpAddr> {
    let socket = bound(to.ip())?;
    socket.connect(to)?;
    Ok(socket.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_nat_nothing_is_mapped_or_filtered() {
        let servers = [[127, 81, 0, 1], [127, 81, 0, 2]].map(|ip| IpAddr::from(Ipv4Addr::from(ip)));
        let sockets: Vec<_> = servers
            .iter()
            .flat_map(|ip| PORTS.map(|port| UdpSocket::bind((*ip, port)).unwrap()))
            .collect();
        for at in 0..sockets.len() {
            let all: Vec<_> = sockets.iter().map(|socket| socket.try_clone().unwrap()).collect();
            thread::spawn(move || answer(&all, at));
        }
        let found = udp(servers).unwrap().unwrap();
        assert_eq!(
            (found.mapping, found.filtering),
            (Mapping::None, Filtering::EndpointIndependent)
        );
        assert_eq!((found.allocation, found.hairpin), (Allocation::Preserving, true));
    }
}
