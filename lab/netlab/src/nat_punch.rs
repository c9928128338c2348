//! Plain hole punching between two hosts behind NATs. Each host sends to the external address that
//! the other host would have if that host's NAT kept the port. It answers to the source of each
//! received packet. The result shows which paths the NATs of a lab allow, as a reference for a
//! program's own hole punching.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

const PROBE: &[u8] = b"probe";
const ANSWER: &[u8] = b"answer";
const INTERVAL: Duration = Duration::from_millis(20);
/// Both sides start within a fraction of it.
const LIMIT: Duration = Duration::from_millis(2500);
/// A side with an answer continues for this long, so that the other side gets one, too.
const LINGER: Duration = Duration::from_millis(300);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Local port
    #[arg(long)]
    port: u16,
    /// Expected address of the other side
    #[arg(long)]
    to: SocketAddr,
}

#[derive(Debug, Serialize)]
struct Report {
    /// Source of an answer; `None` if there is no path.
    answered_by: Option<SocketAddr>,
}

/// Prints the result as one line of JSON.
pub fn run(args: &Args) -> Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, args.port))?;
    let report = Report { answered_by: punch(&socket, args.to)? };
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

fn punch(socket: &UdpSocket, mut to: SocketAddr) -> Result<Option<SocketAddr>> {
    socket.set_read_timeout(Some(INTERVAL))?;
    let mut end = Instant::now() + LIMIT;
    let mut answered_by = None;
    let mut next = Instant::now();
    let mut buffer = [0; 16];
    while Instant::now() < end {
        if Instant::now() >= next {
            // A missing route counts as a loss.
            let _ = socket.send_to(PROBE, to);
            next += INTERVAL;
        }
        let Ok((len, from)) = socket.recv_from(&mut buffer) else { continue };
        if &buffer[..len] == PROBE {
            let _ = socket.send_to(ANSWER, from);
            // The source is the other side's real address.
            to = from;
        } else if &buffer[..len] == ANSWER && answered_by.is_none() {
            answered_by = Some(from);
            end = Instant::now() + LINGER;
        }
    }
    Ok(answered_by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sockets_without_a_nat_find_each_other() {
        let [a, b] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let [at_a, at_b] = [&a, &b].map(|socket| socket.local_addr().unwrap());
        let other = std::thread::spawn(move || punch(&b, at_a).unwrap());
        assert_eq!(punch(&a, at_b).unwrap(), Some(at_b));
        assert_eq!(other.join().unwrap(), Some(at_a));
    }
}
