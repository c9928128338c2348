//! Limits on connections without a relay session. Such connections hold memory and file descriptors
//! before the client has proved anything.
//!
//! Invariant: at most [`MAX`] such connections at once, and [`MAX_PER_SOURCE`] per address (an IPv4
//! address or an IPv6 /64).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use wraith_discovery::rates::Source;

use crate::lock::lock;

/// Most connections without a session. Each has a TLS handshake in progress, about 40 KiB.
const MAX: usize = 1024;
/// Most such connections per address. A household that reconnects after a power cut has fewer.
const MAX_PER_SOURCE: usize = 64;

/// Counts of open connections per address.
#[derive(Debug, Default)]
pub struct HandshakeSlots(Arc<Mutex<HashMap<Source, usize>>>);

/// A slot of one connection, freed on drop.
#[derive(Debug)]
pub struct HandshakeSlot {
    source: Source,
    handshake_slots: Arc<Mutex<HashMap<Source, usize>>>,
}

impl HandshakeSlots {
    /// Takes a slot for a client at `from`. Returns `None` if a limit is reached.
    pub fn take(&self, from: IpAddr) -> Option<HandshakeSlot> {
        let source = Source::of(from);
        let mut handshake_slots = lock(&self.0);
        if handshake_slots.values().sum::<usize>() >= MAX {
            return None;
        }
        let of_source = handshake_slots.entry(source).or_default();
        if *of_source >= MAX_PER_SOURCE {
            return None;
        }
        *of_source += 1;
        Some(HandshakeSlot { source, handshake_slots: Arc::clone(&self.0) })
    }
}

impl Drop for HandshakeSlot {
    fn drop(&mut self) {
        let mut handshake_slots = lock(&self.handshake_slots);
        if let Some(count) = handshake_slots.get_mut(&self.source) {
            *count -= 1;
            if *count == 0 {
                handshake_slots.remove(&self.source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_limited_per_address_and_released_on_drop() {
        let handshake_slots = HandshakeSlots::default();
        let from = |i: u8| IpAddr::from([192, 0, 2, i]);
        let taken: Vec<_> =
            (0..MAX_PER_SOURCE).map(|_| handshake_slots.take(from(1)).unwrap()).collect();
        assert!(handshake_slots.take(from(1)).is_none() && handshake_slots.take(from(2)).is_some());
        drop(taken);
        assert!(handshake_slots.take(from(1)).is_some());
        let all: Vec<_> = (0..=255)
            .flat_map(|i| (0..8).map(move |_| i))
            .map(|i| handshake_slots.take(from(i)))
            .collect();
        assert_eq!(all.iter().flatten().count(), MAX);
        drop(all);
        assert!(lock(&handshake_slots.0).is_empty());
    }
}
