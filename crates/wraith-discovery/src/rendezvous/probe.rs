//! Whether somebody serves at an address: a nameplate is opened there, for nobody, and given back by hanging up.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::timeout;

use super::frame::{ClientFrame, ServerFrame};
use super::link::Link;
use crate::connect::Connect;
use crate::place::{MAX_NAMEPLATE, PlaceError};

/// As long as one who waits with a code gives the server.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Does what making a code begins with at `HOST:PORT`, and returns the address from which the server sees it done: this machine's, or
/// that of a proxy. Must be called in a tokio runtime.
///
/// # Errors
/// Why the server cannot be used.
pub async fn probe(server: &str, connect: &dyn Connect) -> Result<SocketAddr, PlaceError> {
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(|_| PlaceError::no_randomness())?;
    let nameplate = u32::from_be_bytes(random) % MAX_NAMEPLATE + 1;
    let mut link = Link::connect(server, connect).await?;
    link.send(&ClientFrame::Open { nameplate, exact: false }).await?;
    let answer = timeout(ANSWER_TIMEOUT, link.next()).await.map_err(|_| PlaceError::Silent)?;
    match answer? {
        ServerFrame::Opened { seen, .. } => {
            Ok(SocketAddr::new(seen.ip().to_canonical(), seen.port()))
        }
        ServerFrame::No(why) => Err(why.into()),
        _ => Err(PlaceError::Protocol),
    }
}
