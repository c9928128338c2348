//! BLAKE3, the hash that names content, of whole inputs and of streams.

use std::sync::{Arc, Mutex};

use crate::content::locked;

/// Returns the BLAKE3 hash of `bytes`: 32 bytes.
#[uniffi::export]
pub fn hash(bytes: Vec<u8>) -> Vec<u8> {
    blake3::hash(&bytes).as_bytes().to_vec()
}

/// Incremental BLAKE3. Thread-safe.
#[derive(Debug, Default, uniffi::Object)]
pub struct Blake3Hasher(Mutex<blake3::Hasher>);

#[uniffi::export]
impl Blake3Hasher {
    /// Creates a hasher without input.
    #[uniffi::constructor]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Adds input.
    pub fn update(&self, bytes: Vec<u8>) {
        locked(&self.0).update(&bytes);
    }

    /// Returns the hash of all input so far: 32 bytes. More input may follow.
    pub fn digest(&self) -> Vec<u8> {
        locked(&self.0).finalize().as_bytes().to_vec()
    }
}
