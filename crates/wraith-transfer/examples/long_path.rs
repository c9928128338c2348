//! Measures a transfer over an emulated long path on this machine: does anything but the link limit
//! it?
//!
//! ```sh
//! cargo run --release -p wraith-transfer --example long_path -- MBIT RTT_MS MIB [MTU]
//! ```
//!
//! Both ends are in this process. Their datagrams pass a relay with the given rate, round trip and
//! MTU, and a queue of 100 ms. The default MTU is 1472 bytes of UDP payload; a larger MTU costs
//! less processor time per byte. The program writes, sends and compares MIB mebibytes. It prints
//! the rate from connection to receipt, and the best rate of any second. A window too small for the
//! path would limit the best rate.

use std::error::Error;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use wraith_crypto::SecretIdentity;
use wraith_transfer::{ReceiveOptions, SendOptions, receive, serve};
use wraith_transport::{AccessKey, Config, Endpoint, EndpointConfig, block_on};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const SECRET: [u8; 16] = [1; 16];
const QUEUE: Duration = Duration::from_millis(100);
/// Receive buffer of the relay's socket, for datagrams that arrive while its thread does not run.
const DATAGRAM_BYTES_MAX: usize = 65_536;

#[derive(Clone, Copy, Debug)]
struct Link {
    bytes_per_s: f64,
    delay: Duration,
    mtu: usize,
}

fn main() -> Result<()> {
    let numbers: std::result::Result<Vec<f64>, _> =
        std::env::args().skip(1).map(|a| a.parse()).collect();
    let (link, mib) = match numbers?[..] {
        [mbit, rtt, mib] => (Link::new(mbit, rtt, 1472.0), mib),
        [mbit, rtt, mib, mtu] => (Link::new(mbit, rtt, mtu), mib),
        _ => return Err("usage: long_path MBIT RTT_MS MIB [MTU]".into()),
    };
    let folder = tempfile::tempdir()?;
    let (from, to) = (folder.path().join("file"), folder.path().join("to"));
    let mut content = vec![0; (mib * 1024.0 * 1024.0) as usize];
    blake3::Hasher::new().finalize_xof().fill(&mut content);
    fs::write(&from, &content)?;
    fs::create_dir(&to)?;
    let sender = endpoint(1, true)?;
    let receiver = endpoint(2, false)?;
    let address = relay(sender.local_addr(), link)?;
    let peer = identity(1).node_id();
    let dialled = block_on(receiver.connect(&[address], peer, &AccessKey::public(peer)))?;
    let accepted = block_on(sender.accept()).ok_or("nobody came")?;
    let started = Instant::now();
    let send = SendOptions::new(vec![from], SECRET);
    let options = ReceiveOptions::new(to.clone(), SECRET, identity(2));
    let (progress, total) = (Arc::clone(&options.progress), content.len() as u64);
    let best = thread::scope(|scope| -> Result<f64> {
        let serving = scope.spawn(|| serve(accepted, &send));
        let receiving = scope.spawn(|| receive(dialled, options));
        let (mut best, mut last) = (0.0_f64, (Instant::now(), 0));
        while !receiving.is_finished() {
            thread::sleep(Duration::from_secs(1).min(link.delay * 4));
            let now = (Instant::now(), progress.bytes().min(total));
            best = best.max((now.1 - last.1) as f64 / (now.0 - last.0).as_secs_f64());
            last = now;
        }
        receiving.join().expect("no panic")?;
        serving.join().expect("no panic")?;
        Ok(best)
    })?;
    let took = started.elapsed().as_secs_f64();
    assert!(fs::read(to.join("file"))? == content, "other bytes arrived");
    let mbit = |bytes_per_s: f64| bytes_per_s * 8.0 / 1e6;
    let link_mbit = mbit(link.bytes_per_s);
    let (all, best) = (mbit(content.len() as f64 / took), mbit(best));
    println!(
        "link {link_mbit:.0} Mbit/s: {all:.0} Mbit/s from offer to receipt, at best {best:.0} Mbit/s"
    );
    Ok(())
}

fn identity(n: u8) -> SecretIdentity {
    SecretIdentity::from_seed([n; 32])
}

fn endpoint(n: u8, accept: bool) -> Result<Endpoint> {
    let open = if accept { EndpointConfig::open } else { EndpointConfig::new };
    let core = open(identity(n));
    Ok(Endpoint::bind(Config::new(core).bind(([127, 0, 0, 1], 0)))?)
}

impl Link {
    fn new(mbit: f64, rtt_ms: f64, mtu: f64) -> Self {
        let delay = Duration::from_secs_f64(rtt_ms / 2000.0);
        Self { bytes_per_s: mbit * 1e6 / 8.0, delay, mtu: mtu as usize }
    }
}

/// Relays between `sender` and the peer that uses the returned address, until the process ends.
fn relay(sender: SocketAddr, link: Link) -> Result<SocketAddr> {
    let (front, back) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    back.connect(sender)?;
    let (address, peer) = (front.local_addr()?, Arc::new(OnceLock::new()));
    let (front_out, back_out, known) = (front.try_clone()?, back.try_clone()?, Arc::clone(&peer));
    one_way(
        link,
        move |buffer| {
            let (len, from) = front.recv_from(buffer)?;
            let _ = peer.set(from);
            Ok(len)
        },
        move |datagram| back_out.send(datagram),
    );
    one_way(
        link,
        move |buffer| back.recv(buffer),
        move |datagram| match known.get() {
            Some(peer) => front_out.send_to(datagram, peer),
            None => Ok(0),
        },
    );
    Ok(address)
}

/// Runs one direction: one thread receives, another forwards at the scheduled time.
fn one_way(
    link: Link,
    mut take: impl FnMut(&mut [u8]) -> std::io::Result<usize> + Send + 'static,
    mut give: impl FnMut(&[u8]) -> std::io::Result<usize> + Send + 'static,
) {
    let (queue, out): (Sender<(Instant, Vec<u8>)>, Receiver<_>) = channel();
    thread::spawn(move || {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        let mut free_at = Instant::now();
        loop {
            // A datagram to a destination that does not exist yet is lost.
            let Ok(len) = take(&mut buffer) else { continue };
            let now = Instant::now();
            free_at = free_at.max(now);
            if len > link.mtu || free_at - now > QUEUE {
                continue;
            }
            free_at += Duration::from_secs_f64(len as f64 / link.bytes_per_s);
            if queue.send((free_at + link.delay, buffer[..len].to_vec())).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        for (due, datagram) in out {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let _ = give(&datagram);
        }
    });
}
