//! Datagrams and values outside connections: packets of the local network, values in the DHT, and
//! packets that find paths.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use tokio::sync::mpsc;
use wraith_core::punch::{PeerStart, Reflector};
use wraith_core::{AnswerMode, Endpoint, EndpointConfig, Role, Time};
use wraith_crypto::SecretIdentity;
use wraith_discovery::record::publish_ticket;
use wraith_discovery::{
    BoxFuture, Capability, MakeReach, PlaceError, PlaceName, Reach, RecordKey, RecordLookup,
    RecordSeed, RecordStore, StoredRecord, lan,
};

use crate::driver::random;

/// Maximum length of a tested message in a packet of the local network.
const MESSAGE_BYTES_MAX: u64 = 256;
/// Time limit for the first packet of path discovery.
const PATIENCE: Duration = Duration::from_secs(1);

/// Packets of the local network (SPEC §11.6) for a few nameplates, each with its own salt.
pub fn lan_packets(count: usize, rng: &mut ChaCha20Rng) -> Vec<Vec<u8>> {
    let packet = |_| {
        let message = vec![0; (rng.next_u64() % MESSAGE_BYTES_MAX) as usize];
        let nameplate = rng.next_u32() % 10;
        let sealed = lan::seal(nameplate, random(rng), &[7; lan::OPENING_LEN], &message);
        sealed.expect("the message is short enough").to_vec()
    };
    (0..count).map(packet).collect()
}

/// The first packets of `count` punches (SPEC §14.1), each with its own secret.
pub fn punches(count: usize, rng: &mut ChaCha20Rng) -> Vec<Vec<u8>> {
    let packet = |_| {
        let secret = random(rng);
        first(rng, |endpoint| {
            let (role, start) = (Role::Initiator, PeerStart::Now);
            let punches = endpoint.punches();
            punches.punch(Time::ZERO, &secret, role, start, &[peer()]).expect("the first");
        })
    };
    (0..count).map(packet).collect()
}

/// Questions to reflectors (SPEC §14.2) and their answers, each with its own secret.
pub fn reflections(count: usize, rng: &mut ChaCha20Rng) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let pair = |_| {
        let secret = random(rng);
        let question = first(rng, |endpoint| {
            let by = AnswerMode::Itself;
            endpoint.punches().observe(Time::ZERO, &secret, peer(), by).expect("the first");
        });
        let answer = Reflector::new(&secret).answer(peer(), &question, rng);
        (question, answer.expect("the secrets are the same").packet)
    };
    (0..count).map(pair).unzip()
}

/// The first datagram of a new endpoint after `begin`.
fn first(rng: &mut ChaCha20Rng, begin: impl FnOnce(&mut Endpoint)) -> Vec<u8> {
    let seed = random(rng);
    let config = EndpointConfig::new(SecretIdentity::from_seed(seed));
    let mut endpoint = Endpoint::new(config, seed);
    begin(&mut endpoint);
    let mut buffer = vec![0; 65536];
    let mut now = Time::ZERO;
    loop {
        if let Some(transmit) = endpoint.poll_transmit(now, &mut buffer) {
            buffer.truncate(transmit.len.min(transmit.segment));
            return buffer;
        }
        now = endpoint.poll_timeout().expect("it has something to do");
        assert!(now.since(Time::ZERO) < PATIENCE, "it sent nothing");
        endpoint.handle_timeout(now);
    }
}

fn peer() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 1000))
}

/// Values of `count` records (SPEC §11.7), each of another sender. Salts come from the system and
/// hours from the clock, so no seed reproduces them.
pub fn dht_values(count: usize, rng: &mut ChaCha20Rng) -> std::io::Result<Vec<Vec<u8>>> {
    let senders: Vec<_> = (0..count).map(|_| ChaCha20Rng::from_seed(random(rng))).collect();
    tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
        let (tell, mut told) = mpsc::unbounded_channel();
        let shelf: Arc<dyn RecordStore> = Arc::new(ReportingStore(tell));
        let mut values = Vec::new();
        for mut rng in senders {
            let sender = SecretIdentity::from_seed(random(&mut rng)).node_id();
            let capability = Capability::from_bytes(random(&mut rng));
            let reach: MakeReach = Box::new(|_| Reach::from(vec![peer()]));
            let record = publish_ticket(std::slice::from_ref(&shelf), sender, &capability, reach);
            values.push(told.recv().await.expect("this function holds the sender, too"));
            drop(record);
        }
        Ok(values)
    })
}

/// A store that reports each stored value and is always empty.
#[derive(Debug)]
struct ReportingStore(mpsc::UnboundedSender<Vec<u8>>);

impl RecordStore for ReportingStore {
    fn place(&self) -> PlaceName {
        PlaceName::Dht
    }

    fn probe(&self) -> BoxFuture<'static, Result<(), PlaceError>> {
        Box::pin(async { Ok(()) })
    }

    fn put(
        &self,
        _: RecordSeed,
        record: StoredRecord,
    ) -> BoxFuture<'static, Result<(), PlaceError>> {
        let told = self.0.send(record.value);
        Box::pin(async move { told.map_err(|_| PlaceError::Silent) })
    }

    fn get(&self, _: RecordKey) -> Box<dyn RecordLookup> {
        Box::new(EmptyLookup)
    }
}

struct EmptyLookup;

impl RecordLookup for EmptyLookup {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<StoredRecord>, PlaceError>> {
        Box::pin(async { Ok(None) })
    }
}
