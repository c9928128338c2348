//! Says clients where their other sockets are seen (SPEC §14.2). All have one secret, which the relay draws when it starts and gives to
//! each inside TLS: a stray datagram costs one hash, however many clients there are. Whoever has it can ask, and can forge an answer to a
//! question that it sees; what is answered is only ever a candidate that is tried.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Mutex;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::punch;
use zeroize::Zeroizing;

use super::shared::lock;
use crate::random::Random;

/// See the module.
pub struct Reflector {
    secret: Zeroizing<[u8; 32]>,
    questions: punch::Reflector,
    rng: Mutex<ChaCha20Rng>,
}

impl Reflector {
    pub fn new(random: &mut Random) -> Self {
        let secret = Zeroizing::new(random.bytes());
        let questions = punch::Reflector::new(&secret);
        let rng = Mutex::new(ChaCha20Rng::from_seed(random.bytes()));
        Self { secret, questions, rng }
    }

    /// What clients ask with.
    pub fn secret(&self) -> [u8; 32] {
        *self.secret
    }

    /// The answer to a datagram that is nobody's here, to be sent where it came from: never longer than it. None if it asks nothing.
    pub fn answer(&self, from: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>> {
        self.questions.answer(from, datagram, &mut *lock(&self.rng))
    }
}

impl fmt::Debug for Reflector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflector").finish_non_exhaustive()
    }
}
