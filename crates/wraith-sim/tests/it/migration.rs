//! Connections that migrate on purpose, and migrate back when the new path dies. Data flows in both
//! directions all the time.

use std::net::SocketAddr;
use std::time::Duration;

use wraith_core::{PathAddr, Time, TransportConfig};
use wraith_sim::internet::{HostIndex, Internet, PUBLIC};
use wraith_sim::link::{Delay, Loss, Rate, Reorder};
use wraith_sim::{Exchange, hops};

/// Two public hosts, a relay over which they are connected, and their addresses.
struct MigrationSetup {
    net: Internet,
    hosts: [HostIndex; 2],
    relay: PathAddr,
    direct: [PathAddr; 2],
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, host], 1000))
}

/// Bytes per second that leave the access lines without a queue, so that queueing does not hide the
/// cost of a migration.
const UNCONGESTED_RATE: u64 = 1_000_000;

/// Creates a lab with the one-way delays `direct` and `relayed`. Bytes travel in both directions at
/// up to 20 Mbit/s, for some seconds.
fn lab(seed: u64, direct: u64, relayed: u64, loss: f64) -> MigrationSetup {
    let mut net = Internet::new(seed);
    let hosts = [1, 2].map(|number| {
        let host = net.add_host("host", TransportConfig::default());
        let line = || hops![Rate::mbit(20), Delay::micros(direct * 500), Loss::percent(loss)];
        net.add_interface(host, (PUBLIC, address(number)), [line(), line()]);
        host
    });
    let way = || hops![Delay::micros((relayed - direct) * 1000)];
    let relay = net.add_relay(hosts, [way(), way()]);
    let plan = Exchange::streams(1, 9_000_000, 9_000_000).eager();
    net.connect(hosts[0], hosts[1], relay, plan);
    let direct = [1, 2].map(|number| PathAddr::Ip(address(number)));
    let mut lab = MigrationSetup { net, hosts, relay, direct };
    lab.run(1500);
    lab
}

impl MigrationSetup {
    fn run(&mut self, millis: u64) {
        self.net.run_for(ms(millis));
    }

    /// Makes `mover` move to the other host's own address.
    fn move_directly(&mut self, mover: usize) {
        let to = self.direct[1 - mover];
        assert!(self.net.migrate_to(self.hosts[mover], to));
    }

    /// Asserts that each side uses the other's own address.
    #[track_caller]
    fn assert_direct(&mut self) {
        let remotes = self.hosts.map(|host| self.net.remote(host));
        assert_eq!(remotes, [Some(self.direct[1]), Some(self.direct[0])]);
    }

    /// Limits the rate to [`UNCONGESTED_RATE`] from now on, and gives the queues a second to drain.
    fn calm(mut self) -> Self {
        for host in self.hosts {
            self.net.with_connection(host, |now, c| c.set_rate_limit(now, UNCONGESTED_RATE));
        }
        self.run(1000);
        self
    }

    fn lost(&mut self) -> u64 {
        let lost =
            |net: &mut Internet, host| net.with_connection(host, |_, c| c.stats().packets_lost);
        self.hosts.map(|host| lost(&mut self.net, host).unwrap()).iter().sum()
    }

    fn watch(&mut self) {
        let now = self.net.now();
        self.hosts.iter().for_each(|host| self.net.seen_mut(*host).watch_gap(now));
    }

    fn gap(&self) -> Duration {
        self.hosts.iter().map(|host| self.net.seen(*host).gap).max().unwrap()
    }

    fn paths(&self, side: usize) -> Vec<PathAddr> {
        self.net.seen(self.hosts[side]).paths.iter().map(|(_, path)| *path).collect()
    }

    /// Runs until every byte has arrived; bytes are compared on arrival.
    fn finish(mut self) {
        let hosts = self.hosts;
        let deadline = self.net.now() + Duration::from_secs(60);
        let done = self.net.run_until(deadline, |net| {
            hosts.iter().all(|host| net.party(*host).is_some_and(|party| party.is_done()))
        });
        assert!(done, "{:?}", hosts.map(|host| self.net.party(host).map(|p| p.unfinished())));
    }
}

