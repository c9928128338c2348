//! Copies a tree as a transfer would, without the network: walk, read, hash, write, journal. For
//! comparison with `cp -r`.
//!
//! ```sh
//! cargo run --release -p wraith-files --example copy_tree -- [-j WRITERS] FROM… TO
//! ```
//!
//! Measure in a directory that was not emptied in the last minutes. For a while, ext4 does not
//! reuse freed inodes and searches through all of them on every creation. A new file system gives
//! the best measurement.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant;

use wraith_files::*;

/// Number of files per batch.
const BATCH: usize = 64;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut writers = 1;
    if arguments.first().is_some_and(|first| first == "-j") {
        writers = arguments.remove(1).parse()?;
        arguments.remove(0);
    }
    let to = arguments.pop().ok_or("usage: copy_tree [-j WRITERS] FROM… TO")?;
    std::fs::create_dir_all(&to)?;
    let target = TargetDir::open(to.as_ref())?;
    let started = Instant::now();
    let mut walk = Walk::new(&arguments)?;
    let (batches, queue) = sync_channel::<Vec<WalkEntry>>(64);
    let queue = Mutex::new(queue);
    std::thread::scope(|scope| {
        let batches = batches;
        for _ in 0..writers {
            scope.spawn(|| work(&queue, &target));
        }
        let mut batch = Vec::new();
        for found in walk.by_ref() {
            let Ok(found) = found.inspect_err(|skipped| eprintln!("{skipped}")) else { continue };
            match found.entry.kind {
                Kind::Dir => {
                    target.make_dir(&found.entry).expect("the target takes folders");
                }
                _ => batch.push(found),
            }
            if batch.len() == BATCH {
                let _ = batches.send(std::mem::take(&mut batch));
            }
        }
        let _ = batches.send(batch);
    });
    target.finish_dirs()?;
    let (took, summary) = (started.elapsed().as_secs_f64(), walk.summary());
    println!(
        "{} files, {} bytes in {took:.3} s: {:.1} µs a file, {:.2} GB/s",
        summary.files,
        summary.bytes,
        took * 1e6 / summary.files as f64,
        summary.bytes as f64 / took / 1e9
    );
    Ok(())
}

fn work(queue: &Mutex<Receiver<Vec<WalkEntry>>>, target: &TargetDir) {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let received = queue.lock().expect("no writer panics").recv();
        let Ok(batch) = received else { return };
        for found in &batch {
            if let Err(error) = copy(found, target, &mut buffer) {
                eprintln!("{error}");
            }
        }
    }
}

fn copy(found: &WalkEntry, target: &TargetDir, buffer: &mut [u8]) -> Result<()> {
    let (entry, commit_options) = (&found.entry, CommitOptions::default());
    let Kind::File { size, .. } = entry.kind else {
        return target.make_symlink(entry, commit_options.on_conflict).map(drop);
    };
    let source = found.open()?;
    if size <= CHUNK_BYTES as u64 {
        let len = source.read_chunk(0, buffer)?;
        let root = small_root(&buffer[..len]);
        assert!(source.unchanged(), "{} changed", entry.path.display());
        // The receiver of a transfer hashes, too.
        assert_eq!(small_root(&buffer[..len]), root);
        return target.write_small(entry, &[&buffer[..len]], commit_options).map(drop);
    }
    let part = target.open_or_resume(entry, &[0; 32])?;
    let tree = entry.tree();
    let mut root = RootBuilder::of(tree);
    for run in source.runs() {
        match run {
            Run::Data(range) => {
                for index in range {
                    let len = source.read_chunk(index, buffer)?;
                    let cv = tree.chunk_cv(index, &[&buffer[..len]]);
                    root.push(cv);
                    part.write_chunk(index, &[&buffer[..len]], cv)?;
                }
            }
            Run::Hole(range) => {
                root.set_zeros(range.clone(), size);
                part.write_hole(range)?;
            }
        }
    }
    assert!(source.unchanged(), "{} changed", entry.path.display());
    let root = root.finish(size).expect("every chunk was pushed");
    part.finish(&root, commit_options).map(drop)
}
