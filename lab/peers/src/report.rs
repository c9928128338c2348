//! One line of JSON for each round, the same for every peer.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

/// Bytes and costs of one round.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Name of the peer.
    pub peer: &'static str,
    /// Bytes that arrived and were compared, without any header.
    pub bytes: u64,
    /// Time from the first byte to the confirmation of the last.
    pub seconds: f64,
    /// 10^9 bits per second.
    pub gbit_per_second: f64,
    /// User and system time of the sending process in this round.
    pub sender_cpu_seconds: f64,
    /// User and system time of the receiving process in this round.
    pub receiver_cpu_seconds: f64,
    /// UDP payload of a full datagram at the end of the round.
    pub mtu_bytes: u16,
    pub datagrams_sent: u64,
    pub datagrams_lost: u64,
}

impl Report {
    /// Creates a report with its rate, and without counts of datagrams.
    #[must_use]
    pub fn new(peer: &'static str, bytes: u64, time: Duration, cpu: [Duration; 2]) -> Self {
        let seconds = time.as_secs_f64();
        let [sender_cpu_seconds, receiver_cpu_seconds] = cpu.map(|time| time.as_secs_f64());
        Self {
            peer,
            bytes,
            seconds,
            gbit_per_second: bytes as f64 * 8.0 / seconds / 1e9,
            sender_cpu_seconds,
            receiver_cpu_seconds,
            mtu_bytes: 0,
            datagrams_sent: 0,
            datagrams_lost: 0,
        }
    }

    /// Prints the report as one line.
    ///
    /// # Errors
    /// It cannot be serialized as JSON.
    pub fn print(&self) -> Result<()> {
        println!("{}", serde_json::to_string(self)?);
        Ok(())
    }
}
