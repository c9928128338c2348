//! Conversations between sides that are rarely online at the same time: the Double Ratchet with
//! header encryption, hybrid with ML-KEM-768, started from prekeys.

use std::sync::Mutex;
use std::time::Duration;

use rand_chacha::rand_core::CryptoRng;
use wraith_session::ratchet::{
    DecryptError, DecryptedBatch, EncryptError, OVERHEAD_BYTES, PLAINTEXT_BYTES_MAX, PreKeyBundle,
    Ratchet, padme,
};
use wraith_session::{Batch, StoreError, StoredRatchet};
use zeroize::Zeroizing;

use super::prekeys::{PREKEYS, wraith_prekeys_t};
use crate::border::entry;
use crate::files::node::switch;
use crate::identity::{self, wraith_identity_t};
use crate::random::generator;
use crate::status::wraith_status_t::*;
use crate::status::{Failure, Outcome, wraith_status_t};
use crate::table::{Kind, Table};

/// Minimum overhead of a message over its text, in bytes.
pub const WRAITH_RATCHET_OVERHEAD: usize = 90;
const _: () = assert!(WRAITH_RATCHET_OVERHEAD == OVERHEAD_BYTES);
/// Additional bytes of the first messages until a reply arrives, and of messages with an ML-KEM
/// key.
const INITIAL_BYTES: usize = 1161;
const KEM_PART_BYTES: usize = 1200;

/// One side of a conversation.
pub type wraith_ratchet_t = u64;

pub(super) static RATCHETS: Table<Mutex<RatchetBacking>> = Table::new(Kind::Ratchet);

/// Where a conversation is kept. Changes of one in a vault are stored before the call returns.
pub(super) enum RatchetBacking {
    Memory(Box<Ratchet>),
    Vault(Box<StoredRatchet>),
}

pub(super) fn insert(ratchet: Ratchet) -> Outcome<wraith_ratchet_t> {
    RATCHETS.insert(Mutex::new(RatchetBacking::Memory(Box::new(ratchet))))
}

pub(super) fn insert_stored(ratchet: StoredRatchet) -> Outcome<wraith_ratchet_t> {
    RATCHETS.insert(Mutex::new(RatchetBacking::Vault(Box::new(ratchet))))
}

impl RatchetBacking {
    /// Returns the ratchet, for read access.
    fn ratchet(&self) -> &Ratchet {
        match self {
            Self::Memory(ratchet) => ratchet,
            Self::Vault(stored) => stored.ratchet(),
        }
    }

    /// Returns the ratchet if the caller saves it.
    pub(super) fn in_memory(&self) -> Outcome<&Ratchet> {
        match self {
            Self::Memory(ratchet) => Ok(ratchet),
            Self::Vault(_) => {
                Err(Failure::new(WRAITH_INVALID_STATE, "this conversation is kept in a vault"))
            }
        }
    }

    fn encrypt(&mut self, rng: &mut impl CryptoRng, aad: &[u8], text: &[u8]) -> Outcome<Vec<u8>> {
        let mut message = Vec::new();
        match self {
            Self::Memory(ratchet) => ratchet.encrypt(rng, aad, text, &mut message)?,
            Self::Vault(stored) => stored.encrypt(rng, aad, text, &mut message)?,
        }
        Ok(message)
    }

    fn decrypt(&mut self, aad: &[u8], message: &[u8]) -> Outcome<Zeroizing<Vec<u8>>> {
        // Allocated at full size: a growing buffer would leave copies of the text behind.
        let mut text = Zeroizing::new(Vec::with_capacity(message.len()));
        match self {
            Self::Memory(ratchet) => ratchet.decrypt(aad, message, &mut text)?,
            Self::Vault(stored) => stored.decrypt(aad, message, &mut text)?,
        }
        Ok(text)
    }

    pub(super) fn encrypt_many(
        &mut self,
        rng: &mut impl CryptoRng,
        aad: &[u8],
        texts: &[&[u8]],
    ) -> Result<Batch, StoreError> {
        match self {
            Self::Memory(ratchet) => Ok(ratchet.encrypt_many(rng, aad, texts)?),
            Self::Vault(stored) => stored.encrypt_many(rng, aad, texts),
        }
    }

    pub(super) fn decrypt_many(
        &mut self,
        aad: &[u8],
        messages: &[&[u8]],
    ) -> Outcome<DecryptedBatch> {
        match self {
            Self::Memory(ratchet) => Ok(ratchet.decrypt_many(aad, messages)),
            Self::Vault(stored) => Ok(stored.decrypt_many(aad, messages)?),
        }
    }
}

