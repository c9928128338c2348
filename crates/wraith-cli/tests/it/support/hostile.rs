//! A sender with full control over the protocol of SPEC §10, byte by byte, against the real `wraith
//! receive`.
//!
//! It is written by hand from the specification and shares no code with the transfer engine.

use std::thread::{self, JoinHandle};

use wraith_crypto::SecretIdentity;
use wraith_discovery::{Capability, Ticket};
use wraith_transport::{
    AccessKey, Bytes, CloseReason, Config, Connection, Endpoint, EndpointConfig, RecvStream,
    SendStream, block_on,
};

const SECRET: [u8; 16] = [0x5e; 16];

/// The data that the sender sends.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Counts in the Offer.
    pub files: u64,
    pub bytes: u64,
    /// Replaces the Hello and the Offer, unless empty.
    pub control: Vec<u8>,
    /// The manifest stream without its kind byte; [`manifest`] makes one.
    pub manifest: Vec<u8>,
    /// The data stream without its kind byte.
    pub data: Vec<u8>,
}

/// A listening hostile sender.
#[derive(Debug)]
pub struct HostileSender {
    endpoint: Endpoint,
    identity_seed: [u8; 32],
}

impl HostileSender {
    pub fn listen() -> Self {
        let identity_seed = [0xba; 32];
        let mut core = EndpointConfig::new(SecretIdentity::from_seed(identity_seed));
        core.door.access_keys = vec![AccessKey::of_ticket(&SECRET, core.identity.node_id())];
        let local: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
        let endpoint = Endpoint::bind(Config::new(core).bind(local)).unwrap();
        Self { endpoint, identity_seed }
    }

    pub fn ticket(&self) -> String {
        let node_id = SecretIdentity::from_seed(self.identity_seed).node_id();
        let addresses = vec![self.endpoint.local_addr()];
        Ticket::new(node_id, Capability::from_bytes(SECRET), addresses).to_string()
    }

    /// Plays the script to one receiver, on a thread. Its result is the receiver's close reason.
    pub fn play(self, script: Script) -> JoinHandle<CloseReason> {
        thread::spawn(move || {
            let connection = block_on(self.endpoint.accept()).unwrap();
            // The receiver may close at any moment. That ends the script, and the test expects it.
            let _streams = block_on(speak(&connection, &script));
            let reason = block_on(connection.closed());
            self.endpoint.close();
            reason
        })
    }
}

type Broken = Box<dyn std::error::Error>;

async fn speak(connection: &Connection, script: &Script) -> Result<Vec<SendStream>, Broken> {
    let (mut control, mut from_receiver) = connection.accept_stream().await?;
    read_message(&mut from_receiver).await?;
    read_message(&mut from_receiver).await?;
    if script.control.is_empty() {
        send(&mut control, &message(1, &[(0, Value::Number(1)), (1, Value::Number(1))])).await?;
        send(&mut control, &offer(script)).await?;
    } else {
        send(&mut control, &script.control).await?;
    }
    // The Accept message.
    read_message(&mut from_receiver).await?;
    let (mut manifest, _) = connection.open_stream().await?;
    send(&mut manifest, &[1]).await?;
    let (mut data, _) = connection.open_stream().await?;
    send(&mut data, &[2]).await?;
    send(&mut manifest, &script.manifest).await?;
    manifest.finish()?;
    // The Want message. Only requested data may be sent, and bad timing must not reveal the lie.
    read_message(&mut from_receiver).await?;
    send(&mut data, &script.data).await?;
    Ok(vec![control, manifest, data])
}

async fn send(stream: &mut SendStream, bytes: &[u8]) -> Result<(), Broken> {
    for piece in bytes.chunks(64 << 10) {
        stream.write_chunks([Bytes::copy_from_slice(piece)]).await?;
    }
    Ok(())
}

async fn read_message(stream: &mut RecvStream) -> Result<Vec<u8>, Broken> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).await?;
    let mut message = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut message).await?;
    Ok(message)
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Text(&'a str),
}

