//! The log of a transfer: records its start and end, and no secrets.

use std::fmt::{Debug, Write};
use std::fs;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use wraith_transfer::{SendOptions, receive, serve};

use crate::common::*;

/// Keeps every line of the threads that use it.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<(Level, String)>>>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Lines {
    fn keep(&self, level: Level, line: String) {
        self.0.lock().unwrap().push((level, line));
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = span.metadata().name().to_owned();
        span.record(&mut Fields(&mut line));
        self.keep(*span.metadata().level(), line);
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = String::new();
        event.record(&mut Fields(&mut line));
        self.keep(*event.metadata().level(), line);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

const SECRET: [u8; 16] = [0xd9; 16];

#[test]
fn a_transfer_is_logged_without_its_secret_and_names_are_for_debugging_only() {
    let folders = Folders::new();
    folders.file("plan of the coup/chapter", &noise(1, 3 * CHUNK));
    fs::write(folders.to().join("file in the way"), "x").unwrap();
    let lines = Lines::default();
    // With only one subscriber, tracing lets the first thread decide for all, which may be that of
    // another test.
    let _second = tracing::Dispatch::new(Lines::default());
    let link = link();
    std::thread::scope(|scope| {
        let send = SendOptions::new(roots(&folders.from()), SECRET);
        let sender = link.sender.clone();
        let (here, there) = (lines.clone(), lines.clone());
        scope.spawn(move || {
            tracing::subscriber::with_default(there, || serve(sender, &send).unwrap());
        });
        let mut options = receive_options(&folders.to());
        options.secret = SECRET;
        tracing::subscriber::with_default(here, || {
            receive(link.receiver.clone(), options).unwrap()
        });
    });
    let lines = std::mem::take(&mut *lines.0.lock().unwrap());
    let id = wraith_crypto::kdf::derive("wraith/1 transfer id", &SECRET);
    let id = blake3::Hash::from_bytes(id).to_hex();
    for (level, line) in &lines {
        let secret = ["d9d9", "217, 217", "3hm5", &id[..8]];
        let lower = line.to_lowercase();
        assert!(!secret.iter().any(|secret| lower.contains(secret)), "{line}");
        assert!(*level > Level::INFO || !lower.contains("coup"), "{line}");
    }
    let count = |what: &str| lines.iter().filter(|(_, line)| line.contains(what)).count();
    assert_eq!(
        (count("begins"), count("complete"), count("message=offer")),
        (2, 2, 2),
        "{lines:?}"
    );
    assert!(count("coup") > 0, "{lines:?}");
}
