//! The doors of an endpoint and their access keys: only an initiator with one of the keys can begin
//! a handshake (SPEC §3.1).
//!
//! Invariant: a stranger's datagram costs one hash, plus a short one for each of [`FREE_KEYS`].
//! The work for further access keys is bounded per second. A stranger never gets an answer.

use std::collections::BTreeMap;
use std::time::Duration;

use wraith_noise::{AccessKey, H1_BYTES, Mac1Datagram};

use crate::Time;
use crate::door::{Door, DoorId};
use crate::token_bucket::TokenBucket;

/// Number of access keys tried on every datagram for free, about 80 ns each. A listener usually has
/// fewer contacts.
const FREE_KEYS: usize = 32;
/// Trials a second of the other access keys: 2 % of a core. A listener with a thousand contacts
/// finds every contact beyond the first 32 during 260 random datagrams a second. During 26,000 a
/// second, it finds one in a hundred of them.
const PER_SECOND: u64 = 1 << 18;
/// Burst of trials.
const BURST: Duration = Duration::from_millis(125);

/// The open doors (see the module docs).
pub(crate) struct Doors {
    doors: BTreeMap<DoorId, Door>,
    /// The access keys of all doors, doors with few keys first: a door with many keys takes none of
    /// the free trials from a door with one.
    keys: Vec<(AccessKey, DoorId)>,
    /// The list of keys is out of date.
    is_changed: bool,
    trials: TokenBucket,
}

impl Doors {
    pub(crate) fn new(first: Door) -> Self {
        let trials = TokenBucket::new(PER_SECOND, BURST);
        let mut doors =
            Self { doors: BTreeMap::new(), keys: Vec::new(), is_changed: false, trials };
        doors.open(DoorId::FIRST, first);
        doors
    }

    /// Opens a door, or replaces all its rules.
    pub(crate) fn open(&mut self, id: DoorId, door: Door) {
        self.doors.insert(id, door);
        self.is_changed = true;
    }

    /// Closes a door. Handshakes that began at it fail.
    pub(crate) fn close(&mut self, id: DoorId) {
        self.is_changed |= self.doors.remove(&id).is_some();
    }

    pub(crate) fn get(&self, id: DoorId) -> Option<&Door> {
        self.doors.get(&id)
    }

    /// Changes the rules of a door, if it is open.
    pub(crate) fn change(&mut self, id: DoorId, change: impl FnOnce(&mut Door)) {
        if let Some(door) = self.doors.get_mut(&id) {
            change(door);
            self.is_changed = true;
        }
    }

    fn collect_keys(&mut self) {
        self.is_changed = false;
        let mut doors: Vec<_> = self.doors.iter().collect();
        doors.sort_by_key(|(_, door)| door.access_keys.len());
        let keys = doors
            .into_iter()
            .flat_map(|(id, door)| door.access_keys.iter().zip([*id].into_iter().cycle()));
        self.keys = keys.map(|(key, id)| (key.clone(), id)).collect();
    }

