//! Lists the unfinished files below a folder, for the user.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::path::PART_SUFFIX;

/// Maximum number of entries that are looked at. A larger tree is listed in part.
const ENTRIES_MAX: usize = 100_000;
/// Unit of [`MetadataExt::blocks`], in bytes.
const BLOCK_BYTES: u64 = 512;

/// A file of an interrupted transfer under its hidden name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedFile {
    /// Path of the hidden file.
    pub path: PathBuf,
    /// Disk space that it occupies, in bytes.
    pub bytes: u64,
}

/// Returns the unfinished files below `folder` that were written at `since` or later, largest first.
/// Follows no link, enters no other file system, and leaves out what cannot be read.
pub fn unfinished_files(folder: &Path, since: SystemTime) -> Vec<UnfinishedFile> {
    let (mut found, mut seen) = (Vec::new(), 0);
    let device = fs::metadata(folder).map_or(0, |meta| meta.dev());
    let mut folders = vec![folder.to_owned()];
    while let Some(entries) = folders.pop().map(fs::read_dir) {
        for entry in entries.into_iter().flatten().flatten() {
            seen += 1;
            let Ok(meta) = entry.metadata() else { continue };
            let name = entry.file_name();
            if meta.is_dir() && meta.dev() == device {
                folders.push(entry.path());
            } else if meta.is_file()
                && name.as_bytes().ends_with(PART_SUFFIX)
                && meta.modified().is_ok_and(|written| written >= since)
            {
                let bytes = meta.blocks().saturating_mul(BLOCK_BYTES);
                found.push(UnfinishedFile { path: entry.path(), bytes });
            }
            if seen >= ENTRIES_MAX {
                folders.clear();
                break;
            }
        }
    }
    found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.path.cmp(&b.path)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_in_all_folders_with_their_disk_space_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        let large = dir.path().join("a/b/.film.wraith-part");
        fs::write(&large, vec![1; 200_000]).unwrap();
        let sparse = dir.path().join(".x.wraith-part");
        fs::File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
        fs::write(dir.path().join("film"), "x").unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("root")).unwrap();
        std::os::unix::fs::symlink(&large, dir.path().join(".y.wraith-part")).unwrap();
        let found = unfinished_files(dir.path(), SystemTime::UNIX_EPOCH);
        let paths: Vec<_> = found.iter().map(|file| file.path.clone()).collect();
        assert_eq!(paths, [large, sparse]);
        assert!(found[0].bytes >= 200_000 && found[1].bytes < 1 << 20, "{found:?}");
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        assert_eq!(unfinished_files(dir.path(), later), []);
        assert_eq!(unfinished_files(&dir.path().join("nothing"), SystemTime::UNIX_EPOCH), []);
    }
}
