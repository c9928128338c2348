//! Measures the round trip without a helper at the other end: a TCP connection to a closed port is
//! refused after exactly one round trip.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

/// A lost SYN is retransmitted after a second; a longer sample would measure the loss.
const SAMPLE_MAX: Duration = Duration::from_millis(900);

/// Returns the sorted round trips of `count` attempts, or of those that start within `limit`;
/// attempts with a loss are left out.
pub fn measure(address: SocketAddr, count: u32, limit: Duration) -> Result<Vec<Duration>> {
    let mut samples = Vec::new();
    let begin = Instant::now();
    for _ in 0..count {
        let start = Instant::now();
        if start - begin > limit {
            break;
        }
        match TcpStream::connect_timeout(&address, SAMPLE_MAX) {
            Ok(_) => bail!("a program listens at {address}"),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                samples.push(start.elapsed());
            }
            Err(error) if error.kind() == ErrorKind::TimedOut => {}
            Err(error) => return Err(error.into()),
        }
    }
    ensure!(!samples.is_empty(), "nothing came back from {address}");
    samples.sort_unstable();
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_port_answers_and_an_open_one_is_an_error() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert!(measure(address, 1, SAMPLE_MAX).is_err());
        drop(listener);
        assert_eq!(measure(address, 3, SAMPLE_MAX).unwrap().len(), 3);
    }
}
