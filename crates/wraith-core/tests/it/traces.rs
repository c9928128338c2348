//! `tracing` output of a connection: its start, changes and end; nothing per packet, and nothing
//! secret.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use wraith_core::TransportConfig;
use wraith_crypto::SecretIdentity;

use crate::pair::{Pair, transfer};

/// Collects one line per span and event.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Lines {
    fn push(&self, metadata: &Metadata<'_>, text: &str) {
        self.0.lock().unwrap().push(format!("{} {}{text}", metadata.level(), metadata.target()));
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut text = Text(format!(" {}", span.metadata().name()));
        span.record(&mut text);
        self.push(span.metadata(), &text.0);
        Id::from_u64(1)
    }
    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.push(event.metadata(), &text.0);
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_connection_is_traced_where_it_changes_and_not_for_each_packet() {
    let lines = Lines::default();
    // With a single subscriber, tracing caches the interest of the first thread that reaches a
    // callsite. With two subscribers it checks both, so that parallel tests do not decide.
    let _second = tracing::Dispatch::new(Lines::default());
    let sent = tracing::subscriber::with_default(lines.clone(), || {
        let mut pair = Pair::new(TransportConfig { max_mtu: 1400, ..TransportConfig::default() });
        pair.drop = Box::new(|n| n % 50 == 11);
        transfer(&mut pair, 0, 3_000_000);
        let (now, handle) = (pair.now, pair.handle(0).unwrap());
        pair.sides[0].endpoint.connection(handle).unwrap().close(now, 0x123, "a secret of ours");
        pair.drop = Box::new(|_| false);
        pair.run_until(|p| p.sides.iter().all(|side| side.endpoint.is_drained()));
        pair.sent
    });
    let lines = lines.0.lock().unwrap().clone();
    let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
    assert_eq!(
        (count("INFO wraith_core::connection connection"), count("connected")),
        (2, 2),
        "{lines:#?}"
    );
    assert_eq!((count("how=Local"), count("how=Peer code=291")), (1, 1), "{lines:#?}");
    assert!((1..=6).contains(&count("path MTU raised")), "{lines:#?}");
    assert!(sent > 2000 && lines.len() < 30, "{} lines for {sent} datagrams", lines.len());

    let all = lines.join("\n");
    assert!(!all.contains("a secret of ours"));
    for seed in [[1; 32], [2; 32]] {
        let id = SecretIdentity::from_seed(seed).node_id();
        assert!(!all.contains(&id.to_string()), "a NodeId: {all}");
        let bytes = format!("{:?}", id.as_bytes());
        assert!(!all.contains(bytes.trim_matches(['[', ']'])), "a NodeId: {all}");
    }
}
