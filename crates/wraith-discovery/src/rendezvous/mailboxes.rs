//! The state of a rendezvous server, without sockets or a clock: who waits at which number, and who is told what.
//!
//! A connection is *new* until its first frame, then a *holder*, who waits at a number, or a *guest*, who joined one.
//!
//! Invariants: everything is bounded by the constants below; a number belongs to one holder at a time; a number that was
//! closed stays closed for a while, so that who comes late learns why and does not meet somebody else; nothing is sent to a
//! connection that did not ask.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::frame::{ClientFrame, No, ServerFrame};
use crate::MAX_NUMBER;
use crate::contact::FIRST_NUMBER as FIRST_PAIR_NUMBER;
use crate::rates::{Limit, Rates, Source};

/// Connections of one address at once: an office behind one router, but not a flood.
const MAX_PER_SOURCE: usize = 32;
/// Guests at one number at once. One is the rule; the others are mistakes or attacks.
const MAX_GUESTS: usize = 8;
/// Closed numbers that are remembered, and for how long: as long as somebody may take to type.
const MAX_CLOSED: usize = 4096;
const CLOSED_LIFE: Duration = Duration::from_secs(10 * 60);
/// A connection says what it wants within this time.
const FIRST_FRAME: Duration = Duration::from_secs(10);
/// A guest has finished within this time: three round trips, by people's machines.
const GUEST_LIFE: Duration = Duration::from_secs(60);
/// A guest that nobody waits for may ask again for this long.
pub(super) const ASKING_LIFE: Duration = Duration::from_secs(10 * 60);
/// A holder that is silent for this long is gone; holders ping three times as often.
const HOLDER_SILENCE: Duration = Duration::from_secs(90);
/// No holder stays longer than this, whatever it sends.
const HOLDER_LIFE: Duration = Duration::from_secs(24 * 3600);
/// Frames of a connection in all: a guest needs three, and asks twice a second while nobody waits there; a holder pings
/// and answers. Enough for either, and the end of one that only makes noise.
const MAX_FRAMES: u32 = 20_000;
/// Frames of a guest that has joined.
const MAX_GUEST_FRAMES: u32 = 8;

/// Numbers one address may open and join: at once, for a family behind one router or a person who mistypes, and then thirty
/// a minute, so that trying all numbers of three digits takes half an hour.
const RATE: Limit = Limit { burst: 30, refill: Duration::from_secs(2), addresses: 8192 };

/// Names a connection; never used twice.
pub type Id = u64;

/// What the server is to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    Send(Id, ServerFrame),
    /// After what was sent before.
    Close(Id),
}

#[derive(Debug)]
struct Peer {
    seen: SocketAddr,
    since: Instant,
    heard: Instant,
    frames: u32,
    role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    New,
    /// Has asked for somebody who was not there.
    Asking,
    Holder {
        number: u32,
    },
    Guest {
        number: u32,
        guest: u32,
        frames: u32,
    },
}

#[derive(Debug)]
struct Mailbox {
    holder: Id,
    guests: Vec<(u32, Id)>,
    next_guest: u32,
}

/// See the module.
#[derive(Debug)]
pub struct Mailboxes {
    peers: HashMap<Id, Peer>,
    per_source: HashMap<Source, usize>,
    boxes: HashMap<u32, Mailbox>,
    closed: HashMap<u32, No>,
    closed_order: VecDeque<(Instant, u32)>,
    rates: Rates,
    /// Numbers that are searched for free ones begin here.
    seed: u32,
}

impl Mailboxes {
    /// `seed` is any random number; numbers are handed out from it on when a wish cannot be met.
    pub fn new(seed: u32) -> Self {
        Self {
            peers: HashMap::new(),
            per_source: HashMap::new(),
            boxes: HashMap::new(),
            closed: HashMap::new(),
            closed_order: VecDeque::new(),
            rates: Rates::new(RATE),
            seed,
        }
    }

    /// A connection came. False if it must go again at once.
    pub fn connected(&mut self, now: Instant, id: Id, seen: SocketAddr) -> bool {
        let count = self.per_source.entry(Source::of(seen.ip())).or_default();
        if *count >= MAX_PER_SOURCE {
            return false;
        }
        *count += 1;
        let peer = Peer { seen, since: now, heard: now, frames: 0, role: Role::New };
        self.peers.insert(id, peer);
        true
    }

