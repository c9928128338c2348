//! The log: empty unless requested, complete if requested, and never with a secret.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use wraith_discovery::{Capability, Ticket};

use crate::support::{World, lan};

/// The result of one transfer by code with full logging: both logs together, the code, and all
/// secrets.
struct Logged {
    log: String,
    code: String,
    /// The secret bytes.
    secrets: Vec<Vec<u8>>,
    ticket: String,
}

fn transfer() -> Logged {
    let (world, film) = World::with_file("film.mov", 1, 3_000_000);
    let logs: Vec<PathBuf> = ["sender", "receiver"].map(|side| world.path(side)).into();
    let options = |log: &PathBuf| {
        let log = log.to_str().unwrap().to_owned();
        [
            "--lan".to_owned(),
            "lo".into(),
            "--log-filter".into(),
            "trace".into(),
            "--log".into(),
            log,
        ]
    };
    let (ours, theirs) = (options(&logs[0]), options(&logs[1]));
    let mut sender = world.send_by_code(&[&film], &ours.each_ref().map(String::as_str));
    let ready = sender.event("ready");
    let code = ready["code"].as_str().unwrap().to_owned();
    let mut secrets = vec![capability(&world)];
    let secret = Capability::from_bytes(secrets[0].as_slice().try_into().unwrap());
    let node_id = world.node_id("sender").parse().unwrap();
    let ticket = Ticket::new(node_id, secret, Vec::new()).to_string();
    let more = theirs.each_ref().map(String::as_str);
    world.receive_with(&code, &more).succeed();
    sender.succeed();
    secrets.extend(["sender", "receiver"].map(|side| seed(&world, side)));
    for log in &logs {
        assert_eq!(fs::metadata(log).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let log = logs.iter().map(|log| fs::read_to_string(log).unwrap()).collect();
    Logged { log, code, secrets, ticket }
}

/// Returns the capability of the waiting sender.
fn capability(world: &World) -> Vec<u8> {
    let records = fs::read_dir(world.path("home-sender/sends")).unwrap().map(Result::unwrap);
    let record = records.map(|entry| entry.path()).find(|path| path.extension().is_none());
    let record: serde_json::Value =
        serde_json::from_slice(&fs::read(record.unwrap()).unwrap()).unwrap();
    BASE32_NOPAD.decode(record["capability"].as_str().unwrap().as_bytes()).unwrap()
}

fn seed(world: &World, side: &str) -> Vec<u8> {
    let text = fs::read_to_string(world.path(&format!("home-{side}/identity"))).unwrap();
    BASE32_NOPAD.decode(text.lines().nth(1).unwrap().as_bytes()).unwrap()
}

fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect()
}

/// Returns the forms in which secret bytes could appear in a log: hexadecimal, base32, and Rust's
/// debug output.
fn forms(secret: &[u8]) -> [String; 3] {
    let shown = format!("{:?}", &secret[..8]);
    let shown = shown.trim_matches(['[', ']']).to_owned();
    [
        HEXLOWER.encode(&secret[..8]),
        BASE32_NOPAD.encode(secret).to_lowercase()[..12].to_owned(),
        shown,
    ]
}

#[test]
fn a_log_of_everything_has_no_secret_in_it() {
    let _network = lan::own_network();
    let (one, other) = (transfer(), transfer());
    for (logged, unrelated) in [(&one, &other), (&other, &one)] {
        for begun in ["begins version", "command=\"send\"", "command=\"receive\"", "ends exit=0"] {
            assert!(logged.log.contains(begun), "no {begun} in\n{}", logged.log);
        }
        let lower = logged.log.to_lowercase();
        for form in logged.secrets.iter().flat_map(|secret| forms(secret)) {
            assert!(!lower.contains(&form), "{form} in\n{lower}");
        }
        let body = logged.ticket.trim_start_matches("wraith:").to_lowercase();
        for at in 0..body.len() - 24 {
            assert!(!lower.contains(&body[at..at + 24]), "a part of the ticket in\n{lower}");
        }
        let (said, vocabulary) = (words(&logged.log), words(&unrelated.log));
        for word in logged.code.split('-').skip(1) {
            // A word that the log of another code also has does not come from this code.
            assert!(!said.contains(word) || vocabulary.contains(word), "{word} in\n{lower}");
        }
    }
}

#[test]
fn the_log_is_off_by_default_and_goes_to_standard_error() {
    let world = World::new();
    let said = |more: &[&str]| {
        let output = world.wraith("one").arg("id").args(more).output().unwrap();
        assert!(output.status.success());
        (output.stdout, String::from_utf8(output.stderr).unwrap())
    };
    let (id, quiet) = said(&[]);
    assert_eq!(quiet, "");
    let (same, loud) = said(&["-v"]);
    assert_eq!(same, id);
    assert!(loud.contains("INFO") && loud.contains("command=\"id\""), "{loud}");
    let output = world.wraith("one").arg("id").env("WRAITH_LOG", "wraith=info").output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 2);
}

#[test]
fn a_log_is_appended_to_and_one_that_cannot_be_opened_is_an_error() {
    let world = World::new();
    let log = world.path("log");
    let run =
        |log: &PathBuf| world.wraith("one").args(["id", "-v", "--log"]).arg(log).output().unwrap();
    for lines in [2, 4] {
        let output = run(&log);
        assert!(output.status.success() && output.stderr.is_empty());
        assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), lines);
    }
    assert_eq!(run(&world.path("no/such/folder/log")).status.code(), Some(7));
}
