//! After a transfer: updates the contact if the peer is one, or saves an unknown peer under a name.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use jiff::Timestamp;
use wraith::state::{ContactName, ContactStore, LastSeen, users_folder};
use wraith::{NodeId, Role};

use super::command::{contact_failure, report_contact};
use crate::ask::Answers;
use crate::config;
use crate::failure::Failure;
use crate::home;
use crate::output::Reporter;
use crate::report::decision_id;
use crate::signals::Signals;

/// Whether the user has answered never. A listener may have started before that was in the config
/// file.
static NEVER_ASK: AtomicBool = AtomicBool::new(false);

/// Maximum number of attempts to type a valid name.
const TRIES: u32 = 5;

/// Whether to save an unknown peer as a contact.
#[derive(Clone, Copy, Debug)]
pub enum SaveContact<'a> {
    /// Save it under this name.
    As(&'a ContactName),
    /// Ask, if the terminal is interactive.
    Ask,
    No,
}

impl<'a> SaveContact<'a> {
    /// Returns the choice that the options of a command make.
    pub fn of(save_as: Option<&'a ContactName>, may_ask: bool) -> Self {
        match save_as {
            Some(name) => Self::As(name),
            None if may_ask => Self::Ask,
            None => Self::No,
        }
    }
}

/// The other side of a successful transfer.
#[derive(Clone, Debug)]
pub struct TransferPeer {
    pub node_id: NodeId,
    pub role: Role,
    pub last_seen: LastSeen,
}

/// Stores where the other side was seen, if it is a contact or becomes one.
///
/// # Errors
/// The peer was to be saved under a name and could not be. Any other failure is only a warning,
/// because the transfer is done.
pub async fn after_transfer(
    other: &TransferPeer,
    keep: SaveContact<'_>,
    answers: &Answers,
    signals: &Signals,
    reporter: &Reporter,
) -> Result<(), Failure> {
    match (update_contacts(other, keep, answers, signals, reporter).await, keep) {
        (Err(failure), SaveContact::As(name)) => {
            let message = format!(
                "everything was transferred, but the {} could not be saved as {name}: {}",
                other.role, failure.message
            );
            Err(Failure { message, ..failure })
        }
        (Err(failure), _) => {
            reporter.note("", &failure.message);
            Ok(())
        }
        (Ok(()), _) => Ok(()),
    }
}

async fn update_contacts(
    other: &TransferPeer,
    keep: SaveContact<'_>,
    answers: &Answers,
    signals: &Signals,
    reporter: &Reporter,
) -> Result<(), Failure> {
    if users_folder().is_none() && !matches!(keep, SaveContact::As(_)) {
        // There are no contacts, and the transfer has begun with a note that nothing is saved.
        return Ok(());
    }
    let store = home::open()?.contacts();
    let known = store.load()?.with(other.node_id).is_some();
    match keep {
        SaveContact::As(name) => add(&store, name, other, reporter),
        _ if known => store.change(|book| -> Result<_, Failure> {
            book.record_seen(other.node_id, &other.last_seen, Timestamp::now());
            Ok(())
        }),
        SaveContact::Ask if reporter.is_interactive() && !NEVER_ASK.load(Relaxed) => {
            ask_for_name(&store, other, answers, signals, reporter).await
        }
        SaveContact::Ask | SaveContact::No => Ok(()),
    }
}

fn add(
    store: &ContactStore,
    name: &ContactName,
    other: &TransferPeer,
    reporter: &Reporter,
) -> Result<(), Failure> {
    let (contact, is_new) = store.change(|book| -> Result<_, Failure> {
        let is_new = book.with(other.node_id).is_none();
        book.add(name, other.node_id).map_err(contact_failure)?;
        book.record_seen(other.node_id, &other.last_seen, Timestamp::now());
        Ok((book.with(other.node_id).cloned().expect("it was just added"), is_new))
    })?;
    if is_new {
        report_contact(&contact, Some("added"), reporter);
        reporter.status(format!(
            "{name} is a contact now: wraith send FILE --to {name}, while wraith listen runs there."
        ));
    }
    Ok(())
}

async fn ask_for_name(
    store: &ContactStore,
    other: &TransferPeer,
    answers: &Answers,
    signals: &Signals,
    reporter: &Reporter,
) -> Result<(), Failure> {
    let node_id = other.node_id.to_string();
    let short = decision_id(&node_id);
    let question = format!(
        "Save the {} ({short}) as a contact? Type a name, Enter for no, or never: ",
        other.role
    );
    for _ in 0..TRIES {
        let answer = tokio::select! {
            answer = answers.ask(&question) => answer,
            _ = signals.wait() => None,
        };
        let Some(text) = answer else { return Ok(()) };
        // Yes and no are answers to another kind of question, and no names.
        match text.to_lowercase().as_str() {
            "" | "n" | "no" => return Ok(()),
            "never" => {
                NEVER_ASK.store(true, Relaxed);
                let path = config::never_ask_for_contacts()?;
                reporter.status(format!(
                    "wraith will not ask this again ({}). To undo: wraith config unset no-contacts",
                    path.display()
                ));
                return Ok(());
            }
            "y" | "yes" => {
                reporter.warn("type a name, for example: anna");
                continue;
            }
            _ => {}
        }
        let added = match text.parse::<ContactName>() {
            Ok(name) => add(store, &name, other, reporter).map_err(|failure| failure.message),
            Err(why) => Err(why.to_string()),
        };
        match added {
            Ok(()) => return Ok(()),
            Err(why) => reporter.warn(why),
        }
    }
    Ok(())
}
