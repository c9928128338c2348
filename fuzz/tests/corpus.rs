//! Runs every committed input and some thousand variations of it, the same in each run, in seconds.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use wraith_fuzz::{Mutator, TARGETS, session_world};
use wraith_session::ratchet::{PreKeyBundle, PreKeys, Ratchet};
use wraith_session::{Protocol, Session, sealed_box};
use wraith_transfer::message::Message;
use wraith_transfer::record::Header;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Returns the committed inputs of a target, sorted by name.
fn inputs(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(corpus().join(target)).unwrap().map(|item| item.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect()
}

/// Prints the input on drop if it made the target panic.
struct PrintOnPanic<'a>(&'a Path, &'a [u8]);

impl Drop for PrintOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("from {}: {:02x?}", self.0.display(), self.1);
        }
    }
}

#[test]
fn committed_inputs_and_their_variations_break_nothing() {
    for target in TARGETS {
        let inputs = inputs(target.name);
        assert!(!inputs.is_empty(), "{} has no inputs", target.name);
        let mut mutator = Mutator::new(1);
        for (index, (file, input)) in inputs.iter().enumerate() {
            let run = |input: &[u8]| {
                let _naming = PrintOnPanic(file, input);
                (target.run)(input);
            };
            run(input);
            let (_, other) = &inputs[(index + 1) % inputs.len()];
            let share = target.variations / inputs.len() as u32 + 1;
            (0..share).for_each(|_| run(&mutator.vary(input, other)));
        }
    }
}

#[test]
fn every_folder_of_inputs_belongs_to_a_target() {
    let folders: BTreeSet<String> = fs::read_dir(corpus())
        .unwrap()
        .map(|item| item.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(folders, TARGETS.iter().map(|target| target.name.to_owned()).collect());
}

/// Returns whether the kind is known today. An unknown kind with an empty body decodes as a message
/// of a later version.
fn is_known_message(kind: u8) -> bool {
    !matches!(Message::from_bytes(&[0x82, kind, 0xa0]), Ok(Message::Unknown(_)))
}

#[test]
fn the_seeds_have_a_valid_message_of_every_kind() {
    let (mut known, mut unknown) = (BTreeSet::new(), false);
    for (file, input) in inputs("message") {
        match Message::from_bytes(&input) {
            Ok(Message::Unknown(_)) => unknown = true,
            // A kind below 24 is a byte of its own, after the byte of the array.
            Ok(_) => drop(known.insert(input[1])),
            Err(error) => {
                panic!("{}: {error}; cargo run -p wraith-fuzz --example seeds", file.display())
            }
        }
    }
    assert_eq!(known, (0..24).filter(|kind| is_known_message(*kind)).collect());
    assert!(unknown);
}

#[test]
fn the_seeds_have_a_valid_record_of_every_kind() {
    let mut kinds = BTreeSet::new();
    for (file, input) in inputs("record") {
        if let Err(error) = Header::parse(&input) {
            panic!("{}: {error}; cargo run -p wraith-fuzz --example seeds", file.display());
        }
        kinds.insert(input[0]);
    }
    assert_eq!(kinds, (0..=u8::MAX).filter(|kind| Header::len_of(*kind).is_ok()).collect());
}

/// Checks that committed seeds still decode. Variations of an invalid seed would not get past the
/// first field.
#[test]
fn committed_session_seeds_are_valid() {
    type Check = fn(&[u8]) -> bool;
    let good: [(&str, Check); 6] = [
        ("session_state", |input| Session::restore(input).is_ok()),
        ("ratchet_state", |input| Ratchet::restore(input).is_ok()),
        ("prekeys_state", |input| PreKeys::restore(input).is_ok()),
        ("prekey_bundle", |input| PreKeyBundle::decode(&input[1..]).is_ok()),
        ("protocol_name", |input| {
            std::str::from_utf8(input).is_ok_and(|text| text.parse::<Protocol>().is_ok())
        }),
        ("sealed_box", |input| {
            let bob = session_world::bob();
            input[0] != 0 || sealed_box::open(&bob, b"context", &input[1..]).is_ok()
        }),
    ];
    for (target, is_good) in good {
        for (file, input) in inputs(target) {
            let how = "cargo run -p wraith-fuzz --example seeds";
            assert!(is_good(&input), "{}; {how}", file.display());
        }
    }
}
