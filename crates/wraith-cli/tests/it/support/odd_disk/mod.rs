//! A FUSE file system in memory with the habits of other systems' file systems, for one test.
//!
//! A name leads to an object by the form in which names are compared. An object has one inode, or
//! one for each path under which it was looked up.

mod habits;
mod requests;
mod store;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fuser::{BackgroundSession, Config};

pub use habits::Habits;
use store::OddFs;

use super::{is_root, skipped, unchecked};

/// A mounted file system. Drop unmounts it.
pub struct OddDisk {
    at: PathBuf,
    _session: BackgroundSession,
}

/// Mounts an empty file system at the folder `at`. Reports the reason if that is impossible.
pub fn odd_disk(habits: Habits, at: &Path) -> Option<OddDisk> {
    if !is_root() {
        skipped("mounting a FUSE file system needs root");
        return None;
    }
    if !Path::new("/dev/fuse").exists() {
        unchecked("there is no /dev/fuse");
        return None;
    }
    fs::create_dir_all(at).unwrap();
    match fuser::spawn_mount(OddFs::new(habits), at, &Config::default()) {
        Ok(session) => Some(OddDisk { at: at.to_owned(), _session: session }),
        Err(error) => {
            unchecked(&format!("a FUSE file system cannot be mounted: {error}"));
            None
        }
    }
}

impl Drop for OddDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}
