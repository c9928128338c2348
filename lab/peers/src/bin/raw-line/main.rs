//! The upper bound of any protocol with this cipher over UDP: datagrams are filled, sealed with
//! AES-256-GCM, sent in full GSO batches, received merged by GRO, opened in place and compared.
//! There is no protocol: no acknowledgements, no pacing, no retransmissions.
//!
//! ```text
//! raw-line                                       # two processes over loopback
//! raw-line --gib 16 --rounds 1 --mtu 65000 --pin
//! raw-line --in-turn                             # one thread does both, a batch at a time: the line of one core
//! raw-line [options] serve [ADDRESS]             prints the address, serves until killed
//! raw-line [options] send ADDRESS                prints one line of JSON for each round
//! ```
//!
//! Only correct bytes that arrived are counted, over the time from the first arrival to the last.
//! If a sender is faster than its receiver, the excess beyond the socket's buffer is lost; the
//! report states how much.

mod packet;
mod receiver;
mod sender;
mod udp;

use std::net::SocketAddr;

use anyhow::Result;
use clap::{Parser, Subcommand};
use wraith_peers::{ServerProcess, parse_gib, pin_to};

use receiver::Receiver;
use sender::Sender;

#[derive(Debug, Parser)]
#[command(about = "UDP with full GSO batches, GRO and AES-256-GCM, and no protocol")]
struct Options {
    /// GiB to send in each round
    #[arg(long, default_value = "4", value_parser = parse_gib)]
    gib: u64,
    /// Exact number of bytes to send, instead; rounded up to whole datagrams
    #[arg(long)]
    bytes: Option<u64>,
    /// Number of rounds
    #[arg(long, default_value_t = 3)]
    rounds: u16,
    /// UDP payload of a datagram
    #[arg(long, default_value_t = 1452, value_parser = clap::value_parser!(u16).range(64..=65_507))]
    mtu: u16,
    /// Kernel buffers of the socket, in MiB
    #[arg(long, default_value_t = 4)]
    socket_mib: usize,
    /// Pin the sender to CPU 0 and the receiver to CPU 1
    #[arg(long)]
    pin: bool,
    /// Send and receive in one thread, in turn, without losses
    #[arg(long)]
    in_turn: bool,
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
    match options.side {
        Some(Side::Serve { address }) => run_server(&options, address),
        Some(Side::Send { address }) => send(&options, address),
        None if options.in_turn => in_turn(&options),
        None => {
            let (_server, line) = ServerProcess::start()?;
            send(&options, line.parse()?)
        }
    }
}

fn run_server(options: &Options, address: SocketAddr) -> Result<()> {
    if options.pin {
        pin_to(1)?;
    }
    let mut receiver = Receiver::bind(options, address)?;
    println!("{}", receiver.local_addr()?);
    loop {
        receiver.wait()?;
        receiver.receive()?;
    }
}

fn send(options: &Options, address: SocketAddr) -> Result<()> {
    if options.pin {
        pin_to(0)?;
    }
    let mut sender = Sender::new(options, address)?;
    for round in 0..options.rounds {
        sender.begin(round);
        while sender.send_batch()? {}
        sender.result()?.print()?;
    }
    Ok(())
}

/// Receives each batch before it sends the next one. All CPU time is then the sender's.
fn in_turn(options: &Options) -> Result<()> {
    if options.pin {
        pin_to(0)?;
    }
    let mut receiver = Receiver::bind(options, "127.0.0.1:0".parse()?)?;
    let mut sender = Sender::new(options, receiver.local_addr()?)?;
    for round in 0..options.rounds {
        sender.begin(round);
        while sender.send_batch()? {
            receiver.receive()?;
        }
        sender.end()?;
        receiver.receive()?;
        sender.result()?.print()?;
    }
    Ok(())
}
