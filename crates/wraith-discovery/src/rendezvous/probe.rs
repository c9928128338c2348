//! Tests whether a rendezvous server runs at an address: opens a nameplate and disconnects.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::timeout;

use super::frame::{ClientFrame, ServerFrame};
use super::link::ServerLink;
use crate::connect::Connect;
use crate::place::{MAX_NAMEPLATE, PlaceError};

/// Time limit of the server's answer, as for a waiting code.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens a nameplate at `HOST:PORT` as a new code does. Returns the source address that the server
/// observes: this machine's or a proxy's. Must be called in a tokio runtime.
///
/// # Errors
/// The reason why the server is unusable.
pub async fn probe(server: &str, connect: &dyn Connect) -> Result<SocketAddr, PlaceError> {
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(|_| PlaceError::no_randomness())?;
    let nameplate = u32::from_be_bytes(random) % MAX_NAMEPLATE + 1;
    let mut link = ServerLink::connect(server, connect).await?;
    link.send(&ClientFrame::Open { nameplate, exact: false }).await?;
    let answer = timeout(ANSWER_TIMEOUT, link.next()).await.map_err(|_| PlaceError::Silent)?;
    match answer? {
        ServerFrame::Opened { seen, .. } => {
            Ok(SocketAddr::new(seen.ip().to_canonical(), seen.port()))
        }
        ServerFrame::Refused(why) => Err(why.into()),
        _ => Err(PlaceError::Protocol),
    }
}
