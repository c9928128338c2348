//! Rows about a text: hash functions, ciphers, AEADs, authentication codes.

use std::convert::Infallible;
use std::hint::black_box;
use std::time::{Duration, Instant};

use wraith_crypto::{aead, cipher, hash, mac};

use super::{Row, Work, repeated};

/// Where a text has to be new each time, so many bytes of texts are made at once: they stay in the second cache.
const TEXTS_BYTES: usize = 256 << 10;

/// Not all zeros, so that the halves of a key of XTS differ.
fn key(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 7 + 1) as u8).collect()
}

pub fn rows(bytes: u32, rows: &mut Vec<Row>) {
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
    for &algorithm in cipher::Algorithm::ALL {
        for is_encrypt in [true, false] {
            let operation = if is_encrypt { "encrypt" } else { "decrypt" };
            let make = move || {
                let (mut text, iv) = (vec![0; len], key(algorithm.iv_bytes()));
                let started = algorithm.start(&key(algorithm.key_bytes()), &iv);
                let mut cipher = started.map_err(|error| error.to_string())?;
                repeated(move || match is_encrypt {
                    true => cipher.encrypt(black_box(&mut text)),
                    false => cipher.decrypt(black_box(&mut text)),
                })
            };
            let (name, scope) =
                (format!("{algorithm} {operation}"), "the next piece of a text, in place");
            rows.push(Row::new(name, Some(bytes), scope, &algorithm.backend(), make));
        }
    }
    aeads(bytes, rows);
    for &algorithm in mac::Algorithm::ALL {
        let make = move || {
            let (text, mut tag) = (vec![0; len], [0; mac::TAG_MAX]);
            let key = key(algorithm.key_bytes().unwrap_or(algorithm.tag_bytes()));
            let nonce = vec![0; algorithm.nonce_bytes()];
            repeated(move || {
                let mut mac = algorithm.start(&key, &nonce)?;
                mac.update(black_box(&text));
                mac.finish_into(&mut tag);
                Ok::<_, mac::MacError>(black_box(tag))
            })
        };
        let (name, scope) = (format!("{algorithm} mac"), "one text with a new key");
        rows.push(Row::new(name, Some(bytes), scope, &algorithm.backend(), make));
    }
}

fn aeads(bytes: u32, rows: &mut Vec<Row>) {
    let len = bytes as usize;
    for &algorithm in aead::Algorithm::ALL {
        let backend = algorithm.backend();
        let encrypt = move || {
            let (mut text, mut tag) = (vec![0; len], vec![0; algorithm.tag_bytes()]);
            let nonce = vec![0; algorithm.nonce_bytes()];
            let key = algorithm.key(&key(algorithm.key_bytes())).map_err(|e| e.to_string())?;
            repeated(move || key.seal_detached(&nonce, &[], black_box(&mut text), &mut tag))
        };
        let (name, scope) = (format!("{algorithm} encrypt"), "one text in place, and its tag");
        rows.push(Row::new(name, Some(bytes), scope, &backend, encrypt));

        let (name, scope) = (format!("{algorithm} decrypt"), "one text in place, verified");
        rows.push(Row::new(name, Some(bytes), scope, &backend, move || opening(algorithm, len)));

        let anew = move || {
            let (mut text, mut tag) = (vec![0; len], vec![0; algorithm.tag_bytes()]);
            let (nonce, key) = (vec![0; algorithm.nonce_bytes()], key(algorithm.key_bytes()));
            repeated(move || {
                let key = algorithm.key(black_box(&key))?;
                key.seal_detached(&nonce, &[], black_box(&mut text), &mut tag)
            })
        };
        let name = format!("{algorithm} encrypt, new key");
        let scope = "a key set up, one text in place, and its tag";
        rows.push(Row::new(name, Some(bytes), scope, &backend, anew));
    }
}

/// Opens texts that are sealed, all with one nonce, outside of the time: opened ones do not open again.
fn opening(algorithm: aead::Algorithm, len: usize) -> Result<Work, String> {
    let nonce = vec![0; algorithm.nonce_bytes()];
    let key = algorithm.key(&key(algorithm.key_bytes())).map_err(|error| error.to_string())?;
    let count = (TEXTS_BYTES / len.max(1)).clamp(1, 64);
    let text = (vec![0; len], vec![0; algorithm.tag_bytes()]);
    let mut texts = vec![text; count];
    Ok(Box::new(move |n| {
        let (mut total, mut left) = (Duration::ZERO, n);
        while left > 0 {
            let some = count.min(usize::try_from(left).unwrap_or(count));
            for (text, tag) in &mut texts[..some] {
                let sealed = key.seal_detached(&nonce, &[], text, tag);
                sealed.expect("lengths are the algorithm's");
            }
            let begin = Instant::now();
            for (text, tag) in &mut texts[..some] {
                let opened = key.open_detached(&nonce, &[], black_box(text), tag);
                opened.expect("it was sealed just now");
            }
            total += begin.elapsed();
            left -= some as u64;
        }
        total
    }))
}
