//! Conversations between sides that are rarely online at the same time: the Double Ratchet with
//! header encryption, hybrid with ML-KEM-768, started from prekeys.

use std::sync::Mutex;
use std::time::Duration;

use wraith_session::ratchet::{
    EncryptError, OVERHEAD_BYTES, PLAINTEXT_BYTES_MAX, PreKeyBundle, Ratchet, padme,
};
use wraith_session::system_rng;
use zeroize::Zeroizing;

use super::batch::{opened_bytes, write_opened};
use super::prekeys::wraith_prekeys_t;
use super::session::not_kept;
use crate::border::{OutPtr, Output, Plain, export, write_wanted};
use crate::identity::wraith_identity_t;
use crate::options::switch;
use crate::status::wraith_status_t::WRAITH_OK;
use crate::status::{Outcome, wraith_status_t};
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

/// The result for one message of a batch, and the position of its bytes in the buffer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct wraith_ratchet_result_t {
    /// `WRAITH_OK`, or why the message was not decrypted. A failed message changes nothing.
    pub status: wraith_status_t,
    /// Offset of its bytes in the buffer.
    pub offset: usize,
    /// Number of its bytes.
    pub len: usize,
}

// SAFETY: only written, from valid values.
unsafe impl Plain for wraith_ratchet_result_t {}

pub(super) static wraith_ratchet_t: Table<Mutex<Ratchet>> = Table::new(Kind::Ratchet);

/// Returns the maximum message length for a text. The actual length depends on the state of the
/// conversation.
fn room(text_len: usize) -> Outcome<usize> {
    match text_len <= PLAINTEXT_BYTES_MAX {
        true => Ok(OVERHEAD_BYTES + INITIAL_BYTES + KEM_PART_BYTES + padme(text_len + 1)),
        false => Err(EncryptError::TooLong.into()),
    }
}

/// Stores a conversation that a peer has started, and writes its handle and its first text.
pub(super) fn add_started(
    (started, text): (Ratchet, Vec<u8>),
    ratchet: OutPtr<'_, wraith_ratchet_t>,
    out: Output<'_>,
) -> Outcome {
    let text = Zeroizing::new(text);
    ratchet.write(wraith_ratchet_t.add(started)?);
    out.write(&text)
}

