//! Places to meet at, and two sides that do.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use wraith_crypto::NodeId;
use wraith_discovery::rendezvous::Server;
use wraith_discovery::{
    Code, CodeAnnouncement, CodeEvent, CodeOptions, JoinError, Lan, MakeTicket, Met, Places, Spend,
    TicketSide, announce, join,
};
use zeroize::Zeroizing;

/// Longer than anything here takes, so that a test that hangs fails.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// One test on the local network at a time: two codes on it may have the same nameplate of three digits.
pub async fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::const_new(());
    LOCK.lock().await
}

/// Who the two sides say they are.
pub const CREATOR: NodeId = NodeId([1; 32]);
pub const JOINER: NodeId = NodeId([2; 32]);

pub fn nowhere() -> Places {
    Places { lan: Lan::Off, ..Places::default() }
}

/// The local network, which is loopback.
pub fn loopback() -> Places {
    Places { lan: Lan::With([127, 0, 0, 1].into()), ..nowhere() }
}

pub fn at(server: SocketAddr) -> Places {
    Places { rendezvous: Some(server.to_string()), ..nowhere() }
}

/// A server until the tasks are dropped.
pub async fn server(tasks: &mut JoinSet<()>) -> SocketAddr {
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = server.local_addr().unwrap();
    tasks.spawn(async move { server.run().await.unwrap() });
    address
}

pub fn ticket(bytes: &'static [u8]) -> MakeTicket {
    Box::new(move |_, _| Zeroizing::new(bytes.to_vec()))
}

/// A code of a sender, which is waited with.
pub async fn offered(places: &Places, uses: u32) -> CodeAnnouncement {
    let options = CodeOptions::new(TicketSide::Creator, Duration::from_secs(600)).uses(uses);
    let mut announcement = announce(places, options, CREATOR, ticket(b"ticket")).await.unwrap();
    announcement.begin();
    announcement
}

pub async fn fetched(code: &Code, places: &Places) -> Result<Met, JoinError> {
    fetched_by(JOINER, code, places).await
}

/// The same as somebody.
pub async fn fetched_by(who: NodeId, code: &Code, places: &Places) -> Result<Met, JoinError> {
    join(code, who, None, places, Instant::now() + Duration::from_secs(10), may()).await
}

/// The guess may leave.
pub fn may() -> Spend {
    Box::new(|| true)
}

/// A code with the same nameplate and other words.
pub fn other_words(code: &Code) -> Code {
    let mut others = (0..2).map(|n| match code.is_for_several() {
        true => Code::for_several(code.nameplate(), [n; 6]),
        false => Code::new(code.nameplate(), [n; 4]),
    });
    others.find(|other| other != code).unwrap()
}

pub async fn next(announcement: &mut CodeAnnouncement) -> CodeEvent {
    timeout(PATIENCE, announcement.next_event()).await.unwrap().unwrap()
}
