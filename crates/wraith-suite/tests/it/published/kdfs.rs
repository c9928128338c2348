//! Key derivation.

use wraith_suite::{
    hash,
    kdf::{self, Argon2Params, ScryptParams},
};

use super::{hex, message, published, same};

/// Returns the numbers of a field.
fn numbers<const N: usize>(field: &str) -> Result<[u32; N], String> {
    let numbers: Result<Vec<u32>, _> = field.split(',').map(str::parse).collect();
    numbers.map_err(message)?.try_into().map_err(message)
}

/// Checks `function|hash|input key or password|salt|info, iterations or costs|output`. Of Argon2id,
/// the second field is the secret, and the fifth ends with the associated data.
fn check(fields: &[&'static str]) -> Result<(), String> {
    let [function, name, key, salt, rest, expected] = fields else {
        return Err("six fields".into());
    };
    let [key, salt, expected] = [key, salt, expected].map(|field| hex(field));
    let hash = || name.parse::<hash::Algorithm>().map_err(message);
    let mut out = vec![0; expected.len()];
    let derived = match *function {
        "hkdf" => kdf::hkdf(hash()?, &salt, &key, &hex(rest), &mut out),
        "hkdf_extract" => kdf::hkdf_extract(hash()?, &salt, &key, &mut out),
        "hkdf_expand" => kdf::hkdf_expand(hash()?, &key, &hex(rest), &mut out),
        "pbkdf2" => kdf::pbkdf2(hash()?, &key, &salt, rest.parse().map_err(message)?, &mut out),
        "scrypt" => {
            let [n, r, p] = numbers(rest)?;
            let params = ScryptParams { log_n: n.ilog2() as u8, r, p };
            kdf::scrypt(params, &key, &salt, &mut out)
        }
        "argon2id" => {
            let (costs, data) = rest.rsplit_once(',').ok_or("costs and data")?;
            let [memory_kib, passes, lanes] = numbers(costs)?;
            let params = Argon2Params { memory_kib, passes, lanes };
            kdf::argon2id_with(params, &key, &salt, &hex(name), &hex(data), &mut out)
        }
        _ => return Err("a known function".into()),
    };
    derived.map_err(message)?;
    same("output", &out, &expected)
}

published! {
    openssl_s_derived_keys_come_out: check("openssl/kdfs.txt", 125);
    botan_s_derived_keys_come_out: check("botan/kdfs.txt", 106);
}
