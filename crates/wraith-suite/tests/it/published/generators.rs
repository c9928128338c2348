//! The generators of SP 800-90A.

use wraith_suite::{
    hash::{Sha224, Sha256, Sha384, Sha512, legacy::Sha1},
    rand::{CtrDrbg, Drbg, HmacDrbg},
};

use super::{hex, message, published, same};

fn start(kind: &str, hash: &str, entropy: &[u8], personal: &[u8]) -> Result<Box<dyn Drbg>, String> {
    macro_rules! hmac {
        ($type:ty) => {
            Box::new(HmacDrbg::<$type>::new(entropy, &[], personal).map_err(message)?)
        };
    }
    Ok(match (kind, hash) {
        ("CTR", "") => {
            let entropy = entropy.try_into().map_err(message)?;
            Box::new(CtrDrbg::new(entropy, personal).map_err(message)?)
        }
        ("HMAC", "SHA-1") => hmac!(Sha1),
        ("HMAC", "SHA-224") => hmac!(Sha224),
        ("HMAC", "SHA-256") => hmac!(Sha256),
        ("HMAC", "SHA-384") => hmac!(Sha384),
        ("HMAC", "SHA-512") => hmac!(Sha512),
        _ => return Err("a known generator".into()),
    })
}

/// Checks `generator|hash|entropy|personalization|entropy of the second seed|data with it|data of
/// the first request|data of the second request|its output`.
fn check(fields: &[&'static str]) -> Result<(), String> {
    let [kind, hash, inputs @ ..] = fields else { return Err("nine fields".into()) };
    let inputs: Vec<_> = inputs.iter().map(|field| hex(field)).collect();
    let [entropy, personal, reseed, reseed_data, first, second, expected] = &inputs[..] else {
        return Err("nine fields".into());
    };
    let mut generator = start(kind, hash, entropy, personal)?;
    generator.reseed(reseed, reseed_data).map_err(message)?;
    let mut out = vec![0; expected.len()];
    for data in [first, second] {
        generator.generate(&mut out, data).map_err(message)?;
    }
    same("output", &out, expected)
}

published! {
    ctr_drbg_of_cavp_comes_out: check("aws_lc/generators.txt", 60);
    hmac_drbg_of_cavp_comes_out: check("botan/generators.txt", 60);
}
