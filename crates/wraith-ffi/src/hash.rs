//! BLAKE3, whole and in pieces: the hash that names content here.

use std::sync::{Arc, Mutex, PoisonError};

/// The BLAKE3 of `bytes`: 32 bytes.
#[uniffi::export]
pub fn hash(bytes: Vec<u8>) -> Vec<u8> {
    blake3::hash(&bytes).as_bytes().to_vec()
}

/// BLAKE3 of what is given piece by piece. Threads that give at the same time take turns.
#[derive(Debug, Default, uniffi::Object)]
pub struct Blake3Hasher(Mutex<blake3::Hasher>);

#[uniffi::export]
impl Blake3Hasher {
    /// One that was given nothing yet.
    #[uniffi::constructor]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Takes the next piece.
    pub fn update(&self, bytes: Vec<u8>) {
        self.lock().update(&bytes);
    }

    /// The hash of everything given so far: 32 bytes. More can be given after it.
    pub fn digest(&self) -> Vec<u8> {
        self.lock().finalize().as_bytes().to_vec()
    }
}

impl Blake3Hasher {
    /// A panic cannot leave it between two states: nothing else happens while it is held.
    fn lock(&self) -> std::sync::MutexGuard<'_, blake3::Hasher> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_the_hash_of_the_whole() {
        let hasher = Blake3Hasher::new();
        hasher.update(b"wra".to_vec());
        hasher.update(b"ith".to_vec());
        assert_eq!(hasher.digest(), hash(b"wraith".to_vec()));
    }
}
