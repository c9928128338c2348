//! Folders that this transfer created under other names because their own names were taken. A later
//! connection continues in them, and in no others.
//!
//! A hidden file in the target has one 16-byte mark for each such folder. The mark is a keyed hash
//! of the folder's path in the manifest, its given name, and its identity. The key depends on the
//! capability secret and the sender, so third parties cannot forge marks. The key does not depend on
//! the boot ID, because a reboot changes no folder.
//!
//! The identity of a folder is its inode and creation time. If the file system does not record
//! creation times, the identity is a token: a keyed hash in a hidden file in the folder. The token
//! is removed when the transfer is complete. No peer can name the file.
//!
//! Invariant: nothing is written into a folder beside the offered name that this transfer did not
//! create. If a mark or a token is lost, the folder gets another number.

use std::collections::HashSet;
use std::io::Write;
use std::sync::Mutex;

use wraith_files::{Error, FolderId, RelPath, TargetDir};

use crate::lock::lock;

type Mark = [u8; 16];

/// Identity of a folder, encoded: inode and creation time, or its token.
type Identity = Vec<u8>;

/// Maximum number of marks read and written (1 MiB). Further folders are remembered on this
/// connection only.
const MARKS_MAX: usize = 65_536;

/// Marks of renamed folders; see the module documentation.
#[derive(Debug)]
pub(crate) struct RenamedFolders {
    key: [u8; 32],
    name: String,
    /// Name of the token file in a folder.
    token_name: String,
    target: TargetDir,
    state: Mutex<FolderRenames>,
}

#[derive(Debug, Default)]
struct FolderRenames {
    marks: HashSet<Mark>,
    /// Folders created on this connection.
    made: HashSet<RelPath>,
    /// Folders with a token, created or continued on this connection.
    with_token: HashSet<RelPath>,
}

impl RenamedFolders {
    /// Reads the marks of `transfer_id` from earlier connections. Creates no file.
    pub(crate) fn look(target: &TargetDir, transfer_id: &[u8; 16], key: &[u8; 32]) -> Self {
        let id: String = transfer_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!(".wraith-{id}-folders.state");
        let token_name = format!(".wraith-{id}-folder.state");
        // Without the file, folders get another number.
        let bytes = target.read_hidden(&name, MARKS_MAX * size_of::<Mark>()).unwrap_or_default();
        let marks = bytes.as_chunks().0.iter().copied().collect();
        let key = wraith_crypto::kdf::derive("wraith/1 renamed folder", key);
        let state = Mutex::new(FolderRenames { marks, ..FolderRenames::default() });
        Self { key, name, token_name, target: target.clone(), state }
    }

    /// Returns the folder that an earlier connection created for `offered`, beside the taken
    /// `path`.
    pub(crate) fn find(&self, offered: &RelPath, path: &RelPath) -> Option<RelPath> {
        if lock(&self.state).marks.is_empty() {
            return None;
        }
        // The copies of a name are numbered without gaps, unless the user removes one.
        let copies = (1..).map_while(|number| path.copy(number).ok());
        let there = copies.take_while(|copy| matches!(self.target.existing(copy), Ok(Some(_))));
        let found = { there }.find(|copy| self.is_known(offered.as_bytes(), copy))?;
        if self.has_token(&found) {
            lock(&self.state).with_token.insert(found.clone());
        }
        Some(found)
    }

    /// Returns true if `path` is a folder that this transfer created for another folder of the
    /// manifest.
    pub(crate) fn is_taken(&self, path: &RelPath) -> bool {
        let (has_made, has_marks) = {
            let state = lock(&self.state);
            (state.made.contains(path), !state.marks.is_empty())
        };
        has_made || has_marks && self.is_known(b"", path)
    }

