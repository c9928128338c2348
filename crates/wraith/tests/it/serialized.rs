//! Events, progress and ids as JSON (feature `serde`).

use serde_json::{Value, json};
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
    let (mut events, mut progress) = (transfer.events(), transfer.progress());
    within(transfer.finished()).await.unwrap();
    within(offer.finished()).await.unwrap();
    let mut all: Vec<Value> = Vec::new();
    while let Some(event) = within(events.next()).await {
        all.push(serde_json::to_value(event).unwrap());
    }
    let of = |name: &str| all.iter().find(|event| event["event"] == name).unwrap();
    assert_eq!(of("connected")["peer"], sending.id().to_string());
    assert_eq!(of("offered")["bytes"], 300_000);
    let hash = blake3::hash(&bytes).to_hex().to_string();
    assert_eq!((&of("file")["hash"], &of("file")["status"]), (&json!(hash), &json!("done")));
    assert_eq!(all.last(), Some(&json!({ "event": "done" })));
    let progress = serde_json::to_value(progress.read().unwrap()).unwrap();
    assert_eq!((&progress["bytes"], &progress["files"]), (&json!(300_000), &json!(1)));

    let id = serde_json::to_string(&sending.id()).unwrap();
    assert_eq!(serde_json::from_str::<NodeId>(&id).unwrap(), sending.id());
    let text = serde_json::to_string(&ticket).unwrap();
    assert_eq!(serde_json::from_str::<Ticket>(&text).unwrap(), ticket);
    let code: Code = serde_json::from_value(json!("7-crater-lemon")).unwrap();
    assert_eq!(serde_json::to_value(code).unwrap(), "7-crater-lemon");
    assert!(serde_json::from_value::<Ticket>(json!("wraith:nothing")).is_err());

    let error = within(node().offer("/no/such/file").start()).await.unwrap_err();
    let error = serde_json::to_value(error).unwrap();
    assert_eq!(error["kind"], "invalid_input");
    assert!(error["message"].as_str().unwrap().contains("/no/such/file"));
}
