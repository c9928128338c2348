//! Each peer moves bytes between two processes over loopback and reports them.

use std::process::Command;

/// Slightly more than 8 MiB: more than the kernel holds for a socket, not a whole number of
/// datagrams, and a multiple of three.
const BYTES: u64 = (8 << 20) + 12_346;

fn report(program: &str, words: &[&str]) -> serde_json::Value {
    let output = Command::new(program)
        .args(["--rounds", "1", "--bytes", &BYTES.to_string()])
        .args(words)
        .output()
        .expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words:?}: {errors}");
    serde_json::from_slice(&output.stdout).expect("one line of JSON")
}

#[test]
fn quinn_moves_every_byte_with_small_and_large_datagrams() {
    for words in [&["--mtu", "1452"][..], &["--mtu", "65000", "--bbr"], &["--streams", "3"]] {
        let report = report(env!("CARGO_BIN_EXE_quinn-peer"), words);
        assert_eq!(report["bytes"], BYTES, "{words:?}");
        assert!(report["gbit_per_second"].as_f64().is_some_and(|rate| rate > 0.0));
    }
}

#[test]
fn every_echo_is_answered_and_compared() {
    for transport in ["wraith", "quinn"] {
        for in_flight in ["1", "20"] {
            let output = Command::new(env!("CARGO_BIN_EXE_echo-peer"))
                .args(["--transport", transport, "--in-flight", in_flight, "--requests", "500"])
                .output()
                .expect("it starts");
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{transport}: {errors}");
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(report["requests"], 500);
            assert!(report["requests_per_second"].as_f64().is_some_and(|rate| rate > 0.0));
        }
    }
}

#[test]
fn the_raw_line_in_turn_loses_nothing() {
    let report = report(env!("CARGO_BIN_EXE_raw-line"), &["--in-turn"]);
    assert_eq!(report["datagrams_lost"], 0);
    assert!(report["bytes"].as_u64().is_some_and(|bytes| bytes >= BYTES));
}

#[test]
fn the_raw_line_counts_received_and_lost_packets() {
    let report = report(env!("CARGO_BIN_EXE_raw-line"), &["--mtu", "9000"]);
    let number = |name: &str| report[name].as_u64().expect("a number");
    let arrived = number("datagrams_sent") - number("datagrams_lost");
    assert_eq!(number("datagrams_sent"), BYTES.div_ceil(9000 - 24));
    assert_eq!(number("bytes"), arrived * (9000 - 24));
}
