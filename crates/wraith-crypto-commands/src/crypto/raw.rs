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

    fn is_unit(&self) -> bool {
        matches!(self.algorithm, Algorithm::Aes128Xts | Algorithm::Aes256Xts | Algorithm::Sm4Xts)
    }
}

pub fn encrypt(job: &CipherJob<'_>, input: &mut Input, output: &mut Output) -> Result<(), Failure> {
    let mut cipher = job.start()?;
    if job.is_unit() {
        let mut text = unit(job, input)?;
        cipher.encrypt(&mut text).map_err(of_text)?;
        return output.write(&text);
    }
    let pads = job.pads && job.algorithm.wants_whole_blocks();
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
    let mut cipher = job.start()?;
    if job.is_unit() {
        let mut text = unit(job, input)?;
        cipher.decrypt(&mut text).map_err(of_text)?;
        return output.write(&text);
    }
    let pads = job.pads && job.algorithm.wants_whole_blocks();
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

/// Reads the whole text as one data unit.
fn unit(job: &CipherJob<'_>, input: &mut Input) -> Result<Zeroizing<Vec<u8>>, Failure> {
    input.all(UNIT_MAX)?.ok_or_else(|| {
        let message = format!("{} encrypts one data unit of at most 16 MiB", job.algorithm);
        Failure::new(Exit::Usage, message).hint("use a mode for any length: AES-256-CTR")
    })
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
