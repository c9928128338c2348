//! Codes at the places of this crate: with the right words the ticket is transferred, and after a
//! wrong guess the code is no longer valid.

use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use wraith_discovery::{
    CodeEvent, CodeOptions, JoinErrorKind, MakeTicket, PlaceError, PlaceName, Places, TicketSide,
    TimeLimit, announce, join,
};

use wraith_crypto::NodeId;
use zeroize::Zeroizing;

use super::support::{
    CREATOR, JOINER, PATIENCE, at, fetched, fetched_by, loopback, may, next, nowhere, offered,
    other_words, own_network, server, ticket,
};

/// Checks the behaviour that all places share.
async fn brings_a_ticket_either_way(places: &Places) {
    let mut sender = offered(places, 1).await;
    assert_eq!((sender.places(), sender.missing()), (&*places.names(), &[][..]));
    let met = fetched(sender.code(), places).await.unwrap();
    assert_eq!((met.ticket.as_slice(), &met.place), (&b"ticket"[..], &places.names()[0]));
    assert!(matches!(
        next(&mut sender).await,
        CodeEvent::Used { place, joiner: JOINER } if place == met.place
    ));

    let options = CodeOptions::new(TicketSide::Joiner, Duration::from_secs(600));
    let mut receiver = announce(places, options, CREATOR, ticket(b"")).await.unwrap();
    receiver.start_serving();
    let limit = TimeLimit::new(PATIENCE);
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let for_whom: MakeTicket = Box::new(move |creator, _| {
        tell.send(creator).unwrap();
        Some(Zeroizing::new(b"given".to_vec()))
    });
    let met =
        join(receiver.code(), JOINER, Some(for_whom), places, limit, may(), None).await.unwrap();
    assert_eq!(told.recv().await, Some(CREATOR), "the giver knew for whom the ticket is");
    assert_eq!((met.ticket.is_empty(), met.creator), (true, Some(CREATOR)));
    assert!(matches!(next(&mut receiver).await, CodeEvent::Used { joiner: JOINER, .. }));
    let CodeEvent::Ticket { ticket, from } = next(&mut receiver).await else { panic!() };
    assert_eq!((ticket.as_slice(), from.is_some()), (&b"given"[..], met.place == PlaceName::Lan));
    receiver.close().await;
}

#[tokio::test]
async fn a_spent_code_sends_no_guess_and_a_sent_guess_is_reported() {
    let mut tasks = JoinSet::new();
    let places = at(server(&mut tasks).await);
    let mut sender = offered(&places, 1).await;
    let code = sender.code().clone();
    let limit = || TimeLimit::new(PATIENCE);
    let kept = join(&code, JOINER, None, &places, limit(), Box::new(|| false), None).await;
    let kept = kept.unwrap_err();
    assert_eq!((kept.why, kept.is_spent), (JoinErrorKind::Spent, false));
    let wrong = fetched(&other_words(&code), &places).await.unwrap_err();
    assert_eq!((wrong.why, wrong.is_spent), (JoinErrorKind::Wrong, true));
    assert!(
        matches!(next(&mut sender).await, CodeEvent::WrongGuess(_)),
        "what was kept was no guess"
    );
    // The burned code is reported without a guess.
    let late = fetched(&code, &places).await.unwrap_err();
    assert_eq!((late.why, late.is_spent), (JoinErrorKind::Burned, false));
}

async fn one_wrong_guess_burns(places: &Places) {
    let mut sender = offered(places, 3).await;
    let code = sender.code().clone();
    let wrong = fetched(&other_words(&code), places).await.unwrap_err();
    assert_eq!(wrong.why, JoinErrorKind::Wrong);
    let CodeEvent::WrongGuess(place) = next(&mut sender).await else { panic!() };
    assert_eq!(place, places.names()[0]);
    assert_eq!(fetched(&code, places).await.unwrap_err().why, JoinErrorKind::Burned);
}

#[tokio::test]
async fn a_code_brings_a_ticket_either_way_on_the_local_network() {
    let _network = own_network();
    brings_a_ticket_either_way(&loopback()).await;
}