    /// A frame came. `None` is one that makes no sense.
    pub fn frame(&mut self, now: Instant, id: Id, frame: Option<ClientFrame>) -> Vec<Action> {
        let Some(peer) = self.peers.get_mut(&id) else { return Vec::new() };
        peer.heard = now;
        peer.frames += 1;
        if peer.frames > MAX_FRAMES {
            return vec![Action::Close(id)];
        }
        let (role, source) = (peer.role, Source::of(peer.seen.ip()));
        match (frame, role) {
            (Some(ClientFrame::Open { number, exact }), Role::New | Role::Holder { .. }) => {
                if !self.rates.allow(source, now) {
                    return refuse(id, No::TooFast);
                }
                self.open(now, id, number, exact)
            }
            (Some(ClientFrame::Join { number, message }), Role::New | Role::Asking) => {
                if !self.rates.allow(source, now) {
                    return vec![Action::Send(id, ServerFrame::No(No::TooFast))];
                }
                self.join(now, id, number, message)
            }
            (Some(ClientFrame::Tell { guest, message }), Role::Holder { number }) => {
                let guests = self.boxes.get(&number).map_or(&[][..], |held| &held.guests);
                let to = guests.iter().find(|(theirs, _)| *theirs == guest);
                let told = ServerFrame::Told { guest: 0, message };
                to.map(|(_, to)| Action::Send(*to, told)).into_iter().collect()
            }
            (Some(ClientFrame::Tell { message, .. }), Role::Guest { number, guest, frames }) => {
                if frames >= MAX_GUEST_FRAMES {
                    return vec![Action::Close(id)];
                }
                peer.role = Role::Guest { number, guest, frames: frames + 1 };
                let holder = self.boxes.get(&number).map(|held| held.holder);
                let told = ServerFrame::Told { guest, message };
                holder.map(|to| Action::Send(to, told)).into_iter().collect()
            }
            (Some(ClientFrame::Close(why)), Role::Holder { number }) => {
                let mut actions = self.vacate(now, number, No::after(why));
                actions.push(Action::Close(id));
                actions
            }
            (Some(ClientFrame::Ping), _) => vec![Action::Send(id, ServerFrame::Pong)],
            _ => refuse(id, No::Senseless),
        }
    }

