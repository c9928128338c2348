//! A flood to an open port at a given rate. It consists of random datagrams of strangers, or of
//! genuine first handshake messages by a holder of the ticket. It comes from one or many addresses.
//!
//! All datagrams are prepared first; then the program prints `ready`. It starts when it reads a
//! line from standard input, and finally prints how much it sent. It stops early when standard
//! input is closed. Only loopback addresses are flooded.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use serde_json::json;
use wraith_crypto::{Policy, SecretIdentity};
use wraith_discovery::Ticket;
use wraith_noise::{AccessKey, EphemeralKey, Initiator, InitiatorHello};

/// Number of different random datagrams, which are repeated.
const JUNK: u64 = 10_000;
/// Lengths of datagrams that pass the first check of a receiver.
const LENGTHS: std::ops::RangeInclusive<usize> = 40..=1452;
/// Number of bursts a second.
const TICKS: u32 = 1000;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Destination: a loopback address
    to: SocketAddr,
    /// Send H1s for this ticket, each valid and used once, instead of random bytes
    #[arg(long)]
    handshakes_for: Option<Ticket>,
    /// Datagrams per second
    #[arg(long)]
    per_second: u32,
    #[arg(long)]
    seconds: u32,
    /// Number of loopback addresses to send from
    #[arg(long, default_value_t = 1)]
    sources: u32,
}

pub fn run(args: &Args) -> Result<()> {
    ensure!(args.to.ip().is_loopback() && args.to.is_ipv4(), "only 127.0.0.0/8 is flooded");
    let datagrams = match &args.handshakes_for {
        Some(ticket) => handshakes(ticket, u64::from(args.per_second) * u64::from(args.seconds))?,
        None => junk(),
    };
    let sockets = (0..args.sources).map(source).collect::<io::Result<Vec<_>>>()?;
    println!("ready");
    io::stdout().flush()?;
    io::stdin().read_line(&mut String::new())?;
    let stopped = Arc::new(AtomicBool::new(false));
    let heard = stopped.clone();
    std::thread::spawn(move || {
        // Runs until standard input is closed.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        heard.store(true, Relaxed);
    });
    let (sent, refused, lasted) = flood(args, &datagrams, &sockets, &stopped);
    let seconds = lasted.as_secs_f64();
    println!("{}", json!({ "sent": sent, "refused": refused, "seconds": seconds }));
    Ok(())
}

/// Sends until the time is over. Returns the datagrams sent, those that the system refused, and the
/// duration.
fn flood(
    args: &Args,
    datagrams: &[Vec<u8>],
    sockets: &[UdpSocket],
    stopped: &AtomicBool,
) -> (u64, u64, Duration) {
    let total = u64::from(args.per_second) * u64::from(args.seconds);
    let (start, tick) = (Instant::now(), Duration::from_secs(1) / TICKS);
    let (mut sent, mut refused) = (0_u64, 0_u64);
    // Both datagrams of an H1 come from one address.
    let sockets: Vec<_> = sockets.iter().flat_map(|socket| [socket; 2]).collect();
    let pairs = datagrams.iter().cycle().zip(sockets.iter().cycle());
    for (n, (datagram, socket)) in (0..total).zip(pairs) {
        let due = start + Duration::from_secs_f64(n as f64 / f64::from(args.per_second));
        let now = Instant::now();
        if due > now + tick {
            std::thread::sleep(due - now);
        }
        // The second condition applies if the rate is too high for this machine.
        if stopped.load(Relaxed) || now > start + Duration::from_secs(u64::from(args.seconds)) {
            break;
        }
        match socket.send_to(datagram, args.to) {
            Ok(_) => sent += 1,
            Err(_) => refused += 1,
        }
    }
    (sent, refused, start.elapsed())
}

fn junk() -> Vec<Vec<u8>> {
    let mut rng = ChaCha20Rng::from_seed([1; 32]);
    let span = (LENGTHS.end() - LENGTHS.start() + 1) as u64;
    (0..JUNK)
        .map(|n| {
            let mut datagram = vec![0; LENGTHS.start() + (n * 7919 % span) as usize];
            rng.fill_bytes(&mut datagram);
            datagram
        })
        .collect()
}

/// Returns the datagrams of honest initiators, two for each, and a new key for each.
fn handshakes(ticket: &Ticket, count: u64) -> Result<Vec<Vec<u8>>> {
    let mut rng = ChaCha20Rng::from_seed([2; 32]);
    let identity = SecretIdentity::from_seed([3; 32]);
    let unix_seconds = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let node = ticket.node_id();
    let access_key = AccessKey::of_ticket(ticket.capability().as_bytes(), node);
    let one = |_| {
        let hello = InitiatorHello {
            suites: Policy::Default.packet_suites(),
            aes_hardware: true,
            unix_seconds,
        };
        let ephemeral = EphemeralKey::generate(&mut rng);
        Ok(Initiator::start(&identity, node, &access_key, &ephemeral, &hello, &mut rng)?.1)
    };
    let all: Vec<_> = (0..count.div_ceil(2)).map(one).collect::<Result<_>>()?;
    Ok(all.into_iter().flatten().collect())
}

/// Binds a socket to address `n`, counted from 127.1.0.1.
fn source(n: u32) -> io::Result<UdpSocket> {
    let address = Ipv4Addr::from_bits(Ipv4Addr::new(127, 1, 0, 1).to_bits() + n);
    let socket = UdpSocket::bind((IpAddr::V4(address), 0))?;
    // Answers are not read, and the sender does not wait for buffer space either.
    socket.set_nonblocking(true)?;
    Ok(socket)
}