export!(
    /// Returns the room that `wraith_ratchet_encrypt` needs for a text of `text_len` bytes. The
    /// message may be shorter.
    pub fn wraith_ratchet_room(text_len: usize) -> Outcome<usize> {
        room(text_len)
    }

    /// Starts a conversation with the owner of a published bundle, who may be offline. Check with
    /// `wraith_ratchet_peer` that the owner is the intended peer.
    pub fn wraith_ratchet_initiate(
        identity: Object<wraith_identity_t>,
        bundle: Bytes,
    ) -> Outcome<wraith_ratchet_t> {
        let bundle = PreKeyBundle::decode(bundle)?;
        wraith_ratchet_t.add(Ratchet::initiate(&mut system_rng()?, &identity, &bundle)?)
    }

    /// Returns the NodeId (32 bytes) that the sender of `message` claims, if it is a first message;
    /// otherwise `WRAITH_NOT_FOUND`. Nothing is authenticated yet.
    pub fn wraith_ratchet_initiator_of(message: Bytes, out: Buffer) -> Outcome {
        let initiator = Ratchet::initiator_of(message).map(|id| id.0);
        out.write_found(initiator, "this is no first message of a conversation")
    }

    /// Starts the conversation that `message` requests, and decrypts the message. Needs room for
    /// `message_len - WRAITH_RATCHET_OVERHEAD`. Consumes the one-time prekey of the message.
    ///
    /// If there already is a conversation with that side, try `wraith_ratchet_decrypt` first.
    /// `WRAITH_INVALID_STATE` if the prekeys are in a vault; use `wraith_ratchet_respond_in_vault`.
    pub fn wraith_ratchet_respond(
        identity: Object<wraith_identity_t>,
        prekeys: Locked<wraith_prekeys_t>,
        aad: Bytes,
        message: Bytes,
        out: Buffer,
        ratchet: Out<wraith_ratchet_t>,
    ) -> Outcome {
        out.room(message.len().saturating_sub(OVERHEAD_BYTES))?;
        add_started(Ratchet::respond(&identity, &mut prekeys, aad, message)?, ratchet, out)
    }

    /// Encrypts `text`. `aad` is not sent; decryption needs the same `aad`. Needs the room that
    /// `wraith_ratchet_room` returns. A ratchet in a vault is stored before this returns; save any
    /// other ratchet before the message leaves.
    pub fn wraith_ratchet_encrypt(
        ratchet: Locked<wraith_ratchet_t>,
        aad: Bytes,
        text: Bytes,
        out: Buffer,
    ) -> Outcome {
        out.room(room(text.len())?)?;
        let (mut rng, mut message) = (system_rng()?, Vec::new());
        ratchet.encrypt(&mut rng, aad, text, &mut message)?;
        out.write(&message)
    }

    /// Decrypts `message`. Needs room for `message_len - WRAITH_RATCHET_OVERHEAD`.
    /// `WRAITH_REPLAYED` if the message was decrypted before, `WRAITH_TOO_OLD` if it came too late.
    /// A ratchet in a vault is stored before this returns; save any other ratchet before you act on
    /// the text.
    pub fn wraith_ratchet_decrypt(
        ratchet: Locked<wraith_ratchet_t>,
        aad: Bytes,
        message: Bytes,
        out: Buffer,
    ) -> Outcome {
        out.room(message.len().saturating_sub(OVERHEAD_BYTES))?;
        // Allocated at full size: a growing buffer would leave copies of the text behind.
        let mut text = Zeroizing::new(Vec::with_capacity(message.len()));
        ratchet.decrypt(aad, message, &mut text)?;
        out.write(&text)
    }

    /// Returns the other side's NodeId: 32 bytes.
    pub fn wraith_ratchet_peer(ratchet: Locked<wraith_ratchet_t>, out: Buffer) -> Outcome {
        out.write(ratchet.peer().as_bytes())
    }

    /// Returns 32 bytes that are equal on both sides and unique to this conversation. Compare them
    /// over another channel.
    pub fn wraith_ratchet_binding(ratchet: Locked<wraith_ratchet_t>, out: Buffer) -> Outcome {
        out.write(ratchet.binding())
    }

    /// Sets whether message lengths are padded to buckets, for up to 12 % more bytes: 1 for yes, 0
    /// (the default) for no.
    pub fn wraith_ratchet_set_padding(ratchet: Locked<wraith_ratchet_t>, padding: u32) -> Outcome {
        let padding = switch(padding)?;
        ratchet.set_padding(padding);
        Ok(())
    }

    /// Sets the current time in milliseconds, from any fixed starting point. Keys of missing
    /// messages expire by it. Set it again after `wraith_ratchet_keep`, `wraith_ratchet_load` and
    /// `wraith_ratchet_restore`.
    pub fn wraith_ratchet_set_time(ratchet: Locked<wraith_ratchet_t>, now_ms: u64) -> Outcome {
        ratchet.set_time(Duration::from_millis(now_ms));
        Ok(())
    }

    /// Serializes the conversation, secrets included, without a checksum, for a caller without a
    /// vault. Prefer `wraith_ratchet_keep`. A conversation restored from bytes other than the
    /// latest must be started anew. `WRAITH_INVALID_STATE` if it is in a vault.
    pub fn wraith_ratchet_save(ratchet: Locked<wraith_ratchet_t>, out: Buffer) -> Outcome {
        not_kept(ratchet.is_kept())?;
        out.write(&ratchet.save())
    }

    /// Restores a conversation from saved bytes.
    pub fn wraith_ratchet_restore(saved: Bytes) -> Outcome<wraith_ratchet_t> {
        wraith_ratchet_t.add(Ratchet::restore(saved)?)
    }

    /// Frees the conversation and wipes its keys.
    pub fn wraith_ratchet_free(ratchet: wraith_ratchet_t) -> Outcome {
        wraith_ratchet_t.free(ratchet)
    }

    /// Encrypts `count` texts with the same `aad`, in this order, and writes the messages to `out`
    /// one after the other. `results`, an array of `count`, gets the position of each message.
    /// Needs the room that `wraith_ratchet_room` returns for each text.
    ///
    /// All texts are encrypted, or none: `failed`, which may be NULL, gets the index of the first
    /// that cannot be. A ratchet in a vault is stored once, before this returns.
    pub fn wraith_ratchet_encrypt_many(
        ratchet: wraith_ratchet_t,
        aad: Bytes,
        texts: Messages,
        out: Buffer,
        call: &Call,
        results: *mut wraith_ratchet_result_t,
        failed: OutOrNull<usize>,
    ) -> Outcome {
        let results = call.out_array(results, texts.len())?;
        let mut total = 0usize;
        for (index, text) in texts.iter().enumerate() {
            let one = room(text.len()).inspect_err(|_| write_wanted(failed.as_ref(), index))?;
            total = total.saturating_add(one);
        }
        out.room(total)?;
        let mut rng = system_rng()?;
        let ratchet = wraith_ratchet_t.hold(ratchet)?;
        let mut ratchet = ratchet.lock()?;
        let batch = ratchet.encrypt_many(&mut rng, aad, &texts);
        let batch = batch.inspect_err(|error| write_wanted(failed.as_ref(), error.index))?;
        let mut offset = 0;
        for (place, message) in results.iter().zip(batch.iter()) {
            let len = message.len();
            place.write(wraith_ratchet_result_t { status: WRAITH_OK, offset, len });
            offset += len;
        }
        out.write(&batch.iter().collect::<Vec<_>>().concat())
    }

    /// Decrypts `count` messages with the same `aad`, each independently. `results`, an array of
    /// `count`, gets the result of each message and the position of its text in `out`. Needs room
    /// for all messages less `WRAITH_RATCHET_OVERHEAD` bytes each.
    ///
    /// Of two equal messages, the first is decrypted. The call returns `WRAITH_OK` even if some
    /// messages fail. A ratchet in a vault is stored once, before this returns; if its vault fails,
    /// no message counts as decrypted.
    pub fn wraith_ratchet_decrypt_many(
        ratchet: wraith_ratchet_t,
        aad: Bytes,
        messages: Messages,
        out: Buffer,
        call: &Call,
        results: *mut wraith_ratchet_result_t,
    ) -> Outcome {
        let results = call.out_array(results, messages.len())?;
        let most = opened_bytes(&messages, OVERHEAD_BYTES);
        out.room(most)?;
        let ratchet = wraith_ratchet_t.hold(ratchet)?;
        let mut ratchet = ratchet.lock()?;
        let batch = ratchet.decrypt_many(aad, &messages)?;
        write_opened(&batch, most, &results, out, |status, _, offset, len| {
            wraith_ratchet_result_t { status, offset, len }
        })
    }
);
