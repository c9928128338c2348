//! Measures throughput from memory to memory, and its CPU cost.
//!
//! ```text
//! cargo run --release -p wraith-transport --example throughput            # two processes over loopback
//! … --example throughput -- --gib 16 --rounds 1 --mtu 1452 --streams 4 --chacha --window-kib 4096 --pin --json
//! … --example throughput -- --congestion bbr                              # or cubic
//! … --example throughput -- --ratchet-mib 100                             # one ratchet per 100 MiB
//! … --example throughput -- --threads                                     # both ends in this process
//! … --example throughput -- serve [ADDRESS]       prints `NODEID ADDRESS`, serves until killed
//! … --example throughput -- send ADDRESS NODEID
//! ```
//!
//! The receiver compares every byte (about 0.1 ns per byte, which the measured times include). A
//! GiB is 2^30 bytes, a Gbit 10^9 bits.

#[path = "../tests/it/support/pattern.rs"]
mod pattern;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use wraith_core::Algorithm;
use wraith_transport::{
    AccessKey, Config, Connection, Endpoint, EndpointConfig, NodeId, RecvStream, SecretIdentity,
    SendStream, block_on,
};

use pattern::{PIECE, Pattern};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Identity of the server; a benchmark has no secrets.
const SERVER_SEED: [u8; 32] = [2; 32];

#[derive(Clone, Debug)]
struct Options {
    bytes: u64,
    streams: u64,
    mtu: u16,
    suites: u8,
    threads: bool,
    pin: bool,
    json: bool,
    rounds: u32,
    window: Option<u64>,
    ratchet_bytes: Option<u64>,
    congestion: Algorithm,
    rest: Vec<String>,
}

fn main() -> Result<()> {
    let options = parse(std::env::args().skip(1))?;
    match options.rest.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => serve(&options, "127.0.0.1:0".parse()?),
        ["serve", address] => serve(&options, address.parse()?),
        ["send", address, peer] => send(&options, address.parse()?, peer.parse()?),
        [] if options.threads => in_threads(&options),
        [] => in_processes(&options),
        _ => Err("see the head of the file for the usage".into()),
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options {
        bytes: 4 << 30,
        streams: 1,
        mtu: 1452,
        suites: 0b11,
        threads: false,
        pin: false,
        json: false,
        rounds: 3,
        window: None,
        ratchet_bytes: None,
        congestion: Algorithm::default(),
        rest: Vec::new(),
    };
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--gib" => options.bytes = (value()?.parse::<f64>()? * (1_u64 << 30) as f64) as u64,
            "--streams" => options.streams = value()?.parse()?,
            "--mtu" => options.mtu = value()?.parse()?,
            "--rounds" => options.rounds = value()?.parse()?,
            "--window-kib" => options.window = Some(value()?.parse::<u64>()? << 10),
            "--ratchet-mib" => options.ratchet_bytes = Some(value()?.parse::<u64>()? << 20),
            "--congestion" => options.congestion = value()?.parse()?,
            "--chacha" => options.suites = 0b10,
            "--threads" => options.threads = true,
            "--pin" => options.pin = true,
            "--json" => options.json = true,
            _ => options.rest.push(arg),
        }
    }
    Ok(options)
}

fn bind(options: &Options, seed: [u8; 32], address: SocketAddr, cpu: usize) -> Result<Endpoint> {
    let mut core = EndpointConfig::open(SecretIdentity::from_seed(seed));
    core.transport.max_mtu = options.mtu;
    core.transport.initial_mtu = core.transport.initial_mtu.min(options.mtu);
    core.transport.suites = options.suites;
    core.transport.congestion = options.congestion.into();
    if let Some(bytes) = options.ratchet_bytes {
        core.transport.ratchet_bytes = bytes;
    }
    if let Some(window) = options.window {
        core.transport.connection_window_max = window;
        core.transport.stream_window_max = window;
    }
    let io_cpu = options.pin.then_some(cpu);
    Ok(Endpoint::bind(Config { io_cpu, ..Config::new(core).bind(address) })?)
}

fn serve(options: &Options, address: SocketAddr) -> Result<()> {
    let endpoint = bind(options, SERVER_SEED, address, 1)?;
    let peer = SecretIdentity::from_seed(SERVER_SEED).node_id();
    println!("{peer} {}", endpoint.local_addr());
    accept_all(&endpoint);
    Ok(())
}

/// Receives every stream of every connection until the endpoint is closed.
fn accept_all(endpoint: &Endpoint) {
    while let Some(connection) = block_on(endpoint.accept()) {
        thread::spawn(move || {
            while let Ok(stream) = block_on(connection.accept_stream()) {
                thread::spawn(move || {
                    if let Err(error) = block_on(receive(stream)) {
                        eprintln!("receiving: {error}");
                        std::process::exit(1);
                    }
                });
            }
        });
    }
}

