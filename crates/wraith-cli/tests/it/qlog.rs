//! `--qlog FILE`: packet events in the format of existing viewers.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::World;

/// Returns the records of a JSON-SEQ file (RFC 7464): the header, then the events.
fn records(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let records = text.split('\u{1e}').skip(1);
    records.map(|record| serde_json::from_str(record).unwrap()).collect()
}

#[test]
fn both_sides_write_the_qlog_events_that_viewers_need() {
    let (world, film) = World::with_file("film.mov", 1, 3_000_000);
    let (sent, received) = (world.path("send.sqlog"), world.path("receive.sqlog"));
    let mut sender = world.send_with(&[&film], &["--qlog", sent.to_str().unwrap()]);
    let receiver = world.receive_with(&sender.ticket(), &["--qlog", received.to_str().unwrap()]);
    receiver.succeed();
    sender.succeed();
    for path in [&sent, &received] {
        let records = records(path);
        assert_eq!(records[0]["qlog_format"], "JSON-SEQ", "{path:?}");
        let count = |name: &str| records.iter().filter(|r| r["name"] == name).count();
        assert!(count("transport:packet_sent") > 10, "{path:?}");
        assert!(count("transport:packet_received") > 10, "{path:?}");
        let times: Vec<f64> = records.iter().filter_map(|r| r["time"].as_f64()).collect();
        assert!(times.is_sorted(), "{path:?}");
    }
    let figures = records(&sent);
    let figures = figures.iter().filter(|r| r["name"] == "recovery:metrics_updated");
    assert!(figures.filter(|r| r["data"]["congestion_window"].is_u64()).count() > 0);
}

#[test]
fn an_unwritable_output_file_is_reported_before_the_start() {
    let (world, film) = World::with_file("film.mov", 1, 1000);
    let sender = world.send_with(&[&film], &["--qlog", "/no/such/folder/log"]);
    sender.finish().expect_error(7);
}
