//! Rows for operations on a text: hash functions, ciphers, authentication codes.

use std::convert::Infallible;
use std::hint::black_box;

use wraith_suite::mac::{self, SipHash};
use wraith_suite::{cipher, hash};

use super::{Row, Work, key, repeated};

pub fn rows(bytes: u32, rows: &mut Vec<Row>) {
    hashes(bytes, rows);
    ciphers(bytes, rows);
    super::aead::rows(bytes, rows);
    macs(bytes, rows);
}

fn hashes(bytes: u32, rows: &mut Vec<Row>) {
    let len = bytes as usize;
    for &algorithm in hash::Algorithm::ALL {
        let make = move || {
            let (text, mut out) = (vec![0; len], [0; hash::DIGEST_MAX]);
            let out_bytes = algorithm.digest_bytes();
            repeated(move || {
                let mut hasher = algorithm.hasher();
                hasher.update(black_box(&text));
                hasher.finish_into(&mut out[..out_bytes]);
                Ok::<_, Infallible>(black_box(out))
            })
        };
        let name = format!("{algorithm} hash");
        rows.push(Row::new(name, Some(bytes), "one text", &algorithm.backend(), make));
    }
    /// Hashes a text into an output of the same length.
    macro_rules! extend {
        ($($name:ident),+) => { $({
            let make = move || {
                let (text, mut out) = (vec![0; len], vec![0; len]);
                repeated(move || {
                    let mut hash = hash::$name::new();
                    hash.update(black_box(&text));
                    hash.finish(black_box(&mut out));
                    Ok::<_, Infallible>(())
                })
            };
            let algorithm = hash::Algorithm::$name;
            let (name, scope) =
                (format!("{algorithm} hash, long output"), "one text, and as many bytes of digest");
            rows.push(Row::new(name, Some(bytes), scope, &algorithm.backend(), make));
        })+ };
    }
    extend!(Shake128, Shake256);
}

fn ciphers(bytes: u32, rows: &mut Vec<Row>) {
    let len = bytes as usize;
    for &algorithm in cipher::Algorithm::ALL {
        for is_encrypt in [true, false] {
            let operation = if is_encrypt { "encrypt" } else { "decrypt" };
            let crypt = move |cipher: &mut dyn cipher::Cipher, text: &mut [u8]| match is_encrypt {
                true => cipher.encrypt(black_box(text)),
                false => cipher.decrypt(black_box(text)),
            };
            let make = move || {
                let (mut text, iv) = (vec![0; len], key(algorithm.iv_bytes()));
                let started = algorithm.start(&key(algorithm.key_bytes()), &iv);
                let mut cipher = started.map_err(|error| error.to_string())?;
                repeated(move || crypt(&mut *cipher, &mut text))
            };
            let (name, scope) =
                (format!("{algorithm} {operation}"), "the next piece of a text, in place");
            rows.push(Row::new(name, Some(bytes), scope, &algorithm.backend(), make));

            let anew = move || {
                let (text, iv) = (vec![0; len], key(algorithm.iv_bytes()));
                let key = key(algorithm.key_bytes());
                repeated(move || {
                    let mut cipher = algorithm.start(black_box(&key), &iv)?;
                    let mut copy = black_box(&text).clone();
                    crypt(&mut *cipher, &mut copy).map(|()| copy)
                })
            };
            let name = format!("{algorithm} {operation}, new key");
            let scope = "a key set up, and one text into new memory";
            rows.push(Row::new(name, Some(bytes), scope, &algorithm.backend(), anew));
        }
    }
}

fn macs(bytes: u32, rows: &mut Vec<Row>) {
    let len = bytes as usize;
    for &algorithm in mac::Algorithm::ALL {
        let make = move || match algorithm {
            // For a text of 64 bytes, the lookup of a key by name would take longer than the hash.
            mac::Algorithm::SipHash64 => short(len, SipHash::tag_64),
            mac::Algorithm::SipHash128 => short(len, SipHash::tag_128),
            _ => mac_by_name(algorithm, len),
        };
        let (name, scope) = (format!("{algorithm} mac"), "one text with a new key");
        rows.push(Row::new(name, Some(bytes), scope, &algorithm.backend(), make));
    }
}

fn mac_by_name(algorithm: mac::Algorithm, len: usize) -> Result<Work, String> {
    let (text, mut tag) = (vec![0; len], [0; mac::TAG_MAX]);
    let key = key(algorithm.key_bytes().unwrap_or(algorithm.tag_bytes()));
    let nonce = vec![0; algorithm.nonce_bytes()];
    repeated(move || {
        let mut mac = algorithm.start(&key, &nonce)?;
        mac.update(black_box(&text));
        mac.finish_into(&mut tag);
        Ok::<_, mac::MacError>(black_box(tag))
    })
}

/// Measures SipHash through its own type.
fn short<T: 'static>(
    len: usize,
    tag: impl Fn(&[u8; 16], &[u8]) -> T + 'static,
) -> Result<Work, String> {
    let text = vec![0; len];
    repeated(move || Ok::<_, Infallible>(tag(black_box(&[7; 16]), black_box(&text))))
}
