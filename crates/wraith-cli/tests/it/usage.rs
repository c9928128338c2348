//! A command line that makes no sense ends with 2 and says what would.

use std::os::unix::fs::symlink;
use std::process::Stdio;

use crate::support::{World, tree};

#[test]
fn every_kind_of_wrong_usage_ends_with_2_and_help() {
    let world = World::new();
    for words in [
        &[][..],
        &["send"],
        &["receive"],
        &["frobnicate"],
        &["send", "--timeout", "soon", "x"],
        &["demo", "--size", "12Q"],
        &["receive", "hello"],
        &["receive", "wraith:"],
        &["send", "--expires", "0", "x"],
        &["receive", "--rendezvous", "bad host:xx", "7-crater-lemon"],
    ] {
        let output = world.wraith("one").args(words).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(output.stdout.is_empty(), "{words:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.len() > 20, "{words:?}: {said}");
    }
}

#[test]
fn a_path_that_is_not_there_is_told_before_a_ticket() {
    let world = World::new();
    let there = world.source().join("there");
    tree::file(&there, 1, 1);
    let outcome = world.send(&[there, world.source().join("missing")]).finish();
    let error = outcome.expect_error(2);
    assert!(error["message"].as_str().unwrap().contains("missing"));
    assert_eq!(outcome.all("ready").count(), 0);
}

#[test]
fn times_beyond_ten_years_are_refused_and_what_is_possible_is_said() {
    let world = World::new();
    let file = world.source().join("file");
    tree::file(&file, 1, 1);
    let file = file.to_str().unwrap();
    for value in ["18446744073709551615", "9223372036854775807", "99999999999999999999"] {
        for words in [
            &["send", "--expires", value, file][..],
            &["send", "--timeout", value, file],
            &["send", "--reconnect", value, file],
            &["send", "--to", "anna", "--timeout", value, file],
            &["receive", "--timeout", value, "7-crater-lemon"],
            &["receive", "--reconnect", value, "7-crater-lemon"],
            &["receive", "--code", "--expires", value],
        ] {
            let output = world.wraith("one").args(words).stdin(Stdio::null()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
            assert!(said.contains("315360000 (ten years)"), "{words:?}: {said}");
        }
    }
}

#[test]
fn what_cannot_be_offered_is_told_before_a_ticket() {
    let world = World::new();
    let at = |name: &str| world.source().join(name);
    tree::file(&at("there"), 1, 1);
    tree::file(&at("below/there"), 1, 1);
    symlink("nowhere", at("dangling")).unwrap();
    symlink("loop", at("loop")).unwrap();
    for paths in [
        vec![at("there"), at("there")],
        vec![at("there"), at("below/there")],
        vec![at("dangling")],
        vec![at("loop")],
        vec!["/".into()],
    ] {
        let outcome = world.send(&paths).finish();
        let error = outcome.expect_error(2);
        assert!(error["message"].as_str().unwrap().starts_with("cannot send "), "{error}");
        assert_eq!(outcome.all("ready").count(), 0, "{paths:?}");
    }
}

#[test]
fn a_name_that_is_not_there_does_not_drive_the_terminal() {
    let world = World::new();
    let name = "no\x1b[31msuch\u{202e}";
    for words in [&["send", name][..], &["hash", name], &["verify", name]] {
        let output = world.wraith("one").args(words).output().unwrap();
        assert!(!output.status.success());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("no\\x1b[31msuch"), "{said:?}");
        assert!(!said.contains(['\x1b', '\u{202e}']), "{said:?}");
    }
}

#[test]
fn help_and_version_end_with_0() {
    let world = World::new();
    for word in ["--help", "--version"] {
        let output = world.wraith("one").arg(word).output().unwrap();
        assert!(output.status.success());
        assert!(String::from_utf8_lossy(&output.stdout).contains("wraith"));
    }
}