impl From<EncryptError> for Failure {
    fn from(error: EncryptError) -> Self {
        let status = match error {
            EncryptError::TooLong => WRAITH_INVALID_INPUT,
            EncryptError::ChainExhausted => WRAITH_EXHAUSTED,
            _ => WRAITH_UNAUTHENTIC,
        };
        Self::new(status, error.to_string())
    }
}

pub(super) fn of_decrypt(error: DecryptError) -> wraith_status_t {
    match error {
        DecryptError::Replayed => WRAITH_REPLAYED,
        DecryptError::TooOld => WRAITH_TOO_OLD,
        DecryptError::Violation => WRAITH_PROTOCOL,
        _ => WRAITH_UNAUTHENTIC,
    }
}

impl From<DecryptError> for Failure {
    fn from(error: DecryptError) -> Self {
        Self::new(of_decrypt(error), error.to_string())
    }
}

/// Returns the maximum message length for a text. The actual length depends on the state of the
/// conversation.
pub(super) fn room(text_len: usize) -> Outcome<usize> {
    match text_len <= PLAINTEXT_BYTES_MAX {
        true => Ok(OVERHEAD_BYTES + INITIAL_BYTES + KEM_PART_BYTES + padme(text_len + 1)),
        false => Err(EncryptError::TooLong.into()),
    }
}

/// Returns the room that `wraith_ratchet_encrypt` needs for a text of `text_len` bytes. The message
/// may be shorter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_room(
    text_len: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let out = call.out(out_len)?;
        out.write(room(text_len)?);
        Ok(())
    })
}

/// Starts a conversation with the owner of a published bundle, who may be offline. Check with
/// `wraith_ratchet_peer` that the owner is the intended peer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_initiate(
    identity: wraith_identity_t,
    bundle: *const u8,
    bundle_len: usize,
    out: *mut wraith_ratchet_t,
) -> wraith_status_t {
    entry!(|call| {
        let (bundle, out) =
            (PreKeyBundle::decode(call.bytes(bundle, bundle_len)?)?, call.out(out)?);
        let identity = identity::identity(identity)?;
        let ratchet = Ratchet::initiate(&mut *generator()?, &identity, &bundle)?;
        out.write(insert(ratchet)?);
        Ok(())
    })
}

/// Returns the NodeId (32 bytes) that the sender of `message` claims, if it is a first message;
/// otherwise `WRAITH_NOT_FOUND`. Nothing is authenticated yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_initiator_of(
    message: *const u8,
    message_len: usize,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let (message, output) =
            (call.bytes(message, message_len)?, call.output(out, out_cap, out_len)?);
        let initiator = Ratchet::initiator_of(message);
        let none = || Failure::new(WRAITH_NOT_FOUND, "this is no first message of a conversation");
        output.write(initiator.ok_or_else(none)?.as_bytes())
    })
}

/// Starts the conversation that `message` requests, and decrypts the message. Needs room for
/// `message_len - WRAITH_RATCHET_OVERHEAD`. Consumes the one-time prekey of the message.
///
/// If there already is a conversation with that side, try `wraith_ratchet_decrypt` first.
/// `WRAITH_INVALID_STATE` if the prekeys are in a vault; use `wraith_ratchet_respond_in_vault`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_respond(
    identity: wraith_identity_t,
    prekeys: wraith_prekeys_t,
    aad: *const u8,
    aad_len: usize,
    message: *const u8,
    message_len: usize,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
    ratchet: *mut wraith_ratchet_t,
) -> wraith_status_t {
    entry!(|call| {
        let (aad, message) = (call.bytes(aad, aad_len)?, call.bytes(message, message_len)?);
        let (output, out) = (call.output(out, out_cap, out_len)?, call.out(ratchet)?);
        output.room(message.len().saturating_sub(OVERHEAD_BYTES))?;
        let identity = identity::identity(identity)?;
        let (ratchet, text) = PREKEYS.with(prekeys, |kept| {
            Ok(Ratchet::respond(&identity, kept.in_memory()?, aad, message)?)
        })?;
        let text = Zeroizing::new(text);
        out.write(insert(ratchet)?);
        output.write(&text)
    })
}