#[tokio::test]
async fn a_code_brings_a_ticket_either_way_at_a_server() {
    let mut tasks = JoinSet::new();
    brings_a_ticket_either_way(&at(server(&mut tasks).await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_brings_a_ticket_on_a_multi_threaded_runtime() {
    let mut tasks = JoinSet::new();
    brings_a_ticket_either_way(&at(server(&mut tasks).await)).await;
}

#[tokio::test]
async fn a_wrong_guess_burns_a_code_on_the_local_network() {
    let _network = own_network();
    one_wrong_guess_burns(&loopback()).await;
}

#[tokio::test]
async fn a_wrong_guess_burns_a_code_at_a_server_and_later_joiners_get_the_reason() {
    let mut tasks = JoinSet::new();
    one_wrong_guess_burns(&at(server(&mut tasks).await)).await;
}

#[tokio::test]
async fn a_code_for_two_serves_two_and_refuses_the_third_as_used() {
    let mut tasks = JoinSet::new();
    let places = at(server(&mut tasks).await);
    let mut sender = offered(&places, 2).await;
    let code = sender.code().clone();
    assert!(code.is_for_several());
    // The same identity uses only one place.
    for user in [2, 2, 3] {
        fetched_by(NodeId([user; 32]), &code, &places).await.unwrap();
        assert!(
            matches!(next(&mut sender).await, CodeEvent::Used { joiner, .. } if joiner.0 == [user; 32])
        );
    }
    sender.close().await;
    assert_eq!(fetched(&code, &places).await.unwrap_err().why, JoinErrorKind::Used);
}

#[tokio::test]
async fn a_code_that_lacks_its_third_word_is_no_guess() {
    let mut tasks = JoinSet::new();
    let places = at(server(&mut tasks).await);
    let sender = offered(&places, 2).await;
    let text = sender.code().to_string();
    let short = text.rsplit_once('-').unwrap().0.parse().unwrap();
    let limit = TimeLimit::new(Duration::from_millis(1500));
    let error = join(&short, JOINER, None, &places, limit, may(), None).await.unwrap_err();
    assert_eq!((error.why, error.is_spent), (JoinErrorKind::OtherKind, false));
    fetched(sender.code(), &places).await.unwrap();
}

#[tokio::test]
async fn an_unused_code_expires() {
    let mut tasks = JoinSet::new();
    let places = at(server(&mut tasks).await);
    let options = CodeOptions::new(TicketSide::Creator, Duration::from_millis(100));
    let mut sender = announce(&places, options, CREATOR, ticket(b"ticket")).await.unwrap();
    sender.start_serving();
    let code = sender.code().clone();
    assert!(matches!(next(&mut sender).await, CodeEvent::Expired));
    assert!(timeout(PATIENCE, sender.next_event()).await.unwrap().is_none(), "all is over");
    assert_eq!(fetched(&code, &places).await.unwrap_err().why, JoinErrorKind::Expired);
}

/// All places together allow one guess: the first wrong one burns the code for the other place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_places_that_race_with_wrong_guesses_burn_a_code_once() {
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let [one, other] = [server(&mut tasks).await, server(&mut tasks).await];
        let mut both = at(one);
        both.others = at(other).all();
        let mut sender = offered(&both, u32::MAX).await;
        assert_eq!(sender.places().len(), 2);
        let wrong = other_words(sender.code());
        let [at_one, at_other] = [at(one), at(other)].map(|places| {
            let wrong = wrong.clone();
            tokio::spawn(async move { fetched(&wrong, &places).await.unwrap_err().why })
        });
        let mut outcomes = [at_one.await.unwrap(), at_other.await.unwrap()];
        outcomes.sort_unstable();
        assert_eq!(outcomes, [JoinErrorKind::Burned, JoinErrorKind::Wrong]);
        let mut events = Vec::new();
        while let Some(event) = timeout(PATIENCE, sender.next_event()).await.unwrap() {
            events.push(event);
        }
        assert!(matches!(&events[..], [CodeEvent::WrongGuess(_)]), "{events:?}");
    }
}

#[tokio::test]
async fn when_the_server_is_down_the_local_network_still_works() {
    let _network = own_network();
    // A port that was in use a moment ago and is closed now.
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let places = Places { rendezvous: Some(gone.to_string()), ..loopback() };
    let mut sender = offered(&places, 1).await;
    assert_eq!(sender.places(), [PlaceName::Lan]);
    let [(PlaceName::Rendezvous(_), PlaceError::Unreachable(_))] = sender.missing() else {
        panic!()
    };
    assert!(matches!(next(&mut sender).await, CodeEvent::Lost(PlaceName::Rendezvous(_), _)));
    assert_eq!(fetched(sender.code(), &places).await.unwrap().place, PlaceName::Lan);
}

#[tokio::test]
async fn a_server_that_stalls_delays_neither_the_code_nor_the_end() {
    let _network = own_network();
    let stalled = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Some(stalled.local_addr().unwrap().to_string());
    let places = Places { rendezvous: server.clone(), ..loopback() };
    let begun = Instant::now();
    let sender = offered(&places, 1).await;
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(sender.places(), [PlaceName::Lan], "the server has not answered");
    let begun = Instant::now();
    let limit = TimeLimit::new(Duration::from_millis(300));
    let only_there = Places { rendezvous: server, ..nowhere() };
    let error =
        join(sender.code(), JOINER, None, &only_there, limit, may(), None).await.unwrap_err();
    assert_eq!(error.why, JoinErrorKind::Nobody);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_server_that_comes_back_has_the_code_again() {
    let mut tasks = JoinSet::new();
    let address = server(&mut tasks).await;
    let places = at(address);
    let mut sender = offered(&places, 1).await;
    tasks.shutdown().await;
    assert!(matches!(next(&mut sender).await, CodeEvent::Lost(..)));
    let again = wraith_relay::rendezvous::Server::bind(address).await.unwrap();
    tasks.spawn(async move { again.run().await.unwrap() });
    assert!(matches!(next(&mut sender).await, CodeEvent::Back(_)));
    assert!(fetched(sender.code(), &places).await.is_ok());
}

#[tokio::test]
async fn without_a_place_joining_fails_with_the_reason() {
    let sender = offered(&nowhere(), 1).await;
    assert!(sender.places().is_empty());
    assert_eq!(fetched(sender.code(), &nowhere()).await.unwrap_err().why, JoinErrorKind::NoPlace);
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let limit = TimeLimit::new(Duration::from_millis(200));
    let error = join(sender.code(), JOINER, None, &at(gone), limit, may(), None).await.unwrap_err();
    assert_eq!(error.why, JoinErrorKind::Unreachable);
    assert!(matches!(&error.unusable[..], [(_, PlaceError::Unreachable(_))]), "{error:?}");
}