    /// Returns the access key under which the mac1 of `datagram` is valid, and its door, if the
    /// datagram has a permitted length for the first datagram of H1.
    pub(crate) fn find(
        &mut self,
        now: Time,
        datagram: &Mac1Datagram<'_>,
    ) -> Option<(&AccessKey, DoorId)> {
        // A datagram of any other length is not tried and takes no budget.
        if !H1_BYTES.contains(&datagram.bytes().len()) {
            return None;
        }
        if self.is_changed {
            self.collect_keys();
        }
        if self.keys.is_empty() {
            return None;
        }
        let (free, dear) = self.keys.split_at(self.keys.len().min(FREE_KEYS));
        let accepts = |(key, _): &&(AccessKey, DoorId)| key.accepts(datagram);
        let mut found = free.iter().find(accepts);
        if found.is_none() && !dear.is_empty() && self.trials.take(now, dear.len()) {
            found = dear.iter().find(accepts);
        }
        found.map(|(key, door)| (key, *door))
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_core::{Rng, SeedableRng};
    use wraith_crypto::{NodeId, kdf};
    use wraith_noise::MAC1_BYTES;

    use super::*;

    const US: NodeId = NodeId([5; 32]);
    const CONTACTS: u32 = 1000;

    fn capability(number: u32) -> [u8; 16] {
        u128::from(number).to_be_bytes()
    }

    /// Returns whether an access key matches `datagram`.
    fn is_accepted(keys: &mut Doors, now: Time, datagram: &[u8]) -> bool {
        let datagram = Mac1Datagram::of(datagram).expect("it is longer than a mac1");
        keys.find(now, &datagram).is_some()
    }

    /// Returns the access keys of a listener with this many contacts.
    fn access_keys(contacts: u32) -> Doors {
        let access_keys = (0..contacts).map(|n| AccessKey::of_ticket(&capability(n), US)).collect();
        Doors::new(Door { access_keys, ..Door::default() })
    }

    /// Returns a datagram with the mac1 of this contact.
    fn datagram_of(contact: u32, rng: &mut ChaCha20Rng) -> Vec<u8> {
        let mut datagram = random(rng);
        let key =
            kdf::derive_parts("wraith/2 door of a ticket", &[&capability(contact), US.as_bytes()]);
        let (rest, mac1) = datagram.split_last_chunk_mut::<MAC1_BYTES>().expect("it is longer");
        let key = kdf::derive("wraith/2 gate 1", &key);
        mac1.copy_from_slice(&kdf::keyed(&key, &kdf::hash(rest))[..MAC1_BYTES]);
        datagram
    }

    fn random(rng: &mut ChaCha20Rng) -> Vec<u8> {
        let mut datagram = vec![0; 700 + rng.next_u32() as usize % 501];
        rng.fill_bytes(&mut datagram);
        datagram
    }

    /// Returns the share of initiators with a contact's key that are admitted during ten seconds of
    /// `flood` datagrams a second. One datagram in twenty comes from such an initiator; the others
    /// are random.
    fn heard(contacts: u32, flood: u32) -> f64 {
        let (mut keys, mut rng) = (access_keys(contacts), ChaCha20Rng::from_seed([1; 32]));
        let noise: Vec<_> = (0..50).map(|_| random(&mut rng)).collect();
        let (mut newcomers, mut heard) = (0, 0);
        for i in 0..10 * flood {
            let now = Time::ZERO + Duration::from_secs(1) * i / flood;
            if rng.next_u32().is_multiple_of(20) {
                newcomers += 1;
                let datagram = datagram_of(rng.next_u32() % contacts, &mut rng);
                heard += u32::from(is_accepted(&mut keys, now, &datagram));
            } else {
                assert!(!is_accepted(&mut keys, now, &noise[i as usize % noise.len()]));
            }
        }
        f64::from(heard) / f64::from(newcomers)
    }

    #[test]
    fn a_flood_locks_no_peer_out_if_all_access_keys_are_free() {
        assert_eq!(heard(FREE_KEYS as u32, 20_000), 1.0);
    }

    #[test]
    fn a_listener_with_a_thousand_contacts_hears_newcomers_as_the_constants_say() {
        assert_eq!(heard(CONTACTS, 260), 1.0);
        // All of the first 32 contacts, and one in a hundred of the others.
        let many = heard(CONTACTS, 26_000);
        assert!((0.036..0.05).contains(&many), "{many}");
    }

    #[test]
    fn the_first_access_keys_are_tried_during_any_flood() {
        let (mut keys, mut rng) = (access_keys(CONTACTS), ChaCha20Rng::from_seed([1; 32]));
        let (noise, first) = (random(&mut rng), datagram_of(FREE_KEYS as u32 - 1, &mut rng));
        let last = datagram_of(FREE_KEYS as u32, &mut rng);
        for _ in 0..1000 {
            assert!(!is_accepted(&mut keys, Time::ZERO, &noise));
        }
        assert!(is_accepted(&mut keys, Time::ZERO, &first));
        assert!(!is_accepted(&mut keys, Time::ZERO, &last));
    }

    #[test]
    fn trials_are_bounded_for_any_input() {
        let (mut keys, mut rng) = (access_keys(CONTACTS), ChaCha20Rng::from_seed([1; 32]));
        // A datagram for the last access key was tried on all of them.
        let datagram = datagram_of(CONTACTS - 1, &mut rng);
        let seconds = 4;
        let tried = (0..seconds * 20_000).filter(|i| {
            let now = Time::ZERO + Duration::from_micros(50) * *i;
            is_accepted(&mut keys, now, &datagram)
        });
        let (tried, dear) = (tried.count() as u64, u64::from(CONTACTS) - FREE_KEYS as u64);
        let most = u64::from(seconds) * PER_SECOND + PER_SECOND / 8;
        assert!(tried * dear <= most && tried * dear > most / 2, "{tried} datagrams");
    }

    #[test]
    fn datagrams_of_another_length_cost_no_trial() {
        let mut keys = access_keys(256);
        let left =
            |keys: &mut Doors| (0..).take_while(|_| keys.trials.take(Time::ZERO, 256)).count();
        for datagram in [vec![0; 50], vec![0; 659], vec![0; 1201]] {
            for _ in 0..1000 {
                assert!(!is_accepted(&mut keys, Time::ZERO, &datagram));
            }
        }
        assert!(!is_accepted(&mut keys, Time::ZERO, &[0; 700]));
        let spent = PER_SECOND / 8 - 256 * left(&mut keys) as u64;
        assert_eq!(spent / 256, 1, "one was tried");
    }

    #[test]
    fn each_access_key_leads_to_its_door_until_the_door_closes() {
        let (mut doors, mut rng) = (access_keys(CONTACTS), ChaCha20Rng::from_seed([1; 32]));
        let (offer, service) = (CONTACTS, CONTACTS + 1);
        for number in [offer, service] {
            let access_keys = vec![AccessKey::of_ticket(&capability(number), US)];
            doors.open(DoorId(number.into()), Door { access_keys, ..Door::default() });
        }
        let mut door_of = |doors: &mut Doors, contact| {
            let datagram = datagram_of(contact, &mut rng);
            let datagram = Mac1Datagram::of(&datagram).expect("it is longer than a mac1");
            doors.find(Time::ZERO, &datagram).map(|(_, door)| door)
        };
        assert_eq!(door_of(&mut doors, offer), Some(DoorId(offer.into())));
        assert_eq!(door_of(&mut doors, service), Some(DoorId(service.into())));
        assert_eq!(door_of(&mut doors, 0), Some(DoorId::FIRST));
        doors.close(DoorId(offer.into()));
        assert_eq!(door_of(&mut doors, offer), None);
        assert_eq!(door_of(&mut doors, service), Some(DoorId(service.into())));
    }

    #[test]
    fn a_door_with_many_access_keys_takes_no_free_trial_from_a_door_with_one() {
        let (mut doors, mut rng) = (access_keys(CONTACTS), ChaCha20Rng::from_seed([1; 32]));
        let access_keys = vec![AccessKey::of_ticket(&capability(CONTACTS), US)];
        doors.open(DoorId(1), Door { access_keys, ..Door::default() });
        let noise = random(&mut rng);
        for _ in 0..1000 {
            assert!(!is_accepted(&mut doors, Time::ZERO, &noise));
        }
        let invited = datagram_of(CONTACTS, &mut rng);
        assert!(is_accepted(&mut doors, Time::ZERO, &invited));
    }
}
