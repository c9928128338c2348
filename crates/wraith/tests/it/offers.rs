//! Offers and fetches: every kind of discovery, content and target, and the options of a transfer.

use std::collections::HashMap;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use wraith::{
    AcceptOptions, Conflicts, ErrorKind, Event, FetchSummary, FoundAt, Node, OfferSummary,
    OnConflict, Payload, PlaceName, Source, Target,
};

use crate::support::{
    LOOPBACK, Written, event, file, lan_node, network_with_server, node, node_at, noise, offered,
    own_network, server, within,
};

/// Transfers one file by code. Returns where the two sides met.
async fn by_code(sending: Node, receiving: Node) -> FoundAt {
    let folder = tempfile::tempdir().unwrap();
    let bytes = file(&folder.path().join("from/film"), 1, 300_000);
    let offer = within(sending.offer(folder.path().join("from/film")).start()).await.unwrap();
    assert!(offer.no_code().is_none(), "{:?}", offer.no_code());
    let code = offer.code().unwrap().clone();
    let (mut events, to) = (offer.events(), folder.path().join("to"));
    let transfer = receiving.fetch(code, &to).accept_all(OnConflict::Rename);
    let mut theirs = transfer.events();
    let received = within(transfer.finished()).await.unwrap();
    let sent = within(offer.finished()).await.unwrap();
    received.complete().unwrap();
    sent.complete().unwrap();
    assert_eq!(fs::read(to.join("film")).unwrap(), bytes);
    assert_eq!((received.sender, sent.receivers), (sending.id(), 1));
    assert_eq!(sent.last.as_ref().unwrap().0, receiving.id());
    event(&mut events, |event| matches!(event, Event::CodeUsed { .. }).then_some(())).await;
    event(&mut theirs, |event| match event {
        Event::PeerFound(at) => Some(at.clone()),
        _ => None,
    })
    .await
}

#[tokio::test]
async fn by_code_on_the_local_network() {
    let _network = own_network();
    assert_eq!(by_code(lan_node(), lan_node()).await, FoundAt::Place(PlaceName::Lan));
}

#[tokio::test]
async fn by_code_at_a_rendezvous_server() {
    let mut tasks = JoinSet::new();
    let server = server(&mut tasks).await;
    let met = by_code(node_at(server), node_at(server)).await;
    assert_eq!(met, FoundAt::Place(PlaceName::Rendezvous(server.to_string())));
}

#[tokio::test]
async fn by_ticket_with_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("photos");
    let mut wanted = HashMap::new();
    for (n, name) in ["a", "b/c", "b/d/e", "empty"].into_iter().enumerate() {
        wanted.insert(name, file(&tree.join(name), n as u64, 90_000 * (3 - n)));
    }
    let (offer, ticket) = offered(&node(), tree.as_path()).await;
    let to = folder.path().join("to");
    // As pasted by a user.
    let source: Source = ticket.to_string().parse().unwrap();
    let transfer = node().fetch(source, &to).accept_all(OnConflict::Rename);
    let received = within(transfer.finished()).await.unwrap();
    assert_eq!(received.report.files, 4);
    for (name, bytes) in wanted {
        assert_eq!(fs::read(to.join("photos").join(name)).unwrap(), bytes, "{name}");
    }
    assert_eq!(within(offer.finished()).await.unwrap().report.as_ref().unwrap().files, 4);
}

#[tokio::test]
async fn several_paths_are_not_read_before_a_receiver_connects() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["one", "two"].map(|name| folder.path().join(name));
    for path in &paths {
        file(path, 1, 10);
    }
    let (offer, ticket) = offered(&node(), Payload::paths(&paths)).await;
    let late = file(&paths[1], 2, 10);
    let to = folder.path().join("to");
    let transfer = node().fetch(ticket, &to).accept_all(OnConflict::Rename);
    within(transfer.finished()).await.unwrap().complete().unwrap();
    assert_eq!(fs::read(to.join("two")).unwrap(), late);
    within(offer.finished()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_receivers_with_one_code() {
    let mut tasks = JoinSet::new();
    let server = server(&mut tasks).await;
    let folder = tempfile::tempdir().unwrap();
    let bytes = file(&folder.path().join("film"), 1, 2_000_000);
    let builder = node_at(server).offer(folder.path().join("film")).receivers(3);
    let offer = within(builder.start()).await.unwrap();
    let mut events = offer.events();
    let mut fetching = JoinSet::new();
    for n in 0..3 {
        let (code, to) = (offer.code().unwrap().clone(), folder.path().join(n.to_string()));
        fetching.spawn(async move {
            let transfer = node_at(server).fetch(code, &to).accept_all(OnConflict::Rename);
            within(transfer.finished()).await.unwrap();
            fs::read(to.join("film")).unwrap()
        });
    }
    for got in within(fetching.join_all()).await {
        assert!(got == bytes, "other bytes");
    }
    let sent = within(offer.finished()).await.unwrap();
    assert_eq!((sent.receivers, sent.lacking), (3, 0));
    let served = |event: &Event| match event {
        Event::Served { done, of } => Some((*done, *of)),
        _ => None,
    };
    assert_eq!(event(&mut events, served).await, (1, Some(3)));
    assert_eq!(event(&mut events, served).await, (2, Some(3)));
}

#[tokio::test]
async fn any_number_until_it_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, 1000);
    let sending = node();
    let builder = sending.offer(folder.path().join("film")).by_ticket().any_number();
    let offer = within(builder.bind_to(LOOPBACK).start()).await.unwrap();
    let mut events = offer.events();
    for n in 0..2 {
        let to = folder.path().join(n.to_string());
        let ticket = offer.ticket().unwrap().clone();
        let transfer = node().fetch(ticket, &to).accept_all(OnConflict::Rename);
        within(transfer.finished()).await.unwrap().complete().unwrap();
        event(&mut events, |event| matches!(event, Event::Served { .. }).then_some(())).await;
    }
    // No transfer is running at this point.
    offer.stop();
    assert_eq!(within(offer.finished()).await.unwrap().receivers, 2);
    event(&mut events, |event| matches!(event, Event::Done).then_some(())).await;
}

