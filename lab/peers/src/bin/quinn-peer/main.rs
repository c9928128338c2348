//! quinn, tuned, from memory to memory: the baseline of wraith's own core.
//!
//! ```text
//! quinn-peer                                     # two processes over loopback
//! quinn-peer --gib 16 --rounds 1 --mtu 65000 --streams 4 --bbr --window-mib 16 --pin
//! quinn-peer [options] serve [ADDRESS]           prints the address, serves until killed
//! quinn-peer [options] send ADDRESS              prints one line of JSON for each round
//! ```
//!
//! Each side has one thread (a current-thread runtime), zero-copy writes of 256 KiB, and reads of
//! many chunks at once: the settings of a user who optimizes for speed. Every byte is compared on
//! arrival. `serve` takes the options given to `send`.

mod tuning;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use bytes::Bytes;
use clap::{Parser, Subcommand};
use quinn::{Connection, RecvStream, SendStream};
use wraith_peers::{
    PIECE_BYTES, Pattern, Report, ServerProcess, cpu_time, identity, parse_gib, pin_to,
};

/// Chunks of one read; each is the payload of one packet.
const CHUNKS_PER_READ: usize = 64;
/// Length of the receiver's answer: bytes, and nanoseconds of CPU time.
const ANSWER_BYTES: usize = 16;

#[derive(Debug, Parser)]
#[command(about = "quinn, tuned, from memory to memory")]
struct Options {
    /// GiB to move in each round
    #[arg(long, default_value = "4", value_parser = parse_gib)]
    gib: u64,
    /// Exact number of bytes to move, instead
    #[arg(long)]
    bytes: Option<u64>,
    /// Number of streams that share the bytes
    #[arg(long, default_value_t = 1)]
    streams: u64,
    /// Number of successive connections
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// UDP payload of a datagram, fixed on both sides
    #[arg(long, default_value_t = 1452, value_parser = clap::value_parser!(u16).range(1200..=65_500))]
    mtu: u16,
    /// Flow-control windows of connection and stream, and the send window, in MiB
    #[arg(long, default_value_t = 64)]
    window_mib: u32,
    /// Use quinn's BBR instead of CUBIC
    #[arg(long)]
    bbr: bool,
    /// Kernel buffers of the socket, in MiB
    #[arg(long, default_value_t = 4)]
    socket_mib: usize,
    /// Pin the sender to CPU 0 and the receiver to CPU 1
    #[arg(long)]
    pin: bool,
    #[command(subcommand)]
    side: Option<Side>,
}

#[derive(Debug, Subcommand)]
enum Side {
    /// Receive until killed
    Serve {
        #[arg(default_value = "127.0.0.1:0")]
        address: SocketAddr,
    },
    /// Send to a server
    Send { address: SocketAddr },
}

fn main() -> Result<()> {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match options.side {
        Some(Side::Serve { address }) => runtime.block_on(run_server(&options, address)),
        Some(Side::Send { address }) => runtime.block_on(send(&options, address)),
        None => {
            let (_server, line) = ServerProcess::start()?;
            runtime.block_on(send(&options, line.parse()?))
        }
    }
}

async fn run_server(options: &Options, address: SocketAddr) -> Result<()> {
    if options.pin {
        pin_to(1)?;
    }
    let endpoint = tuning::endpoint(options, address, true)?;
    println!("{}", endpoint.local_addr()?);
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            if let Err(error) = accept_streams(incoming).await {
                eprintln!("receiving: {error:#}");
                std::process::exit(1);
            }
        });
    }
    Ok(())
}

/// Receives every stream until the peer closes the connection.
async fn accept_streams(incoming: quinn::Incoming) -> Result<()> {
    let connection = incoming.await?;
    loop {
        let (send, recv) = match connection.accept_bi().await {
            Ok(stream) => stream,
            Err(quinn::ConnectionError::ApplicationClosed(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        tokio::spawn(async move {
            if let Err(error) = receive(send, recv).await {
                eprintln!("receiving: {error:#}");
                std::process::exit(1);
            }
        });
    }
}

/// Reads a stream to its end, compares every byte, and answers with the count and the CPU time.
async fn receive(mut send: SendStream, mut recv: RecvStream) -> Result<()> {
    let pattern = Pattern::new();
    let started = cpu_time();
    let mut chunks = [const { Bytes::new() }; CHUNKS_PER_READ];
    let mut offset = 0_u64;
    while let Some(filled) = recv.read_chunks(&mut chunks).await? {
        for chunk in &mut chunks[..filled] {
            ensure!(pattern.matches(offset, chunk), "wrong bytes near {offset}");
            offset += chunk.len() as u64;
            *chunk = Bytes::new();
        }
    }
    let cpu = cpu_time() - started;
    send.write_all(&offset.to_be_bytes()).await?;
    send.write_all(&(cpu.as_nanos() as u64).to_be_bytes()).await?;
    send.finish()?;
    // The other side closes the connection as soon as it has the answer.
    let _ = send.stopped().await;
    Ok(())
}

async fn send(options: &Options, address: SocketAddr) -> Result<()> {
    if options.pin {
        pin_to(0)?;
    }
    let wildcard = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let endpoint = tuning::endpoint(options, wildcard.parse()?, false)?;
    for _ in 0..options.rounds {
        let connection = endpoint.connect(address, identity::SERVER_NAME)?.await?;
        round(options, &connection).await?.print()?;
        connection.close(0_u32.into(), b"done");
    }
    endpoint.wait_idle().await;
    Ok(())
}

async fn round(options: &Options, connection: &Connection) -> Result<Report> {
    let bytes = options.bytes.unwrap_or(options.gib);
    ensure!(options.streams > 0 && bytes >= options.streams, "too few bytes for the streams");
    let pattern = Pattern::new();
    let (cpu, begin) = (cpu_time(), Instant::now());
    let share = bytes / options.streams;
    let workers: Vec<_> = (0..options.streams)
        .map(|_| tokio::spawn(send_stream(connection.clone(), pattern.clone(), share)))
        .collect();
    let mut peer_cpu = Duration::ZERO;
    for worker in workers {
        peer_cpu = peer_cpu.max(worker.await.map_err(|error| anyhow!(error))??);
    }
    let (time, cpu) = (begin.elapsed(), cpu_time() - cpu);
    let path = connection.stats().path;
    Ok(Report {
        mtu_bytes: path.current_mtu,
        datagrams_sent: path.sent_packets,
        datagrams_lost: path.lost_packets,
        ..Report::new("quinn", share * options.streams, time, [cpu, peer_cpu])
    })
}

/// Sends `len` bytes on a stream of its own. Returns the CPU time of the other side.
async fn send_stream(connection: Connection, pattern: Pattern, len: u64) -> Result<Duration> {
    let (mut send, mut recv) = connection.open_bi().await?;
    let mut offset = 0;
    while offset < len {
        let piece = (len - offset).min(PIECE_BYTES as u64);
        send.write_chunk(pattern.slice(offset, piece as usize)).await?;
        offset += piece;
    }
    send.finish()?;
    let mut answer = [0; ANSWER_BYTES];
    recv.read_exact(&mut answer).await.context("the peer did not answer")?;
    let (count, cpu) = answer.split_at(ANSWER_BYTES / 2);
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
    if number(count) != len {
        bail!("the peer got {} of {len} bytes", number(count));
    }
    Ok(Duration::from_nanos(number(cpu)))
}