    /// Records that the folder `offered` of the manifest was created as `path`. This connection
    /// remembers it even after an error.
    pub(crate) fn add(&self, offered: &RelPath, path: &RelPath) -> Result<(), Error> {
        let mut state = lock(&self.state);
        state.made.insert(path.clone());
        if state.marks.len() + 2 > MARKS_MAX {
            return Ok(());
        }
        let identity = match self.creation(path)? {
            Some(identity) => identity,
            None => {
                let token = self.token(path);
                if self.target.write_token(path, &self.token_name, &token).is_err() {
                    // The folder only gets another number.
                    return Ok(());
                }
                state.with_token.insert(path.clone());
                token
            }
        };
        let marks = [offered.as_bytes(), b""].map(|offered| self.mark(offered, path, &identity));
        state.marks.extend(marks);
        let mut file = self.target.open_hidden(&self.name)?;
        // After a failed write, the folder only gets another number. But an incomplete mark would
        // invalidate the marks behind it.
        let whole = |len: u64| len - len % size_of::<Mark>() as u64;
        let _ = file
            .metadata()
            .and_then(|metadata| file.set_len(whole(metadata.len())))
            .and_then(|()| file.write_all(marks.as_flattened()))
            .and_then(|()| file.sync_data());
        Ok(())
    }

    /// Removes the hidden files of a complete transfer.
    pub(crate) fn remove(&self) {
        for path in std::mem::take(&mut lock(&self.state).with_token) {
            // A leftover only costs a small file.
            let _ = self.target.remove_token(&path, &self.token_name);
        }
        if !lock(&self.state).marks.is_empty() {
            // A leftover only costs 32 bytes per folder.
            let _ = self.target.remove_hidden(&self.name);
        }
    }

    fn is_known(&self, offered: &[u8], path: &RelPath) -> bool {
        let identity = match self.creation(path) {
            Ok(Some(identity)) => identity,
            Ok(None) if self.has_token(path) => self.token(path),
            _ => return false,
        };
        lock(&self.state).marks.contains(&self.mark(offered, path, &identity))
    }

    /// Returns the inode and creation time of the folder at `path`, encoded. `None` if there is no
    /// folder, or the file system does not record creation times.
    fn creation(&self, path: &RelPath) -> Result<Option<Identity>, Error> {
        let encode = |FolderId { ino, born }: FolderId| {
            [&ino.to_be_bytes()[..], &born.s.to_be_bytes(), &born.ns.to_be_bytes()].concat()
        };
        Ok(self.target.folder_id(path)?.map(encode))
    }

    /// Returns the token of the folder at `path`.
    fn token(&self, path: &RelPath) -> Identity {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(b"token").update(path.as_bytes());
        hasher.finalize().as_bytes().to_vec()
    }

    fn has_token(&self, path: &RelPath) -> bool {
        self.target.has_token(path, &self.token_name, &self.token(path))
    }

    fn mark(&self, offered: &[u8], path: &RelPath, identity: &[u8]) -> Mark {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        for name in [offered, path.as_bytes()] {
            hasher.update(&(name.len() as u64).to_be_bytes()).update(name);
        }
        hasher.update(identity);
        *hasher.finalize().as_bytes().first_chunk().expect("a hash has 32 bytes")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::placement::tests::path;
    use super::*;

    #[test]
    fn a_later_connection_finds_its_own_folder_and_no_other() {
        let dir = tempfile::tempdir_in(".").unwrap();
        let target = TargetDir::open(dir.path()).unwrap();
        let at = |key| RenamedFolders::look(&target, &[1; 16], &[key; 32]);
        fs::write(dir.path().join("a"), "mine").unwrap();
        fs::create_dir(dir.path().join("a (1)")).unwrap();
        fs::create_dir(dir.path().join("a (2)")).unwrap();
        let first = at(2);
        assert_eq!(first.find(&path("a"), &path("a")), None);
        assert!(
            !dir.path().join(".wraith-01010101010101010101010101010101-folders.state").exists()
        );
        first.add(&path("a"), &path("a (2)")).unwrap();
        assert!(first.is_taken(&path("a (2)")) && !first.is_taken(&path("a (1)")));
        if target.folder_id(&path("a (2)")).unwrap().is_none() {
            return;
        }
        let later = at(2);
        assert_eq!(later.find(&path("a"), &path("a")), Some(path("a (2)")));
        assert!(later.is_taken(&path("a (2)")));
        assert_eq!(later.find(&path("b"), &path("a")), None, "it was made for another");
        assert_eq!(at(3).find(&path("a"), &path("a")), None, "another sender's or transfer's");
        // Another folder takes its place.
        fs::remove_dir(dir.path().join("a (2)")).unwrap();
        fs::create_dir(dir.path().join("a (2)")).unwrap();
        assert_eq!(at(2).find(&path("a"), &path("a")), None);
        later.remove();
        assert_eq!(target.read_hidden(&later.name, 100).unwrap(), []);
    }
}
