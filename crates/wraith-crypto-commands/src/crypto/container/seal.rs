//! Encryption: writes the header, then the chunks while it reads.

use wraith_suite::aead::Algorithm;
use zeroize::Zeroizing;

use super::super::input::Input;
use super::super::output::Output;
use super::{CHUNK_BYTES, Recipient, SealError, TAG_BYTES, head};

/// Encrypts all of `input`.
pub fn seal(
    algorithm: Algorithm,
    to: &Recipient,
    input: &mut Input,
    output: &mut Output,
) -> Result<(), SealError> {
    let (head, mut chunks) = head::make(algorithm, to)?;
    output.write(&head)?;
    let mut text = Zeroizing::new(vec![0; CHUNK_BYTES]);
    let mut next = Zeroizing::new(vec![0; CHUNK_BYTES]);
    let mut filled = input.fill(&mut text)?;
    loop {
        // Reads ahead, because only the following data shows whether this chunk is the last.
        let behind = if filled < CHUNK_BYTES { 0 } else { input.fill(&mut next)? };
        let is_last = behind == 0;
        let mut tag = [0; TAG_BYTES];
        let nonce = chunks.nonce(is_last).ok_or(SealError::TooLong)?.to_vec();
        let sealed = chunks.key.seal_detached(&nonce, &[], &mut text[..filled], &mut tag);
        sealed.map_err(|_| SealError::Failed)?;
        chunks.advance();
        output.write(&text[..filled])?;
        output.write(&tag)?;
        if is_last || output.is_gone() {
            return Ok(());
        }
        std::mem::swap(&mut text, &mut next);
        filled = behind;
    }
}
