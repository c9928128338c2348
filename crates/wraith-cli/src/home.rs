//! The folder that holds what outlives a command: the identity, and the state of sends that can be continued.
//!
//! Invariant: nothing in it can be read by another user. The folder is made with mode 0700 and each file with 0600;
//! an identity that others can read is refused rather than used.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use data_encoding::BASE32_NOPAD;
use wraith_crypto::identity::SecretIdentity;
use zeroize::Zeroizing;

use crate::failure::{Exit, Failure};

/// In the folder, the file of the secret identity.
pub const IDENTITY_FILE: &str = "identity";
/// First line of the identity file; the second is the seed in base32.
const IDENTITY_HEADER: &str = "wraith secret identity 1: keep this file to yourself";
/// Far more than the two lines of an identity file take.
const MAX_IDENTITY_FILE_BYTES: u64 = 4096;

/// `$WRAITH_HOME`, else `$XDG_CONFIG_HOME/wraith`, else `~/.config/wraith`; made or not. None if no variable is set.
pub fn folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    variable("WRAITH_HOME")
        .or_else(|| variable("XDG_CONFIG_HOME").map(|c| c.join("wraith")))
        .or_else(|| variable("HOME").map(|h| h.join(".config/wraith")))
}

/// The folder itself, which exists.
#[derive(Clone, Debug)]
pub struct Home {
    folder: PathBuf,
}

impl Home {
    /// Finds the folder and makes it when it is not there.
    ///
    /// # Errors
    /// No such variable is set, or the folder cannot be made.
    pub fn open() -> Result<Self, Failure> {
        let folder = folder().ok_or_else(|| {
            Failure::new(Exit::Other, "no folder for the identity: HOME is not set")
                .hint("set WRAITH_HOME to a folder of your own")
        })?;
        Self::at(folder)
    }

    /// The same with a given folder.
    pub fn at(folder: PathBuf) -> Result<Self, Failure> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|e| Failure::disk(format!("cannot make {}", folder.display()), &e))?;
        Ok(Self { folder })
    }

    /// Where a file inside is, or would be.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A folder inside, made when it is not there.
    pub fn subfolder(&self, name: &str) -> Result<PathBuf, Failure> {
        Self::at(self.folder.join(name)).map(|inner| inner.folder)
    }

    /// This machine's identity, made on first use.
    ///
    /// # Errors
    /// The file cannot be read or made, is not an identity, or can be read by other users.
    pub fn identity(&self) -> Result<SecretIdentity, Failure> {
        let path = self.folder.join(IDENTITY_FILE);
        match read_private(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => self.make_identity(&path),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied && path.metadata().is_ok() => {
                Err(Failure::disk(format!("cannot use {}", path.display()), &e)
                    .hint(format!("if it is yours: chmod 600 {}", path.display())))
            }
            Err(e) => Err(Failure::disk(format!("cannot read {}", path.display()), &e)),
            Ok(text) => parse_identity(&text).ok_or_else(|| {
                Failure::new(Exit::Other, format!("{} is not an identity", path.display())).hint(
                    "restore it from a copy, or move it away to get a new identity (a new NodeId)",
                )
            }),
        }
    }

    /// Writes a new identity under a name of its own and links it into place, so that of two first uses at the same
    /// time one wins and both use the winner's.
    fn make_identity(&self, path: &Path) -> Result<SecretIdentity, Failure> {
        let failed = |e: io::Error| Failure::disk(format!("cannot make {}", path.display()), &e);
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *seed).map_err(|e| failed(io::Error::other(e)))?;
        let text = Zeroizing::new(format!("{IDENTITY_HEADER}\n{}\n", BASE32_NOPAD.encode(&*seed)));
        let mut unique = [0; 10];
        getrandom::fill(&mut unique).map_err(|e| failed(io::Error::other(e)))?;
        let new = self.folder.join(format!(".{IDENTITY_FILE}.{}", BASE32_NOPAD.encode(&unique)));
        write_private(&new, text.as_bytes()).map_err(failed)?;
        let linked = fs::hard_link(&new, path);
        fs::remove_file(&new).map_err(failed)?;
        match linked {
            Ok(()) => Ok(SecretIdentity::from_seed(*seed)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => self.identity(),
            Err(e) => Err(failed(e)),
        }
    }
}

fn parse_identity(text: &str) -> Option<SecretIdentity> {
    let seed = text.strip_prefix(IDENTITY_HEADER)?.trim();
    let seed = Zeroizing::new(BASE32_NOPAD.decode(seed.as_bytes()).ok()?);
    Some(SecretIdentity::from_seed(seed.as_slice().try_into().ok()?))
}

/// Reads a small file that only its owner can read.
///
/// # Errors
/// Besides those of reading: `PermissionDenied` when others could read it too.
pub fn read_private(path: &Path) -> io::Result<Zeroizing<String>> {
    let file = File::open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        let why = "other users can read it, so it is no secret any more";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    let mut text = Zeroizing::new(String::new());
    file.take(MAX_IDENTITY_FILE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Writes a file that only its owner can read, replacing what had the name, and waits until it is on the disk.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home")).unwrap();
        (folder, home)
    }

    #[test]
    fn the_identity_is_made_once_and_only_its_owner_can_read_it() {
        let (_folder, home) = home();
        let first = home.identity().unwrap().node_id();
        assert_eq!(home.identity().unwrap().node_id(), first);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&home.folder), 0o700);
        assert_eq!(mode(&home.folder.join(IDENTITY_FILE)), 0o600);
        assert_eq!(fs::read_dir(&home.folder).unwrap().count(), 1);
    }

    #[test]
    fn an_identity_that_others_can_read_is_refused() {
        let (_folder, home) = home();
        home.identity().unwrap();
        let path = home.folder.join(IDENTITY_FILE);
        fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        let failure = home.identity().unwrap_err();
        assert_eq!(failure.exit, Exit::Disk);
        assert!(failure.hint.unwrap().contains("chmod 600"));
    }

    #[test]
    fn a_damaged_identity_is_reported_and_kept() {
        let (_folder, home) = home();
        let path = home.folder.join(IDENTITY_FILE);
        write_private(&path, b"something else").unwrap();
        assert!(home.identity().unwrap_err().message.contains("not an identity"));
        assert_eq!(fs::read(path).unwrap(), b"something else");
    }

    #[test]
    fn many_first_uses_at_once_agree() {
        let (_folder, home) = home();
        let identities: Vec<_> = std::thread::scope(|scope| {
            let uses: Vec<_> =
                (0..8).map(|_| scope.spawn(|| home.identity().unwrap().node_id())).collect();
            uses.into_iter().map(|u| u.join().unwrap()).collect()
        });
        assert!(identities.iter().all(|id| *id == identities[0]));
    }
}
