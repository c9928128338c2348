//! A service that sends back what it gets, and its caller. Each prints what happens, one JSON object
//! a line.
//!
//! ```console
//! $ cargo run --example echo -- serve                   # prints a code
//! $ cargo run --example echo -- call 7-crater-lemon     # connects by the code
//! $ cargo run --example echo -- id                      # prints the NodeId of WRAITH_HOME
//! $ cargo run --example echo -- serve --contact NODEID  # serves this contact
//! $ cargo run --example echo -- call --contact NODEID   # connects to that contact
//! ```
//!
//! `--relay HOST:PORT` adds a relay, at which codes and contacts meet, too.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, sleep};
use wraith::state::{Contact, StateDir, StateError};
use wraith::{Code, Connection, Node, NodeId, PeerRelays, RelayServer, ServiceAddress};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Name of the service among contacts.
const NAME: &str = "echo";
/// Bytes of a message.
const MESSAGE_BYTES: usize = 1024;
/// Interval of the messages.
const INTERVAL: Duration = Duration::from_millis(20);
/// Time for which the caller sends: long enough to move from a relay to a direct path.
const CALL: Duration = Duration::from_secs(4);

#[derive(Default)]
struct Args {
    command: String,
    code: Option<Code>,
    contact: Option<NodeId>,
    relay: Option<String>,
}

fn parse() -> Result<Args> {
    let mut words = std::env::args().skip(1);
    let mut args = Args { command: words.next().ok_or("serve, call or id")?, ..Args::default() };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--contact" => args.contact = Some(words.next().ok_or("a NodeId")?.parse()?),
            "--relay" => args.relay = words.next(),
            // The output is always JSON.
            "--json" => {}
            code => args.code = Some(code.parse()?),
        }
    }
    Ok(args)
}

fn node(args: &Args) -> Result<Node> {
    let mut builder = Node::builder();
    if let Some(home) = std::env::var_os("WRAITH_HOME") {
        builder = builder.state(StateDir::in_folder(PathBuf::from(home)));
    }
    if let Some(relay) = &args.relay {
        let (host, port) = relay.rsplit_once(':').ok_or("HOST:PORT")?;
        let server = RelayServer { host: host.into(), port: port.parse()?, token: None };
        builder = builder.relay(server).rendezvous(relay).peer_relays(PeerRelays::Any);
    }
    Ok(builder.build()?)
}

fn contact(node: &Node, id: NodeId) -> Result<Contact> {
    let added = node.contacts().change(|book| -> std::result::Result<_, StateError> {
        if book.with(id).is_none() {
            book.add(&"peer".parse().expect("a name"), id)?;
        }
        Ok(book.with(id).expect("it was added").clone())
    });
    Ok(added?)
}

fn print(event: &Value) {
    println!("{event}");
}

fn path(node: &Node, connection: &Connection, kind: &str) -> Value {
    let route = node.route(&connection.remote());
    let address = node.shown(&connection.remote());
    json!({
        "event": kind, "path": route.kind.name(), "how": route.origin.name(), "address": address,
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = parse()?;
    let node = node(&args)?;
    match args.command.as_str() {
        "id" => print(&json!({ "event": "id", "node_id": node.id().to_string() })),
        "serve" => serve(&node, &args).await?,
        "call" => {
            if let Err(error) = call(&node, &args).await {
                print(&json!({ "event": "error", "message": error.to_string() }));
                return Err(error);
            }
        }
        _ => return Err("serve, call or id".into()),
    }
    node.close().await;
    Ok(())
}

/// Echoes the streams of one connection.
async fn serve(node: &Node, args: &Args) -> Result<()> {
    let builder = match args.contact {
        Some(id) => {
            contact(node, id)?;
            node.serve().for_contacts(NAME)
        }
        None => node.serve().by_code(),
    };
    let service = builder.start().await?;
    let code = service.code().map(Code::to_string).unwrap_or_default();
    print(&json!({ "event": "ready", "code": code, "address": service.address().to_string() }));
    let connection = service.accept().await.ok_or("the service has ended")?;
    print(&path(node, &connection, "connected"));
    let mut bytes = 0;
    while let Ok((mut send, mut receive)) = connection.accept_stream().await {
        bytes += tokio::io::copy(&mut receive, &mut send).await?;
        send.finish()?;
    }
    print(&json!({ "event": "done", "failed": 0, "bytes": bytes }));
    service.close().await;
    Ok(())
}

/// Sends messages for a while, compares what comes back, and reports the paths.
async fn call(node: &Node, args: &Args) -> Result<()> {
    let to = match (&args.code, args.contact) {
        (Some(code), _) => ServiceAddress::Code(code.clone()),
        (None, Some(id)) => ServiceAddress::of_contact(contact(node, id)?, NAME),
        (None, None) => return Err("a code, or --contact NODEID".into()),
    };
    let connection = node.connect(to).open().await?;
    let mut before = path(node, &connection, "connected");
    print(&before);
    let (begin, mut bytes) = (Instant::now(), 0);
    for number in 0_u64.. {
        let mut message = vec![0; MESSAGE_BYTES];
        blake3::Hasher::new().update(&number.to_be_bytes()).finalize_xof().fill(&mut message);
        let (mut send, mut receive) = connection.open_stream().await?;
        send.write_all(&message).await?;
        send.finish()?;
        let mut answer = Vec::new();
        receive.read_to_end(&mut answer).await?;
        if answer != message {
            return Err("other bytes came back".into());
        }
        bytes += answer.len();
        print(&json!({ "event": "progress", "bytes": bytes }));
        let now = path(node, &connection, "path");
        if now["address"] != before["address"] {
            print(&now);
            before = now;
        }
        if begin.elapsed() >= CALL {
            break;
        }
        sleep(INTERVAL).await;
    }
    print(&json!({ "event": "done", "failed": 0, "bytes": bytes }));
    connection.close(0x100, "that was all");
    connection.closed().await;
    Ok(())
}