#[tokio::test]
async fn the_receiver_starts_first_and_invites() {
    let (_network, _tasks, server) = network_with_server().await;
    for make in [&lan_node as &dyn Fn() -> Node, &|| node_at(server)] {
        let folder = tempfile::tempdir().unwrap();
        let bytes = file(&folder.path().join("film"), 1, 70_000);
        let receiving = make();
        let invitation = within(receiving.invite().start()).await.unwrap();
        assert_eq!(invitation.places().len(), 1);
        let code = invitation.code().clone();
        let waiting = tokio::spawn(invitation.ticket());
        let builder = make().offer(folder.path().join("film")).to_invitation(code);
        let offer = within(builder.start()).await.unwrap();
        let source = within(waiting).await.unwrap().unwrap();
        let to = folder.path().join("to");
        let transfer = receiving.fetch(source, &to).accept_all(OnConflict::Rename);
        within(transfer.finished()).await.unwrap().complete().unwrap();
        within(offer.finished()).await.unwrap().complete().unwrap();
        assert_eq!(fs::read(to.join("film")).unwrap(), bytes);
    }
}

async fn fetched(
    what: impl Into<Payload>,
    target: impl Into<Target>,
) -> Result<FetchSummary, wraith::Error> {
    let (offer, ticket) = offered(&node(), what).await;
    let transfer = node().fetch(ticket, target).accept_all(OnConflict::Rename);
    let received = within(transfer.finished()).await?;
    within(offer.finished()).await.unwrap().complete().unwrap();
    Ok((*received).clone())
}

#[tokio::test]
async fn a_stream_becomes_a_file_or_goes_to_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = noise(5, 3_000_001);
    let stream = |size| Payload::reader("backup.tar", size, Cursor::new(bytes.clone()));
    fetched(stream(None), folder.path()).await.unwrap();
    assert!(fs::read(folder.path().join("backup.tar")).unwrap() == bytes, "other bytes");
    let written = Written::default();
    fetched(stream(Some(3_000_001)), Target::writer(written.clone())).await.unwrap();
    assert!(written.bytes() == bytes, "other bytes");
}

#[tokio::test]
async fn a_single_file_goes_to_a_writer_and_a_folder_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = file(&folder.path().join("tree/film"), 6, 1_000_000);
    let written = Written::default();
    fetched(folder.path().join("tree/film"), Target::writer(written.clone())).await.unwrap();
    assert!(written.bytes() == bytes, "other bytes");

    let (_offer, ticket) = offered(&node(), folder.path().join("tree")).await;
    let target = Target::writer(Written::default());
    let transfer = node().fetch(ticket, target).accept_all(OnConflict::Rename);
    let error = within(transfer.finished()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}

/// Sends `tree` into `to`, which already contains a part of it.
async fn fetch_into_existing(
    tree: &Path,
    to: &Path,
    options: impl Into<AcceptOptions>,
) -> FetchSummary {
    let (offer, ticket) = offered(&node(), tree).await;
    let incoming = within(node().fetch(ticket, to).wait_for_offer()).await.unwrap();
    let received = within(incoming.accept(options).finished()).await.unwrap();
    within(offer.finished()).await.unwrap();
    (*received).clone()
}

