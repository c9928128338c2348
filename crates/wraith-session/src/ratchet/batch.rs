//! Batches of ratchet messages.
//!
//! Results are in the order of the inputs and equal those of single calls. If one message cannot be
//! encrypted, none is; decryption has a result for each message.

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::double_ratchet::Ratchet;
use super::error::{DecryptError, EncryptError};
use super::message::PLAINTEXT_BYTES_MAX;
use crate::session::{Batch, BatchError, OpenedBatch};
use crate::vault::VaultError;

impl Ratchet {
    /// Encrypts all plaintexts in order, with the same associated data. In a vault, the
    /// conversation is stored once, before this returns.
    ///
    /// # Errors
    /// Names the first message that cannot be encrypted; if the vault fails, the first of all. The
    /// state is unchanged, and no message is encrypted.
    pub fn encrypt_many(
        &mut self,
        rng: &mut impl CryptoRng,
        aad: &[u8],
        plaintexts: &[&[u8]],
    ) -> Result<Batch, BatchError<EncryptError>> {
        // After these checks only the ratchet step of the first message can fail, and that leaves
        // the state unchanged.
        let mut number = self.sending.as_ref().map_or(0, |sending| sending.keys.number());
        for (index, plaintext) in plaintexts.iter().enumerate() {
            if plaintext.len() > PLAINTEXT_BYTES_MAX {
                return Err(BatchError { index, why: EncryptError::TooLong });
            }
            let next = number.checked_add(1);
            let why = EncryptError::ChainExhausted;
            number = next.ok_or(BatchError { index, why })?;
        }
        let mut batch = Batch { bytes: Vec::new(), ranges: Vec::with_capacity(plaintexts.len()) };
        for (index, plaintext) in plaintexts.iter().enumerate() {
            let start = batch.bytes.len();
            self.encrypt_step(rng, aad, plaintext, &mut batch.bytes)
                .map_err(|why| BatchError { index, why })?;
            batch.ranges.push(start..batch.bytes.len());
        }
        if !batch.is_empty() {
            self.store().map_err(|why| BatchError { index: 0, why: why.into() })?;
        }
        Ok(batch)
    }

    /// Decrypts all messages, with the same associated data. Of two equal messages the first opens.
    /// In a vault, the conversation is stored once before this returns, or not at all if no message
    /// opens.
    ///
    /// # Errors
    /// [`VaultError`]: the state is unchanged, and no message was opened. Errors of single messages
    /// are among the results.
    pub fn decrypt_many(
        &mut self,
        aad: &[u8],
        messages: &[&[u8]],
    ) -> Result<OpenedBatch<DecryptError>, VaultError> {
        // A plaintext is shorter than its message. So the buffer never grows and leaves no copies
        // of plaintext in memory.
        let room = messages.iter().map(|message| message.len()).sum();
        let mut batch = OpenedBatch {
            bytes: Zeroizing::new(Vec::with_capacity(room)),
            results: Vec::with_capacity(messages.len()),
        };
        for (index, message) in (0..).zip(messages) {
            let start = batch.bytes.len();
            let opened = self.decrypt_step(aad, message, &mut batch.bytes);
            batch.results.push(opened.map(|()| (index, start..batch.bytes.len())));
        }
        if batch.results.iter().any(Result::is_ok) {
            self.store()?;
        }
        Ok(batch)
    }
}