/// Reads a stream to its end and compares every byte. Answers with the byte count and the CPU time.
async fn receive((mut send, mut recv): (SendStream, RecvStream)) -> Result<()> {
    let pattern = Pattern::new(1);
    let started = cpu_time();
    let mut offset = 0_u64;
    recv.set_low_watermark(PIECE / 4);
    while let Some(chunk) = recv.read_chunk().await? {
        for piece in chunk.chunks(PIECE) {
            if pattern.slice(offset, piece.len()) != *piece {
                return Err(format!("wrong bytes near {offset}").into());
            }
            offset += piece.len() as u64;
        }
    }
    let cpu = cpu_time() - started;
    send.write_all(&offset.to_be_bytes()).await?;
    send.write_all(&(cpu.as_nanos() as u64).to_be_bytes()).await?;
    send.finish()?;
    // The peer closes as soon as it has the answer.
    let _ = send.acked().await;
    Ok(())
}

fn send(options: &Options, address: SocketAddr, peer: NodeId) -> Result<()> {
    let wildcard = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let endpoint = bind(options, [1; 32], wildcard.parse()?, 0)?;
    for _ in 0..options.rounds {
        let connection = block_on(endpoint.connect(&[address], peer, &AccessKey::public(peer)))?;
        round(options, &connection)?;
        connection.close(0x100, "done");
    }
    endpoint.close();
    Ok(())
}

fn round(options: &Options, connection: &Connection) -> Result<()> {
    let (cpu, begin) = (cpu_time(), Instant::now());
    let share = options.bytes / options.streams;
    let workers: Vec<_> = (0..options.streams)
        .map(|_| {
            let connection = connection.clone();
            thread::spawn(move || block_on(send_stream(&connection, share)))
        })
        .collect();
    let mut peer_cpu = Duration::ZERO;
    for worker in workers {
        peer_cpu = peer_cpu.max(worker.join().expect("a worker does not panic")?);
    }
    let (seconds, cpu) = (begin.elapsed().as_secs_f64(), cpu_time() - cpu);
    let bytes = (share * options.streams) as f64;
    let stats = connection.stats();
    if options.json {
        println!(
            r#"{{"peer":"wraith","bytes":{bytes},"seconds":{seconds},"sender_cpu_seconds":{},"receiver_cpu_seconds":{},"mtu_bytes":{},"datagrams_sent":{},"datagrams_lost":{}}}"#,
            cpu.as_secs_f64(),
            peer_cpu.as_secs_f64(),
            stats.mtu,
            stats.packets_sent,
            stats.packets_lost,
        );
        return Ok(());
    }
    println!(
        "{:6.2} Gbit/s  {:5.2} GB/s  {seconds:6.3} s | CPU ns/byte: sender {:.3}, receiver {:.3} | lost {} of {} packets, \
         {} spurious, rtt {:?}, window {} KiB, mtu {}",
        bytes * 8.0 / seconds / 1e9,
        bytes / seconds / 1e9,
        cpu.as_secs_f64() * 1e9 / bytes,
        peer_cpu.as_secs_f64() * 1e9 / bytes,
        stats.packets_lost,
        stats.packets_sent,
        stats.spurious_losses,
        stats.rtt,
        stats.congestion_window / 1024,
        stats.mtu,
    );
    Ok(())
}

/// Sends `len` bytes on a new stream. Returns the CPU time of the peer.
async fn send_stream(connection: &Connection, len: u64) -> Result<Duration> {
    let pattern = Pattern::new(1);
    let (mut send, mut recv) = connection.open_stream().await?;
    let mut offset = 0;
    while offset < len {
        let piece = (len - offset).min(PIECE as u64);
        send.write_chunks([pattern.slice(offset, piece as usize)]).await?;
        offset += piece;
    }
    send.finish()?;
    let mut answer = [0; 16];
    recv.read_exact(&mut answer).await?;
    let (count, cpu) = answer.split_at(8);
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
    if number(count) != len {
        return Err(format!("the peer got {} of {len} bytes", number(count)).into());
    }
    Ok(Duration::from_nanos(number(cpu)))
}

/// Runs both ends in one process; the CPU times then cover both ends.
fn in_threads(options: &Options) -> Result<()> {
    let server = bind(options, SERVER_SEED, "127.0.0.1:0".parse()?, 1)?;
    let address = server.local_addr();
    let acceptor = server.clone();
    thread::spawn(move || accept_all(&acceptor));
    send(options, address, SecretIdentity::from_seed(SERVER_SEED).node_id())?;
    server.close();
    Ok(())
}

/// Runs the other end in a separate process.
fn in_processes(options: &Options) -> Result<()> {
    let mut child = Server(
        Command::new(std::env::current_exe()?)
            .args(std::env::args().skip(1))
            .arg("serve")
            .stdout(Stdio::piped())
            .spawn()?,
    );
    let mut line = String::new();
    let stdout = child.0.stdout.take().expect("it was piped");
    BufReader::new(stdout).read_line(&mut line)?;
    let (peer, address) = line.trim().split_once(' ').ok_or("the server did not start")?;
    send(options, address.parse()?, peer.parse()?)
}

/// A child process that is killed with this one.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the CPU time of this process, user and system.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
