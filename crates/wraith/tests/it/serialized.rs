//! Events, progress and ids as JSON (feature `serde`).

use serde_json::{Value, json};
use wraith::json::{Event, EventConverter};
use wraith::{Code, NodeId, OnConflict, Ticket};

use crate::support::{file, node, offered, within};

#[tokio::test]
async fn events_progress_and_ids_are_written_as_json_and_ids_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = file(&folder.path().join("film"), 1, 300_000);
    let (sending, receiving) = (node(), node());
    let (offer, ticket) = offered(&sending, folder.path().join("film")).await;
    let transfer =
        receiving.fetch(ticket.clone(), folder.path().join("to")).accept_all(OnConflict::Rename);
    let (mut sent, mut events, mut progress) =
        (offer.events(), transfer.events(), transfer.progress());
    let received = within(transfer.finished()).await.unwrap();
    within(offer.finished()).await.unwrap();
    let of_receiver = EventConverter::new(&receiving);
    let mut all: Vec<Value> = Vec::new();
    while let Some(event) = within(events.next()).await {
        all.extend(of_receiver.event(&event).map(|event| serde_json::to_value(event).unwrap()));
    }
    all.push(serde_json::to_value(of_receiver.received(&received.report)).unwrap());
    let of = |name: &str| all.iter().find(|event| event["event"] == name).unwrap();
    assert_eq!(of("connected")["peer"], sending.id().to_string());
    assert_eq!(
        (&of("connected")["path"], &of("connected")["contact"]),
        (&json!("loopback"), &Value::Null)
    );
    assert_eq!(of("offer")["bytes"], 300_000);
    assert_eq!((&of("accept")["files"], &of("accept")["bytes"]), (&json!(1), &json!(300_000)));
    let hash = blake3::hash(&bytes).to_hex().to_string();
    assert_eq!((&of("file")["root"], &of("file")["status"]), (&json!(hash), &json!("done")));
    let done = of("done");
    let (of_sender, mut ends) = (EventConverter::new(&sending), 0);
    while let Some(event) = within(sent.next()).await {
        if let Some(Event::Done { files, bytes, receipt, durability, .. }) = of_sender.event(&event)
        {
            assert_eq!((files, bytes), (1, 300_000));
            assert_eq!(done["receipt"], *receipt);
            assert_eq!(done["durability"], *durability);
            ends += 1;
        }
    }
    assert_eq!(ends, 1, "the sender reports the end");
    let progress = serde_json::to_value(Event::from(&progress.read().unwrap())).unwrap();
    assert_eq!((&progress["bytes"], &progress["files"]), (&json!(300_000), &json!(1)));

    let id = serde_json::to_string(&sending.id()).unwrap();
    assert_eq!(serde_json::from_str::<NodeId>(&id).unwrap(), sending.id());
    let text = serde_json::to_string(&ticket).unwrap();
    assert_eq!(serde_json::from_str::<Ticket>(&text).unwrap(), ticket);
    let code: Code = serde_json::from_value(json!("7-crater-lemon")).unwrap();
    assert_eq!(serde_json::to_value(code).unwrap(), "7-crater-lemon");
    assert!(serde_json::from_value::<Ticket>(json!("wraith:nothing")).is_err());

    let error = within(node().offer("/no/such/file").start()).await.unwrap_err();
    let failed = of_sender.event(&wraith::Event::ReceiverFailed(error)).unwrap();
    let failed = serde_json::to_value(failed).unwrap();
    assert_eq!((&failed["event"], &failed["code"]), (&json!("receiver_failed"), &json!("usage")));
    assert!(failed["message"].as_str().unwrap().contains("/no/such/file"));
}
