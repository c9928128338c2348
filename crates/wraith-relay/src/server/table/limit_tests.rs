//! Every limit per address against every way to an address: a new session, a resumption from
//! another address, and a UDP binding, from IPv4, mapped IPv4 and the hosts of one IPv6 /64.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use wraith_discovery::rates::Source;

use super::{Action, Forwarded, Table};
use crate::binding::{BINDING_MIN, Binding, BindingKeys};
use crate::budget::Budget;
use crate::frame::{Refusal, Welcome};
use crate::header::{self, Direction, HEADER_BYTES, TagKey, WireId, down_mask, up_mask};
use crate::outbox::Outbox;
use crate::proof::resumption;
use crate::random::Random;
use crate::server::options::Limits;

const EXPORTER: [u8; 32] = [9; 32];
const LIMIT: usize = 4;
const ATTEMPTS: u16 = 40;

/// Hosts that share one limit.
#[derive(Clone, Copy, Debug)]
enum Family {
    V4,
    Mapped,
    V6,
}

const FAMILIES: [Family; 3] = [Family::V4, Family::Mapped, Family::V6];

impl Family {
    fn host(self, i: u16) -> IpAddr {
        match self {
            Self::V4 => [192, 0, 2, 1].into(),
            Self::Mapped if i.is_multiple_of(2) => "::ffff:192.0.2.1".parse().unwrap(),
            Self::Mapped => [192, 0, 2, 1].into(),
            Self::V6 => [0x2001, 0xdb8, 0, 0, 5, 6, 7, i].into(),
        }
    }
}

/// A host with a limit of its own.
fn elsewhere(i: u16) -> IpAddr {
    [0x2001, 0xdb8, 1, i, 0, 0, 0, 1].into()
}

struct Fixture {
    table: Table,
    now: Instant,
    random: Random,
}

struct TestClient {
    number: usize,
    welcome: Welcome,
    link: Arc<Outbox>,
}

impl Fixture {
    fn new(limits: Limits) -> Self {
        let (now, random) = (Instant::now(), Random::new().unwrap());
        let table = Table::new(now, limits, Random::new().unwrap(), Arc::default());
        Self { table, now, random }
    }

    fn connect(
        &mut self,
        ip: IpAddr,
        resume: Option<(u64, [u8; 32])>,
    ) -> Result<TestClient, Refusal> {
        let link = Arc::new(Outbox::new(1 << 20, Arc::new(Budget::new(1 << 24))));
        let source = Source::of(ip);
        let (number, welcome) = self.table.connect(self.now, source, &link, resume, &EXPORTER)?;
        Ok(TestClient { number, welcome, link })
    }

    fn resume(&mut self, client: &TestClient, ip: IpAddr) -> Result<TestClient, Refusal> {
        let proof = resumption(&client.welcome.secret, &EXPORTER);
        let resumed = self.connect(ip, Some((client.welcome.session, proof)))?;
        assert!(resumed.welcome.resumed);
        Ok(resumed)
    }

    fn udp(&mut self, from: SocketAddr, mut datagram: Vec<u8>) -> Vec<Action> {
        let (len, mut actions) = (datagram.len(), Vec::new());
        self.table.forward(self.now, from, &mut datagram, len, &mut actions);
        actions
    }

    /// Reports whether the relay binds the client at `from`.
    fn bind(&mut self, client: &TestClient, from: SocketAddr) -> bool {
        let keys = BindingKeys::new(&client.welcome.secret, client.welcome.binding);
        let mut challenge = (0, [0; 16]);
        for counter in 1..3 {
            let (answers, cookie) = challenge;
            let message = Binding::Bind { counter, answers, cookie };
            let datagram = keys.seal_up(&message, BINDING_MIN, &mut self.random);
            let Some(Action::Reply(mut reply)) = self.udp(from, datagram).pop() else {
                return false;
            };
            assert!(header::read_id(&down_mask(&client.welcome.secret), &reply).is_some());
            match keys.open(Direction::Down, &mut reply) {
                Some(Binding::Challenge { counter, cookie }) => challenge = (counter, cookie),
                Some(Binding::Bound { .. }) => return true,
                _ => return false,
            }
        }
        false
    }

    /// Registers `client` at a mailbox of its own.
    fn wait_at(&mut self, client: &TestClient, i: u16) -> [u8; 16] {
        let mut secret = [1; 32];
        secret[..2].copy_from_slice(&i.to_be_bytes());
        let (mailbox, result) = self.table.register(client.number, &secret);
        result.unwrap();
        mailbox
    }
}

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

#[test]
fn clients_per_address_are_limited_on_every_way_in() {
    for family in FAMILIES {
        let mut admitted = [0; 3];
        for (way, admitted) in admitted.iter_mut().enumerate() {
            let mut fixture = Fixture::new(limits(|limits| limits.clients_per_address = LIMIT));
            for i in 0..ATTEMPTS {
                let here = family.host(i);
                let is_in = match way {
                    0 => fixture.connect(here, None).is_ok(),
                    1 => {
                        let client = fixture.connect(elsewhere(i), None).unwrap();
                        fixture.resume(&client, here).is_ok()
                    }
                    _ => {
                        let client = fixture.connect(elsewhere(i), None).unwrap();
                        fixture.bind(&client, SocketAddr::new(here, 1000 + i))
                    }
                };
                *admitted += usize::from(is_in);
            }
        }
        assert_eq!(admitted, [LIMIT; 3], "{family:?}: new, resumed, by UDP");
    }
}

