//! How many connections carry one transfer, and the sockets of the further ones (SPEC §10.13).
//!
//! Each connection keeps about one core busy with packets and one with files, so there is one for every two cores, and the
//! engine makes the further ones only where one is not enough.

use std::net::{IpAddr, SocketAddr};

use wraith_crypto::SecretIdentity;
use wraith_transfer::Lanes;
use zeroize::Zeroizing;

use crate::args::Congestion;
use crate::endpoint;

/// Cores for one connection.
const CORES: usize = 2;

/// The further connections of a sender, which the receiver makes to `address`.
pub fn to_send(
    wanted: Option<u8>,
    address: IpAddr,
    seed: [u8; 32],
    congestion: Congestion,
) -> Lanes {
    let seed = Zeroizing::new(seed);
    let lanes = Lanes::new(further(wanted), move || {
        let identity = SecretIdentity::from_seed(*seed);
        endpoint::bind_to_send(SocketAddr::new(address, 0), identity, congestion)
    });
    if wanted.is_some() { lanes.at_once() } else { lanes }
}

/// The further connections that a receiver makes.
pub fn to_receive(wanted: Option<u8>, seed: [u8; 32]) -> Lanes {
    let seed = Zeroizing::new(seed);
    Lanes::new(further(wanted), move || endpoint::bind_to_receive(SecretIdentity::from_seed(*seed)))
}

/// Connections beyond the first.
fn further(wanted: Option<u8>) -> usize {
    let by_cores = || std::thread::available_parallelism().map_or(1, usize::from) / CORES;
    wanted.map_or_else(by_cores, usize::from).saturating_sub(1)
}
