//! Conversations with a server, and frames in any order.

use proptest::prelude::*;
use wraith_discovery::rendezvous::FIRST_CONTACT_NAMEPLATE;
use wraith_discovery::{MAX_NAMEPLATE, Refusal};

use super::nameplates::{CLOSED_LIFE, MAX_CLOSED};
use super::peers::{CREATOR_LIFE, CREATOR_SILENCE, FIRST_FRAME, JOINER_LIFE, MAX_PER_SOURCE};
use super::*;

const CREATOR: Id = 1;
const JOINER: Id = 2;

fn address(n: u8) -> SocketAddr {
    SocketAddr::new([192, 0, 2, n].into(), 1000)
}

fn open(nameplate: u32) -> Option<ClientFrame> {
    Some(ClientFrame::Open { nameplate, exact: false })
}

fn join(nameplate: u32) -> Option<ClientFrame> {
    Some(ClientFrame::Join { nameplate, message: b"hello".to_vec() })
}

fn tell(joiner: u32) -> Option<ClientFrame> {
    Some(ClientFrame::Send { joiner, message: b"x".to_vec() })
}

fn no(id: Id, why: ServerRefusal) -> Action {
    Action::Send(id, ServerFrame::Refused(why))
}

/// Returns a server with a creator at nameplate 7, and a connection that may become a joiner.
fn server(now: Instant) -> Mailboxes {
    let mut server = Mailboxes::new(0);
    assert!(
        server.connected(now, CREATOR, address(1)) && server.connected(now, JOINER, address(2))
    );
    let opened = ServerFrame::Opened { nameplate: 7, seen: address(1) };
    assert_eq!(server.frame(now, CREATOR, open(7)), [Action::Send(CREATOR, opened)]);
    server
}

#[test]
fn two_sides_meet_and_talk() {
    let now = Instant::now();
    let mut server = server(now);
    let arrived = ServerFrame::Arrived { joiner: 1, message: b"hello".to_vec() };
    let joined = ServerFrame::Joined { seen: address(2) };
    assert_eq!(
        server.frame(now, JOINER, join(7)),
        [Action::Send(JOINER, joined), Action::Send(CREATOR, arrived)]
    );
    let told = |joiner| ServerFrame::Message { joiner, message: b"x".to_vec() };
    assert_eq!(server.frame(now, CREATOR, tell(1)), [Action::Send(JOINER, told(0))]);
    assert_eq!(server.frame(now, JOINER, tell(0)), [Action::Send(CREATOR, told(1))]);
    assert_eq!(server.frame(now, CREATOR, tell(2)), [], "nobody has that nameplate");
    let left = ServerFrame::Left { joiner: 1 };
    assert_eq!(server.disconnected(now, JOINER), [Action::Send(CREATOR, left)]);
}

#[test]
fn an_early_joiner_retries_and_a_late_joiner_gets_the_reason() {
    let now = Instant::now();
    let mut server = server(now);
    assert_eq!(server.frame(now, JOINER, join(8)), [no(JOINER, ServerRefusal::Nobody)]);
    let closed = server.frame(now, CREATOR, Some(ClientFrame::Close(Refusal::Burned)));
    assert_eq!(closed, [Action::Close(CREATOR)]);
    assert_eq!(server.frame(now, JOINER, join(7)), [no(JOINER, ServerRefusal::Burned)]);
    assert_eq!(server.disconnected(now, CREATOR), []);
    server.tick(now + CLOSED_LIFE);
    assert_eq!(server.frame(now, JOINER, join(7)), [no(JOINER, ServerRefusal::Nobody)]);
}

#[test]
fn a_nameplate_belongs_to_one_creator_and_is_not_given_again_at_once() {
    let now = Instant::now();
    let mut server = server(now);
    let exact = Some(ClientFrame::Open { nameplate: 7, exact: true });
    let refused = [no(JOINER, ServerRefusal::Taken), Action::Close(JOINER)];
    assert_eq!(server.frame(now, JOINER, exact.clone()), refused);
    match &server.frame(now, JOINER, open(7))[..] {
        [Action::Send(JOINER, ServerFrame::Opened { nameplate, .. })] => {
            assert!((1..=999).contains(nameplate) && *nameplate != 7);
        }
        other => panic!("{other:?}"),
    }
    server.frame(now, CREATOR, Some(ClientFrame::Close(Refusal::Used)));
    assert!(server.connected(now, 3, address(3)));
    assert_eq!(server.frame(now, 3, exact), [no(3, ServerRefusal::Taken), Action::Close(3)]);
}

#[test]
fn when_the_creator_leaves_its_joiners_are_notified_and_disconnected() {
    let now = Instant::now();
    let mut server = server(now);
    server.frame(now, JOINER, join(7));
    let gone = [Action::Send(JOINER, ServerFrame::Left { joiner: 0 }), Action::Close(JOINER)];
    assert_eq!(server.disconnected(now, CREATOR), gone);
    let refused = [no(JOINER, ServerRefusal::Malformed), Action::Close(JOINER)];
    assert_eq!(server.frame(now, JOINER, tell(0)), refused, "nobody is there");
    assert_eq!(server.disconnected(now, JOINER), []);
    assert!(server.nameplates.boxes.is_empty() && server.peers.is_empty());
}

