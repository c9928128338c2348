//! Long codes: both sides leave records. With paused time, the clock advances at once when all
//! tasks wait, but not while keys are computed. Keys are computed one at a time, so these tests run
//! one at a time.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;
use wraith_crypto::NodeId;
use wraith_discovery::contact::PunchRequest;
use wraith_discovery::record::VALUE_LEN;
use wraith_discovery::{
    Code, CodeAnnouncement, CodeEvent, CodeOptions, JoinError, JoinErrorKind, JoinSuccess,
    PlaceError, PlaceName, Places, Reach, RelayAddr, TicketSide, TimeLimit, announce_long, join,
};

use super::store::{Fault, InMemoryStore};
use super::support::{CREATOR, JOINER, may, next, nowhere, ticket};

async fn one_at_a_time() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::const_new(());
    LOCK.lock().await
}

const LIFE: Duration = Duration::from_secs(600);

fn reach(n: u16) -> Reach {
    let relay = RelayAddr::new("relay.example", 443, [1; 32], [2; 16]).unwrap();
    Reach::from(vec![SocketAddr::from(([192, 0, 2, 1], n))]).with([relay])
}

async fn made(places: &Places, side: TicketSide, uses: u32) -> CodeAnnouncement {
    let options = CodeOptions::new(side, LIFE).uses(uses);
    let reach = Box::new(|_| reach(1));
    announce_long(places, options, CREATOR, ticket(b"ticket"), reach).await.unwrap()
}

/// Same as [`made`], by a sender and for one receiver.
async fn offered(store: &InMemoryStore) -> CodeAnnouncement {
    made(&store.places(), TicketSide::Creator, 1).await
}

async fn fetched_by(
    joiner: NodeId,
    code: &Code,
    store: &InMemoryStore,
) -> Result<JoinSuccess, JoinError> {
    let limit = TimeLimit::new(Duration::from_secs(30));
    let reach = Some(Box::new(|_| reach(2)) as _);
    join(code, joiner, None, &store.places(), limit, may(), reach).await
}

async fn fetched(code: &Code, store: &InMemoryStore) -> Result<JoinSuccess, JoinError> {
    fetched_by(JOINER, code, store).await
}

