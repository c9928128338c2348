//! What a code brought, kept until the transfer is done: a code works once, but the same command must continue after a
//! crash.
//!
//! Invariant: a record is readable by its owner only and is named by a hash of the code. It goes when the transfer has
//! ended for good, or after a week.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use data_encoding::BASE32_NOPAD;
use wraith_discovery::{Code, Ticket};

use crate::failure::{Exit, Failure};
use crate::home::{Home, read_private};

const FOLDER: &str = "codes";
/// As long as the sender remembers an unfinished send.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

/// The place of one code's ticket.
#[derive(Debug)]
pub struct Saved {
    path: PathBuf,
    code: String,
}

impl Saved {
    /// The place for `code`, whether there is anything or not.
    pub fn of(home: &Home, code: &Code) -> Result<Self, Failure> {
        let folder = home.subfolder(FOLDER)?;
        forget_old(&folder);
        let code = code.to_string();
        let hash = wraith_crypto::kdf::derive("wraith/1 saved code", code.as_bytes());
        let name = BASE32_NOPAD.encode(&hash[..20]).to_ascii_lowercase();
        Ok(Self { path: folder.join(name), code })
    }

    /// The code.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The ticket that was kept.
    pub fn ticket(&self) -> Option<Ticket> {
        read_private(&self.path).ok()?.parse().ok()
    }

    /// Keeps the ticket.
    pub fn keep(&self, ticket: &Ticket) -> Result<(), Failure> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&self.path);
        file.and_then(|mut file| writeln!(file, "{ticket}"))
            .map_err(|e| Failure::disk(format!("cannot write {}", self.path.display()), &e))
    }

    /// The transfer ended in this way: what cannot be continued is forgotten.
    pub fn settle(&self, failure: Option<&Failure>) {
        let continues = failure.is_some_and(|failure| {
            matches!(
                failure.exit,
                Exit::PeerNotFound
                    | Exit::NetworkLost
                    | Exit::Disk
                    | Exit::Other
                    | Exit::Partial
                    | Exit::Interrupted
                    | Exit::Terminated
            )
        });
        if !continues {
            // Nothing is lost when this fails: it expires.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes records past [`MAX_AGE`]. What fails here is tried again the next time.
fn forget_old(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|m| m.modified()).map(|t| t.elapsed());
        if matches!(age, Ok(Ok(age)) if age > MAX_AGE) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use wraith_crypto::SecretIdentity;
    use wraith_discovery::Capability;

    use super::*;

    fn ticket() -> Ticket {
        let node_id = SecretIdentity::from_seed([1; 32]).node_id();
        Ticket::new(node_id, Capability::from_bytes([2; 16]), vec!["127.0.0.1:9".parse().unwrap()])
    }

    #[test]
    fn a_ticket_is_kept_until_the_transfer_has_ended_for_good() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().to_owned()).unwrap();
        let saved = || Saved::of(&home, &Code::new(7, [1; 4])).unwrap();
        assert_eq!(saved().ticket(), None);
        saved().keep(&ticket()).unwrap();
        assert_eq!(saved().ticket(), Some(ticket()));
        assert_eq!(Saved::of(&home, &Code::new(7, [2; 4])).unwrap().ticket(), None);
        for (exit, stays) in
            [(Exit::NetworkLost, true), (Exit::Interrupted, true), (Exit::Refused, false)]
        {
            saved().keep(&ticket()).unwrap();
            saved().settle(Some(&Failure::new(exit, "")));
            assert_eq!(saved().ticket().is_some(), stays, "{exit:?}");
        }
        saved().keep(&ticket()).unwrap();
        saved().settle(None);
        assert_eq!(saved().ticket(), None);
    }

    #[test]
    fn a_record_older_than_a_week_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().to_owned()).unwrap();
        let saved = || Saved::of(&home, &Code::new(7, [1; 4])).unwrap();
        saved().keep(&ticket()).unwrap();
        let old = SystemTime::now() - MAX_AGE - Duration::from_secs(60);
        OpenOptions::new().write(true).open(saved().path).unwrap().set_modified(old).unwrap();
        assert_eq!(saved().ticket(), None);
    }
}
