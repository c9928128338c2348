//! The receiving side: opens, compares and counts.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use wraith_peers::{Pattern, cpu_time};

use crate::Options;
use crate::packet::Cipher;
use crate::udp::Udp;

const SUMMARY_BYTES: usize = 32;

/// Counts of a finished round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    pub round: u16,
    pub datagrams: u64,
    /// Time from the first arrival to the last.
    pub time: Duration,
    pub cpu: Duration,
}

impl Summary {
    fn to_wire(self) -> [u8; SUMMARY_BYTES] {
        let words = [
            u64::from(self.round),
            self.datagrams,
            self.time.as_nanos() as u64,
            self.cpu.as_nanos() as u64,
        ];
        let mut wire = [0; SUMMARY_BYTES];
        for (place, word) in wire.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        wire
    }

    pub fn from_wire(wire: &[u8]) -> Option<Self> {
        let wire: &[u8; SUMMARY_BYTES] = wire.try_into().ok()?;
        let mut words = wire
            .chunks_exact(8)
            .map(|word| u64::from_be_bytes(word.try_into().expect("chunks of eight bytes")));
        Some(Self {
            round: words.next()? as u16,
            datagrams: words.next()?,
            time: Duration::from_nanos(words.next()?),
            cpu: Duration::from_nanos(words.next()?),
        })
    }
}

/// A round in progress.
#[derive(Debug)]
struct Round {
    number: u16,
    datagrams: u64,
    first: Instant,
    last: Instant,
    cpu: Duration,
}

impl Round {
    fn new(number: u16) -> Self {
        let now = Instant::now();
        Self { number, datagrams: 0, first: now, last: now, cpu: cpu_time() }
    }

    fn summary(&self) -> Summary {
        Summary {
            round: self.number,
            datagrams: self.datagrams,
            time: self.last - self.first,
            cpu: cpu_time().saturating_sub(self.cpu),
        }
    }
}

pub struct Receiver {
    udp: Udp,
    cipher: Cipher,
    pattern: Pattern,
    round: Option<Round>,
}

impl Receiver {
    pub fn bind(options: &Options, address: SocketAddr) -> Result<Self> {
        Ok(Self {
            udp: Udp::bind(address, options.socket_mib << 20)?,
            cipher: Cipher::new()?,
            pattern: Pattern::new(),
            round: None,
        })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }

    pub fn wait(&self) -> Result<()> {
        self.udp.wait(None)
    }

    /// Receives all available datagrams. Unexpected bytes are an error, not a loss.
    pub fn receive(&mut self) -> Result<()> {
        let Self { udp, cipher, pattern, round } = self;
        let mut ended = None;
        while udp.receive(|from, datagram| {
            let (number, payload) = cipher.open(datagram)?;
            if number.end {
                ended = Some((from, number.round));
                return Ok(());
            }
            let round = match round {
                Some(round) if round.number == number.round => round,
                _ => round.insert(Round::new(number.round)),
            };
            let offset = number.index * payload.len() as u64;
            ensure!(pattern.matches(offset, payload), "wrong bytes in datagram {}", number.index);
            round.datagrams += 1;
            Ok(())
        })? {
            if let (Some(round), None) = (round.as_mut(), ended) {
                round.last = Instant::now();
            }
        }
        self.answer(ended)
    }

    fn answer(&mut self, ended: Option<(SocketAddr, u16)>) -> Result<()> {
        let Some((to, number)) = ended else { return Ok(()) };
        let round = match &self.round {
            Some(round) if round.number == number => round,
            _ => self.round.insert(Round::new(number)),
        };
        self.udp.send(to, &round.summary().to_wire(), SUMMARY_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_survives_the_wire() {
        let time = Duration::from_nanos(12_345_678_901);
        let summary = Summary { round: 7, datagrams: 1 << 40, time, cpu: time / 2 };
        assert_eq!(Summary::from_wire(&summary.to_wire()), Some(summary));
        assert_eq!(Summary::from_wire(&[0; SUMMARY_BYTES - 1]), None);
    }
}
