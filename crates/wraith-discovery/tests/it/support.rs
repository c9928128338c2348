//! Meeting places, and two sides that use them.

#[path = "../../../wraith-cli/tests/it/support/cable.rs"]
#[allow(dead_code, reason = "the tests of the program use more of it")]
pub mod cable;
#[path = "../../../wraith-cli/tests/it/support/lan.rs"]
pub mod lan;

use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use wraith_crypto::NodeId;
use wraith_discovery::{
    Code, CodeAnnouncement, CodeEvent, CodeOptions, JoinError, JoinSuccess, Lan, MakeTicket,
    MarkSpent, Places, TicketSide, TimeLimit, announce, join,
};
use wraith_relay::rendezvous::Server;
use zeroize::Zeroizing;

pub use lan::own_network;

/// Longer than any step of these tests, so that a test that hangs fails.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Identities of the two sides.
pub const CREATOR: NodeId = NodeId([1; 32]);
pub const JOINER: NodeId = NodeId([2; 32]);

pub fn nowhere() -> Places {
    Places { lan: Lan::Off, ..Places::default() }
}

/// Returns the loopback interface as the local network.
pub fn loopback() -> Places {
    Places { lan: Lan::With([127, 0, 0, 1].into()), ..nowhere() }
}

pub fn at(server: SocketAddr) -> Places {
    Places { rendezvous: Some(server.to_string()), ..nowhere() }
}

/// Starts a server that runs until the tasks are dropped.
pub async fn server(tasks: &mut JoinSet<()>) -> SocketAddr {
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = server.local_addr().unwrap();
    tasks.spawn(async move { server.run().await.unwrap() });
    address
}

pub fn ticket(bytes: &'static [u8]) -> MakeTicket {
    Box::new(move |_, _| Some(Zeroizing::new(bytes.to_vec())))
}

/// Announces a sender's code.
pub async fn offered(places: &Places, uses: u32) -> CodeAnnouncement {
    let options = CodeOptions::new(TicketSide::Creator, Duration::from_secs(600)).uses(uses);
    let mut announcement = announce(places, options, CREATOR, ticket(b"ticket")).await.unwrap();
    announcement.start_serving();
    announcement
}

pub async fn fetched(code: &Code, places: &Places) -> Result<JoinSuccess, JoinError> {
    fetched_by(JOINER, code, places).await
}

/// Same as [`fetched`], with the given identity.
pub async fn fetched_by(
    joiner: NodeId,
    code: &Code,
    places: &Places,
) -> Result<JoinSuccess, JoinError> {
    join(code, joiner, None, places, TimeLimit::new(Duration::from_secs(10)), may(), None).await
}

/// Allows the guess to leave.
pub fn may() -> MarkSpent {
    Box::new(|| true)
}

/// Returns a code with the same nameplate and other words.
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

/// Reports a test that cannot run here.
pub fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}
