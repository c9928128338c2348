//! The event log of a connection, from a viewer's point of view.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use wraith_core::qlog::{Event, LogStart, Sink, SinkFactory, json_seq};
use wraith_core::{Role, Time, TransportConfig};

use crate::pair::{Pair, transfer};

/// The side that wrote a log, and its text.
type TextLog = (Role, Vec<u8>);

/// The text logs of all connections, in order of their start.
#[derive(Clone, Debug, Default)]
struct Logs(Arc<Mutex<Vec<TextLog>>>);

#[derive(Debug)]
struct Log {
    logs: Logs,
    index: usize,
    start: Time,
}

impl SinkFactory for Logs {
    fn sink(&self, start: &LogStart) -> Option<Box<dyn Sink>> {
        let mut logs = self.0.lock().unwrap();
        let mut text = Vec::new();
        json_seq::write_header(&mut text, start.role, Duration::from_secs(1_800_000_000));
        logs.push((start.role, text));
        Some(Box::new(Log { logs: self.clone(), index: logs.len() - 1, start: start.now }))
    }
}

impl Sink for Log {
    fn record(&mut self, now: Time, event: &Event) {
        let text = &mut self.logs.0.lock().unwrap()[self.index].1;
        json_seq::write_event(text, self.start, now, event);
    }
}

/// Parses the records of a log: each begins with a separator and ends with a newline.
fn records(text: &[u8]) -> Vec<Value> {
    assert_eq!(text.first(), Some(&0x1e));
    assert_eq!(text.last(), Some(&b'\n'));
    let parse = |record: &[u8]| {
        assert_eq!(record.iter().filter(|byte| **byte == b'\n').count(), 1, "a record is a line");
        serde_json::from_slice(record).expect("a record is JSON")
    };
    text[1..].split(|byte| *byte == 0x1e).map(parse).collect()
}

/// Returns the records of both sides, initiator first, of a transfer of `bytes` with losses.
fn logged(bytes: usize, end: bool) -> [Vec<Value>; 2] {
    let logs = Logs::default();
    let mut pair = Pair::new(TransportConfig {
        qlog: Some(Arc::new(logs.clone())),
        max_mtu: 1200,
        ..TransportConfig::default()
    });
    pair.drop = Box::new(|n| n % 50 == 7);
    transfer(&mut pair, 0, bytes);
    if end {
        let (now, handle) = (pair.now, pair.handle(0).unwrap());
        pair.sides[0].endpoint.connection(handle).unwrap().close(now, 0x123, "not for the log");
        pair.drop = Box::new(|_| false);
        pair.run_until(|p| p.sides.iter().all(|side| side.endpoint.is_drained()));
    }
    let logs = logs.0.lock().unwrap();
    assert_eq!([logs[0].0, logs[1].0], [Role::Initiator, Role::Responder]);
    assert!(!logs.iter().any(|(_, text)| text.windows(7).any(|part| part == b"not for")));
    [records(&logs[0].1), records(&logs[1].1)]
}

fn named<'a>(records: &'a [Value], name: &'a str) -> impl Iterator<Item = &'a Value> {
    records.iter().filter(move |record| record["name"] == name).map(|record| &record["data"])
}

#[test]
fn the_header_is_what_viewers_look_for() {
    let [initiator, responder] = logged(10_000, false);
    for (records, side) in [(initiator, "client"), (responder, "server")] {
        let header = &records[0];
        assert_eq!(header["qlog_version"], "0.3");
        assert_eq!(header["qlog_format"], "JSON-SEQ");
        assert_eq!(header["trace"]["vantage_point"]["type"], side);
        assert_eq!(header["trace"]["common_fields"]["time_format"], "relative");
        assert_eq!(header["file_schema"], "urn:ietf:params:qlog:file:sequential");
    }
}

#[test]
fn times_are_in_order_and_begin_with_the_connection() {
    for records in logged(1_000_000, true) {
        let times: Vec<f64> = records[1..].iter().map(|r| r["time"].as_f64().unwrap()).collect();
        assert!(times.len() > 800 && times.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(times[0] < 100.0, "{} ms", times[0]);
        assert_eq!(records[1]["name"], "connectivity:connection_started");
        assert_eq!(named(&records, "connectivity:connection_closed").count(), 1);
    }
}

#[test]
fn every_packet_that_was_sent_is_acknowledged_or_lost_in_the_log() {
    let [initiator, responder] = logged(1_000_000, true);
    let number = |data: &Value| data["header"]["packet_number"].as_u64().unwrap();
    let sent: Vec<u64> = named(&initiator, "transport:packet_sent").map(number).collect();
    assert!(sent.len() > 500 && sent.windows(2).all(|pair| pair[0] < pair[1]));
    let mut settled: Vec<u64> = named(&initiator, "recovery:packet_lost").map(number).collect();
    assert!(!settled.is_empty(), "datagrams were lost");
    for received in named(&initiator, "transport:packet_received") {
        for frame in received["frames"].as_array().unwrap() {
            for range in frame["acked_ranges"].as_array().into_iter().flatten() {
                let [first, last] = [&range[0], &range[1]].map(|n| n.as_u64().unwrap());
                settled.extend(first..=last);
            }
        }
    }
    settled.sort_unstable();
    // The newest packets are still in flight at the end.
    let open = sent.iter().filter(|pn| settled.binary_search(pn).is_err()).count();
    assert!(open < 50, "{open} of {} unsettled", sent.len());
    for data in named(&initiator, "transport:packet_sent") {
        assert_eq!(data["header"]["packet_type"], "1RTT");
        assert!(data["raw"]["length"].as_u64().unwrap() >= 29);
    }
    // Every packet that one side received was sent by the other.
    let received: Vec<u64> = named(&responder, "transport:packet_received").map(number).collect();
    assert!(received.len() > 500 && received.iter().all(|pn| sent.contains(pn)));
}

#[test]
fn metrics_are_in_the_units_of_the_format_and_recorded_when_they_change() {
    let [initiator, _] = logged(1_000_000, true);
    let metrics: Vec<&Value> = named(&initiator, "recovery:metrics_updated").collect();
    assert!(metrics.len() > 20 && metrics.windows(2).all(|pair| pair[0] != pair[1]));
    let number = |name: &str| metrics[metrics.len() / 2][name].as_f64().unwrap();
    // Half a round trip is 5 ms.
    assert!((10.0..50.0).contains(&number("smoothed_rtt")), "{}", number("smoothed_rtt"));
    assert!((10.0..11.0).contains(&number("min_rtt")), "{}", number("min_rtt"));
    assert!(number("congestion_window") > 10_000.0);
    // Bits per second: more than a window in ten round trips.
    assert!(number("pacing_rate") > 8.0 * number("congestion_window") / 0.1);
    let states: Vec<_> = named(&initiator, "recovery:congestion_state_updated").collect();
    assert!(!states.is_empty() && states.iter().all(|state| state["old"] != state["new"]));
}
