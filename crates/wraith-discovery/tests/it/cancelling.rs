//! Dropping a future or a handle at any moment ends everything that belongs to it.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{sleep, timeout};
use wraith_crypto::SecretIdentity;
use wraith_discovery::contact::{ContactPair, listen, search};
use wraith_discovery::{
    CodeOptions, JoinErrorKind, Places, Reach, TicketSide, TimeLimit, announce, join,
};

use super::support::{
    CREATOR, JOINER, PATIENCE, fetched, loopback, may, offered, other_words, own_network, server,
    ticket,
};

/// Time after which a future without a pending wake-up is dropped.
const IDLE: Duration = Duration::from_millis(100);

/// Polls a future up to `polls` times as it wakes, and drops it. Returns whether it completed.
async fn is_ready_after_polls(polls: usize, future: impl Future) -> bool {
    let mut future = pin!(future);
    let mut left = polls;
    let polled = poll_fn(|cx| {
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if left == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    });
    timeout(IDLE, polled).await.unwrap_or(false)
}

/// Waits until at most `tasks` tasks are alive.
async fn wait_for_tasks(tasks: usize) {
    let gone = async {
        while Handle::current().metrics().num_alive_tasks() > tasks {
            yield_now().await;
        }
    };
    timeout(PATIENCE, gone).await.unwrap();
}

async fn all_places(tasks: &mut JoinSet<()>) -> Places {
    Places { rendezvous: Some(server(tasks).await.to_string()), ..loopback() }
}

#[tokio::test]
async fn an_announcement_that_is_dropped_leaves_no_task() {
    let _network = own_network();
    let mut tasks = JoinSet::new();
    let places = all_places(&mut tasks).await;
    for polls in 1..6 {
        let options = CodeOptions::new(TicketSide::Creator, Duration::from_secs(600));
        is_ready_after_polls(polls, announce(&places, options, CREATOR, ticket(b"ticket"))).await;
        let mut sender = offered(&places, 1).await;
        is_ready_after_polls(polls, sender.next_event()).await;
        drop(sender);
        // The server's tasks end after the clients disconnect.
        wait_for_tasks(1).await;
    }
}

#[tokio::test]
async fn a_search_that_is_dropped_leaves_no_task_and_spends_no_guess_it_did_not_make() {
    let _network = own_network();
    for polls in 1..12 {
        // A new server per attempt, so that no rate limit interferes.
        let mut tasks = JoinSet::new();
        let places = all_places(&mut tasks).await;
        let sender = offered(&places, u32::MAX).await;
        let limit = TimeLimit::new(PATIENCE);
        let wrong = other_words(sender.code());
        let is_done =
            is_ready_after_polls(polls, join(&wrong, JOINER, None, &places, limit, may(), None))
                .await;
        // Before the guess the code is intact, afterwards it is burned; there is no third result.
        match fetched(sender.code(), &places).await {
            Ok(_) => assert!(!is_done, "a wrong guess was forgotten"),
            Err(error) => assert_eq!(error.why, JoinErrorKind::Burned),
        }
        drop(sender);
        wait_for_tasks(1).await;
    }
}

#[tokio::test]
async fn dropping_a_wait_for_events_loses_none() {
    let mut tasks = JoinSet::new();
    let places = Places { lan: wraith_discovery::Lan::Off, ..all_places(&mut tasks).await };
    let mut sender = offered(&places, 1).await;
    let code = sender.code().clone();
    let mut joining = pin!(fetched(&code, &places));
    let mut event = None;
    while event.is_none() {
        tokio::select! {
            biased;
            got = sender.next_event() => event = got,
            _ = &mut joining => break,
            () = yield_now() => {}
        }
    }
    let event = match event {
        Some(event) => event,
        None => timeout(PATIENCE, sender.next_event()).await.unwrap().unwrap(),
    };
    assert!(matches!(event, wraith_discovery::CodeEvent::Used { .. }), "{event:?}");
}

#[tokio::test]
async fn contacts_that_are_dropped_leave_no_task() {
    let _network = own_network();
    let mut tasks = JoinSet::new();
    let places = all_places(&mut tasks).await;
    let [a, b] = [1, 2].map(|n| SecretIdentity::from_seed([n; 32]));
    let ours = ContactPair::new(&a, b.node_id()).unwrap();
    let theirs = ContactPair::new(&b, a.node_id()).unwrap();
    for polls in 1..6 {
        is_ready_after_polls(polls, listen(&places, Box::new(|_| Reach::default()))).await;
        let mut listener = listen(&places, Box::new(|_| Reach::default())).await;
        listener.set_contacts(vec![ours.clone()]);
        let mut searching = search(&theirs, &places);
        is_ready_after_polls(polls, searching.next()).await;
        is_ready_after_polls(polls, listener.next_event()).await;
        sleep(Duration::from_millis(10)).await;
        drop((listener, searching));
        wait_for_tasks(1).await;
    }
}
