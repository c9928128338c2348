//! Who may come: the contacts as they stand in their file now, so that one who is removed meets silence from then on, and one
//! who is added is welcome, without a restart.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use wraith::state::{Contact, ContactStore};
use wraith_crypto::{NodeId, SecretIdentity};
use wraith_discovery::contact::{Listening, Pair};
use wraith_transport::Endpoint;
use zeroize::Zeroizing;

use crate::args::Accept;
use crate::failure::Failure;
use crate::output::{Event, Reporter};

/// How often the file is read again: soon enough for who has just changed it in another window.
const PACE: Duration = Duration::from_secs(1);
/// How often it is looked whether to stop.
const GLANCE: Duration = Duration::from_millis(200);

/// See the module.
#[derive(Debug)]
pub struct Guests {
    store: ContactStore,
    seed: Zeroizing<[u8; 32]>,
    accept: Accept,
    contacts: Vec<Contact>,
}

impl Guests {
    /// # Errors
    /// The contacts cannot be read. Then nobody can be told from a stranger, and nothing begins.
    pub fn load(
        store: &ContactStore,
        identity: &SecretIdentity,
        accept: Accept,
    ) -> Result<Self, Failure> {
        let contacts = store.load()?.contacts().to_vec();
        let seed = Zeroizing::new(*identity.seed());
        Ok(Self { store: store.clone(), seed, accept, contacts })
    }

    pub fn len(&self) -> usize {
        self.contacts.len()
    }

    /// Who gets a connection; None is everybody.
    pub fn admitted(&self) -> Option<HashSet<NodeId>> {
        let contacts = self.contacts.iter().map(|contact| contact.node_id);
        (self.accept == Accept::Contacts).then(|| contacts.collect())
    }

    /// Keeps endpoint and meeting places in step with the file, until told to stop.
    pub fn keep_up(
        mut self,
        endpoint: &Endpoint,
        listening: &Arc<Listening>,
        stop: &AtomicBool,
        reporter: &Reporter,
    ) {
        listening.set_contacts(self.pairs());
        let mut damaged = false;
        while !stop.load(Relaxed) {
            let next = Instant::now() + PACE;
            while Instant::now() < next && !stop.load(Relaxed) {
                thread::sleep(GLANCE);
            }
            match self.store.load() {
                Ok(book) if book.contacts() != self.contacts => {
                    let who = |contacts: &[Contact]| -> HashSet<NodeId> {
                        contacts.iter().map(|contact| contact.node_id).collect()
                    };
                    let changed = who(book.contacts()) != who(&self.contacts);
                    self.contacts = book.contacts().to_vec();
                    if changed {
                        endpoint.admit_only(self.admitted());
                        listening.set_contacts(self.pairs());
                        reporter.event(&Event::Guests { contacts: self.contacts.len() as u64 });
                    }
                    damaged = false;
                }
                Ok(_) => damaged = false,
                Err(failure) => {
                    if !std::mem::replace(&mut damaged, true) {
                        let before = "the contacts of before still count";
                        reporter.warn(format!("{failure}; {before}"));
                    }
                }
            }
        }
    }

    /// Who was met last comes first: there is not room for all at a rendezvous server.
    fn pairs(&self) -> Vec<Pair> {
        let identity = SecretIdentity::from_seed(*self.seed);
        let mut contacts: Vec<_> = self.contacts.iter().collect();
        contacts.sort_by_key(|contact| std::cmp::Reverse(contact.last_met));
        let pair = |contact: &&Contact| Pair::new(&identity, contact.node_id).ok();
        contacts.iter().filter_map(pair).collect()
    }
}
