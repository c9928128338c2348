//! Events form a stream with exactly one final event, and a slow reader slows nothing down.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use wraith::{ErrorKind, Event, Events, OnConflict};

use crate::support::{
    Heard, LOOPBACK, event, file, film_offered, node, offered, soon, until, within,
};

fn is_last(event: &Event) -> bool {
    matches!(event, Event::Done | Event::Failed(_))
}

/// Collects all events up to the end of the stream.
async fn all(mut events: Events) -> Vec<Event> {
    let mut all = Vec::new();
    while let Some(event) = within(events.next()).await {
        all.push(event);
    }
    all
}

#[tokio::test]
async fn an_event_stream_reports_the_transfer_and_ends_once() {
    let (folder, offer, ticket) = film_offered(300_000).await;
    let heard = Arc::<Heard>::default();
    let builder = node().fetch(ticket, folder.path().join("to")).observer(heard.clone());
    let transfer = builder.accept_all(OnConflict::Rename);
    let streams = [offer.events(), offer.events(), transfer.events()];
    within(transfer.finished()).await.unwrap();
    within(offer.finished()).await.unwrap();
    for (n, stream) in streams.into_iter().enumerate() {
        let events = all(stream).await;
        assert_eq!(events.iter().filter(|event| is_last(event)).count(), 1, "{n}: {events:?}");
        assert!(matches!(events.last(), Some(Event::Done)), "{n}: {events:?}");
        let has = |find: fn(&Event) -> bool| events.iter().any(find);
        assert!(has(|event| matches!(event, Event::Connected { .. })), "{n}: {events:?}");
        assert!(
            has(
                |event| matches!(event, Event::File { path, bytes: 300_000, root: Some(_), .. } if path == "film")
            ),
            "{n}: {events:?}"
        );
    }
    // An observer receives the same events, and the final one last.
    let heard = heard.events();
    assert!(matches!(heard.last(), Some(Event::Done)), "{heard:?}");
    assert!(heard.iter().any(|event| matches!(event, Event::PeerFound(_))), "{heard:?}");
    // A stream opened later yields only the final event.
    for late in [offer.events(), transfer.events()] {
        let events = all(late).await;
        assert!(matches!(events[..], [Event::Done]), "{events:?}");
    }
}

#[tokio::test]
async fn a_failure_is_the_last_event_too() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, 1000);
    let builder = node().offer(folder.path().join("film")).by_ticket().bind_to(LOOPBACK);
    let offer = within(builder.timeout(Duration::from_millis(1)).start()).await.unwrap();
    let events = offer.events();
    let error = within(offer.finished()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    for events in [all(events).await, all(offer.events()).await] {
        assert!(
            matches!(&events[..], [Event::Failed(why)] if why.kind() == error.kind()),
            "{events:?}"
        );
    }
}

#[tokio::test]
async fn an_unread_event_stream_does_not_slow_the_transfer_and_reports_its_lag() {
    const FILES: u64 = 3000;
    let folder = tempfile::tempdir().unwrap();
    for n in 0..FILES {
        file(&folder.path().join("tree").join(n.to_string()), n, 10);
    }
    let (offer, ticket) = offered(&node(), folder.path().join("tree")).await;
    let transfer = node().fetch(ticket, folder.path().join("to")).accept_all(OnConflict::Rename);
    let (unread, held) = (transfer.events(), offer.events());
    within(transfer.finished()).await.unwrap().complete().unwrap();
    within(offer.finished()).await.unwrap();
    for events in [all(unread).await, all(held).await] {
        let Some(Event::Lagged(missed)) = events.first() else { panic!("{:?}", events.first()) };
        assert!(*missed + events.len() as u64 >= FILES, "{missed} and {}", events.len());
        assert!(matches!(events.last(), Some(Event::Done)));
        assert_eq!(events.iter().filter(|event| is_last(event)).count(), 1);
    }
}

#[tokio::test]
async fn progress_is_read_at_any_time() {
    const BYTES: u64 = 6_000_000;
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, BYTES as usize);
    let builder = node().offer(folder.path().join("film")).by_ticket().bind_to(LOOPBACK);
    let offer = within(builder.rate(6_000_000).start()).await.unwrap();
    assert!(offer.progress().read().is_none(), "nobody is here yet");
    let builder = node().fetch(offer.ticket().unwrap().clone(), folder.path().join("to"));
    let transfer = builder.accept_all(OnConflict::Rename);
    let (mut sends, mut fetches) = (offer.progress(), transfer.progress());
    let mut seen = Vec::new();
    within(until(|| {
        seen.extend(fetches.read());
        seen.extend(sends.read());
        seen.iter().any(|progress| progress.bytes > 0 && progress.bytes < BYTES)
    }))
    .await;
    within(transfer.finished()).await.unwrap();
    within(offer.finished()).await.unwrap();
    assert!(seen.iter().all(|progress| progress.bytes <= progress.bytes_total));
    for mut reader in [sends, fetches, offer.progress(), transfer.progress()] {
        let last = reader.read().unwrap();
        assert_eq!((last.bytes, last.bytes_total, last.files), (BYTES, BYTES, 1));
    }
    assert_eq!(fs::metadata(folder.path().join("to/film")).unwrap().len(), BYTES);
}

#[test]
fn a_stream_ends_with_the_runtime_under_it() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, 1000);
    let under = tokio::runtime::Runtime::new().unwrap();
    let (offer, _) =
        under.block_on(offered(&under.block_on(async { node() }), folder.path().join("film")));
    let events = offer.events();
    drop(under);
    let other = tokio::runtime::Runtime::new().unwrap();
    other.block_on(async {
        soon(offer.finished()).await.unwrap_err();
        let events = soon(all(events)).await;
        assert!(matches!(events.last(), Some(Event::Failed(_))), "{events:?}");
    });
}

#[tokio::test]
async fn a_waiting_reader_gets_events_at_once() {
    let (folder, offer, ticket) = film_offered(1000).await;
    let mut events = offer.events();
    let reading = tokio::spawn(async move {
        event(&mut events, |event| matches!(event, Event::Connected { .. }).then_some(())).await;
    });
    let transfer = node().fetch(ticket, folder.path().join("to")).accept_all(OnConflict::Rename);
    soon(reading).await.unwrap();
    within(transfer.finished()).await.unwrap();
}