#[test]
fn everything_has_a_time_limit() {
    let now = Instant::now();
    let mut server = server(now);
    server.frame(now, JOINER, join(7));
    server.connected(now, 3, address(3));
    let second = Duration::from_secs(1);
    assert_eq!(server.tick(now + FIRST_FRAME + second), [Action::Close(3)]);
    server.disconnected(now, 3);
    assert_eq!(server.tick(now + JOINER_LIFE + second), [Action::Close(JOINER)]);
    server.disconnected(now, JOINER);
    assert_eq!(server.tick(now + CREATOR_SILENCE + second), [Action::Close(CREATOR)]);
    let mut time = now;
    while time < now + CREATOR_LIFE {
        time += CREATOR_SILENCE / 2;
        server.frame(time, CREATOR, Some(ClientFrame::Ping));
    }
    assert_eq!(server.tick(time + second), [Action::Close(CREATOR)]);
}

#[test]
fn connections_and_queries_per_address_are_bounded() {
    let now = Instant::now();
    let mut server = Mailboxes::new(0);
    let taken = (0..100).filter(|id| server.connected(now, *id, address(1))).count();
    assert_eq!(taken, MAX_PER_SOURCE);
    assert!(server.connected(now, 100, address(2)));
    let asked =
        (0..100).filter(|_| server.frame(now, 100, join(1)) == [no(100, ServerRefusal::Nobody)]);
    assert_eq!(asked.count(), 30);
    assert_eq!(server.frame(now, 100, join(1)), [no(100, ServerRefusal::TooFast)]);
}

#[test]
fn joiners_and_their_frames_are_bounded_per_nameplate() {
    let now = Instant::now();
    let mut server = server(now);
    for id in 10..10 + MAX_JOINERS as u64 {
        server.connected(now, id, address(id as u8));
        assert_eq!(server.frame(now, id, join(7)).len(), 2);
    }
    assert_eq!(server.frame(now, JOINER, join(7)), [no(JOINER, ServerRefusal::Full)]);
    for _ in 0..MAX_JOINER_FRAMES {
        assert_eq!(server.frame(now, 10, tell(0)).len(), 1);
    }
    assert_eq!(server.frame(now, 10, tell(0)), [Action::Close(10)]);
}

#[test]
fn the_nameplates_of_pairs_are_opened_exactly_or_not_at_all() {
    let now = Instant::now();
    let mut server = server(now);
    let exact = ClientFrame::Open { nameplate: u32::MAX, exact: true };
    let opened = ServerFrame::Opened { nameplate: u32::MAX, seen: address(2) };
    assert_eq!(server.frame(now, JOINER, Some(exact.clone())), [Action::Send(JOINER, opened)]);
    server.connected(now, 3, address(3));
    assert_eq!(server.frame(now, 3, Some(exact)), [no(3, ServerRefusal::Taken), Action::Close(3)]);
}

#[test]
fn a_malformed_frame_ends_the_connection() {
    let now = Instant::now();
    let mut server = server(now);
    let refused = |id| [no(id, ServerRefusal::Malformed), Action::Close(id)];
    assert_eq!(server.frame(now, JOINER, None), refused(JOINER));
    assert_eq!(server.frame(now, JOINER, open(0)), refused(JOINER));
    assert_eq!(server.frame(now, JOINER, open(MAX_NAMEPLATE + 1)), refused(JOINER));
    assert_eq!(server.frame(now, JOINER, open(FIRST_CONTACT_NAMEPLATE)), refused(JOINER));
    assert_eq!(server.frame(now, JOINER, tell(0)), refused(JOINER));
    assert_eq!(server.frame(now, CREATOR, join(7)), refused(CREATOR));
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
    let nameplate = || prop_oneof![0..12_u32, any::<u32>()];
    let refusal = (1..7_u8).prop_map(|byte| Refusal::from_byte(byte).unwrap());
    let frame = prop_oneof![
        (nameplate(), any::<bool>())
            .prop_map(|(nameplate, exact)| ClientFrame::Open { nameplate, exact }),
        nameplate().prop_map(|nameplate| ClientFrame::Join { nameplate, message: vec![0; 9] }),
        nameplate().prop_map(|joiner| ClientFrame::Send { joiner, message: vec![0; 9] }),
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
    fn random_steps_keep_the_state_consistent_and_leave_it_empty(
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
            for (nameplate, held) in &server.nameplates.boxes {
                let role = server.peers.get(held.creator).unwrap().role;
                prop_assert_eq!(role, Role::Creator { nameplate: *nameplate });
                prop_assert!(held.joiners.len() <= MAX_JOINERS);
                for (_, joiner) in &held.joiners {
                    prop_assert!(server.peers.get(*joiner).is_some());
                }
            }
            prop_assert!(server.nameplates.closed.len() == server.nameplates.closed_order.len());
        }
        let ids: Vec<Id> = server.peers.ids().collect();
        for id in ids {
            server.disconnected(now, id);
        }
        prop_assert!(server.nameplates.boxes.is_empty() && server.peers.is_empty());
    }
}

#[test]
fn closed_nameplates_are_forgotten_after_a_while() {
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
        (server.nameplates.closed.len(), server.nameplates.closed_order.len()),
        (MAX_CLOSED, MAX_CLOSED)
    );
    assert!(server.peers.is_empty() && server.nameplates.boxes.is_empty());
}

struct Ipv4([u8; 4]);

impl From<Ipv4> for SocketAddr {
    fn from(ip: Ipv4) -> Self {
        Self::new(ip.0.into(), 1)
    }
}
