//! Whether somebody serves at an address: a number is opened there, for nobody, and given back by hanging up.

use std::net::SocketAddr;
use std::time::Duration;

use super::client::Link;
use super::frame::{ClientFrame, No, ServerFrame};

/// As long as one who waits with a code gives the server.
const PATIENCE: Duration = Duration::from_secs(5);

/// Does what making a code begins with at `HOST:PORT`, and returns this machine's address as the server sees it.
///
/// # Errors
/// In words for people: why the server cannot be used.
pub fn probe(server: &str) -> Result<SocketAddr, String> {
    let mut number = [0; 4];
    getrandom::fill(&mut number).map_err(|error| error.to_string())?;
    let number = u32::from_be_bytes(number) % crate::MAX_NUMBER + 1;
    let plain = |error: std::io::Error| error.to_string();
    let mut link = Link::connect(server).map_err(plain)?;
    link.send(&ClientFrame::Open { number, exact: false }).map_err(plain)?;
    match link.next(PATIENCE).map_err(plain)? {
        Some(ServerFrame::Opened { seen, .. }) => {
            Ok(SocketAddr::new(seen.ip().to_canonical(), seen.port()))
        }
        Some(ServerFrame::No(No::TooFast)) => Err("too many requests from here".into()),
        Some(ServerFrame::No(No::Full)) => Err("it is full".into()),
        Some(_) => Err("it does not do what it was asked for".into()),
        None => Err("it does not answer".into()),
    }
}
