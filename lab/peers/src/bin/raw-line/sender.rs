//! The sending side: fills, seals and sends datagrams, and finally requests the receiver's count.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use wraith_peers::{PIECE_BYTES, Pattern, Report, cpu_time};

use crate::Options;
use crate::packet::{Cipher, Number, OVERHEAD_BYTES};
use crate::receiver::Summary;
use crate::udp::{Udp, segments};

/// Interval after which an unanswered end of a round is sent again, as it can be lost.
const END_INTERVAL: Duration = Duration::from_millis(20);
/// Time after which the receiver counts as absent.
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

pub struct Sender {
    udp: Udp,
    cipher: Cipher,
    pattern: Pattern,
    to: SocketAddr,
    datagram_bytes: usize,
    /// Datagrams of one round.
    count: u64,
    round: u16,
    next: u64,
    batch: Vec<u8>,
    cpu: Duration,
}

impl Sender {
    pub fn new(options: &Options, to: SocketAddr) -> Result<Self> {
        let wildcard = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let datagram_bytes = usize::from(options.mtu);
        let bytes = options.bytes.unwrap_or(options.gib);
        // A piece of the pattern is longer than any datagram.
        const { assert!(PIECE_BYTES > u16::MAX as usize) };
        Ok(Self {
            udp: Udp::bind(wildcard.parse()?, options.socket_mib << 20)?,
            cipher: Cipher::new()?,
            pattern: Pattern::new(),
            to,
            datagram_bytes,
            count: bytes.div_ceil((datagram_bytes - OVERHEAD_BYTES) as u64),
            round: 0,
            next: 0,
            batch: vec![0; datagram_bytes * segments(datagram_bytes)],
            cpu: Duration::ZERO,
        })
    }

    pub fn begin(&mut self, round: u16) {
        (self.round, self.next, self.cpu) = (round, 0, cpu_time());
    }

    /// Seals and sends one batch. Returns `false` if all data was already sent.
    pub fn send_batch(&mut self) -> Result<bool> {
        let payload_bytes = self.datagram_bytes - OVERHEAD_BYTES;
        let datagrams = (self.count - self.next).min(segments(self.datagram_bytes) as u64);
        if datagrams == 0 {
            return Ok(false);
        }
        let length = datagrams as usize * self.datagram_bytes;
        for datagram in self.batch[..length].chunks_exact_mut(self.datagram_bytes) {
            let number = Number { round: self.round, index: self.next, end: false };
            let payload = self.pattern.get(self.next * payload_bytes as u64, payload_bytes);
            self.cipher.seal(number, payload, datagram)?;
            self.next += 1;
        }
        self.udp.send(self.to, &self.batch[..length], self.datagram_bytes)?;
        Ok(true)
    }

    /// Sends the end of the round.
    pub fn end(&mut self) -> Result<()> {
        let mut datagram = [0; OVERHEAD_BYTES];
        let number = Number { round: self.round, index: self.next, end: true };
        self.cipher.seal(number, &[], &mut datagram)?;
        self.udp.send(self.to, &datagram, OVERHEAD_BYTES)
    }

    /// Ends the round and waits for the receiver's report.
    pub fn result(&mut self) -> Result<Report> {
        let cpu = cpu_time() - self.cpu;
        let deadline = Instant::now() + ANSWER_DEADLINE;
        while Instant::now() < deadline {
            let mut answer = None;
            while self.udp.receive(|_, datagram| {
                answer = Summary::from_wire(datagram).or(answer);
                Ok(())
            })? {}
            match answer {
                Some(summary) if summary.round == self.round => {
                    return Ok(self.report(&summary, cpu));
                }
                _ => {
                    self.end()?;
                    self.udp.wait(Some(END_INTERVAL))?;
                }
            }
        }
        bail!("the receiver does not answer")
    }

    fn report(&self, summary: &Summary, cpu: Duration) -> Report {
        let bytes = summary.datagrams * (self.datagram_bytes - OVERHEAD_BYTES) as u64;
        Report {
            mtu_bytes: self.datagram_bytes as u16,
            datagrams_sent: self.next,
            datagrams_lost: self.next - summary.datagrams,
            ..Report::new("raw line", bytes, summary.time, [cpu, summary.cpu])
        }
    }
}
