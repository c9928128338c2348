//! A receiver that lies to the real `wraith send`.

use wraith_crypto::SecretIdentity;
use wraith_discovery::Ticket;
use wraith_transfer::message::{Accept, Fetch, Hello, Message, ReceiptBody, Span, Want};
use wraith_transfer::{Offer, Role};
use wraith_transport::{
    AccessKey, CloseReason, Config, Connection, Endpoint, EndpointConfig, RecvStream, SendStream,
    block_on, block_on_timeout,
};

use super::read_message;

/// A client that dials.
pub struct Dialler {
    endpoint: Endpoint,
}

impl Dialler {
    /// Makes a client with an identity of its own.
    pub fn new(seed: u8) -> Self {
        let mut core = EndpointConfig::new(SecretIdentity::from_seed([seed; 32]));
        core.transport.keep_alive = true;
        Self { endpoint: Endpoint::bind(Config::new(core).bind(([127, 0, 0, 1], 0))).unwrap() }
    }

    pub fn connect(&self, ticket: &Ticket) -> Connection {
        let peer = ticket.node_id();
        let access_key = AccessKey::of_ticket(ticket.capability().as_bytes(), peer);
        block_on(self.endpoint.connect(ticket.addresses(), peer, &access_key)).unwrap()
    }

    /// Connects and opens the control stream.
    pub fn dial(&self, ticket: &Ticket) -> Caller {
        let connection = self.connect(ticket);
        let (send, recv) = block_on(connection.open_stream()).unwrap();
        Caller { connection, send, recv }
    }

    /// Proceeds until the manifest has arrived and every entry may be requested.
    pub fn accept(&self, ticket: &Ticket) -> Liar {
        let mut caller = self.dial(ticket);
        caller.hello();
        caller.fetch(*ticket.capability().as_bytes());
        let Caller { connection, send, mut recv } = caller;
        assert!(matches!(read_message(&mut recv), Some(Message::Hello(_))));
        let Some(Message::Offer(offer)) = read_message(&mut recv) else { panic!("no Offer") };
        let mut streams = Vec::new();
        for _ in 0..=offer.data_streams {
            streams.push(block_on(connection.accept_stream()).unwrap());
        }
        let mut liar = Liar { connection, send, _recv: recv, streams, offer, manifest: Vec::new() };
        liar.say(&Message::Accept(Accept::default()));
        liar.read_manifest();
        liar
    }
}

/// A client with a control stream that has sent nothing yet.
pub struct Caller {
    pub connection: Connection,
    pub send: SendStream,
    pub recv: RecvStream,
}

impl Caller {
    pub fn write(&mut self, bytes: &[u8]) {
        let _ = block_on(self.send.write_all(bytes));
    }

    pub fn hello(&mut self) {
        self.write(
            &Message::Hello(Hello { version: 1, role: Role::Receiver, features: None }).to_bytes(),
        );
    }

    pub fn fetch(&mut self, secret: [u8; 16]) {
        self.write(
            &Message::Fetch(Fetch { secret, instance: None, stream: None, push: None }).to_bytes(),
        );
    }

    pub fn told(self) -> CloseReason {
        block_on(self.connection.closed())
    }
}

/// A receiver that has accepted the offer and read the manifest.
pub struct Liar {
    pub connection: Connection,
    send: SendStream,
    _recv: RecvStream,
    /// The manifest stream, then the data streams.
    streams: Vec<(SendStream, RecvStream)>,
    pub offer: Offer,
    manifest: Vec<u8>,
}

/// Returns the signature over a receipt by the identity with this `seed`.
pub fn signature(seed: u8, body: &ReceiptBody) -> [u8; 64] {
    let mut signed = b"wraith/1 receipt".to_vec();
    signed.extend_from_slice(&body.transfer_id);
    signed.extend_from_slice(&body.sender);
    signed.extend_from_slice(&body.manifest);
    signed.extend_from_slice(&body.contents);
    for n in [body.verified, body.kept, body.failed, body.bytes, body.unix_seconds] {
        signed.extend_from_slice(&n.to_be_bytes());
    }
    SecretIdentity::from_seed([seed; 32]).sign(&signed)
}

impl Liar {
    /// Returns the hash at the end of the manifest, before the number of objects left out.
    pub fn manifest_hash(&self) -> [u8; 32] {
        let hash_and_count: &[u8; 40] = self.manifest.last_chunk().unwrap();
        *hash_and_count.first_chunk().unwrap()
    }

    pub fn say(&mut self, message: &Message) {
        self.write(&message.to_bytes());
    }

    pub fn write(&mut self, bytes: &[u8]) {
        let _ = block_on(self.send.write_all(bytes));
    }

    pub fn want(&mut self, upto: u64, whole: &[(u64, u64)]) {
        let whole = whole.iter().map(|&(first, count)| Span { first, count }).collect();
        self.say(&Message::Want(Want { upto, whole, ..Want::default() }));
    }

    /// Reports that something else has the names of these files, and stays.
    pub fn skip(&mut self, upto: u64, skipped: &[(u64, u64)]) {
        let skipped = skipped.iter().map(|&(first, count)| Span { first, count }).collect();
        self.say(&Message::Want(Want { upto, skipped, ..Want::default() }));
    }

    /// Reads this many bytes from the data streams, including their first ones.
    pub fn read_data(&mut self, bytes: usize) {
        let moment = std::time::Duration::from_millis(5);
        let mut left = bytes;
        while left > 0 {
            for (_, stream) in &mut self.streams[1..] {
                if let Some(piece) = block_on_timeout(stream.read_chunk(), moment) {
                    left = left.saturating_sub(piece.unwrap().expect("it ends early").len());
                }
            }
        }
    }

    /// Reads the manifest to its end, so that every entry may be requested.
    fn read_manifest(&mut self) {
        while let Some(piece) = block_on(self.streams[0].1.read_chunk()).unwrap() {
            self.manifest.extend_from_slice(&piece);
        }
    }

    pub fn told(self) -> CloseReason {
        block_on(self.connection.closed())
    }
}
