//! Conversations whose sides are seldom there at the same time: the Double Ratchet with header encryption, hybrid with
//! ML-KEM-768, started from prekeys.

use std::sync::Mutex;
use std::time::Duration;

use wraith_session::ratchet::{
    DecryptError, EncryptError, MAX_PLAINTEXT_BYTES, OVERHEAD_BYTES, PreKeyBundle, Ratchet, padme,
};
use zeroize::Zeroizing;

use super::prekeys::{PREKEYS, wraith_prekeys_t};
use crate::border::entry;
use crate::files::node::switch;
use crate::identity::{self, wraith_identity_t};
use crate::random::generator;
use crate::status::wraith_status_t::*;
use crate::status::{Failure, Outcome, wraith_status_t};
use crate::table::{Kind, Table};

/// How much longer a message is than its text at least, in bytes.
pub const WRAITH_RATCHET_OVERHEAD: usize = 90;
const _: () = assert!(WRAITH_RATCHET_OVERHEAD == OVERHEAD_BYTES);
/// What the first messages have beside that until an answer comes, and those with a key of ML-KEM.
const INITIAL_BYTES: usize = 1161;
const KEM_PART_BYTES: usize = 1200;

/// One side of a conversation.
pub type wraith_ratchet_t = u64;

static RATCHETS: Table<Mutex<Ratchet>> = Table::new(Kind::Ratchet);

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

impl From<DecryptError> for Failure {
    fn from(error: DecryptError) -> Self {
        let status = match error {
            DecryptError::KeyGone => WRAITH_REPLAYED,
            DecryptError::TooManySkipped => WRAITH_EXHAUSTED,
            DecryptError::Violation => WRAITH_PROTOCOL,
            _ => WRAITH_UNAUTHENTIC,
        };
        Self::new(status, error.to_string())
    }
}

/// Room for the message of a text: what it is at most, since what rides along depends on the conversation.
fn room(text_len: usize) -> Outcome<usize> {
    match text_len <= MAX_PLAINTEXT_BYTES {
        true => Ok(OVERHEAD_BYTES + INITIAL_BYTES + KEM_PART_BYTES + padme(text_len + 1)),
        false => Err(EncryptError::TooLong.into()),
    }
}

/// The room that `wraith_ratchet_encrypt` wants for a text of `text_len` bytes; the message may be shorter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_room(
    text_len: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let place = call.place(out_len)?;
        place.put(room(text_len)?);
        Ok(())
    })
}

/// Starts a conversation with the owner of a published bundle, who may be away. Whether that is who you want to talk with:
/// `wraith_ratchet_peer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_initiate(
    identity: wraith_identity_t,
    bundle: *const u8,
    bundle_len: usize,
    out: *mut wraith_ratchet_t,
) -> wraith_status_t {
    entry!(|call| {
        let (bundle, place) =
            (PreKeyBundle::decode(call.bytes(bundle, bundle_len)?)?, call.place(out)?);
        let identity = identity::identity(identity)?;
        let ratchet = Ratchet::initiate(&mut *generator()?, &identity, &bundle)?;
        place.put(RATCHETS.insert(Mutex::new(ratchet))?);
        Ok(())
    })
}

/// The NodeId (32 bytes) of who sends `message`, if it is a first one; `WRAITH_NOT_FOUND` if not. Nothing is authentic yet.
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

/// Starts the conversation that `message` asks for, and opens it. Needs room for `message_len - WRAITH_RATCHET_OVERHEAD`. Its
/// one-time prekey is gone then. If there is a conversation with that side already, try `wraith_ratchet_decrypt` first.
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
        let (output, place) = (call.output(out, out_cap, out_len)?, call.place(ratchet)?);
        output.room(message.len().saturating_sub(OVERHEAD_BYTES))?;
        let identity = identity::identity(identity)?;
        let (ratchet, text) = PREKEYS
            .with(prekeys, |prekeys| Ok(Ratchet::respond(&identity, prekeys, aad, message)?))?;
        let text = Zeroizing::new(text);
        place.put(RATCHETS.insert(Mutex::new(ratchet))?);
        output.write(&text)
    })
}

/// Encrypts `text`. `aad` is not sent, and has to be the same when it is decrypted. Needs the room that `wraith_ratchet_room`
/// says. Save the ratchet before the message leaves.
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
        let message = RATCHETS.with(ratchet, |ratchet| {
            let mut message = Vec::new();
            ratchet.encrypt(&mut *generator, aad, text, &mut message)?;
            Ok(message)
        })?;
        output.write(&message)
    })
}

/// Decrypts `message`. Needs room for `message_len - WRAITH_RATCHET_OVERHEAD`. `WRAITH_REPLAYED` if it was decrypted before,
/// or came too late. Save the ratchet before what the message says is acted on.
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
        let text = RATCHETS.with(ratchet, |ratchet| {
            let mut text = Zeroizing::new(Vec::new());
            ratchet.decrypt(aad, message, &mut text)?;
            Ok(text)
        })?;
        output.write(&text)
    })
}

/// The other side's NodeId: 32 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_peer(
    ratchet: wraith_ratchet_t,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let output = call.output(out, out_cap, out_len)?;
        RATCHETS.with(ratchet, |ratchet| output.write(ratchet.peer().as_bytes()))
    })
}

/// 32 bytes that both sides of this conversation have and no other one has, to be compared over another medium.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_binding(
    ratchet: wraith_ratchet_t,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let output = call.output(out, out_cap, out_len)?;
        RATCHETS.with(ratchet, |ratchet| output.write(ratchet.binding()))
    })
}

/// 1 if lengths are to be hidden in buckets, for up to 12 % more bytes; 0, as at first, if not.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_ratchet_set_padding(
    ratchet: wraith_ratchet_t,
    padding: u32,
) -> wraith_status_t {
    entry!(|_call| {
        let padding = switch(padding)?;
        RATCHETS.with(ratchet, |ratchet| {
            ratchet.set_padding(padding);
            Ok(())
        })
    })
}

/// Tells the time in milliseconds, from any beginning that stays the same: keys of missing messages expire by it.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_ratchet_set_time(
    ratchet: wraith_ratchet_t,
    now_ms: u64,
) -> wraith_status_t {
    entry!(|_call| {
        RATCHETS.with(ratchet, |ratchet| {
            ratchet.set_time(Duration::from_millis(now_ms));
            Ok(())
        })
    })
}

/// The conversation as bytes, secrets included, without a checksum. One that is restored from older bytes than the last has
/// to be started anew.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_save(
    ratchet: wraith_ratchet_t,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let output = call.output(out, out_cap, out_len)?;
        RATCHETS.with(ratchet, |ratchet| output.write(&ratchet.save()))
    })
}

/// The conversation of these bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_restore(
    saved: *const u8,
    saved_len: usize,
    out: *mut wraith_ratchet_t,
) -> wraith_status_t {
    entry!(|call| {
        let (saved, place) = (call.bytes(saved, saved_len)?, call.place(out)?);
        place.put(RATCHETS.insert(Mutex::new(Ratchet::restore(saved)?))?);
        Ok(())
    })
}

/// Frees it, and wipes its keys.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_ratchet_free(ratchet: wraith_ratchet_t) -> wraith_status_t {
    entry!(|_call| RATCHETS.remove(ratchet).map(drop))
}
