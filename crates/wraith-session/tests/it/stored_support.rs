//! Setup for tests of stored states: vaults that fail and count, and lossy links.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use wraith_session::vault::{Durability, KeyVault, MemoryVault, NewRecord, VaultError};
use wraith_session::{Session, StoreError};
use zeroize::Zeroizing;

/// Keeps a session in a vault.
pub fn kept(
    vault: Arc<dyn KeyVault>,
    name: &str,
    mut session: Session,
) -> Result<Session, StoreError> {
    session.keep(vault, name).map(|()| session)
}

pub fn below(rng: &mut ChaCha20Rng, end: u64) -> u64 {
    rng.next_u64() % end
}

/// One direction of a link that loses 30 %, duplicates 10 %, and delays by up to 200 messages.
#[derive(Default)]
pub struct Link {
    now: u64,
    on_the_way: BTreeMap<(u64, u64), Vec<u8>>,
    count: u64,
    /// Messages that have arrived, by content.
    came: HashSet<Vec<u8>>,
    again: u64,
}

impl Link {
    pub fn send(&mut self, rng: &mut ChaCha20Rng, message: &[u8]) {
        self.now += 1;
        let copies = match below(rng, 100) {
            0..30 => 0,
            30..40 => 2,
            _ => 1,
        };
        for _ in 0..copies {
            self.count += 1;
            let at = self.now + if below(rng, 4) == 0 { below(rng, 200) } else { 0 };
            self.on_the_way.insert((at, self.count), message.to_vec());
        }
    }

    pub fn arrived(&mut self) -> Option<Vec<u8>> {
        let first = self.on_the_way.first_entry()?;
        let message = (first.key().0 <= self.now).then(|| first.remove())?;
        self.again += u64::from(!self.came.insert(message.clone()));
        Some(message)
    }

    /// Returns the number of distinct messages that have arrived.
    pub fn distinct_arrived(&self) -> u64 {
        self.came.len() as u64
    }

    /// Returns the number of duplicates that have arrived.
    pub fn duplicates_arrived(&self) -> u64 {
        self.again
    }
}

/// Returns these bytes as the first record of a name.
pub fn first(bytes: &[u8]) -> NewRecord<'_> {
    NewRecord { generation: 1, bytes, durability: Durability::Process }
}

/// A vault that fails on demand, before or after the store.
#[derive(Default)]
pub struct FailingVault {
    pub vault: Arc<MemoryVault>,
    pub before: AtomicBool,
    pub after: AtomicBool,
}

impl KeyVault for FailingVault {
    fn store(&self, name: &str, record: NewRecord<'_>) -> Result<(), VaultError> {
        if self.before.load(Ordering::Relaxed) {
            return Err(VaultError::Failed("before".into()));
        }
        self.vault.store(name, record)?;
        match self.after.load(Ordering::Relaxed) {
            true => Err(VaultError::Failed("after".into())),
            false => Ok(()),
        }
    }

    fn load(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, VaultError> {
        self.vault.load(name)
    }

    fn delete(&self, name: &str) -> Result<(), VaultError> {
        self.vault.delete(name)
    }
}

/// A vault with an external generation counter.
pub struct CountingVault(pub Arc<MemoryVault>, pub u64);

impl KeyVault for CountingVault {
    fn store(&self, name: &str, record: NewRecord<'_>) -> Result<(), VaultError> {
        self.0.store(name, record)
    }

    fn load(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, VaultError> {
        self.0.load(name)
    }

    fn delete(&self, name: &str) -> Result<(), VaultError> {
        self.0.delete(name)
    }

    fn latest(&self, _: &str) -> Result<Option<u64>, VaultError> {
        Ok(Some(self.1))
    }
}

/// A vault whose process is killed during a store: no call succeeds until the next process.
pub struct KilledVault {
    vault: Arc<MemoryVault>,
    /// Stores until the kill.
    left: AtomicU32,
    /// Whether the last store takes effect before the kill.
    after: bool,
    dead: AtomicBool,
    died: AtomicBool,
}

impl KilledVault {
    pub fn at(store: u32, after: bool) -> Self {
        Self::over(Arc::new(MemoryVault::default()), store, after)
    }

    pub fn over(vault: Arc<MemoryVault>, store: u32, after: bool) -> Self {
        let (dead, died) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { vault, left: AtomicU32::new(store), after, dead, died }
    }

    /// Starts a new process, which is not killed.
    pub fn revive(&self) {
        self.dead.store(false, Ordering::Relaxed);
    }

    pub fn has_died(&self) -> bool {
        self.died.load(Ordering::Relaxed)
    }

    fn alive(&self) -> Result<(), VaultError> {
        match self.dead.load(Ordering::Relaxed) {
            true => Err(VaultError::Failed("killed".into())),
            false => Ok(()),
        }
    }
}

impl KeyVault for KilledVault {
    fn store(&self, name: &str, record: NewRecord<'_>) -> Result<(), VaultError> {
        self.alive()?;
        let left = self.left.load(Ordering::Relaxed);
        let dies = left == 0 && !self.has_died();
        self.left.store(left.saturating_sub(1), Ordering::Relaxed);
        if !dies || self.after {
            self.vault.store(name, record)?;
        }
        if dies {
            self.died.store(true, Ordering::Relaxed);
            self.dead.store(true, Ordering::Relaxed);
        }
        self.alive()
    }

    fn load(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, VaultError> {
        self.alive()?;
        self.vault.load(name)
    }

    fn delete(&self, name: &str) -> Result<(), VaultError> {
        self.alive()?;
        self.vault.delete(name)
    }
}
