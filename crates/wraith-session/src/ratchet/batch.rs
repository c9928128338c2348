//! Batches of ratchet messages.
//!
//! Results are in the order of the inputs and equal those of single calls. If one message cannot be
//! encrypted, none is; decryption has a result for each message.

use std::ops::Range;

use rand_core::CryptoRng;
use thiserror::Error;
use zeroize::Zeroize;

use super::double_ratchet::Ratchet;
use super::error::{DecryptError, EncryptError};
use super::message::PLAINTEXT_BYTES_MAX;
use crate::session::Batch;

/// Why a batch was not encrypted. The state is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("message {index}: {why}")]
pub struct EncryptBatchError {
    /// Index of the message, from 0.
    pub index: usize,
    /// Why this message cannot be encrypted.
    pub why: EncryptError,
}

/// Results of a decrypted batch. The plaintexts are wiped when dropped.
#[derive(Default)]
pub struct DecryptedBatch {
    bytes: Vec<u8>,
    results: Vec<Result<Range<usize>, DecryptError>>,
}

impl DecryptedBatch {
    /// Returns the number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.results.len()
    }

    /// Returns whether the batch has no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Iterates over the plaintext or the error of each message, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Result<&[u8], DecryptError>> {
        self.results.iter().map(|result| match result {
            Ok(range) => Ok(&self.bytes[range.clone()]),
            Err(why) => Err(*why),
        })
    }
}

impl Drop for DecryptedBatch {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl std::fmt::Debug for DecryptedBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DecryptedBatch").field("messages", &self.len()).finish_non_exhaustive()
    }
}

impl Ratchet {
    /// Encrypts all plaintexts in order, with the same associated data.
    ///
    /// # Errors
    /// Names the first message that cannot be encrypted. The state is unchanged, and no message is
    /// encrypted.
    pub fn encrypt_many(
        &mut self,
        rng: &mut impl CryptoRng,
        aad: &[u8],
        plaintexts: &[&[u8]],
    ) -> Result<Batch, EncryptBatchError> {
        // After these checks only the ratchet step of the first message can fail, and that leaves
        // the state unchanged.
        let mut number = self.sending.as_ref().map_or(0, |sending| sending.keys.number());
        for (index, plaintext) in plaintexts.iter().enumerate() {
            if plaintext.len() > PLAINTEXT_BYTES_MAX {
                return Err(EncryptBatchError { index, why: EncryptError::TooLong });
            }
            let next = number.checked_add(1);
            let why = EncryptError::ChainExhausted;
            number = next.ok_or(EncryptBatchError { index, why })?;
        }
        let mut batch = Batch { bytes: Vec::new(), ranges: Vec::with_capacity(plaintexts.len()) };
        for (index, plaintext) in plaintexts.iter().enumerate() {
            let start = batch.bytes.len();
            self.encrypt(rng, aad, plaintext, &mut batch.bytes)
                .map_err(|why| EncryptBatchError { index, why })?;
            batch.ranges.push(start..batch.bytes.len());
        }
        Ok(batch)
    }

    /// Decrypts all messages, with the same associated data. Of two equal messages the first opens.
    #[must_use]
    pub fn decrypt_many(&mut self, aad: &[u8], messages: &[&[u8]]) -> DecryptedBatch {
        // A plaintext is shorter than its message. So the buffer never grows and leaves no copies
        // of plaintext in memory.
        let room = messages.iter().map(|message| message.len()).sum();
        let mut batch = DecryptedBatch {
            bytes: Vec::with_capacity(room),
            results: Vec::with_capacity(messages.len()),
        };
        for message in messages {
            let start = batch.bytes.len();
            let opened = self.decrypt(aad, message, &mut batch.bytes);
            batch.results.push(opened.map(|()| start..batch.bytes.len()));
        }
        batch
    }
}