#[tokio::test]
async fn names_that_are_taken_are_treated_as_asked() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    let new = file(&tree.join("note"), 1, 100);
    for (policy, stays, comes) in [
        (OnConflict::Rename, true, Some("note (1)")),
        (OnConflict::Overwrite, false, Some("note")),
        (OnConflict::Skip, true, None),
    ] {
        let to = folder.path().join(format!("{policy:?}"));
        let old = file(&to.join("tree/note"), 2, 90);
        let received = fetch_into_existing(&tree, &to, AcceptOptions::on_conflict(policy)).await;
        assert_eq!(fs::read(to.join("tree/note")).unwrap() == old, stays, "{policy:?}");
        if let Some(name) = comes {
            assert_eq!(fs::read(to.join("tree").join(name)).unwrap(), new, "{policy:?}");
        }
        assert_eq!(received.report.skipped, u64::from(comes.is_none()), "{policy:?}");
    }
}

#[tokio::test]
async fn single_names_can_have_an_answer_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, to) = (folder.path().join("tree"), folder.path().join("to"));
    let new = ["a", "b"].map(|name| file(&tree.join(name), 1, 100));
    let old = ["a", "b"].map(|name| file(&to.join("tree").join(name), 2, 90));
    let (offer, ticket) = offered(&node(), tree.as_path()).await;
    let incoming = within(node().fetch(ticket, &to).wait_for_offer()).await.unwrap();
    let entries = &incoming.preview().unwrap().entries;
    let mut paths = entries.iter().map(|previewed| &previewed.entry.path);
    let path = paths.find(|path| path.as_bytes() == b"tree/b").unwrap();
    let of = HashMap::from([(path.clone(), OnConflict::Overwrite)]);
    let conflicts = Conflicts { otherwise: OnConflict::Skip, of };
    within(incoming.accept(conflicts).finished()).await.unwrap();
    within(offer.finished()).await.unwrap();
    assert_eq!(fs::read(to.join("tree/a")).unwrap(), old[0]);
    assert_eq!(fs::read(to.join("tree/b")).unwrap(), new[1]);
}

#[tokio::test]
async fn delta_transfer_moves_only_differences_unless_disabled() {
    const BYTES: usize = 4_000_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.img");
    let mut bytes = noise(1, BYTES);
    let old = bytes.clone();
    bytes[2_000_000..2_000_100].fill(0);
    fs::write(&path, &bytes).unwrap();
    for (sends, fetches) in [(true, true), (false, true), (true, false)] {
        let to = folder.path().join(format!("{sends} {fetches}"));
        fs::create_dir(&to).unwrap();
        fs::write(to.join("disk.img"), &old).unwrap();
        let builder = node().offer(path.as_path()).by_ticket().bind_to(LOOPBACK).delta(sends);
        let offer = within(builder.start()).await.unwrap();
        let builder = node().fetch(offer.ticket().unwrap().clone(), &to).delta(fetches);
        let transfer = builder.accept_all(OnConflict::Overwrite);
        let received = within(transfer.finished()).await.unwrap();
        within(offer.finished()).await.unwrap();
        assert!(fs::read(to.join("disk.img")).unwrap() == bytes, "other bytes");
        let moved = received.report.bytes_moved as usize;
        if sends && fetches {
            assert!(moved < BYTES / 4, "{moved}");
        } else {
            assert!(moved >= BYTES, "{moved}");
        }
    }
}

#[tokio::test]
async fn no_more_than_the_rate_that_either_side_asks_for() {
    const RATE: u64 = 2_000_000;
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, 2 * RATE as usize);
    for is_sender in [true, false] {
        let to = folder.path().join(is_sender.to_string());
        let mut builder = node().offer(folder.path().join("film")).by_ticket().bind_to(LOOPBACK);
        if is_sender {
            builder = builder.rate(RATE);
        }
        let offer = within(builder.start()).await.unwrap();
        let mut builder = node().fetch(offer.ticket().unwrap().clone(), &to);
        if !is_sender {
            builder = builder.rate(RATE);
        }
        let began = Instant::now();
        within(builder.accept_all(OnConflict::Rename).finished()).await.unwrap();
        // Two seconds' worth of data; the first burst may exceed the rate.
        assert!(began.elapsed() > Duration::from_millis(1200), "{:?}", began.elapsed());
        let sent: Result<_, _> = within(offer.finished()).await;
        let sent: &OfferSummary = &sent.unwrap();
        sent.complete().unwrap();
    }
}

#[tokio::test]
async fn several_connections_carry_one_transfer_if_both_sides_want_them() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = file(&folder.path().join("film"), 1, 40_000_000);
    let builder = node().offer(folder.path().join("film")).by_ticket().connections(2);
    let offer = within(builder.bind_to(LOOPBACK).start()).await.unwrap();
    let to = folder.path().join("to");
    let builder = node().fetch(offer.ticket().unwrap().clone(), &to).connections(2);
    let received = within(builder.accept_all(OnConflict::Rename).finished()).await.unwrap();
    within(offer.finished()).await.unwrap().complete().unwrap();
    assert!(fs::read(to.join("film")).unwrap() == bytes, "other bytes");
    assert!((1..=2).contains(&received.report.connections), "{}", received.report.connections);
}
