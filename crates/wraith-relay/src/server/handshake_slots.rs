//! Limits on connections without a relay session. Such connections hold memory and file descriptors
//! before the client has proved anything.
//!
//! Invariant: at most [`MAX`] such connections at once, and [`MAX_PER_SOURCE`] per address (an IPv4
//! address or an IPv6 /64).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use wraith_discovery::rates::Source;

use super::shared::lock;

/// Most connections without a session. Each has a TLS handshake in progress, about 40 KiB.
const MAX: usize = 1024;
/// Most such connections per address. A household that reconnects after a power cut has fewer.
const MAX_PER_SOURCE: usize = 64;

/// Counts of open connections per address.
#[derive(Debug, Default)]
pub struct Places(Arc<Mutex<HashMap<Source, usize>>>);

/// A slot of one connection, freed on drop.
#[derive(Debug)]
pub struct Place {
    source: Source,
    places: Arc<Mutex<HashMap<Source, usize>>>,
}

impl Places {
    /// Takes a slot for a client at `from`. Returns `None` if a limit is reached.
    pub fn take(&self, from: IpAddr) -> Option<Place> {
        let source = Source::of(from);
        let mut places = lock(&self.0);
        if places.values().sum::<usize>() >= MAX {
            return None;
        }
        let of_source = places.entry(source).or_default();
        if *of_source >= MAX_PER_SOURCE {
            return None;
        }
        *of_source += 1;
        Some(Place { source, places: Arc::clone(&self.0) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = lock(&self.places);
        if let Some(count) = places.get_mut(&self.source) {
            *count -= 1;
            if *count == 0 {
                places.remove(&self.source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_does_not_take_the_places_of_others_and_gives_its_own_back() {
        let places = Places::default();
        let from = |i: u8| IpAddr::from([192, 0, 2, i]);
        let taken: Vec<_> = (0..MAX_PER_SOURCE).map(|_| places.take(from(1)).unwrap()).collect();
        assert!(places.take(from(1)).is_none() && places.take(from(2)).is_some());
        drop(taken);
        assert!(places.take(from(1)).is_some());
        let all: Vec<_> =
            (0..=255).flat_map(|i| (0..8).map(move |_| i)).map(|i| places.take(from(i))).collect();
        assert_eq!(all.iter().flatten().count(), MAX);
        drop(all);
        assert!(lock(&places.0).is_empty());
    }
}
