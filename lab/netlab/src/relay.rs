//! One direction of the link: packets of one device pass the simulator's boxes in real time and
//! leave at the other.
//!
//! A loop on a separate thread delivers due packets, reads new ones, and sleeps until the next
//! packet is due or arrives. It wakes for deliveries at most every [`REST`], so packets that are
//! due close together leave together, as with interrupt coalescing. The lateness of each packet is
//! counted.
//!
//! Invariant: no more than [`WAITING_MAX`] packets are held; beyond that, the newest packet is
//! dropped and counted.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde_json::{Value, json};
use wraith_core::Time;
use wraith_sim::link::{Datagram, Path};

use crate::lateness::Lateness;
use crate::tun::Tun;

/// Shortest sleep before a delivery: two packets of 1500 bytes at 500 Mbit/s, and a thousandth of a
/// round trip of 50 ms.
const REST: Duration = Duration::from_micros(50);
/// Packets read before the next check for deliveries.
const BATCH: usize = 32;
/// Packets within one direction: 48 MB, twice the product of 500 Mbit/s and 300 ms.
const WAITING_MAX: u64 = 32 * 1024;
/// More than the MTU of any link of the lab.
const PACKET_BYTES_MAX: usize = 64 * 1024;
const NOWHERE: std::net::SocketAddr =
    std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0);

/// One direction.
#[derive(Debug)]
pub struct Relay<'a> {
    from: &'a Tun,
    to: &'a Tun,
    path: Path,
    start: Instant,
    lateness: Lateness,
    bytes_left: u64,
    /// Bytes of these in TCP and in UDP packets, which separates two flows of different kinds.
    tcp_left: u64,
    udp_left: u64,
    over_limit: u64,
    refused: u64,
}

impl<'a> Relay<'a> {
    /// Creates a direction: packets from `from` pass `path`, whose time starts at `start`, and are
    /// written to `to`.
    pub fn new(from: &'a Tun, to: &'a Tun, path: Path, start: Instant) -> Self {
        Self {
            from,
            to,
            path,
            start,
            lateness: Lateness::new(),
            bytes_left: 0,
            tcp_left: 0,
            udp_left: 0,
            over_limit: 0,
            refused: 0,
        }
    }

    /// Relays until `stop` is readable or closed at its other end, or until the namespace of `from`
    /// ends.
    pub fn run(mut self, stop: BorrowedFd<'_>) -> Result<Self> {
        // Sleeps end on time, not up to 50 µs later as by default.
        rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?;
        let mut buffer = vec![0; PACKET_BYTES_MAX];
        loop {
            self.deliver_due();
            let idle = match self.read_some(&mut buffer) {
                Ok(read) => read < BATCH,
                Err(error) if Errno::from_io_error(&error) == Some(Errno::BADFD) => {
                    return Ok(self);
                }
                Err(error) => return Err(error.into()),
            };
            if idle && self.sleep(stop)? {
                return Ok(self);
            }
        }
    }

    fn now(&self) -> Time {
        Time::ZERO + self.start.elapsed()
    }

    fn deliver_due(&mut self) {
        let mut now = self.now();
        while let Some(due) = self.path.next().filter(|due| *due <= now) {
            while let Some(packet) = self.path.pop(due) {
                now = self.now();
                self.lateness.record(now.since(due));
                self.count(&packet.bytes);
                // A device that is still down refuses packets.
                self.refused += u64::from(self.to.write(&packet.bytes).is_err());
            }
        }
    }

    fn count(&mut self, packet: &[u8]) {
        let bytes = packet.len() as u64;
        self.bytes_left += bytes;
        // The protocol of an IPv4 packet; this link has no IPv6.
        match packet.get(9) {
            Some(6) => self.tcp_left += bytes,
            Some(17) => self.udp_left += bytes,
            _ => {}
        }
    }

    /// Reads up to [`BATCH`] packets, and returns their number.
    fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for read in 0..BATCH {
            let Some(len) = self.from.read(buffer)? else { return Ok(read) };
            if self.path.in_transit() >= WAITING_MAX {
                self.over_limit += 1;
                continue;
            }
            let bytes = buffer[..len].to_vec();
            self.path.push(self.now(), Datagram::new(NOWHERE, NOWHERE, bytes));
        }
        Ok(BATCH)
    }

    /// Sleeps until a packet arrives or is due. Returns whether to stop.
    fn sleep(&self, stop: BorrowedFd<'_>) -> Result<bool> {
        let timeout = self.path.next().map(|due| timespec(due.since(self.now()).max(REST)));
        let mut fds = [PollFd::new(self.from, PollFlags::IN), PollFd::new(&stop, PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(!fds[1].revents().is_empty()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the counters, for people and programs.
    pub fn report(&self) -> Value {
        let micros = |late: Duration| late.as_micros() as u64;
        let (entered, left) = self.path.counts();
        json!({
            "entered": entered,
            "left": left,
            "bytes_left": self.bytes_left,
            "tcp_bytes_left": self.tcp_left,
            "udp_bytes_left": self.udp_left,
            "late_p50_us": micros(self.lateness.quantile(0.5)),
            "late_p99_us": micros(self.lateness.quantile(0.99)),
            "late_max_us": micros(self.lateness.max()),
            "over_limit": self.over_limit,
            "refused": self.refused,
        })
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
