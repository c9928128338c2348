//! A file beyond 4 GiB arrives, and its holes stay holes.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};

use crate::support::{World, tree};

const GIB: u64 = 1 << 30;
const AROUND: u64 = 300_000;

#[test]
fn a_sparse_file_beyond_4_gib_arrives_sparse() {
    let world = World::new();
    let image = world.source().join("disk.img");
    let data = [0, GIB - 5, 4 * GIB - 5, 4 * GIB + 300_000, 5 * GIB - 10];
    tree::sparse(&image, 5 * GIB, &data);
    let (_, received) = world.transfer(&[&image]);
    assert_eq!(received.last("done")["bytes"], 5 * GIB);

    let copy = world.target().join("disk.img");
    let (here, there) = (File::open(&image).unwrap(), File::open(&copy).unwrap());
    assert_eq!(there.metadata().unwrap().len(), 5 * GIB);
    // The file takes so little disk space that everything except the data must be holes.
    let on_disk = fs::metadata(&copy).unwrap().blocks() * 512;
    assert!(on_disk < 4 << 20, "{on_disk} bytes are on the disk");
    for at in data {
        let start = at.saturating_sub(AROUND);
        let length = (2 * AROUND).min(5 * GIB - start) as usize;
        let (mut left, mut right) = (vec![0; length], vec![1; length]);
        here.read_exact_at(&mut left, start).unwrap();
        there.read_exact_at(&mut right, start).unwrap();
        assert!(left == right, "other bytes around {at}");
    }
}