#[test]
fn an_address_is_free_again_after_its_clients_leave_or_move() {
    let mut fixture = Fixture::new(limits(|limits| limits.clients_per_address = 1));
    let here = Family::V4.host(0);
    for i in 0..ATTEMPTS {
        let client = fixture.connect(here, None).unwrap();
        assert!(fixture.bind(&client, SocketAddr::new(elsewhere(0), 1)), "{i}");
        assert_eq!(fixture.connect(here, None).err(), Some(Refusal::Full));
        let moved = fixture.resume(&client, elsewhere(1)).unwrap();
        let next = fixture.connect(here, None).unwrap();
        for client in [moved, next] {
            fixture.table.disconnected(fixture.now, client.number, &client.link);
        }
    }
}

#[test]
fn pairs_per_address_are_limited_on_every_way_in() {
    for family in FAMILIES {
        let mut dialled = [0; 2];
        for (way, dialled) in dialled.iter_mut().enumerate() {
            let mut fixture = Fixture::new(limits(|limits| limits.pairs_per_address = LIMIT));
            // The limit of dials is per address too, and lower than the attempts of this test.
            for i in 0..2 * LIMIT as u16 {
                let waiting = fixture.connect(elsewhere(1000 + i), None).unwrap();
                let mailbox = fixture.wait_at(&waiting, i);
                let first = if way == 0 { family.host(i) } else { elsewhere(i) };
                let client = fixture.connect(first, None).unwrap();
                let is_paired = fixture.table.dial(fixture.now, client.number, &mailbox).is_ok();
                let is_here = way == 0 || fixture.resume(&client, family.host(i)).is_ok();
                *dialled += usize::from(is_paired && is_here);
            }
        }
        assert_eq!(dialled, [LIMIT; 2], "{family:?}: new, resumed");
    }
}

#[test]
fn the_rate_of_an_address_is_limited_on_every_way_in() {
    const RATE: u64 = 1_000_000;
    const BYTES: usize = 1000;
    // A tenth of a second, and one datagram on credit.
    const BURST: usize = RATE as usize / 10 + BYTES;
    for family in FAMILIES {
        let mut passed = [0; 4];
        for (way, passed) in passed.iter_mut().enumerate() {
            let mut fixture = Fixture::new(limits(|limits| limits.address_rate = Some(RATE)));
            for i in 0..ATTEMPTS.min(19) {
                let waiting = fixture.connect(elsewhere(1000 + i), None).unwrap();
                let mailbox = fixture.wait_at(&waiting, i);
                let (here, there) = (family.host(i), elsewhere(i));
                let first = if matches!(way, 0 | 3) { here } else { there };
                let client = fixture.connect(first, None).unwrap();
                let id = fixture.table.dial(fixture.now, client.number, &mailbox).unwrap();
                let client = match way {
                    1 => fixture.resume(&client, here).unwrap(),
                    _ => client,
                };
                let from = SocketAddr::new(here, 1000 + i);
                assert!(way != 2 || fixture.bind(&client, from));
                for _ in 0..20 {
                    *passed += BYTES
                        * usize::from(match way {
                            2 => sends_by_udp(&mut fixture, &client, id, from, BYTES),
                            _ => sends_by_tls(&mut fixture, &client, id, BYTES),
                        });
                }
                if way == 3 {
                    // A client that leaves takes the debt of its address along.
                    fixture.table.hang_up(client.number, id);
                    fixture.table.disconnected(fixture.now, client.number, &client.link);
                    fixture.table.tick(fixture.now);
                }
            }
        }
        for (way, passed) in passed.into_iter().enumerate() {
            assert!(passed > 0 && passed <= BURST, "{family:?}, way {way}: {passed}");
        }
    }
}

fn sends_by_tls(fixture: &mut Fixture, client: &TestClient, id: WireId, bytes: usize) -> bool {
    let before = fixture.table.metrics.limited.get();
    let datagram = vec![7; bytes];
    let sent = fixture.table.forward_frame(fixture.now, client.number, id, &datagram);
    assert_eq!(sent, Forwarded::Done);
    fixture.table.metrics.limited.get() == before
}

fn sends_by_udp(
    fixture: &mut Fixture,
    client: &TestClient,
    id: WireId,
    from: SocketAddr,
    bytes: usize,
) -> bool {
    let before = fixture.table.metrics.limited.get();
    let mut datagram = vec![7; HEADER_BYTES + bytes];
    let tag = TagKey::new(&client.welcome.secret, id, Direction::Up);
    header::write(&up_mask(&client.welcome.secret), &tag, id, &mut datagram);
    let actions = fixture.udp(from, datagram);
    assert!(actions.is_empty(), "the other end receives by TLS: {actions:?}");
    fixture.table.metrics.limited.get() == before
}
