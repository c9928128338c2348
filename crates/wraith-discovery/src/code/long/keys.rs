//! What six words become in an hour.

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use wraith_crypto::{NodeId, kdf};
use zeroize::Zeroizing;

use crate::contact::PUNCH_SECRET_LEN;
use crate::place::PlaceError;
use crate::record::slot::Slot;

/// Memory of one guess: what makes a graphics card no faster than its memory, and a phone still has.
const MEMORY_KIB: u32 = 64 * 1024;
/// Passes over it: together a fifth of a second on a slow core.
const PASSES: u32 = 3;
/// One thread: two hours may have to be tried, and those of others are none of ours.
const LANES: u32 = 1;
const SALT_LEN: usize = 16;

/// The creator of a code writes here.
const CREATOR: u8 = 1;
/// The joiner writes here.
const JOINER: u8 = 2;

/// What both sides of a code compute for an hour.
#[derive(Clone)]
pub struct CodeKeys {
    pub hour: u64,
    /// Where the creator writes.
    pub offer: Slot,
    /// Where joiners write.
    pub join: Slot,
    secret: Zeroizing<[u8; 32]>,
}

impl CodeKeys {
    /// Those of these words. Takes a fifth of a second, and its memory only once at a time.
    ///
    /// # Errors
    /// There is no memory.
    pub async fn of(words: &Zeroizing<String>, hour: u64) -> Result<Self, PlaceError> {
        static ONE: Semaphore = Semaphore::const_new(1);
        let permit = ONE.acquire().await.expect("nobody closes it");
        let words = words.clone();
        let stretched = spawn_blocking(move || {
            // Also when nobody waits for it any more.
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

    /// What tells packets of these two from all others while they try to reach each other.
    pub fn punch_secret(&self, creator: NodeId, joiner: NodeId) -> [u8; PUNCH_SECRET_LEN] {
        let parts = [&self.secret[..], creator.as_bytes(), joiner.as_bytes()];
        kdf::derive_parts("wraith/1 code punch", &parts)
    }
}

/// Argon2id. The salt is the hour's, so that work on one hour is of no use in another.
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