    /// A connection is gone, for whatever reason. Must be called for every one that came.
    pub fn disconnected(&mut self, now: Instant, id: Id) -> Vec<Action> {
        let Some(peer) = self.peers.remove(&id) else { return Vec::new() };
        let source = Source::of(peer.seen.ip());
        if let Some(count) = self.per_source.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                self.per_source.remove(&source);
            }
        }
        match peer.role {
            Role::New | Role::Asking => Vec::new(),
            Role::Holder { number } => self.vacate(now, number, No::Nobody),
            Role::Guest { number, guest, .. } => {
                let Some(held) = self.boxes.get_mut(&number) else { return Vec::new() };
                held.guests.retain(|(_, theirs)| *theirs != id);
                vec![Action::Send(held.holder, ServerFrame::Left { guest })]
            }
        }
    }

    /// Ends what has taken too long. To be called about once a second.
    pub fn tick(&mut self, now: Instant) -> Vec<Action> {
        while let Some((closed, number)) = self.closed_order.front() {
            if now.saturating_duration_since(*closed) < CLOSED_LIFE {
                break;
            }
            self.closed.remove(number);
            self.closed_order.pop_front();
        }
        let late = |peer: &Peer| {
            let age = now.saturating_duration_since(peer.since);
            let silence = now.saturating_duration_since(peer.heard);
            match peer.role {
                Role::New => age > FIRST_FRAME,
                Role::Asking => age > ASKING_LIFE || silence > FIRST_FRAME,
                Role::Guest { .. } => age > GUEST_LIFE,
                Role::Holder { .. } => age > HOLDER_LIFE || silence > HOLDER_SILENCE,
            }
        };
        self.peers.iter().filter(|(_, p)| late(p)).map(|(id, _)| Action::Close(*id)).collect()
    }

    fn open(&mut self, now: Instant, id: Id, wish: u32, exact: bool) -> Vec<Action> {
        let mut actions = Vec::new();
        if let Some(Role::Holder { number }) = self.peers.get(&id).map(|peer| peer.role) {
            if number == wish {
                return refuse(id, No::Senseless);
            }
            actions = self.vacate(now, number, No::Nobody);
        }
        let number = match self.free_number(wish, exact) {
            Ok(number) => number,
            Err(why) => {
                actions.extend(refuse(id, why));
                return actions;
            }
        };
        let Some(peer) = self.peers.get_mut(&id) else { return actions };
        peer.role = Role::Holder { number };
        // The time begins now: what a guest or a new connection may take is no measure for a holder.
        peer.since = now;
        self.boxes.insert(number, Mailbox { holder: id, guests: Vec::new(), next_guest: 1 });
        actions.push(Action::Send(id, ServerFrame::Opened { number, seen: peer.seen }));
        actions
    }

    /// The wish, else the next free number with as few digits as there are.
    fn free_number(&mut self, wish: u32, exact: bool) -> Result<u32, No> {
        // Of the numbers of pairs each has only one that will do.
        let is_good = (1..=MAX_NUMBER).contains(&wish) || (exact && wish >= FIRST_PAIR_NUMBER);
        if !is_good {
            return Err(No::Senseless);
        }
        let free =
            |number: &u32| !self.boxes.contains_key(number) && !self.closed.contains_key(number);
        if free(&wish) {
            return Ok(wish);
        }
        if exact {
            return Err(No::Taken);
        }
        self.seed = self.seed.wrapping_add(1);
        // Numbers of three digits, and of more when those are taken. Boxes and closed numbers are bounded far below the
        // numbers of five digits, so the search ends.
        for (first, count) in [(1, 999), (1000, 9000), (10_000, 90_000)] {
            let start = self.seed % count;
            let found = (0..count).map(|n| first + (start + n) % count).find(free);
            if let Some(number) = found {
                return Ok(number);
            }
        }
        Err(No::Full)
    }

    fn join(&mut self, now: Instant, id: Id, number: u32, message: Vec<u8>) -> Vec<Action> {
        let Some(peer) = self.peers.get_mut(&id) else { return Vec::new() };
        let Some(held) = self.boxes.get_mut(&number) else {
            // Only the first question begins the time that asking may take.
            if peer.role == Role::New {
                peer.since = now;
            }
            peer.role = Role::Asking;
            let why = self.closed.get(&number).copied().unwrap_or(No::Nobody);
            return vec![Action::Send(id, ServerFrame::No(why))];
        };
        if held.guests.len() >= MAX_GUESTS {
            return vec![Action::Send(id, ServerFrame::No(No::Full))];
        }
        let guest = held.next_guest;
        held.next_guest = held.next_guest.wrapping_add(1).max(1);
        held.guests.push((guest, id));
        peer.role = Role::Guest { number, guest, frames: 0 };
        peer.since = now;
        vec![
            Action::Send(id, ServerFrame::Joined { seen: peer.seen }),
            Action::Send(held.holder, ServerFrame::Guest { guest, message }),
        ]
    }

    /// The holder of a number is gone: its guests are told and sent away.
    fn vacate(&mut self, now: Instant, number: u32, why: No) -> Vec<Action> {
        let Some(held) = self.boxes.remove(&number) else { return Vec::new() };
        if let Some(peer) = self.peers.get_mut(&held.holder) {
            peer.role = Role::New;
            peer.since = now;
        }
        if why != No::Nobody && self.closed.insert(number, why).is_none() {
            self.closed_order.push_back((now, number));
            if self.closed_order.len() > MAX_CLOSED
                && let Some((_, oldest)) = self.closed_order.pop_front()
            {
                self.closed.remove(&oldest);
            }
        }
        for (_, id) in &held.guests {
            // They are about to be sent away; until then they must not talk to whoever opens the number next.
            if let Some(peer) = self.peers.get_mut(id) {
                peer.role = Role::New;
            }
        }
        let guests = held.guests.into_iter();
        let last = match why {
            No::Nobody => ServerFrame::Left { guest: 0 },
            why => ServerFrame::No(why),
        };
        guests.flat_map(|(_, id)| [Action::Send(id, last.clone()), Action::Close(id)]).collect()
    }
}