/// Encodes `length(4) | CBOR [type, {key: value, …}]`.
fn message(kind: u64, fields: &[(u64, Value<'_>)]) -> Vec<u8> {
    let mut cbor = vec![0x82];
    cbor_head(&mut cbor, 0, kind);
    cbor_head(&mut cbor, 5, fields.len() as u64);
    for (key, value) in fields {
        cbor_head(&mut cbor, 0, *key);
        match value {
            Value::Number(n) => cbor_head(&mut cbor, 0, *n),
            Value::Bytes(bytes) => {
                cbor_head(&mut cbor, 2, bytes.len() as u64);
                cbor.extend_from_slice(bytes);
            }
            Value::Text(text) => {
                cbor_head(&mut cbor, 3, text.len() as u64);
                cbor.extend_from_slice(text.as_bytes());
            }
        }
    }
    [&(cbor.len() as u32).to_be_bytes()[..], &cbor].concat()
}

fn cbor_head(out: &mut Vec<u8>, major: u8, n: u64) {
    if n < 24 {
        out.push(major << 5 | n as u8);
    } else {
        out.push(major << 5 | 27);
        out.extend_from_slice(&n.to_be_bytes());
    }
}

fn offer(script: &Script) -> Vec<u8> {
    let id = wraith_crypto::kdf::derive("wraith/1 transfer id", &SECRET);
    let fields = [
        (0, Value::Bytes(&id[..16])),
        (1, Value::Text("\u{1b}[31mgift\u{202e}")),
        (2, Value::Number(script.files)),
        (3, Value::Number(0)),
        (4, Value::Number(0)),
        (5, Value::Number(script.bytes)),
        (6, Value::Number(script.bytes)),
        (7, Value::Number(1)),
    ];
    message(3, &fields)
}

/// The kind of a manifest entry.
#[derive(Clone, Debug)]
pub enum Kind {
    File(u64),
    Link(Vec<u8>),
}

/// Encodes `length(4) | kind(1) | mode(4) | mtime(8 + 4) | path length(2) | path | rest`.
pub fn entry(path: &[u8], kind: &Kind) -> Vec<u8> {
    let (number, mode, rest): (u8, u32, Vec<u8>) = match kind {
        Kind::File(size) => (1, 0o644, size.to_be_bytes().to_vec()),
        Kind::Link(to) => (4, 0o777, [&(to.len() as u16).to_be_bytes()[..], to].concat()),
    };
    let mut body = vec![number];
    body.extend_from_slice(&mode.to_be_bytes());
    body.extend_from_slice(&[0; 12]);
    body.extend_from_slice(&(path.len() as u16).to_be_bytes());
    body.extend_from_slice(path);
    body.extend_from_slice(&rest);
    [&(body.len() as u32).to_be_bytes()[..], &body].concat()
}

/// Encodes a complete manifest stream, with the right count and hash at its end.
pub fn manifest(entries: &[Vec<u8>]) -> Vec<u8> {
    let all = entries.concat();
    let hash = blake3::hash(&all);
    let count = (entries.len() as u64).to_be_bytes();
    [&all[..], &[0; 4], &count, hash.as_bytes(), &[0; 8]].concat()
}

/// Encodes the record of a file of at most one chunk.
pub fn whole(entry: u32, root: [u8; 32], bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u32).to_be_bytes();
    [&[1][..], &entry.to_be_bytes(), &length, &root, bytes].concat()
}

/// Encodes the record of one chunk of a larger file.
pub fn chunk(entry: u32, index: u64, cv: [u8; 32], bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u32).to_be_bytes();
    [&[2][..], &entry.to_be_bytes(), &index.to_be_bytes(), &length, &cv, bytes].concat()
}

/// Encodes the record that ends a larger file as complete, after this many chunks.
pub fn end(entry: u32, chunks: u64, root: [u8; 32]) -> Vec<u8> {
    [&[4][..], &entry.to_be_bytes(), &[0], &chunks.to_be_bytes(), &root].concat()
}
