//! The file of the secret identity: a header line with its version, and the seed in base32.

use std::path::Path;

use data_encoding::BASE32_NOPAD;
use wraith_crypto::identity::SecretIdentity;
use zeroize::Zeroizing;

use super::error::{StateError, StateErrorKind};
use super::file::{Format, StateFile, version_behind};
use super::folder::check_folder;
use super::handshake_log;

/// Name of the identity file in the state folder.
pub const IDENTITY_FILE: &str = "identity";
/// Start of the first line, followed by the version and [`HEADER_END`].
const HEADER: &str = "wraith secret identity ";
const HEADER_END: &str = ": keep this file to yourself";
const FORMAT: Format = Format {
    version: 1,
    version_of: |text| version_behind(text, HEADER),
    max_bytes: 4096,
    is_secret: true,
};

/// Loads the identity of a folder, or creates it. Of two concurrent first uses, one creates it and
/// both use it.
pub(super) fn load_or_make(folder: &Path) -> Result<SecretIdentity, StateError> {
    check_folder(folder)?;
    let file = StateFile::new(folder, IDENTITY_FILE, FORMAT);
    if let Some(text) = file.read()? {
        return parse(&text).ok_or_else(|| is_none(&file));
    }
    file.change(|text| match text {
        Some(text) => Ok((None, parse(text).ok_or_else(|| is_none(&file))?)),
        None => {
            let seed = new_seed()?;
            let identity = SecretIdentity::from_seed(*seed);
            if let Err(error) = handshake_log::create(folder, identity.node_id()) {
                // The clocks then decide about replays.
                tracing::debug!(%error, "cannot create the log of handshakes");
            }
            Ok((Some(encode(&seed)), identity))
        }
    })
}

/// Returns 32 bytes of system randomness.
pub(super) fn new_seed() -> Result<Zeroizing<[u8; 32]>, StateError> {
    let mut seed = Zeroizing::new([0; 32]);
    random(&mut *seed)?;
    Ok(seed)
}

/// Fills `bytes` with system randomness.
pub(super) fn random(bytes: &mut [u8]) -> Result<(), StateError> {
    let no_randomness = |error| {
        let message = format!("no randomness from the system: {error}");
        StateError::new(StateErrorKind::Randomness, message)
    };
    getrandom::fill(bytes).map_err(no_randomness)
}

fn encode(seed: &[u8; 32]) -> Zeroizing<String> {
    let version = FORMAT.version;
    Zeroizing::new(format!("{HEADER}{version}{HEADER_END}\n{}\n", BASE32_NOPAD.encode(seed)))
}

fn parse(text: &str) -> Option<SecretIdentity> {
    let version = FORMAT.version.to_string();
    let text = text.strip_prefix(HEADER)?.strip_prefix(&version)?.strip_prefix(HEADER_END)?;
    let seed = Zeroizing::new(BASE32_NOPAD.decode(text.trim().as_bytes()).ok()?);
    Some(SecretIdentity::from_seed(seed.as_slice().try_into().ok()?))
}

fn is_none(file: &StateFile) -> StateError {
    file.damaged("is not an identity")
        .hint("restore it from a copy, or move it away to get a new identity (a new NodeId)")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;

    fn home() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        (folder, home)
    }

    #[test]
    fn the_identity_is_made_once_and_only_its_owner_can_read_it() {
        let (_folder, home) = home();
        let first = load_or_make(&home).unwrap().node_id();
        assert_eq!(load_or_make(&home).unwrap().node_id(), first);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&home), 0o700);
        assert_eq!(mode(&home.join(IDENTITY_FILE)), 0o600);
        let count = fs::read_dir(&home).unwrap().count();
        assert_eq!(count, 3, "the file, the lock, and the log of handshakes");
    }

    #[test]
    fn a_file_of_the_first_format_is_read() {
        let (_folder, home) = home();
        fs::create_dir(&home).unwrap();
        let path = home.join(IDENTITY_FILE);
        let seed = BASE32_NOPAD.encode(&[7; 32]);
        let text = format!("wraith secret identity 1: keep this file to yourself\n{seed}\n");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        let expected = SecretIdentity::from_seed([7; 32]).node_id();
        assert_eq!(load_or_make(&home).unwrap().node_id(), expected);
    }

    #[test]
    fn an_identity_that_others_can_read_is_refused() {
        let (_folder, home) = home();
        load_or_make(&home).unwrap();
        let path = home.join(IDENTITY_FILE);
        fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        let error = load_or_make(&home).unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Exposed);
        assert!(error.help().unwrap().contains("chmod 600"));
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let (_folder, home) = home();
        load_or_make(&home).unwrap();
        for mode in [0o720, 0o702, 0o1777] {
            fs::set_permissions(&home, PermissionsExt::from_mode(mode)).unwrap();
            let error = load_or_make(&home).unwrap_err();
            assert_eq!(error.kind(), StateErrorKind::Exposed);
            assert!(error.help().unwrap().contains("chmod 700"));
        }
        fs::set_permissions(&home, PermissionsExt::from_mode(0o755)).unwrap();
        load_or_make(&home).unwrap();
    }

    #[test]
    fn a_folder_in_place_of_the_identity_is_reported() {
        let (_folder, home) = home();
        fs::create_dir_all(home.join(IDENTITY_FILE)).unwrap();
        let error = load_or_make(&home).unwrap_err();
        assert!(error.to_string().contains("is a folder"), "{error}");
    }

    #[test]
    fn a_damaged_or_newer_identity_is_reported_and_kept() {
        let (_folder, home) = home();
        load_or_make(&home).unwrap();
        let path = home.join(IDENTITY_FILE);
        for (text, kind) in [
            ("something else", StateErrorKind::Damaged),
            ("wraith secret identity 2: another world\n", StateErrorKind::Newer),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(load_or_make(&home).unwrap_err().kind(), kind);
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn many_first_uses_at_once_agree() {
        let (_folder, home) = home();
        let identities: Vec<_> = std::thread::scope(|scope| {
            let uses: Vec<_> =
                (0..8).map(|_| scope.spawn(|| load_or_make(&home).unwrap().node_id())).collect();
            uses.into_iter().map(|u| u.join().unwrap()).collect()
        });
        assert!(identities.iter().all(|id| *id == identities[0]));
    }
}