/// Encrypts `text`. `aad` is not sent; decryption needs the same `aad`. Needs the room that
/// `wraith_ratchet_room` returns. A ratchet in a vault is stored before this returns; save any
/// other ratchet before the message leaves.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_encrypt(
    ratchet: wraith_ratchet_t,
    aad: *const u8,
    aad_len: usize,
    text: *const u8,
    text_len: usize,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let (aad, text) = (call.bytes(aad, aad_len)?, call.bytes(text, text_len)?);
        let output = call.output(out, out_cap, out_len)?;
        output.room(room(text.len())?)?;
        let mut generator = generator()?;
        RATCHETS.with(ratchet, |kept| output.write(&kept.encrypt(&mut *generator, aad, text)?))
    })
}

/// Decrypts `message`. Needs room for `message_len - WRAITH_RATCHET_OVERHEAD`. `WRAITH_REPLAYED` if
/// the message was decrypted before, `WRAITH_TOO_OLD` if it came too late. A ratchet in a vault is
/// stored before this returns; save any other ratchet before you act on the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_decrypt(
    ratchet: wraith_ratchet_t,
    aad: *const u8,
    aad_len: usize,
    message: *const u8,
    message_len: usize,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let (aad, message) = (call.bytes(aad, aad_len)?, call.bytes(message, message_len)?);
        let output = call.output(out, out_cap, out_len)?;
        output.room(message.len().saturating_sub(OVERHEAD_BYTES))?;
        RATCHETS.with(ratchet, |kept| output.write(&kept.decrypt(aad, message)?))
    })
}

/// Returns the other side's NodeId: 32 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_peer(
    ratchet: wraith_ratchet_t,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let output = call.output(out, out_cap, out_len)?;
        RATCHETS.with(ratchet, |kept| output.write(kept.ratchet().peer().as_bytes()))
    })
}

/// Returns 32 bytes that are equal on both sides and unique to this conversation. Compare them over
/// another channel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_binding(
    ratchet: wraith_ratchet_t,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let output = call.output(out, out_cap, out_len)?;
        RATCHETS.with(ratchet, |kept| output.write(kept.ratchet().binding()))
    })
}

/// Sets whether message lengths are padded to buckets, for up to 12 % more bytes: 1 for yes, 0 (the
/// default) for no.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_ratchet_set_padding(
    ratchet: wraith_ratchet_t,
    padding: u32,
) -> wraith_status_t {
    entry!(|_call| {
        let padding = switch(padding)?;
        RATCHETS.with(ratchet, |kept| {
            match kept {
                RatchetBacking::Memory(ratchet) => ratchet.set_padding(padding),
                RatchetBacking::Vault(stored) => stored.set_padding(padding),
            }
            Ok(())
        })
    })
}

/// Sets the current time in milliseconds, from any fixed starting point. Keys of missing messages
/// expire by it. Set it again after `wraith_ratchet_keep`, `wraith_ratchet_load` and
/// `wraith_ratchet_restore`.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_ratchet_set_time(
    ratchet: wraith_ratchet_t,
    now_ms: u64,
) -> wraith_status_t {
    entry!(|_call| {
        RATCHETS.with(ratchet, |kept| {
            let now = Duration::from_millis(now_ms);
            match kept {
                RatchetBacking::Memory(ratchet) => ratchet.set_time(now),
                RatchetBacking::Vault(stored) => stored.set_time(now),
            }
            Ok(())
        })
    })
}

/// Serializes the conversation, secrets included, without a checksum, for a caller without a vault.
/// Prefer `wraith_ratchet_keep`. A conversation restored from bytes other than the latest must be
/// started anew. `WRAITH_INVALID_STATE` if it is in a vault.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_save(
    ratchet: wraith_ratchet_t,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let output = call.output(out, out_cap, out_len)?;
        RATCHETS.with(ratchet, |kept| output.write(&kept.in_memory()?.save()))
    })
}

/// Restores a conversation from saved bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_restore(
    saved: *const u8,
    saved_len: usize,
    out: *mut wraith_ratchet_t,
) -> wraith_status_t {
    entry!(|call| {
        let (saved, out) = (call.bytes(saved, saved_len)?, call.out(out)?);
        out.write(insert(Ratchet::restore(saved)?)?);
        Ok(())
    })
}

/// Frees the conversation and wipes its keys.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_ratchet_free(ratchet: wraith_ratchet_t) -> wraith_status_t {
    entry!(|_call| RATCHETS.remove(ratchet).map(drop))
}
