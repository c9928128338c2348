//! Claims a nameplate on the local network before a code with it is shown, so that two codes never
//! share one.
//!
//! The creator locks the nameplate on its machine, joins the group, and asks the group three times
//! whether another creator has the nameplate. If no answer comes, the nameplate is its own, and it
//! answers the claims of others from then on. Of two creators that ask at the same time, the one
//! with the greater random token wins.
//!
//! A claim is a packet like any other: the token takes the place of the hello, and the message is
//! one byte. An answer repeats the token of the claim, which only hosts on this network have seen.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::announce::MulticastListener;
use super::envelope::{Envelope, OpenedPacket};
use super::interfaces::{Interface, Lan};
use super::nameplate_lock::NameplateLock;
use super::packet::{CLAIM, OPENING_LEN, TAKEN};
use super::sockets::RecvBuffer;
use crate::place::{MAX_NAMEPLATE, PlaceError};

/// Pauses after each transmission of a claim; after the last one the nameplate is claimed.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_millis(60), Duration::from_millis(90)];
/// Steps of a pause. A step counts once, however late this process runs after it: on an overloaded
/// machine the pause is longer, as the answers are later.
const STEPS: u32 = 5;
/// Highest nameplates to choose from, and the number of attempts with each. Three digits are quick
/// to say; a network with hundreds of codes needs more.
const RANGES: [(u32, u32); 4] = [(999, 6), (9_999, 6), (99_999, 6), (MAX_NAMEPLATE, 12)];

/// Listens with a nameplate that no other creator on this machine or network has: the requested
/// one, or else another unless `exact`.
///
/// # Errors
/// [`PlaceError::Taken`], or the local network is not usable.
pub async fn listen(
    lan: Lan,
    requested: u32,
    exact: bool,
) -> Result<MulticastListener, PlaceError> {
    let ranges = RANGES.into_iter().filter(|_| !exact);
    let others = ranges.flat_map(|(highest, tries)| (0..tries).map(move |_| highest));
    for highest in std::iter::once(None).chain(others.map(Some)) {
        let nameplate = match highest {
            None => requested,
            Some(highest) => 1 + random_below(highest)?,
        };
        let Some(lock) = NameplateLock::take(nameplate) else { continue };
        let envelope = Envelope::Nameplate(nameplate);
        let mut listener = MulticastListener::new(lan.clone(), envelope, Some(lock))?;
        if claim(&mut listener, &lan.interfaces()).await? {
            return Ok(listener);
        }
    }
    Err(PlaceError::Taken)
}

/// Asks the group for the listener's nameplate. Returns false if another creator has it.
async fn claim(
    listener: &mut MulticastListener,
    interfaces: &[Interface],
) -> Result<bool, PlaceError> {
    let is_asked = |interface: &&Interface| !(interface.is_loopback && NameplateLock::COVERS_HOST);
    let interfaces: Vec<_> = interfaces.iter().filter(is_asked).cloned().collect();
    if interfaces.is_empty() {
        return Ok(true);
    }
    if NameplateLock::COVERS_HOST {
        let skipped = listener.own.skip_own_host();
        skipped.map_err(|error| PlaceError::Unusable(error.to_string()))?;
    }
    listener.claim_token = new_token()?;
    let mut buffer = RecvBuffer::new();
    for pause in PAUSES {
        let packet = listener.envelope.wrap(&listener.claim_token, CLAIM)?;
        listener.own.multicast(&interfaces, &packet);
        for _ in 0..STEPS {
            let next = Instant::now() + pause / STEPS;
            while let Ok(received) = timeout_at(next, listener.receive(&mut buffer)).await {
                let Some((opened, from)) = received else { continue };
                if is_lost(listener, &opened, from) {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

/// Reports whether this packet ends our claim. Answers a claim that loses against ours.
fn is_lost(
    listener: &MulticastListener,
    OpenedPacket { opening, message }: &OpenedPacket,
    from: SocketAddr,
) -> bool {
    if *opening == listener.claim_token {
        return message == TAKEN;
    }
    let is_claim = message == CLAIM;
    let is_ours_greater = *opening < listener.claim_token;
    if is_claim && is_ours_greater {
        listener.refuse_claim(opening, from);
    }
    is_claim && !is_ours_greater
}

/// Returns a token in the form of a first message.
fn new_token() -> Result<Vec<u8>, PlaceError> {
    let mut token = vec![1; 1 + OPENING_LEN];
    getrandom::fill(&mut token[1..]).map_err(|_| PlaceError::no_randomness())?;
    Ok(token)
}

/// Returns a random number below `bound`. Its bias is below 2^-12.
fn random_below(bound: u32) -> Result<u32, PlaceError> {
    let random = getrandom::u32().map_err(|_| PlaceError::no_randomness())?;
    Ok(random % bound)
}
