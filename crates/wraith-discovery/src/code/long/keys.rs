//! Key derivation of a long code: six words and an hour.

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use wraith_crypto::{NodeId, kdf};
use zeroize::Zeroizing;

use crate::contact::PUNCH_SECRET_LEN;
use crate::place::PlaceError;
use crate::record::slot::Slot;

/// Memory of one Argon2id computation. With this much, memory bandwidth limits an attacker's
/// graphics card, and a phone can still afford it.
const MEMORY_KIB: u32 = 64 * 1024;
/// Passes over the memory: together a fifth of a second on a slow core.
const PASSES: u32 = 3;
/// One thread: two hours may be computed in turn, and other cores stay free.
const LANES: u32 = 1;
const SALT_LEN: usize = 16;

/// Role of the creator's record.
const CREATOR: u8 = 1;
/// Role of the joiner's record.
const JOINER: u8 = 2;

/// Keys of a code for one hour, the same on both sides.
#[derive(Clone)]
pub struct CodeKeys {
    pub hour: u64,
    /// Slot of the creator's record.
    pub offer: Slot,
    /// Slot of the joiners' record.
    pub join: Slot,
    secret: Zeroizing<[u8; 32]>,
}

impl CodeKeys {
    /// Derives the keys of these words. Takes a fifth of a second. Only one computation runs at a
    /// time, because of its memory.
    ///
    /// # Errors
    /// There is not enough memory.
    pub async fn of(words: &Zeroizing<String>, hour: u64) -> Result<Self, PlaceError> {
        static ONE: Semaphore = Semaphore::const_new(1);
        let permit = ONE.acquire().await.expect("nobody closes it");
        let words = words.clone();
        let stretched = spawn_blocking(move || {
            // Held until the end even if the caller has been cancelled.
            let _permit = permit;
            stretch(&words, hour)
        });
        let secret = stretched.await.ok().flatten();
        let secret = secret.ok_or_else(|| {
            PlaceError::Unusable("there is no memory to compute the keys of a code".into())
        })?;
        let (offer, join) = (Slot::of_code(&secret, CREATOR), Slot::of_code(&secret, JOINER));
        Ok(Self { hour, offer, join, secret })
    }

    /// Derives the secret that authenticates the hole-punching packets of these two peers.
    pub fn punch_secret(&self, creator: NodeId, joiner: NodeId) -> [u8; PUNCH_SECRET_LEN] {
        let parts = [&self.secret[..], creator.as_bytes(), joiner.as_bytes()];
        kdf::derive_parts("wraith/1 code punch", &parts)
    }
}

/// Argon2id with an hourly salt, so that precomputation for one hour is useless in another.
fn stretch(words: &str, hour: u64) -> Option<Zeroizing<[u8; 32]>> {
    let salt = kdf::derive("wraith/1 long code salt", &hour.to_be_bytes());
    let params = kdf::Argon2Params { memory_kib: MEMORY_KIB, passes: PASSES, lanes: LANES };
    let mut secret = Zeroizing::new([0; 32]);
    kdf::argon2id(params, words.as_bytes(), &salt[..SALT_LEN], &mut *secret).ok()?;
    Some(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn words_and_hours_have_keys_of_their_own_and_both_sides_the_same() {
        let words = |text: &str| Zeroizing::new(text.to_owned());
        let keys = CodeKeys::of(&words("a-b-c-d-e-f"), 7).await.unwrap();
        let again = CodeKeys::of(&words("a-b-c-d-e-f"), 7).await.unwrap();
        let later = CodeKeys::of(&words("a-b-c-d-e-f"), 8).await.unwrap();
        let other = CodeKeys::of(&words("a-b-c-d-e-g"), 7).await.unwrap();
        let key = |keys: &CodeKeys| keys.offer.seed(7).key();
        assert_eq!(key(&keys), key(&again));
        assert_ne!(key(&keys), keys.join.seed(7).key());
        assert_ne!(key(&keys), key(&later), "not only by the hour of the record");
        assert_ne!(key(&keys), key(&other));
        let [a, b] = [NodeId([1; 32]), NodeId([2; 32])];
        assert_eq!(keys.punch_secret(a, b), again.punch_secret(a, b));
        assert_ne!(keys.punch_secret(a, b), keys.punch_secret(b, a));
    }
}
