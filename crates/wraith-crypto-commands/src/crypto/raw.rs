//! A cipher without authentication, compatible with other programs: no salt, no header, no tag.
//! Changes of its output are not detected.
//!
//! ECB and CBC use PKCS #7 padding. XTS takes the whole text as one data unit.

use wraith_suite::cipher::{self, Algorithm, BLOCK_BYTES, Cipher, CipherError};
use zeroize::Zeroizing;

use super::input::Input;
use super::output::Output;
use crate::failure::{Exit, Failure};

/// Bytes processed at once; a multiple of the block length.
const PIECE_BYTES: usize = 1 << 16;
/// Maximum length of an XTS data unit in bytes.
const UNIT_MAX: u64 = 16 << 20;

/// The parameters of one encryption or decryption.
pub struct CipherJob<'a> {
    pub algorithm: Algorithm,
    pub key: &'a [u8],
    pub iv: &'a [u8],
    /// Whether a text of whole blocks is padded.
    pub pads: bool,
}

impl CipherJob<'_> {
    /// Checks the lengths of key and IV, before any read or write.
    pub fn check(&self) -> Result<(), Failure> {
        self.start().map(drop)
    }

    /// Starts the cipher for a stream. A mode of data units gets the whole text as one unit,
    /// applies `to_unit` to it, and has no stream.
    fn stream(
        &self,
        input: &mut Input,
        output: &mut Output,
        to_unit: impl FnOnce(&mut dyn Cipher, &mut [u8]) -> Result<(), CipherError>,
    ) -> Result<Option<Box<dyn Cipher>>, Failure> {
        let mut cipher = self.start()?;
        if !matches!(
            self.algorithm,
            Algorithm::Aes128Xts | Algorithm::Aes256Xts | Algorithm::Sm4Xts
        ) {
            return Ok(Some(cipher));
        }
        let mut text = input.all(UNIT_MAX)?.ok_or_else(|| {
            let message = format!("{} encrypts one data unit of at most 16 MiB", self.algorithm);
            Failure::new(Exit::Usage, message).hint("use a mode for any length: AES-256-CTR")
        })?;
        to_unit(&mut *cipher, &mut text).map_err(of_text)?;
        output.write(&text)?;
        Ok(None)
    }

    fn start(&self) -> Result<Box<dyn Cipher>, Failure> {
        self.algorithm.start(self.key, self.iv).map_err(|error| {
            let hint = match error {
                CipherError::IvLength { algorithm, .. } if algorithm.iv_bytes() == 0 => {
                    "leave --iv out"
                }
                CipherError::IvLength { .. } => "--iv HEX",
                _ => "wraith crypto genkey NAME -o FILE makes a key of the right length",
            };
            Failure::new(Exit::Usage, error.to_string()).hint(hint)
        })
    }

    fn pads_blocks(&self) -> bool {
        self.pads && self.algorithm.wants_whole_blocks()
    }
}

pub fn encrypt(job: &CipherJob<'_>, input: &mut Input, output: &mut Output) -> Result<(), Failure> {
    let cipher = job.stream(input, output, |cipher, unit| cipher.encrypt(unit))?;
    let Some(mut cipher) = cipher else { return Ok(()) };
    let pads = job.pads_blocks();
    let mut piece = Zeroizing::new(Vec::with_capacity(PIECE_BYTES + BLOCK_BYTES));
    loop {
        piece.resize(PIECE_BYTES, 0);
        let filled = input.fill(&mut piece)?;
        piece.truncate(filled);
        let is_last = filled < PIECE_BYTES;
        if is_last && pads {
            cipher::pad(&mut piece);
        }
        cipher.encrypt(&mut piece).map_err(|error| match job.pads {
            true => of_text(error),
            false => of_text(error).hint("leave --no-padding out, or use a text of whole blocks"),
        })?;
        output.write(&piece)?;
        if is_last || output.is_gone() {
            return Ok(());
        }
    }
}

pub fn decrypt(job: &CipherJob<'_>, input: &mut Input, output: &mut Output) -> Result<(), Failure> {
    let cipher = job.stream(input, output, |cipher, unit| cipher.decrypt(unit))?;
    let Some(mut cipher) = cipher else { return Ok(()) };
    let pads = job.pads_blocks();
    // The last block may hold padding, so it waits for the data behind it.
    let mut waiting = Zeroizing::new(Vec::with_capacity(PIECE_BYTES + BLOCK_BYTES));
    let mut piece = Zeroizing::new(vec![0; PIECE_BYTES]);
    loop {
        let filled = input.fill(&mut piece)?;
        cipher.decrypt(&mut piece[..filled]).map_err(of_text)?;
        waiting.extend_from_slice(&piece[..filled]);
        if filled < PIECE_BYTES || output.is_gone() {
            break;
        }
        let sure = waiting.len() - if pads { BLOCK_BYTES } else { 0 };
        output.write(&waiting[..sure])?;
        waiting.drain(..sure);
    }
    if output.is_gone() {
        // The reader has closed the pipe, so the buffered data is not the end.
        return Ok(());
    }
    if pads {
        let len = cipher::unpadded_len(&waiting).map_err(of_text)?;
        waiting.truncate(len);
    }
    output.write(&waiting)
}

fn of_text(error: CipherError) -> Failure {
    match error {
        CipherError::Padding => Failure::new(Exit::Verification, error.to_string())
            .hint("use the key and IV that encrypted it, or get the file again"),
        _ => {
            Failure::new(Exit::Verification, error.to_string()).hint("get the complete text again")
        }
    }
}
