//! Conversations with a server, and every order of frames.

use proptest::prelude::*;

use super::numbers::{CLOSED_LIFE, MAX_CLOSED};
use super::peers::{FIRST_FRAME, GUEST_LIFE, HOLDER_LIFE, HOLDER_SILENCE, MAX_PER_SOURCE};
use super::*;
use crate::MAX_NUMBER;
use crate::contact::FIRST_NUMBER as FIRST_PAIR_NUMBER;
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
    assert!(server.connected(now, HOLDER, address(1)) && server.connected(now, GUEST, address(2)));
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
    assert!(server.numbers.boxes.is_empty() && server.peers.is_empty());
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
        (number(), any::<bool>()).prop_map(|(number, exact)| ClientFrame::Open { number, exact }),
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
                    if server.peers.get(id).is_none() {
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
                    Action::Send(id, _) => prop_assert!(server.peers.get(id).is_some()),
                    Action::Close(id) => drop(server.disconnected(now, id)),
                }
            }
            for (number, held) in &server.numbers.boxes {
                let role = server.peers.get(held.holder).unwrap().role;
                prop_assert_eq!(role, Role::Holder { number: *number });
                prop_assert!(held.guests.len() <= MAX_GUESTS);
                for (_, guest) in &held.guests {
                    prop_assert!(server.peers.get(*guest).is_some());
                }
            }
            prop_assert!(server.numbers.closed.len() == server.numbers.closed_order.len());
        }
        let ids: Vec<Id> = server.peers.ids().collect();
        for id in ids {
            server.disconnected(now, id);
        }
        prop_assert!(server.numbers.boxes.is_empty() && server.peers.is_empty());
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
    assert_eq!(
        (server.numbers.closed.len(), server.numbers.closed_order.len()),
        (MAX_CLOSED, MAX_CLOSED)
    );
    assert!(server.peers.is_empty() && server.numbers.boxes.is_empty());
}

struct Ipv4([u8; 4]);

impl From<Ipv4> for SocketAddr {
    fn from(ip: Ipv4) -> Self {
        Self::new(ip.0.into(), 1)
    }
}
