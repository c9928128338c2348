//! State shared by the tasks and the UDP thread of one relay.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::admission::AdmissionControl;
use super::metrics::Metrics;
use super::other_port::OtherPort;
use super::reflector::Reflector;
use super::table::Table;
use super::udp_queue::UdpQueue;
use crate::budget::Budget;
use crate::lock::lock;

/// Shared state. Only one lock is held at a time, except that an outbox's lock may be taken last.
#[derive(Debug)]
pub struct Shared {
    pub table: Mutex<Table>,
    pub admission_control: Mutex<AdmissionControl>,
    pub udp_queue: UdpQueue,
    /// 0 without UDP.
    pub udp_port: u16,
    pub other_port: Option<OtherPort>,
    pub budget: Arc<Budget>,
    pub metrics: Arc<Metrics>,
    pub reflector: Reflector,
    pub log_addresses: bool,
    pub timeouts: Timeouts,
}

/// Limits on waiting for clients.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// From the connection to the end of the TLS handshake.
    pub handshake: Duration,
    /// From there to a complete HELLO.
    pub hello: Duration,
    /// Between two frames; a client sends one every 25 s.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            hello: Duration::from_secs(10),
            idle: Duration::from_secs(90),
        }
    }
}

impl Shared {
    /// Runs the expired timers.
    pub fn tick(&self, now: Instant) {
        lock(&self.table).tick(now);
        for (to, answer) in self.reflector.take_due(now) {
            self.udp_queue.send(to, answer);
        }
    }

    /// Formats an address for the log.
    pub fn logged(&self, address: IpAddr) -> String {
        if self.log_addresses { address.to_string() } else { "-".to_owned() }
    }
}
