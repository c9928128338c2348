//! Results of batches of messages, in the caller's buffers.

use wraith_session::OpenedBatch;
use zeroize::Zeroizing;

use crate::border::{OutPtr, Output, Plain};
use crate::status::wraith_status_t::WRAITH_OK;
use crate::status::{Failure, Outcome, wraith_status_t};

/// Returns the bytes of all messages less the overhead of each.
pub(super) fn opened_bytes(messages: &[&[u8]], overhead: usize) -> usize {
    let text_len = |message: &&[u8]| message.len().saturating_sub(overhead);
    messages.iter().map(text_len).fold(0, usize::saturating_add)
}

/// Writes the result of each message, and the texts one after the other: at most `most` bytes.
/// `result` makes a result of the status, the number, and the position of the text.
pub(super) fn write_opened<E: Clone + Into<Failure>, R: Plain>(
    batch: &OpenedBatch<E>,
    most: usize,
    results: &[OutPtr<'_, R>],
    out: Output<'_>,
    result: impl Fn(wraith_status_t, u64, usize, usize) -> R,
) -> Outcome {
    // Allocated at full size: a growing buffer would leave copies of the text behind.
    let mut texts = Zeroizing::new(Vec::with_capacity(most));
    for (place, opened) in results.iter().zip(batch.iter()) {
        let offset = texts.len();
        place.write(match opened {
            Ok((number, text)) => {
                texts.extend_from_slice(text);
                result(WRAITH_OK, number, offset, text.len())
            }
            Err(why) => result(why.into().status, 0, offset, 0),
        });
    }
    out.write(&texts)
}
