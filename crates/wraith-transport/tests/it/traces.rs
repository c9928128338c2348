//! Log events of a connection: they contain no secrets, and no event is logged per packet.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

use crate::support::{Pattern, V4, access_key, endpoint, node_id, run};

/// Collects all log events, one line each.
#[derive(Clone, Default)]
struct TraceCollector(Arc<Mutex<String>>);

struct FieldWriter<'a>(&'a mut String);

impl Visit for FieldWriter<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for TraceCollector {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        attributes.record(&mut FieldWriter(&mut self.0.lock().unwrap()));
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, record: &span::Record<'_>) {
        record.record(&mut FieldWriter(&mut self.0.lock().unwrap()));
    }
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut lines = self.0.lock().unwrap();
        event.record(&mut FieldWriter(&mut lines));
        lines.push('\n');
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[test]
fn traces_show_start_and_end_of_a_connection_but_not_its_content() {
    let lines = TraceCollector::default();
    // Global, because the I/O threads are other threads. Events of other tests in this process do
    // no harm.
    tracing::subscriber::set_global_default(lines.clone()).unwrap();
    let (client, server) = (endpoint(1, V4), endpoint(2, V4));
    let (here, there) = (client.local_addr(), server.local_addr());
    let connection = run(client.connect([there], node_id(2), &access_key(2))).unwrap();
    let accepted = run(server.accept()).unwrap();
    let text = b"the content is nobody's business";
    run(async {
        let (mut send, _recv) = connection.open_stream().await.unwrap();
        send.write_all(text).await.unwrap();
        // Less than the queues hold without a reader.
        Pattern::new(1).write(&mut send, 1 << 20).await.unwrap();
        send.finish().unwrap();
        let (_send, mut recv) = accepted.accept_stream().await.unwrap();
        while recv.read_chunk().await.unwrap().is_some() {}
        send.acked().await.unwrap();
    });
    client.start_close();
    run(client.closed());
    let said = lines.0.lock().unwrap().clone();
    let about = |what: &str, address: &str| {
        said.lines().filter(|line| line.contains(what) && line.contains(address)).count()
    };
    assert_eq!(about("endpoint bound", &here.to_string()), 1, "{said}");
    assert_eq!(
        about("connection established", &there.to_string()),
        2,
        "one line from each side: {said}"
    );
    assert_eq!(about("endpoint closed", &here.to_string()), 1, "{said}");
    let ours = said.lines().filter(|line| line.contains(&here.to_string()));
    assert!(ours.count() < 20, "nothing is said for each packet: {said}");
    let peer = format!("{:?}", node_id(2));
    assert!(!said.contains("business") && !said.contains(&peer), "{said}");
}
