//! What recovery needs to know at the start.

use std::sync::Arc;
use std::time::Duration;

use super::path::Path;
use crate::Time;
use crate::congestion::{ControllerFactory, Start};

/// What recovery needs to know at the start.
#[derive(Clone, Debug)]
pub struct RecoveryConfig {
    /// Congestion control: makes a controller for each path.
    pub congestion: Arc<dyn ControllerFactory>,
    /// Round trip to assume before the first sample: the handshake's if it was measured.
    pub initial_rtt: Duration,
    /// Longest the peer says it delays an ACK.
    pub max_ack_delay: Duration,
    /// UDP payload bytes of a full datagram.
    pub mtu: u16,
    /// Seed of the random numbers that spread bandwidth probes.
    pub seed: u64,
}

impl RecoveryConfig {
    /// A fresh path of full datagrams of `mtu` bytes.
    pub(super) fn path(&self, now: Time, generation: u32, mtu: u16) -> Path {
        let start = Start {
            now,
            mtu,
            seed: self.seed.wrapping_add(u64::from(generation)),
            initial_rtt: self.initial_rtt,
        };
        Path::new(generation, &*self.congestion, &start)
    }
}
