//! Compares transfers through a relay with a direct connection, from memory to memory. Sender,
//! relay and receiver are three processes. Every byte is verified, and the transports take turns.
//!
//! ```text
//! cargo run --release -p wraith-relay --example race                 # direct, by UDP, over TLS; three rounds
//! … --example race -- --gib 2 --rounds 5 --mtu 1452 --transports direct,udp
//! ```
//!
//! The three processes share this machine's cores. A GiB is 2^30 bytes, a Gbit 10^9 bits.

#[path = "../../wraith-transport/tests/it/support/pattern.rs"]
mod pattern;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use wraith_relay::{Limits, Options, RelayClient, RelayConfig, RelayTransport, Relays, Server};
use wraith_transport::{
    AccessKey, Addr, Config, Connection, Endpoint, EndpointConfig, SecretIdentity,
};

use pattern::{PIECE, Pattern};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A benchmark needs no secrets.
const RECEIVER_SEED: [u8; 32] = [2; 32];
const MAILBOX_SECRET: [u8; 32] = [3; 32];

#[derive(Clone, Debug)]
struct Arguments {
    gib: f64,
    rounds: u32,
    mtu: u16,
    transports: Vec<String>,
    rest: Vec<String>,
}

fn main() -> Result<()> {
    let transports = ["direct", "udp", "tls"].map(String::from).to_vec();
    let mut arguments =
        Arguments { gib: 1.0, rounds: 3, mtu: 65_000, transports, rest: Vec::new() };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--gib" => arguments.gib = value()?.parse()?,
            "--rounds" => arguments.rounds = value()?.parse()?,
            "--mtu" => arguments.mtu = value()?.parse()?,
            "--transports" => {
                arguments.transports = value()?.split(',').map(String::from).collect()
            }
            _ => arguments.rest.push(arg),
        }
    }
    // Same as in the program: one thread for all control tasks.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match arguments.rest.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => runtime.block_on(race(&arguments)),
        ["relay", folder] => runtime.block_on(relay(folder)),
        ["receive", transport, relay] => {
            runtime.block_on(receive(&arguments, transport, relay.parse()?))
        }
        _ => Err("see the head of the file for the usage".into()),
    }
}

/// A child process, killed on drop, and its first line of output.
struct Helper(Child, String);

impl Helper {
    fn start(arguments: &[&str]) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it was piped")).read_line(&mut line)?;
        Ok(Self(child, line.trim().to_owned()))
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn relay(folder: &str) -> Result<()> {
    let mut options = Options::new("127.0.0.1:0".parse()?, folder);
    options.limits = Limits::default();
    let server = Server::bind(options).await?;
    println!("{}", server.local_addr()?);
    server.run_until(std::future::pending()).await?;
    Ok(())
}

fn endpoint(arguments: &Arguments, seed: [u8; 32], relays: &Relays) -> Result<Endpoint> {
    let mut core = EndpointConfig::open(SecretIdentity::from_seed(seed));
    core.transport.max_mtu = arguments.mtu;
    core.transport.initial_mtu = core.transport.initial_mtu.min(arguments.mtu);
    let mut config = Config::new(core).bind("127.0.0.1:0".parse::<SocketAddr>()?);
    config.movers.push(Arc::new(relays.clone()));
    Ok(Endpoint::bind(config)?)
}

/// Connects a relay client whose datagrams use `transport`.
async fn client(relays: &Relays, transport: &str, relay: SocketAddr) -> Result<RelayClient> {
    let mut config = RelayConfig::new(relay.ip().to_string(), relay.port());
    config.udp = transport == "udp";
    let client = relays.connect(config).await?;
    let transport = if transport == "udp" { RelayTransport::Udp } else { RelayTransport::Tls };
    client.status().wait_for(|status| status.transport == transport).await?;
    Ok(client)
}

async fn receive(arguments: &Arguments, transport: &str, relay: SocketAddr) -> Result<()> {
    let relays = Relays::new()?;
    let endpoint = endpoint(arguments, RECEIVER_SEED, &relays)?;
    let client = match transport {
        "direct" => None,
        _ => Some(client(&relays, transport, relay).await?),
    };
    if let Some(client) = &client {
        client.register(MAILBOX_SECRET).await?;
    }
    println!("{}", endpoint.local_addr());
    while let Some(connection) = endpoint.accept().await {
        // The measured code runs on its own thread, as the transfer engine does.
        std::thread::spawn(move || {
            if let Err(error) = wraith_transport::block_on(take(&connection)) {
                eprintln!("receiving: {error}");
                std::process::exit(1);
            }
        });
    }
    Ok(())
}

/// Reads a stream to its end, verifies every byte, and sends the count back.
async fn take(connection: &Connection) -> Result<()> {
    let (mut send, mut recv) = connection.accept_stream().await?;
    let (pattern, mut offset) = (Pattern::new(1), 0_u64);
    recv.set_low_watermark(PIECE / 4);
    while let Some(chunk) = recv.read_chunk().await? {
        for piece in chunk.chunks(PIECE) {
            if pattern.slice(offset, piece.len()) != *piece {
                return Err(format!("wrong bytes near {offset}").into());
            }
            offset += piece.len() as u64;
        }
    }
    send.write_all(&offset.to_be_bytes()).await?;
    send.finish()?;
    let _ = send.acked().await;
    Ok(())
}

async fn race(arguments: &Arguments) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("wraith-relay-race-{}", std::process::id()));
    let relay = Helper::start(&["relay", folder.to_str().ok_or("an odd folder")?])?;
    let address: SocketAddr = relay.1.parse()?;
    let mut rates: Vec<_> =
        arguments.transports.iter().map(|transport| (transport.as_str(), Vec::new())).collect();
    for _ in 0..arguments.rounds {
        for (transport, rates) in &mut rates {
            let rate = once(arguments, transport, address).await?;
            rates.push(rate);
        }
    }
    for (_, rates) in &mut rates {
        rates.sort_by(f64::total_cmp);
    }
    let median = |rates: &[f64]| rates[rates.len() / 2];
    let first = median(&rates[0].1);
    for (transport, rates) in &rates {
        let rate = median(rates);
        println!(
            "{transport:>6}: median {rate:6.2} Gbit/s, {:.2} of {}",
            rate / first,
            arguments.transports[0]
        );
    }
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}