fn refuse(id: Id, why: No) -> Vec<Action> {
    vec![Action::Send(id, ServerFrame::No(why)), Action::Close(id)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::holder::Refusal;

    const HOLDER: Id = 1;
    const GUEST: Id = 2;

    fn address(n: u8) -> SocketAddr {
        SocketAddr::new([192, 0, 2, n].into(), 1000)
    }

    fn open(number: u32) -> Option<ClientFrame> {
        Some(ClientFrame::Open { number, exact: false })
    }

    fn join(number: u32) -> Option<ClientFrame> {
        Some(ClientFrame::Join { number, message: b"hello".to_vec() })
    }

    fn tell(guest: u32) -> Option<ClientFrame> {
        Some(ClientFrame::Tell { guest, message: b"x".to_vec() })
    }

    fn no(id: Id, why: No) -> Action {
        Action::Send(id, ServerFrame::No(why))
    }

    /// A holder at number 7, and a connection that may become a guest.
    fn server(now: Instant) -> Mailboxes {
        let mut server = Mailboxes::new(0);
        assert!(
            server.connected(now, HOLDER, address(1)) && server.connected(now, GUEST, address(2))
        );
        let opened = ServerFrame::Opened { number: 7, seen: address(1) };
        assert_eq!(server.frame(now, HOLDER, open(7)), [Action::Send(HOLDER, opened)]);
        server
    }

    #[test]
    fn two_sides_meet_and_talk() {
        let now = Instant::now();
        let mut server = server(now);
        let arrived = ServerFrame::Guest { guest: 1, message: b"hello".to_vec() };
        let joined = ServerFrame::Joined { seen: address(2) };
        assert_eq!(
            server.frame(now, GUEST, join(7)),
            [Action::Send(GUEST, joined), Action::Send(HOLDER, arrived)]
        );
        let told = |guest| ServerFrame::Told { guest, message: b"x".to_vec() };
        assert_eq!(server.frame(now, HOLDER, tell(1)), [Action::Send(GUEST, told(0))]);
        assert_eq!(server.frame(now, GUEST, tell(0)), [Action::Send(HOLDER, told(1))]);
        assert_eq!(server.frame(now, HOLDER, tell(2)), [], "nobody has that number");
        let left = ServerFrame::Left { guest: 1 };
        assert_eq!(server.disconnected(now, GUEST), [Action::Send(HOLDER, left)]);
    }

    #[test]
    fn who_comes_too_early_asks_again_and_who_comes_late_learns_why() {
        let now = Instant::now();
        let mut server = server(now);
        assert_eq!(server.frame(now, GUEST, join(8)), [no(GUEST, No::Nobody)]);
        let closed = server.frame(now, HOLDER, Some(ClientFrame::Close(Refusal::Burned)));
        assert_eq!(closed, [Action::Close(HOLDER)]);
        assert_eq!(server.frame(now, GUEST, join(7)), [no(GUEST, No::Burned)]);
        assert_eq!(server.disconnected(now, HOLDER), []);
        server.tick(now + CLOSED_LIFE);
        assert_eq!(server.frame(now, GUEST, join(7)), [no(GUEST, No::Nobody)]);
    }

    #[test]
    fn a_number_belongs_to_one_holder_and_is_not_given_again_at_once() {
        let now = Instant::now();
        let mut server = server(now);
        let exact = Some(ClientFrame::Open { number: 7, exact: true });
        let refused = [no(GUEST, No::Taken), Action::Close(GUEST)];
        assert_eq!(server.frame(now, GUEST, exact.clone()), refused);
        match &server.frame(now, GUEST, open(7))[..] {
            [Action::Send(GUEST, ServerFrame::Opened { number, .. })] => {
                assert!((1..=999).contains(number) && *number != 7);
            }
            other => panic!("{other:?}"),
        }
        server.frame(now, HOLDER, Some(ClientFrame::Close(Refusal::Used)));
        assert!(server.connected(now, 3, address(3)));
        assert_eq!(server.frame(now, 3, exact), [no(3, No::Taken), Action::Close(3)]);
    }

    #[test]
    fn when_the_holder_goes_its_guests_are_told_and_go() {
        let now = Instant::now();
        let mut server = server(now);
        server.frame(now, GUEST, join(7));
        let gone = [Action::Send(GUEST, ServerFrame::Left { guest: 0 }), Action::Close(GUEST)];
        assert_eq!(server.disconnected(now, HOLDER), gone);
        let refused = [no(GUEST, No::Senseless), Action::Close(GUEST)];
        assert_eq!(server.frame(now, GUEST, tell(0)), refused, "nobody is there");
        assert_eq!(server.disconnected(now, GUEST), []);
        assert!(server.boxes.is_empty() && server.peers.is_empty() && server.per_source.is_empty());
    }

    #[test]
    fn everything_has_a_time_limit() {
        let now = Instant::now();
        let mut server = server(now);
        server.frame(now, GUEST, join(7));
        server.connected(now, 3, address(3));
        let second = Duration::from_secs(1);
        assert_eq!(server.tick(now + FIRST_FRAME + second), [Action::Close(3)]);
        server.disconnected(now, 3);
        assert_eq!(server.tick(now + GUEST_LIFE + second), [Action::Close(GUEST)]);
        server.disconnected(now, GUEST);
        assert_eq!(server.tick(now + HOLDER_SILENCE + second), [Action::Close(HOLDER)]);
        let mut time = now;
        while time < now + HOLDER_LIFE {
            time += HOLDER_SILENCE / 2;
            server.frame(time, HOLDER, Some(ClientFrame::Ping));
        }
        assert_eq!(server.tick(time + second), [Action::Close(HOLDER)]);
    }

    #[test]
    fn one_address_cannot_take_all_connections_nor_ask_for_ever() {
        let now = Instant::now();
        let mut server = Mailboxes::new(0);
        let taken = (0..100).filter(|id| server.connected(now, *id, address(1))).count();
        assert_eq!(taken, MAX_PER_SOURCE);
        assert!(server.connected(now, 100, address(2)));
        let asked = (0..100).filter(|_| server.frame(now, 100, join(1)) == [no(100, No::Nobody)]);
        assert_eq!(asked.count(), 30);
        assert_eq!(server.frame(now, 100, join(1)), [no(100, No::TooFast)]);
    }

    #[test]
    fn one_number_has_room_for_few_guests_who_may_say_little() {
        let now = Instant::now();
        let mut server = server(now);
        for id in 10..10 + MAX_GUESTS as u64 {
            server.connected(now, id, address(id as u8));
            assert_eq!(server.frame(now, id, join(7)).len(), 2);
        }
        assert_eq!(server.frame(now, GUEST, join(7)), [no(GUEST, No::Full)]);
        for _ in 0..MAX_GUEST_FRAMES {
            assert_eq!(server.frame(now, 10, tell(0)).len(), 1);
        }
        assert_eq!(server.frame(now, 10, tell(0)), [Action::Close(10)]);
    }

    #[test]
    fn the_numbers_of_pairs_are_opened_exactly_or_not_at_all() {
        let now = Instant::now();
        let mut server = server(now);
        let exact = ClientFrame::Open { number: u32::MAX, exact: true };
        let opened = ServerFrame::Opened { number: u32::MAX, seen: address(2) };
        assert_eq!(server.frame(now, GUEST, Some(exact.clone())), [Action::Send(GUEST, opened)]);
        server.connected(now, 3, address(3));
        assert_eq!(server.frame(now, 3, Some(exact)), [no(3, No::Taken), Action::Close(3)]);
    }

    #[test]
    fn nonsense_ends_a_connection() {
        let now = Instant::now();
        let mut server = server(now);
        let refused = |id| [no(id, No::Senseless), Action::Close(id)];
        assert_eq!(server.frame(now, GUEST, None), refused(GUEST));
        assert_eq!(server.frame(now, GUEST, open(0)), refused(GUEST));
        assert_eq!(server.frame(now, GUEST, open(MAX_NUMBER + 1)), refused(GUEST));
        assert_eq!(server.frame(now, GUEST, open(FIRST_PAIR_NUMBER)), refused(GUEST));
        assert_eq!(server.frame(now, GUEST, tell(0)), refused(GUEST));
        assert_eq!(server.frame(now, HOLDER, join(7)), refused(HOLDER));
        assert_eq!(server.frame(now, 99, open(1)), [], "a connection that never came");
    }

    #[derive(Clone, Debug)]
    enum Step {
        Connect(Id, u8),
        Frame(Id, Option<ClientFrame>),
        Disconnect(Id),
        Wait(u64),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        let id = || 0..40_u64;
        let number = || prop_oneof![0..12_u32, any::<u32>()];
        let refusal = (1..7_u8).prop_map(|byte| Refusal::from_wire(byte).unwrap());
        let frame = prop_oneof![
            (number(), any::<bool>())
                .prop_map(|(number, exact)| ClientFrame::Open { number, exact }),
            number().prop_map(|number| ClientFrame::Join { number, message: vec![0; 9] }),
            number().prop_map(|guest| ClientFrame::Tell { guest, message: vec![0; 9] }),
            Just(ClientFrame::Ping),
            refusal.prop_map(ClientFrame::Close),
        ];
        prop_oneof![
            2 => (id(), 0..6_u8).prop_map(|(id, from)| Step::Connect(id, from)),
            8 => (id(), prop::option::weighted(0.98, frame)).prop_map(|(id, f)| Step::Frame(id, f)),
            1 => id().prop_map(Step::Disconnect),
            1 => (0..200_u64).prop_map(Step::Wait),
        ]
    }

    proptest! {
        #[test]
        fn whatever_happens_the_state_is_consistent_and_ends_empty(
            steps in prop::collection::vec(any_step(), 0..300),
        ) {
            let mut now = Instant::now();
            let mut server = Mailboxes::new(5);
            for step in steps {
                let actions = match step {
                    Step::Connect(id, from) => {
                        if !server.peers.contains_key(&id) {
                            server.connected(now, id, address(from));
                        }
                        Vec::new()
                    }
                    Step::Frame(id, frame) => server.frame(now, id, frame),
                    Step::Disconnect(id) => server.disconnected(now, id),
                    Step::Wait(seconds) => {
                        now += Duration::from_secs(seconds);
                        server.tick(now)
                    }
                };
                for action in actions {
                    match action {
                        Action::Send(id, _) => prop_assert!(server.peers.contains_key(&id)),
                        Action::Close(id) => drop(server.disconnected(now, id)),
                    }
                }
                for (number, held) in &server.boxes {
                    let role = server.peers[&held.holder].role;
                    prop_assert_eq!(role, Role::Holder { number: *number });
                    prop_assert!(held.guests.len() <= MAX_GUESTS);
                    for (_, guest) in &held.guests {
                        prop_assert!(server.peers.contains_key(guest));
                    }
                }
                prop_assert!(server.closed.len() == server.closed_order.len());
            }
            let ids: Vec<Id> = server.peers.keys().copied().collect();
            for id in ids {
                server.disconnected(now, id);
            }
            prop_assert!(server.boxes.is_empty() && server.per_source.is_empty());
        }
    }

    #[test]
    fn closed_numbers_are_not_remembered_without_end() {
        let mut now = Instant::now();
        let mut server = Mailboxes::new(0);
        for id in 0..2 * MAX_CLOSED as u64 {
            let source = Ipv4((id as u32).to_be_bytes());
            assert!(server.connected(now, id, source.into()));
            server.frame(now, id, open(1 + id as u32));
            server.frame(now, id, Some(ClientFrame::Close(Refusal::Used)));
            server.disconnected(now, id);
            now += Duration::from_millis(10);
        }
        assert_eq!((server.closed.len(), server.closed_order.len()), (MAX_CLOSED, MAX_CLOSED));
        assert!(server.peers.is_empty() && server.boxes.is_empty());
    }

    struct Ipv4([u8; 4]);

    impl From<Ipv4> for SocketAddr {
        fn from(ip: Ipv4) -> Self {
            Self::new(ip.0.into(), 1)
        }
    }
}
