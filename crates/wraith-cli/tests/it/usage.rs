//! An invalid command line ends with exit code 2 and a message with the right command.

use std::os::unix::fs::symlink;
use std::process::Stdio;

use crate::support::{World, tree};

#[test]
fn unreadable_paths_are_reported_before_the_wait() {
    let (world, film) = World::with_file("film.mov", 1, 1);
    tree::set_mode(&film, 0);
    tree::set_mode(&world.source(), 0o755);
    let mut command = world.wraith_as_nobody("sender");
    let output = command.args(["send", "--ticket"]).arg(&film).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.contains("cannot send") && said.contains("Permission denied"), "{said}");
}

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

/// Runs a command line without an answer to its questions. Returns its message and its exit code.
pub(crate) fn said(
    world: &World,
    words: &[&str],
    variables: &[(&str, &str)],
) -> (String, Option<i32>) {
    let mut command = world.wraith("one");
    command.args(words).current_dir(world.source()).envs(variables.iter().copied());
    let output = command.stdin(Stdio::null()).output().unwrap();
    (String::from_utf8(output.stderr).unwrap(), output.status.code())
}

/// Asserts that each command line ends with 2 and a message of at most two sentences that contains
/// the expected words.
#[track_caller]
pub(crate) fn assert_answers(lines: &[(&[&str], &str)]) {
    let world = World::new();
    world.file("film.mov", 1, 1);
    for (words, expected) in lines {
        let (said, code) = said(&world, words, &[]);
        assert_eq!(code, Some(2), "{words:?}: {said}");
        assert!(said.contains(expected), "{words:?}: {said}");
        assert!(said.starts_with("wraith: ") && said.lines().count() <= 3, "{words:?}: {said}");
    }
}

#[test]
fn first_guesses_are_answered_with_the_command_that_does_it() {
    assert_answers(&[
        (&["film.mov"][..], "to send it: wraith send film.mov"),
        (&["receive", "film.mov"], "to send it: wraith send film.mov"),
        (&["https://example.org/a?b"], "curl -L 'https://example.org/a?b' | wraith send -"),
        (&["send", "https://example.org/x"], "curl -L https://example.org/x | wraith send -"),
        (&["send", "hello"], "printf '%s\\n' hello | wraith send -"),
        (&["send", "see you at 8"], "printf '%s\\n' 'see you at 8' | wraith send -"),
        (
            &["send", "film.mov", "bob@host:/tmp"],
            "on bob@host, with the code that it prints: wraith receive CODE -o /tmp",
        ),
        (&["send", "host:/tmp/x"], "start wraith there: ssh host wraith send /tmp/x"),
        (&["send", "7-crater-lemon"], "to receive with it: wraith receive 7-crater-lemon"),
        (
            &["send", "--exclude", "*.o", "film.mov"],
            "tar c --exclude=PATTERN FOLDER | wraith send -",
        ),
        (
            &["send", "--recursive", "film.mov"],
            "folders are always transferred with all their content",
        ),
        (&["rx", "7-crater-lemon", "--output", "x"], "        -o DIR"),
        (&["7-crater-lemon", "--output", "x"], "        -o DIR"),
        (&["verify", "--recursive"], "wraith help verify lists the options"),
        (&["crypto", "mac", "HMAC-SHA-256"], "wraith help crypto mac lists the options"),
        (&["crypto", "rand", "-hex", "8"], "did you mean --hex?"),
        (&["crypto", "hash", "film.mov"], "wraith crypto hash SHA-256 film.mov"),
        (&["crypto", "dec", "film.mov"], "the key or passphrase that encrypted it"),
        (&["crater-lemon"], "a code begins with a number"),
        (&["receive", "crater lemon"], "a code begins with a number"),
        (&["recieve", "7-crater-lemon"], "did you mean receive?"),
        (&["send", "--tiemout", "3", "film.mov"], "did you mean --timeout?"),
    ]);
}

#[test]
fn a_contact_that_is_given_as_a_path_is_recognised() {
    let world = World::new();
    world.file("film.mov", 1, 1);
    let id = world.wraith("other").arg("id").output().unwrap();
    let id = String::from_utf8(id.stdout).unwrap();
    let added = world.wraith("one").args(["contact", "add", "anna", id.trim()]).output().unwrap();
    assert!(added.status.success());
    let (said, code) = said(&world, &["send", "film.mov", "anna"], &[]);
    assert_eq!(code, Some(2));
    assert!(said.contains("wraith send film.mov --to anna"), "{said}");
}

#[test]
fn a_variable_that_makes_no_sense_is_named() {
    let world = World::new();
    world.file("film.mov", 1, 1);
    for (variable, value, words) in [
        ("WRAITH_RATE", "abc", &["send", "film.mov"][..]),
        ("WRAITH_SEND_TIMEOUT", "soon", &["send", "film.mov"]),
        ("WRAITH_RECEIVE_YES", "perhaps", &["receive", "7-crater-lemon"]),
    ] {
        let (said, code) = said(&world, words, &[(variable, value)]);
        assert_eq!(code, Some(2), "{variable}: {said}");
        assert!(said.starts_with(&format!("wraith: {variable} in the environment: ")), "{said}");
        assert!(said.contains(value), "{said}");
    }
}

#[test]
fn arguments_override_conflicting_settings() {
    let (world, file) = World::with_file("film.mov", 1, 1);
    let mut sender = world.send(&[&file]);
    let ticket = sender.ticket();
    let words = ["receive", "--dry-run", "--timeout", "5", &ticket];
    let (by_variable, code) = said(&world, &words, &[("WRAITH_YES", "1")]);
    assert_eq!(code, Some(0), "{by_variable}");
    let set = world.wraith("one").args(["config", "set", "yes", "true"]).output().unwrap();
    assert!(set.status.success());
    let (by_file, code) = said(&world, &words, &[]);
    assert_eq!(code, Some(0), "{by_file}");
    let both = ["receive", "--dry-run", "--yes", &ticket];
    let (refused, code) = said(&world, &both, &[]);
    assert_eq!(code, Some(2), "{refused}");
    assert!(refused.contains("cannot be used with"), "{refused}");
    sender.kill();
}

#[test]
fn a_missing_path_is_reported_before_a_ticket_is_made() {
    let (world, there) = World::with_file("there", 1, 1);
    let outcome = world.send(&[there, world.source().join("missing")]).finish();
    let error = outcome.expect_error(2);
    assert!(error["message"].as_str().unwrap().contains("missing"));
    assert_eq!(outcome.all("ready").count(), 0);
}

#[test]
fn times_beyond_ten_years_are_refused_with_the_range() {
    let (world, file) = World::with_file("file", 1, 1);
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
fn unsendable_paths_are_reported_before_a_ticket_is_made() {
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
