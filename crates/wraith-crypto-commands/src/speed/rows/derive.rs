//! Rows for key derivation from secrets and passwords, and for random bytes.

use std::hint::black_box;
use std::num::NonZeroU32;

use wraith_suite::hash::{Algorithm, Sha256};
use wraith_suite::kdf::{Argon2Params, ScryptParams, argon2id, hkdf, pbkdf2, scrypt};
use wraith_suite::rand::{self, CtrDrbg, Drbg, DrbgError, HashDrbg, HmacDrbg};
use wraith_suite::{Backend, mac};

use super::{Row, repeated};

const SECRET: [u8; 32] = [0x42; 32];
const SALT: [u8; 16] = [0x24; 16];
const PASSWORD: &[u8] = b"correct horse battery staple";

pub fn rows(rows: &mut Vec<Row>) {
    let hmac = mac::Algorithm::HmacSha256.backend();
    for bytes in [32, 64] {
        let make = move || {
            let mut out = vec![0; bytes];
            repeated(move || hkdf(Algorithm::Sha256, &SALT, black_box(&SECRET), b"", &mut out))
        };
        let (name, scope) = (format!("HKDF-SHA-256 {bytes} bytes"), "extract and expand");
        rows.push(Row::new(name, None, scope, &hmac, make));
    }
    for iterations in [1000, 10_000] {
        let make = move || {
            let mut out = [0; 32];
            let count = NonZeroU32::new(iterations).unwrap_or(NonZeroU32::MIN);
            let derive =
                move || pbkdf2(Algorithm::Sha256, black_box(PASSWORD), &SALT, count, &mut out);
            repeated(derive)
        };
        let name = format!("PBKDF2-HMAC-SHA-256 {iterations} times");
        rows.push(Row::new(name, None, "32 bytes of a password", &hmac, make));
    }
    for log_n in [10, 14] {
        let make = move || {
            let mut out = [0; 32];
            let params = ScryptParams { log_n, r: 8, p: 1 };
            repeated(move || scrypt(params, black_box(PASSWORD), &SALT, &mut out))
        };
        let name = format!("scrypt N={} r=8 p=1", 1 << log_n);
        rows.push(Row::new(name, None, "32 bytes of a password", &Backend::AwsLc, make));
    }
    let make = || {
        let (mut out, params) = ([0; 32], Argon2Params::RECOMMENDED);
        repeated(move || argon2id(params, black_box(PASSWORD), &SALT, &mut out))
    };
    let library = Backend::Library("argon2");
    let name = "Argon2id 64 MiB, 3 passes, 4 lanes".to_owned();
    rows.push(Row::new(name, None, "32 bytes of a password", &library, make));
    generators(rows);
}

fn generators(rows: &mut Vec<Row>) {
    let scope = "32 bytes";
    let system = || {
        repeated(|| {
            let mut out = [0; 32];
            rand::fill(&mut out);
            Ok::<_, std::convert::Infallible>(black_box(out))
        })
    };
    let name = "random bytes of the system 32 bytes".to_owned();
    rows.push(Row::new(name, None, scope, &Backend::AwsLc, system));
    let sha = Algorithm::Sha256.backend();
    rows.push(drbg("CTR_DRBG-AES-256", &Backend::AwsLc, |seed| CtrDrbg::new(seed, &[])));
    rows.push(drbg("Hash_DRBG-SHA-256", &sha, |seed| {
        HashDrbg::<Sha256>::new(&seed[..32], &seed[32..], &[])
    }));
    rows.push(drbg("HMAC_DRBG-SHA-256", &sha, |seed| {
        HmacDrbg::<Sha256>::new(&seed[..32], &seed[32..], &[])
    }));
}

fn drbg<D: Drbg + 'static>(
    name: &str,
    backend: &Backend,
    new: impl Fn(&[u8; 48]) -> Result<D, DrbgError> + 'static,
) -> Row {
    let run = move || {
        let mut drbg = new(&rand::bytes()).map_err(|error| error.to_string())?;
        repeated(move || drbg.generate(black_box(&mut [0; 32]), &[]))
    };
    Row::new(format!("{name} 32 bytes"), None, "32 bytes", backend, run)
}
