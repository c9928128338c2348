//! Handshakes of wraith, with all computations of an endpoint: fresh ephemeral keys, the access
//! key, both datagrams of each message, the keys of the connection.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_noise::{
    AccessKey, EphemeralKey, FinalHello, Initiator, InitiatorHello, Parameters, PendingH1, Policy,
    Responder, ResponderHello, SecretIdentity, SessionKeys, Suite,
};

pub struct Wraith {
    alice: SecretIdentity,
    bob: SecretIdentity,
    access_key: AccessKey,
    rng: ChaCha20Rng,
}

impl Wraith {
    pub fn new() -> Self {
        let [alice, bob] = [1, 2].map(|seed| SecretIdentity::from_seed([seed; 32]));
        let access_key = AccessKey::of_ticket(&[3; 16], bob.node_id());
        Self { alice, bob, access_key, rng: ChaCha20Rng::from_seed([4; 32]) }
    }

    /// Runs one handshake, from H1 to the keys on both sides.
    pub fn shake_hands(&mut self) {
        let (mut initiator, h1) = self.start();
        let (mut responder, h2) = self.answer(&h1);
        let (h3, keys) = self.finish(&mut initiator, &h2);
        let (hello, peer_keys) = responder.read_h3(&h3).expect("authentic");
        assert!(hello.node_id == self.alice.node_id() && keys.send == peer_keys.recv);
    }

    /// Measures the responder's time for `count` handshakes.
    pub fn time_of_responder(&mut self, count: u32) -> Duration {
        let mut time = Duration::ZERO;
        for _ in 0..count {
            let (mut initiator, h1) = self.start();
            let begin = Instant::now();
            let (mut responder, h2) = self.answer(&h1);
            time += begin.elapsed();
            let (h3, _) = self.finish(&mut initiator, &h2);
            let begin = Instant::now();
            responder.read_h3(&h3).expect("authentic");
            time += begin.elapsed();
        }
        time
    }

    fn start(&mut self) -> (Option<Initiator>, [Vec<u8>; 2]) {
        let hello = InitiatorHello {
            suites: Policy::Default.packet_suites(),
            aes_hardware: true,
            unix_seconds: 1_700_000_000,
        };
        let ephemeral = EphemeralKey::generate(&mut self.rng);
        let (peer, access_key) = (self.bob.node_id(), &self.access_key);
        let started =
            Initiator::start(&self.alice, peer, access_key, &ephemeral, &hello, &mut self.rng);
        let (initiator, h1) = started.expect("a valid NodeId");
        (Some(initiator), h1)
    }

    fn answer(&mut self, h1: &[Vec<u8>; 2]) -> (Responder, [Vec<u8>; 2]) {
        let ephemeral = EphemeralKey::generate(&mut self.rng);
        let first = PendingH1::new(&self.access_key, &h1[0]).expect("it is invited");
        let read = Responder::read_h1(&self.bob, &first, &h1[1], &ephemeral, &mut self.rng);
        let (mut responder, _) = read.expect("authentic");
        let hello = ResponderHello {
            suite: Suite::Aes256Gcm,
            observed: SocketAddr::from(([192, 0, 2, 1], 4711)),
            parameters: Parameters::default(),
        };
        let h2 = responder.write_h2(&hello, &mut self.rng).expect("a valid key");
        (responder, h2)
    }

    fn finish(
        &mut self,
        initiator: &mut Option<Initiator>,
        h2: &[Vec<u8>; 2],
    ) -> (Vec<u8>, SessionKeys) {
        let mut initiator = initiator.take().expect("it is finished once");
        assert_eq!(initiator.read_h2(&h2[0]), Ok(None));
        initiator.read_h2(&h2[1]).expect("authentic").expect("both datagrams");
        let parameters = Parameters::default();
        let last = FinalHello { node_id: self.alice.node_id(), parameters };
        initiator.write_h3(&last, &mut self.rng)
    }
}