async fn once(arguments: &Arguments, transport: &str, relay: SocketAddr) -> Result<f64> {
    let mtu = arguments.mtu.to_string();
    let receiver = Helper::start(&["--mtu", &mtu, "receive", transport, &relay.to_string()])?;
    let relays = Relays::new()?;
    let endpoint = endpoint(arguments, [1; 32], &relays)?;
    let direct: SocketAddr = receiver.1.parse()?;
    let client = match transport {
        "direct" => None,
        _ => Some(client(&relays, transport, relay).await?),
    };
    let address = match &client {
        None => Addr::Ip(direct),
        Some(client) => client.dial(mailbox()?).await?,
    };
    let peer = SecretIdentity::from_seed(RECEIVER_SEED).node_id();
    let connection = endpoint.connect([&address], peer, &AccessKey::public(peer)).await?;
    let bytes = (arguments.gib * f64::from(1 << 30)) as u64;
    let begin = Instant::now();
    let (done, end) = tokio::sync::oneshot::channel();
    let sending = connection.clone();
    std::thread::spawn(move || done.send(wraith_transport::block_on(give(&sending, bytes))));
    end.await??;
    let rate = bytes as f64 * 8.0 / begin.elapsed().as_secs_f64() / 1e9;
    let stats = connection.stats();
    println!(
        "{transport:>6}: {rate:6.2} Gbit/s | lost {} of {} packets, rtt {:?}, window {} KiB, mtu {}",
        stats.packets_lost,
        stats.packets_sent,
        stats.rtt,
        stats.congestion_window / 1024,
        stats.mtu
    );
    connection.close(0x100, "done");
    endpoint.start_close();
    endpoint.closed().await;
    Ok(rate)
}

/// Returns the name of the receiver's mailbox, which would be in a ticket.
fn mailbox() -> Result<wraith_relay::Mailbox> {
    Ok(wraith_relay::mailbox_of(&MAILBOX_SECRET))
}

async fn give(connection: &Connection, bytes: u64) -> Result<()> {
    let (mut send, mut recv) = connection.open_stream().await?;
    let (pattern, mut offset) = (Pattern::new(1), 0);
    while offset < bytes {
        let piece = (bytes - offset).min(PIECE as u64) as usize;
        send.write_chunks([pattern.slice(offset, piece)]).await?;
        offset += piece as u64;
    }
    send.finish()?;
    let mut count = [0; 8];
    recv.read_exact(&mut count).await?;
    if u64::from_be_bytes(count) != bytes {
        return Err("the other side has another number of bytes".into());
    }
    Ok(())
}
