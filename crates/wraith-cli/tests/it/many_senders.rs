//! Many senders at once: no two codes have the same number.
//!
//! `WRAITH_TEST_SENDERS` sets their number: some in every run, 1,000 for a measurement.

use std::collections::HashSet;

use crate::support::{Process, World, lan, tree};

/// Senders that really send; the others only show their code.
const TRANSFERS: usize = 5;

fn senders() -> usize {
    let named = std::env::var("WRAITH_TEST_SENDERS").ok();
    named.map_or(30, |senders| senders.parse().unwrap())
}

fn nameplate(code: &str) -> &str {
    code.split('-').next().unwrap()
}

#[test]
fn senders_on_one_machine_have_different_numbers() {
    let _network = lan::own_network();
    let world = World::new();
    let film = world.source().join("film.mov");
    tree::file(&film, 1, 100_000);
    let start = |n: usize| {
        let mut command = world.wraith(&format!("sender-{n}"));
        command.args(["send", "--json", "--lan", "lo", "--listen", "127.0.0.1:0"]).arg(&film);
        Process::start("send", &mut command)
    };
    let mut senders: Vec<_> = (0..senders()).map(start).collect();
    let codes: Vec<_> = senders.iter_mut().map(Process::code).collect();
    let numbers: HashSet<_> = codes.iter().map(|code| nameplate(code)).collect();
    assert_eq!(numbers.len(), senders.len(), "{codes:?}");
    for (n, (code, sender)) in codes.iter().zip(senders).take(TRANSFERS).enumerate() {
        let target = world.path(&format!("target-{n}"));
        let mut command = world.wraith(&format!("receiver-{n}"));
        command.args(["receive", "--json", "--yes", "--lan", "lo", "-o"]).arg(&target);
        Process::start("receive", command.arg(code)).finish().expect_exit(0);
        sender.finish().expect_exit(0);
        tree::assert_same(&film, &target.join("film.mov"));
    }
}