const PATHS: [(u64, u64, u64); 4] = [(1, 10, 40), (2, 5, 150), (3, 20, 22), (4, 1, 80)];

/// Moves each side in turn. The other side follows once, and no gap reaches `gap`. Returns the lost
/// packets of each run.
fn move_each_side(gap: Duration, prepare: impl Fn(MigrationSetup) -> MigrationSetup) -> Vec<u64> {
    let mut losses = Vec::new();
    for (seed, direct, relayed) in PATHS {
        for mover in [0, 1] {
            let mut lab = prepare(lab(seed, direct, relayed, 0.0));
            let lost = lab.lost();
            lab.watch();
            lab.move_directly(mover);
            lab.run(1500);
            for side in [0, 1] {
                assert_eq!(lab.paths(side), [lab.direct[1 - side]], "{direct} {relayed} {mover}");
            }
            assert!(lab.gap() < gap, "{:?} {direct} {relayed} {mover}", lab.gap());
            losses.push(lab.lost() - lost);
            lab.finish();
        }
    }
    losses
}

#[test]
fn a_planned_move_is_followed_without_a_gap_a_loss_or_a_second_thought() {
    assert_eq!(move_each_side(ms(200), MigrationSetup::calm), [0; 2 * PATHS.len()]);
}

#[test]
fn a_planned_move_in_the_middle_of_full_queues_stands_and_costs_less_than_a_second() {
    move_each_side(ms(1000), |lab| lab);
}

#[test]
fn a_planned_move_to_a_slower_path_stands_too() {
    for mover in [0, 1] {
        let mut lab = lab(7, 5, 80, 0.0).calm();
        lab.move_directly(mover);
        lab.run(800);
        lab.watch();
        let relay = lab.relay;
        assert!(lab.net.migrate_to(lab.hosts[mover], relay));
        lab.run(1500);
        for side in [0, 1] {
            assert_eq!(
                lab.paths(side),
                [lab.direct[1 - side], relay],
                "{mover} {side} {:?} {:?}",
                lab.net.seen(lab.hosts[0]).paths,
                lab.net.seen(lab.hosts[1]).paths
            );
        }
        assert!(lab.gap() < ms(300), "{:?}", lab.gap());
        lab.finish();
    }
}

#[test]
fn both_sides_may_move_at_once_and_with_loss() {
    for seed in 10..16 {
        let mut lab = lab(seed, 10, 60, 3.0);
        for side in [0, 1] {
            lab.move_directly(side);
        }
        lab.run(2500);
        lab.assert_direct();
        for side in [0, 1] {
            assert!(lab.paths(side).len() <= 3, "{seed} {:?}", lab.paths(side));
        }
        lab.finish();
    }
}

#[test]
fn a_migration_to_a_silent_address_fails_without_cost() {
    let mut lab = lab(20, 10, 40, 0.0).calm();
    lab.watch();
    let nobody = PathAddr::Ip(address(99));
    assert!(lab.net.migrate_to(lab.hosts[0], nobody));
    lab.run(5000);
    let failed: Vec<_> = lab.net.seen(lab.hosts[0]).failed.iter().map(|(_, path)| *path).collect();
    assert_eq!(failed, [nobody]);
    assert_eq!(lab.net.remote(lab.hosts[0]), Some(lab.relay));
    assert!(lab.net.unroutable()[&address(99)] <= 11);
    assert!(lab.gap() < ms(100), "{:?}", lab.gap());
    lab.finish();
}

#[test]
fn when_the_direct_path_dies_the_relay_carries_on_in_less_than_a_second() {
    for seed in 30..36 {
        let mut lab = lab(seed, 20, 20, 0.0);
        lab.move_directly(0);
        lab.run(900);
        lab.watch();
        lab.net.cut(true);
        lab.run(2000);
        for side in [0, 1] {
            assert_eq!(lab.net.remote(lab.hosts[side]), Some(lab.relay), "{side}");
        }
        assert!(lab.gap() < ms(1000), "{:?}", lab.gap());
        lab.finish();
    }
}

