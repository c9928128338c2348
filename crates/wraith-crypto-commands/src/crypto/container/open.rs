//! Decryption. Each chunk is verified before its plaintext is released; a chunk that fails releases
//! nothing.

use wraith_suite::aead::Algorithm;
use zeroize::Zeroizing;

use super::super::input::Input;
use super::super::output::Output;
use super::{CHUNK_BYTES, Chunks, OpenError, TAG_BYTES, Unlock, head};

/// Length of a chunk with its tag.
const SEALED_BYTES: usize = CHUNK_BYTES + TAG_BYTES;

/// Decrypts all of `input`. Returns its AEAD.
pub fn open(with: &Unlock, input: &mut Input, output: &mut Output) -> Result<Algorithm, OpenError> {
    let (algorithm, mut chunks) = head::read(input, with)?;
    let mut sealed = Zeroizing::new(vec![0; SEALED_BYTES]);
    let mut next = Zeroizing::new(vec![0; SEALED_BYTES]);
    let mut text_bytes = 0;
    let mut filled = input.fill(&mut sealed)?;
    loop {
        let behind = if filled < SEALED_BYTES { 0 } else { input.fill(&mut next)? };
        let is_last = behind == 0;
        let text = chunk(&mut chunks, &mut sealed[..filled], is_last, text_bytes)?;
        output.write(text)?;
        text_bytes += text.len() as u64;
        // Continue even if the reader has closed the pipe, because the result of the verification
        // is still reported.
        if is_last {
            return Ok(algorithm);
        }
        std::mem::swap(&mut sealed, &mut next);
        filled = behind;
    }
}

/// Decrypts the next chunk, which follows `text_bytes` of plaintext.
fn chunk<'a>(
    chunks: &mut Chunks,
    sealed: &'a mut [u8],
    is_last: bool,
    text_bytes: u64,
) -> Result<&'a [u8], OpenError> {
    let damaged = OpenError::Damaged { text_bytes };
    let cut_off = OpenError::CutOff { text_bytes };
    let len = sealed.len().checked_sub(TAG_BYTES).ok_or(OpenError::CutOff { text_bytes })?;
    // No encryptor writes an empty chunk behind others.
    if len == 0 && text_bytes > 0 {
        return Err(damaged);
    }
    let copy = if is_last { sealed.to_vec() } else { Vec::new() };
    let (text, tag) = sealed.split_at_mut(len);
    let nonce = chunks.nonce(is_last).ok_or(OpenError::Damaged { text_bytes })?.to_vec();
    if chunks.key.open_detached(&nonce, &[], text, tag).is_ok() {
        chunks.advance();
        return Ok(text);
    }
    // A valid full chunk without the mark of the last one: the end of the file is missing.
    if is_last && len == CHUNK_BYTES {
        let nonce = chunks.nonce(false).ok_or(OpenError::Damaged { text_bytes })?.to_vec();
        if chunks.key.open(&nonce, &[], &copy).is_ok() {
            return Err(cut_off);
        }
    }
    // A shorter damaged chunk may just have lost its end; the two cases look alike.
    Err(damaged)
}