async fn left_call(announcement: &mut CodeAnnouncement) -> PunchRequest {
    match next(announcement).await {
        CodeEvent::PunchRequest(PlaceName::Dht, call) => call,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_senders_code_brings_its_ticket_and_both_sides_addresses() {
    let _alone = one_at_a_time().await;
    let store = InMemoryStore::default();
    let mut sender = offered(&store).await;
    assert!(sender.code().is_long());
    assert_eq!((sender.places(), sender.missing()), (&[PlaceName::Dht][..], &[][..]));
    let met = fetched(sender.code(), &store).await.unwrap();
    assert_eq!((&met.ticket[..], met.creator, &met.place), (&b"ticket"[..], None, &PlaceName::Dht));
    let (theirs, ours) = (met.punch_request.unwrap(), left_call(&mut sender).await);
    assert_eq!((theirs.peer, theirs.reach), (CREATOR, reach(1)));
    assert_eq!((ours.peer, ours.reach), (JOINER, reach(2)));
    assert_eq!(ours.punch_secret, theirs.punch_secret);
    assert!(matches!(next(&mut sender).await, CodeEvent::Used { joiner: JOINER, .. }));
}

#[tokio::test(start_paused = true)]
async fn a_receivers_code_brings_it_the_joiners_ticket() {
    let _alone = one_at_a_time().await;
    let store = InMemoryStore::default();
    let mut receiver = made(&store.places(), TicketSide::Joiner, 1).await;
    let limit = TimeLimit::new(LIFE);
    let ours = Some(ticket(b"theirs"));
    let met =
        join(receiver.code(), JOINER, ours, &store.places(), limit, may(), None).await.unwrap();
    assert_eq!((met.ticket.len(), met.creator), (0, Some(CREATOR)));
    left_call(&mut receiver).await;
    assert!(matches!(next(&mut receiver).await, CodeEvent::Used { joiner: JOINER, .. }));
    let CodeEvent::Ticket { ticket, from: None } = next(&mut receiver).await else { panic!() };
    assert_eq!(&ticket[..], b"theirs");
}

#[tokio::test(start_paused = true)]
async fn the_first_joiner_may_return_and_the_second_is_refused() {
    let _alone = one_at_a_time().await;
    let store = InMemoryStore::default();
    let sender = offered(&store).await;
    fetched(sender.code(), &store).await.unwrap();
    let second = fetched_by(NodeId([7; 32]), sender.code(), &store).await.unwrap_err();
    assert_eq!((second.why, second.is_spent), (JoinErrorKind::Used, false));
    assert_eq!(&fetched(sender.code(), &store).await.unwrap().ticket[..], b"ticket");
}

#[tokio::test(start_paused = true)]
async fn a_code_for_several_serves_as_many_at_once_as_it_has_uses() {
    let _alone = one_at_a_time().await;
    let store = InMemoryStore::default();
    let mut sender = made(&store.places(), TicketSide::Creator, 3).await;
    let joiners = [1, 2, 3].map(|n| {
        let (code, store) = (sender.code().clone(), store.clone());
        tokio::spawn(async move { fetched_by(NodeId([n; 32]), &code, &store).await })
    });
    for joiner in joiners {
        assert_eq!(&joiner.await.unwrap().unwrap().ticket[..], b"ticket");
    }
    let mut users = Vec::new();
    while users.len() < 3 {
        if let CodeEvent::Used { joiner, .. } = next(&mut sender).await {
            users.push(joiner.0[0]);
        }
    }
    users.sort_unstable();
    assert_eq!(users, [1, 2, 3]);
    let fourth = fetched_by(NodeId([4; 32]), sender.code(), &store).await.unwrap_err();
    assert_eq!(fourth.why, JoinErrorKind::Used);
}

#[tokio::test(start_paused = true)]
async fn wrong_words_find_no_creator_and_do_not_burn_the_code() {
    let _alone = one_at_a_time().await;
    let store = InMemoryStore::default();
    let sender = offered(&store).await;
    let other = fetched(&Code::long([3; 12]), &store).await.unwrap_err();
    assert_eq!(other.why, JoinErrorKind::Nobody);
    fetched(sender.code(), &store).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_code_of_the_other_direction_is_reported_as_another_kind() {
    let _alone = one_at_a_time().await;
    let store = InMemoryStore::default();
    let receiver = made(&store.places(), TicketSide::Joiner, 1).await;
    assert_eq!(fetched(receiver.code(), &store).await.unwrap_err().why, JoinErrorKind::OtherKind);
}

#[tokio::test(start_paused = true)]
async fn an_expired_code_is_reported_to_both_sides() {
    let _alone = one_at_a_time().await;
    let store = InMemoryStore::default();
    let mut sender = offered(&store).await;
    tokio::time::sleep(LIFE).await;
    assert!(matches!(next(&mut sender).await, CodeEvent::Expired));
    // Time for the creator's next search.
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(fetched(sender.code(), &store).await.unwrap_err().why, JoinErrorKind::Expired);
}

#[tokio::test(start_paused = true)]
async fn a_code_that_is_closed_is_overwritten() {
    let _alone = one_at_a_time().await;
    let store = InMemoryStore::default();
    let sender = offered(&store).await;
    let code = sender.code().clone();
    while store.newest().is_empty() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    sender.close().await;
    assert_eq!(fetched(&code, &store).await.unwrap_err().why, JoinErrorKind::Nobody);
}

#[tokio::test(start_paused = true)]
async fn records_of_a_code_look_like_all_others_and_reveal_no_identity() {
    let _alone = one_at_a_time().await;
    let store = InMemoryStore::default();
    let sender = offered(&store).await;
    fetched(sender.code(), &store).await.unwrap();
    let records = store.0.records.lock().unwrap();
    let all: Vec<_> = records.values().flatten().collect();
    assert!(all.len() >= 3, "an offer, a joiner, and what became of it");
    for record in all {
        assert_eq!(record.value.len(), VALUE_LEN);
        let seen = |wanted: &[u8]| record.value.windows(wanted.len()).any(|it| it == wanted);
        assert!(!seen(&[1; 32]) && !seen(&[2; 32]) && !seen(b"ticket"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_store_is_reported_before_the_code_is_shown_and_when_it_recovers() {
    let _alone = one_at_a_time().await;
    let store = InMemoryStore::default();
    store.set_fault(Fault::Silence);
    let mut sender = offered(&store).await;
    assert!(sender.places().is_empty());
    assert_eq!(sender.missing(), [(PlaceName::Dht, PlaceError::Silent)]);
    let failed = fetched(sender.code(), &store).await.unwrap_err();
    assert_eq!(failed.why, JoinErrorKind::Unreachable);
    assert_eq!(failed.unusable, [(PlaceName::Dht, PlaceError::Silent)]);
    store.set_fault(Fault::None);
    let back =
        async { while !matches!(next(&mut sender).await, CodeEvent::Back(PlaceName::Dht)) {} };
    timeout(LIFE, back).await.unwrap();
    fetched(sender.code(), &store).await.unwrap();

    let nowhere = nowhere();
    let no_place = join(sender.code(), JOINER, None, &nowhere, TimeLimit::new(LIFE), may(), None);
    assert_eq!(no_place.await.unwrap_err().why, JoinErrorKind::NoPlace);
}
