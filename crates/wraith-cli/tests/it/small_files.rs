//! Twenty thousand small files arrive, each with its bytes, mode and time.

use crate::support::{World, tree};

#[test]
fn twenty_thousand_small_files_arrive() {
    let world = World::new();
    let root = world.source().join("tree");
    for n in 0..20_000u64 {
        let path = root.join(format!("{:03}/{:02}/file-{n}", n / 200, n / 10 % 20));
        tree::file(&path, n, (n * 7919 % 4000) as usize);
    }
    let (_, received) = world.transfer(&[&root]);
    tree::assert_same(&root, &world.target().join("tree"));
    assert_eq!(received.last("done")["files"], 20_000);
}
