//! Rows for authenticated encryption. Each direction has two rows, because some other benchmarks
//! measure the first and some the second. The first has a prepared key and the associated data of a
//! TLS record. The second has a new key and more associated data.

use std::hint::black_box;
use std::time::{Duration, Instant};

use wraith_suite::aead::{Aead, AeadError, Algorithm};

use super::{Row, Work, key, repeated};

/// Total bytes of the texts prepared at once, for operations that need a new text each time. They
/// stay in the L2 cache.
const TEXTS_BYTES: usize = 256 << 10;
/// Associated data of a TLS 1.2 record, as in `openssl speed -aead`.
const RECORD_AAD: [u8; 13] = [0x17; 13];
/// Associated data for rows with a new key, as long as in the benchmark of openHiTLS.
const LONG_AAD: [u8; 128] = [0x17; 128];

/// The parts of the measured time besides the text.
#[derive(Clone, Copy)]
enum MeasuredParts {
    Record,
    NewKey,
}

impl MeasuredParts {
    const fn aad(self) -> &'static [u8] {
        match self {
            Self::Record => &RECORD_AAD,
            Self::NewKey => &LONG_AAD,
        }
    }

    /// Returns the suffix of the operation's name.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Record => "",
            Self::NewKey => ", new key",
        }
    }
}

/// A prepared key, or a key that is set up each time.
struct Keys {
    algorithm: Algorithm,
    raw: Vec<u8>,
    ready: Box<dyn Aead>,
    beside: MeasuredParts,
}

impl Keys {
    fn new(algorithm: Algorithm, beside: MeasuredParts) -> Result<Self, String> {
        let raw = key(algorithm.key_bytes());
        let ready = algorithm.key(&raw).map_err(|error| error.to_string())?;
        Ok(Self { algorithm, raw, ready, beside })
    }

    /// Runs `work` with the key.
    fn with<T>(
        &self,
        work: impl FnOnce(&dyn Aead) -> Result<T, AeadError>,
    ) -> Result<T, AeadError> {
        match self.beside {
            MeasuredParts::Record => work(&*self.ready),
            MeasuredParts::NewKey => work(&*self.algorithm.key(black_box(&self.raw))?),
        }
    }
}

pub fn rows(bytes: u32, rows: &mut Vec<Row>) {
    let len = bytes as usize;
    for &algorithm in Algorithm::ALL {
        let backend = algorithm.backend();
        for beside in [MeasuredParts::Record, MeasuredParts::NewKey] {
            let name = format!("{algorithm} encrypt{}", beside.suffix());
            let scope = match beside {
                MeasuredParts::Record => {
                    "13 bytes of associated data, one text in place, and its tag"
                }
                MeasuredParts::NewKey => {
                    "a key set up, 128 bytes of associated data, one text in place, and its tag"
                }
            };
            let seal = move || sealing(algorithm, beside, len);
            rows.push(Row::new(name, Some(bytes), scope, &backend, seal));
            let name = format!("{algorithm} decrypt{}", beside.suffix());
            let scope = match beside {
                MeasuredParts::Record => "13 bytes of associated data, one text in place, verified",
                MeasuredParts::NewKey => {
                    "a key set up, 128 bytes of associated data, one text in place, verified"
                }
            };
            let open = move || opening(algorithm, beside, len);
            rows.push(Row::new(name, Some(bytes), scope, &backend, open));
        }
    }
}

fn sealing(algorithm: Algorithm, beside: MeasuredParts, len: usize) -> Result<Work, String> {
    let (mut text, mut tag) = (vec![0; len], vec![0; algorithm.tag_bytes()]);
    let nonce = vec![0; algorithm.nonce_bytes()];
    let keys = Keys::new(algorithm, beside)?;
    repeated(move || {
        keys.with(|key| key.seal_detached(&nonce, beside.aad(), black_box(&mut text), &mut tag))
    })
}

/// Measures opening. Sealing the texts, all with one nonce, is not measured. Each text must be
/// sealed again, because an opened one cannot be opened again.
fn opening(algorithm: Algorithm, beside: MeasuredParts, len: usize) -> Result<Work, String> {
    let nonce = vec![0; algorithm.nonce_bytes()];
    let keys = Keys::new(algorithm, beside)?;
    let count = (TEXTS_BYTES / len.max(1)).clamp(1, 64);
    let text = (vec![0; len], vec![0; algorithm.tag_bytes()]);
    let mut texts = vec![text; count];
    Ok(Box::new(move |n| {
        let (mut total, mut left) = (Duration::ZERO, n);
        while left > 0 {
            let some = count.min(usize::try_from(left).unwrap_or(count));
            for (text, tag) in &mut texts[..some] {
                let sealed = keys.ready.seal_detached(&nonce, beside.aad(), text, tag);
                sealed.expect("lengths are the algorithm's");
            }
            let begin = Instant::now();
            for (text, tag) in &mut texts[..some] {
                let opened =
                    keys.with(|key| key.open_detached(&nonce, beside.aad(), black_box(text), tag));
                opened.expect("it was sealed just now");
            }
            total += begin.elapsed();
            left -= some as u64;
        }
        total
    }))
}
