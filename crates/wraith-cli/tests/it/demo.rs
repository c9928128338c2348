//! The demonstration checks itself; this test only checks that it succeeds and cleans up.

use crate::support::{Process, World, tree};

#[test]
fn the_demo_transfers_compares_and_cleans_up() {
    let world = World::new();
    let mut command = world.wraith("demo");
    command.args(["demo", "--json", "--size", "20M", "--files", "50", "--dir"]).arg(world.target());
    let outcome = Process::start("demo", &mut command).succeed();
    let demo = outcome.last("demo");
    assert_eq!(demo["matched"], true);
    assert!(demo["bytes"].as_u64() >= Some(20 << 20));
    assert!(demo["seconds"].as_f64() > Some(0.0) && demo["cp_seconds"].as_f64() > Some(0.0));
    assert!(tree::names(&world.target()).is_empty(), "nothing is left behind");
}
