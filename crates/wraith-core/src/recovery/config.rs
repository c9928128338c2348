//! Configuration of recovery.

use std::sync::Arc;
use std::time::Duration;

use super::path::Path;
use crate::Time;
use crate::congestion::{ControllerFactory, Start};

/// Configuration of recovery.
#[derive(Clone, Debug)]
pub struct RecoveryConfig {
    /// Congestion control: creates the controller of each path.
    pub congestion: Arc<dyn ControllerFactory>,
    /// Round trip assumed before the first sample: the handshake's, if it was measured.
    pub initial_rtt: Duration,
    /// Maximum ACK delay announced by the peer.
    pub max_ack_delay: Duration,
    /// UDP payload size of a full datagram, in bytes.
    pub mtu: u16,
    /// Seed of the random numbers that spread bandwidth probes.
    pub seed: u64,
}

impl RecoveryConfig {
    /// Creates a path with full datagrams of `mtu` bytes.
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
