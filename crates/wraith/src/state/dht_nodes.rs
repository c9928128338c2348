//! DHT nodes that answered an earlier run. With them, a client needs no bootstrap node. The
//! operators of bootstrap nodes would otherwise see each run of every user.
//!
//! Invariant: nothing depends on the file. A damaged file, or a file of a newer version, is treated
//! as empty, and a failed write is no error. The file only saves one query, and about a second, at
//! the next start.

use std::fmt::Write;
use std::net::SocketAddrV4;
use std::path::Path;

use tracing::debug;

use super::dir::StateDir;
use super::file::{Format, StateFile, version_behind};

const FILE: &str = "dht-nodes";
/// Prefix of the first line, before the version.
const HEADER: &str = "wraith dht nodes ";
/// As many as a client keeps.
const NODES_MAX: usize = 64;
const FORMAT: Format = Format {
    version: 1,
    version_of: |text| version_behind(text, HEADER),
    // Twice the maximum.
    max_bytes: 4 << 10,
    is_secret: false,
};

/// The stored nodes (see the module docs); `None` in memory.
#[derive(Debug)]
pub(crate) struct DhtNodes(Option<StateFile>);

impl DhtNodes {
    pub fn of(state: &StateDir) -> Self {
        Self(state.folder().map(|folder| StateFile::new(folder, Path::new(FILE), FORMAT)))
    }

    pub fn read(&self) -> Vec<SocketAddrV4> {
        let text = self.0.as_ref().and_then(|file| file.read().ok().flatten());
        let lines = text.as_ref().map(|text| text.lines().skip(1)).into_iter().flatten();
        lines.filter_map(|line| line.parse().ok()).take(NODES_MAX).collect()
    }

    /// Replaces the stored nodes. Does not write if nothing changed.
    pub fn write(&self, nodes: &[SocketAddrV4]) {
        let Some(file) = self.0.as_ref().filter(|_| !nodes.is_empty() && nodes != self.read())
        else {
            return;
        };
        let mut text = format!("{HEADER}{}\n", FORMAT.version);
        for node in nodes.iter().take(NODES_MAX) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{node}");
        }
        if let Err(error) = file.replace(text.into()) {
            debug!(%error, "cannot store DHT nodes");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn dht_nodes_survive_a_restart_and_a_damaged_file_counts_as_empty() {
        let folder = tempfile::tempdir().unwrap();
        let nodes = DhtNodes::of(&StateDir::in_folder(folder.path()));
        assert!(nodes.read().is_empty());
        let all: Vec<_> =
            (1..=100).map(|port| SocketAddrV4::new([127, 0, 0, 1].into(), port)).collect();
        nodes.write(&all);
        assert_eq!(nodes.read(), all[..NODES_MAX]);
        nodes.write(&[]);
        assert_eq!(nodes.read().len(), NODES_MAX);
        let file = folder.path().join(FILE);
        fs::write(&file, "wraith dht nodes 1\nrubbish\n127.0.0.1:7\n1.2.3.4:99999\n").unwrap();
        assert_eq!(nodes.read(), ["127.0.0.1:7".parse().unwrap()]);
        for damage in [&b"\xff\xfe"[..], b"wraith dht nodes 2\n127.0.0.1:7\n"] {
            fs::write(&file, damage).unwrap();
            assert!(nodes.read().is_empty());
        }
    }

    #[test]
    fn without_storage_no_nodes_are_remembered() {
        let node = "127.0.0.1:7".parse().unwrap();
        let below_a_file = tempfile::NamedTempFile::new().unwrap();
        for state in
            [StateDir::in_memory().unwrap(), StateDir::in_folder(below_a_file.path().join("home"))]
        {
            let nodes = DhtNodes::of(&state);
            nodes.write(&[node]);
            assert!(nodes.read().is_empty());
        }
    }
}
