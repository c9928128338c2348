//! Batches of messages of a conversation. A batch takes the lock of the conversation once. If the
//! conversation is in a vault, the batch stores it once.

use wraith_session::StoreError;
use wraith_session::ratchet::{EncryptBatchError, OVERHEAD_BYTES};
use zeroize::Zeroizing;

use super::ratchet::{RATCHETS, of_decrypt, room, wraith_ratchet_t};
use super::session::bounded;
use crate::border::{OutPtr, Plain, entry};
use crate::bytes::wraith_bytes_t;
use crate::random::generator;
use crate::status::wraith_status_t::WRAITH_OK;
use crate::status::{Failure, Outcome, wraith_status_t};

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

/// Writes the index of the failed message, if the caller wants it.
fn write_failed_index(failed: Option<&OutPtr<'_, usize>>, index: usize) {
    if let Some(failed) = failed {
        failed.write(index);
    }
}

/// Returns the room for the messages of `texts`.
fn total_room(texts: &[&[u8]], failed: Option<&OutPtr<'_, usize>>) -> Outcome<usize> {
    let mut total = 0usize;
    for (index, text) in texts.iter().enumerate() {
        let one = room(text.len()).inspect_err(|_| write_failed_index(failed, index))?;
        total = total.saturating_add(one);
    }
    Ok(total)
}

/// Encrypts `count` texts with the same `aad`, in this order, and writes the messages to `out` one
/// after the other. `results`, an array of `count`, gets the position of each message. Needs the
/// room that `wraith_ratchet_room` returns for each text.
///
/// All texts are encrypted, or none: `failed`, which may be NULL, gets the index of the first that
/// cannot be. A ratchet in a vault is stored once, before this returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_encrypt_many(
    ratchet: wraith_ratchet_t,
    aad: *const u8,
    aad_len: usize,
    texts: *const wraith_bytes_t,
    count: usize,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
    results: *mut wraith_ratchet_result_t,
    failed: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let aad = call.bytes(aad, aad_len)?;
        let (output, failed) = (call.output(out, out_cap, out_len)?, call.out_or_null(failed)?);
        let texts = call.slices(texts, bounded(count)?)?;
        let results = call.out_array(results, count)?;
        output.room(total_room(&texts, failed.as_ref())?)?;
        let mut generator = generator()?;
        RATCHETS.with(ratchet, |kept| {
            let batch = kept.encrypt_many(&mut *generator, aad, &texts).map_err(|error| {
                if let StoreError::EncryptBatch(EncryptBatchError { index, .. }) = &error {
                    write_failed_index(failed.as_ref(), *index);
                }
                Failure::from(error)
            })?;
            let mut offset = 0;
            for (out, message) in results.iter().zip(batch.iter()) {
                let len = message.len();
                out.write(wraith_ratchet_result_t { status: WRAITH_OK, offset, len });
                offset += len;
            }
            output.write(&batch.iter().collect::<Vec<_>>().concat())
        })
    })
}

/// Decrypts `count` messages with the same `aad`, each independently. `results`, an array of
/// `count`, gets the result of each message and the position of its text in `out`. Needs room for
/// all messages less `WRAITH_RATCHET_OVERHEAD` bytes each.
///
/// Of two equal messages, the first is decrypted. The call returns `WRAITH_OK` even if some
/// messages fail. A ratchet in a vault is stored once, before this returns; if its vault fails, no
/// message counts as decrypted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_decrypt_many(
    ratchet: wraith_ratchet_t,
    aad: *const u8,
    aad_len: usize,
    messages: *const wraith_bytes_t,
    count: usize,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
    results: *mut wraith_ratchet_result_t,
) -> wraith_status_t {
    entry!(|call| {
        let (aad, output) = (call.bytes(aad, aad_len)?, call.output(out, out_cap, out_len)?);
        let messages = call.slices(messages, bounded(count)?)?;
        let results = call.out_array(results, count)?;
        let text_len = |message: &&[u8]| message.len().saturating_sub(OVERHEAD_BYTES);
        let most = messages.iter().map(text_len).fold(0, usize::saturating_add);
        output.room(most)?;
        RATCHETS.with(ratchet, |kept| {
            let batch = kept.decrypt_many(aad, &messages)?;
            // Allocated at full size: a growing buffer would leave copies of the text behind.
            let mut texts = Zeroizing::new(Vec::with_capacity(most));
            for (out, result) in results.iter().zip(batch.iter()) {
                let offset = texts.len();
                out.write(match result {
                    Ok(text) => {
                        texts.extend_from_slice(text);
                        wraith_ratchet_result_t { status: WRAITH_OK, offset, len: text.len() }
                    }
                    Err(why) => wraith_ratchet_result_t { status: of_decrypt(why), offset, len: 0 },
                });
            }
            output.write(&texts)
        })
    })
}
