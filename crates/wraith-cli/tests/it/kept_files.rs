//! `--on-conflict skip`: a file that is there with the same content is already here, and the receipt
//! contains it. A file with other content keeps its name, and nothing is sent.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde_json::Value;

use crate::support::{Outcome, Process, World, tree};

/// Bytes of a file of several chunks, and of one that is sent as a whole.
const LARGE: usize = 3_000_000;
const SMALL: usize = 1000;

fn status<'a>(outcome: &'a Outcome, name: &str) -> &'a Value {
    let path = format!("t/{name}");
    &outcome.all("file").find(|file| file["path"] == path.as_str()).unwrap()["status"]
}

#[test]
fn an_equal_file_with_another_time_is_already_here() {
    let world = World::new();
    let (from, to) = (world.source().join("t"), world.target().join("t"));
    let (equal, other) = (["equal-large", "equal-small"], ["other-large", "other-small"]);
    fs::create_dir_all(&to).unwrap();
    for (seed, bytes, equal, other) in
        [(1, LARGE, equal[0], other[0]), (2, SMALL, equal[1], other[1])]
    {
        tree::file(&from.join(equal), seed, bytes);
        tree::file(&to.join(equal), seed, bytes);
        tree::set_time(&to.join(equal), 7, 0);
        tree::file(&from.join(other), seed, bytes);
        tree::file(&to.join(other), seed + 10, bytes);
    }
    let mut sender = world.send(&[&from]);
    let received = world.receive_with(&sender.ticket(), &["--on-conflict", "skip"]).finish();
    let sent = sender.finish();
    for side in [&received, &sent] {
        side.expect_exit(0);
        let done = side.last("done");
        let counts = ["files", "already_here", "skipped", "failed"].map(|name| &done[name]);
        assert_eq!(counts, [2, 2, 2, 0]);
        assert_eq!(done["bytes"], LARGE + SMALL);
        assert_eq!(done["bytes_moved"], 0);
    }
    for name in equal {
        assert_eq!(status(&received, name), "already-here");
        assert_eq!(status(&sent, name), "already-here");
        assert_eq!(fs::metadata(to.join(name)).unwrap().mtime(), 7);
    }
    for (name, seed, bytes) in [(other[0], 11, LARGE), (other[1], 12, SMALL)] {
        assert_eq!(status(&received, name), "skipped");
        assert_eq!(status(&sent, name), "skipped");
        assert!(fs::read(to.join(name)).unwrap() == tree::noise(seed, bytes), "{name} has changed");
    }
    let mut verify = world.wraith("receiver");
    let verified = Process::start("verify", verify.args(["verify", "--json"]).arg(world.target()));
    verified.succeed();
}
