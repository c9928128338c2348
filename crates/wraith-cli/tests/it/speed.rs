//! `wraith speed`: its rows, its messages, and its events.

use std::process::{Command, Stdio};

use crate::support::{World, schema};

fn speed(world: &World, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command: Command = world.wraith("one");
    let output = command.arg("speed").args(words).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_speed_table_names_operation_and_backend() {
    let world = World::new();
    let words = ["sha-256 hash", "x25519 derive", "--seconds", "0.01", "--bytes", "1024,16384"];
    let (code, out, said) = speed(&world, &words);
    assert_eq!(code, Some(0), "{said}");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 4, "{out}");
    assert!(lines[0].contains("MB/s") && lines[0].contains("operations/s"), "{out}");
    assert!(lines[1].starts_with("SHA-256 hash") && lines[1].contains("1024"), "{out}");
    assert!(lines[2].starts_with("SHA-256 hash") && lines[2].contains("16384"), "{out}");
    assert!(lines[3].starts_with("X25519 derive") && lines[3].ends_with("AWS-LC"), "{out}");
    assert!(said.contains("This processor: "), "{said}");
}

#[test]
fn events_have_figures_that_belong_together() {
    let world = World::new();
    let words = ["aes-256-gcm", "ed25519 verify", "--seconds", "0.01", "--json"];
    let (code, out, said) = speed(&world, &words);
    assert_eq!(code, Some(0), "{said}");
    let events: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.len() >= 4, "{out}");
    for event in &events {
        assert_eq!(schema::fault(event), None, "{event}");
        let operations = event["operations_per_second"].as_f64().unwrap();
        assert!(operations > 1.0 && event["operations"].as_u64().unwrap() > 0, "{event}");
        match event["bytes"].as_f64() {
            Some(bytes) => {
                let rate = event["bytes_per_second"].as_f64().unwrap();
                assert!((rate / (operations * bytes) - 1.0).abs() < 1e-6, "{event}");
            }
            None => assert!(event["bytes_per_second"].is_null(), "{event}"),
        }
    }
}

#[test]
fn speed_list_names_rows_without_measuring() {
    let world = World::new();
    let (code, out, said) = speed(&world, &["--list"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(out.lines().count() > 200, "{out}");
    for name in [
        "AES-128-GCM decrypt, new key",
        "AES-256-CBC encrypt, new key",
        "SHAKE128 hash, long output",
        "SM2 exchange",
        "ML-KEM-768 encaps",
        "RSA-2048-PSS-SHA-256 sign",
    ] {
        assert!(out.contains(name), "{name} is not in {out}");
    }
    // A full name selects exactly that row.
    assert_eq!(speed(&world, &["--list", "aes-128-gcm encrypt"]).1.lines().count(), 1);
    assert_eq!(speed(&world, &["--list", "128-gcm encrypt"]).1.lines().count(), 2);
    // The name of an algorithm selects its operations only, although other rows contain it.
    assert_eq!(speed(&world, &["--list", "sha256"]).1.lines().count(), 1);
    assert_eq!(speed(&world, &["--list", "aes-128-gcm"]).1.lines().count(), 4);
    let (_, out, _) = speed(&world, &["--list", "--json", "ML-KEM-768"]);
    let event: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!(schema::fault(&event), None);
    assert!(event["operations_per_second"].is_null() && event["scope"] != "", "{event}");
}

#[test]
fn a_name_in_no_row_is_answered_with_the_nearest() {
    let world = World::new();
    let (code, out, said) = speed(&world, &["ed25519 sgin"]);
    assert_eq!((code, &*out), (Some(2), ""), "{said}");
    assert!(said.contains("Ed25519 sign"), "{said}");
    for words in [&["--seconds", "0"][..], &["--bytes", "0"], &["--bytes", "99999999"], &[""]] {
        assert_eq!(speed(&world, words).0, Some(2), "{words:?}");
    }
    let (code, _, said) = speed(&world, &[&"x".repeat(100_000)]);
    assert!(code == Some(2) && said.len() < 1000, "{said}");
}

#[test]
fn bytes_of_a_text_are_digits_in_a_range() {
    let world = World::new();
    for (bytes, expected) in [
        ("64K", "in digits: 65536"),
        ("0", "from 1 to 16777216"),
        ("16777217", "from 1 to 16777216"),
        ("99999999999", "from 1 to 16777216"),
    ] {
        let (code, _, said) = speed(&world, &["sha-256 hash", "--bytes", bytes]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}
