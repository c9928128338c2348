//! Files and folders around the target that no transfer may touch.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::support::World;

/// A snapshot of everything outside the target.
pub struct Canaries {
    root: PathBuf,
    before: BTreeMap<PathBuf, (u64, u32, i64, i64, Vec<u8>)>,
}

impl Canaries {
    /// Puts entries next to the target, in the way of an escape, and takes a snapshot.
    pub fn around(world: &World) -> Self {
        for name in ["x", "outside/x", "outside/folder/x"] {
            let path = world.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "canary").unwrap();
        }
        let root = world.path("");
        let before = snapshot(&root);
        Self { root, before }
    }

    #[track_caller]
    pub fn expect_untouched(&self) {
        assert_eq!(snapshot(&self.root), self.before, "something outside the target was touched");
    }
}

fn snapshot(root: &Path) -> BTreeMap<PathBuf, (u64, u32, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            if name == "target" || name.starts_with("home-") {
                continue;
            }
            let meta = fs::symlink_metadata(&path).unwrap();
            let mut content = Vec::new();
            if meta.is_dir() {
                folders.push(path.clone());
            } else if meta.is_file() {
                content = fs::read(&path).unwrap();
            }
            let state = (meta.ino(), meta.mode(), meta.mtime(), meta.mtime_nsec(), content);
            found.insert(path, state);
        }
    }
    found
}