#[test]
fn when_the_relay_dies_after_all_the_direct_path_is_taken_again() {
    let mut lab = lab(40, 20, 20, 0.0);
    lab.move_directly(0);
    lab.run(500);
    lab.net.cut(true);
    lab.run(1000);
    lab.net.cut(false);
    lab.net.stop_relays(true);
    lab.run(3000);
    lab.assert_direct();
    lab.finish();
}

#[test]
fn a_relay_that_delays_and_reorders_does_not_undo_a_move() {
    for seed in 50..54 {
        let mut net = Internet::new(seed);
        let hosts = [1, 2].map(|number| {
            let host = net.add_host("host", TransportConfig::default());
            let line = || hops![Rate::mbit(20), Delay::ms(5)];
            net.add_interface(host, (PUBLIC, address(number)), [line(), line()]);
            host
        });
        let way = || hops![Delay::ms(100), Reorder::percent(30.0, ms(300))];
        let relay = net.add_relay(hosts, [way(), way()]);
        let plan = Exchange::streams(1, 2_000_000, 2_000_000).eager();
        net.connect(hosts[0], hosts[1], relay, plan);
        net.run_until(Time::ZERO + ms(2500), |_| false);
        assert!(net.migrate_to(hosts[1], PathAddr::Ip(address(1))));
        net.run_for(ms(2500));
        for host in hosts {
            assert_eq!(net.seen(host).paths.len(), 1, "{seed} {:?}", net.seen(host).paths);
        }
    }
}

/// Returns two hosts with a cable and a radio each: IPv4 on both, and IPv6 on the cable.
fn dual(seed: u64) -> MigrationSetup {
    let mut net = Internet::new(seed);
    let hosts = [1, 2].map(|number: u8| {
        let host = net.add_host("host", TransportConfig::default());
        let line = |ms| hops![Rate::mbit(20), Delay::ms(ms)];
        let v6 = SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(number)], 1000));
        net.add_interface(host, (PUBLIC, address(number)), [line(10), line(10)]);
        net.add_interface(host, (PUBLIC, v6), [line(5), line(5)]);
        net.add_interface(host, (PUBLIC, address(number + 10)), [line(15), line(15)]);
        host
    });
    let plan = Exchange::streams(1, 4_000_000, 4_000_000).eager();
    let direct = [1, 2].map(|number| PathAddr::Ip(address(number)));
    net.connect(hosts[0], hosts[1], direct[1], plan);
    let mut lab = MigrationSetup { net, hosts, relay: direct[1], direct };
    lab.run(500);
    lab.calm()
}

#[test]
fn a_move_from_ipv4_to_ipv6_is_taken_back_when_ipv6_dies() {
    let mut lab = dual(60);
    let [ours, theirs] = lab.hosts.map(|host| PathAddr::Ip(lab.net.addresses(host)[1]));
    lab.watch();
    assert!(lab.net.migrate_to(lab.hosts[0], theirs));
    lab.run(500);
    assert_eq!([lab.paths(0), lab.paths(1)], [[theirs], [ours]]);
    assert!(lab.gap() < ms(200), "{:?}", lab.gap());
    lab.hosts.iter().for_each(|host| lab.net.set_interface(*host, 1, false));
    lab.run(1500);
    lab.assert_direct();
    assert!(lab.gap() < ms(1000), "{:?}", lab.gap());
    lab.finish();
}

#[test]
fn a_cable_that_is_pulled_costs_less_than_a_second_where_there_is_a_radio() {
    for puller in [0, 1] {
        let mut lab = dual(61);
        lab.watch();
        let host = lab.hosts[puller];
        lab.net.set_interface(host, 0, false);
        lab.run(2000);
        let radio = PathAddr::Ip(address(puller as u8 + 11));
        assert_eq!(lab.net.remote(lab.hosts[1 - puller]), Some(radio));
        assert!(lab.gap() < ms(1000), "{:?}", lab.gap());
        lab.finish();
    }
}
