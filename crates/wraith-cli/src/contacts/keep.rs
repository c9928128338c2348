//! After a transfer: a contact that was met is remembered as such, and somebody new can be kept under a name.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use jiff::Timestamp;
use wraith::state::{ContactStore, Meeting, Name};
use wraith::{NodeId, Role};

use super::command::{refused, tell};
use crate::ask::Answers;
use crate::config;
use crate::failure::Failure;
use crate::home;
use crate::output::Reporter;
use crate::report::short_id;
use crate::signals::Signals;

/// The user has said never. A listener may have begun before it stood in the config file.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Names that a person may mistype before the question is given up.
const TRIES: u32 = 5;

/// Whether to keep somebody new.
#[derive(Clone, Copy, Debug)]
pub enum Keep<'a> {
    /// Under this name.
    As(&'a Name),
    /// Ask, if there is a person to ask.
    Ask,
    No,
}

impl<'a> Keep<'a> {
    /// What the options of a command say.
    pub fn of(save_as: Option<&'a Name>, may_ask: bool) -> Self {
        match save_as {
            Some(name) => Self::As(name),
            None if may_ask => Self::Ask,
            None => Self::No,
        }
    }
}

/// The other side of a transfer that has ended well.
#[derive(Clone, Debug)]
pub struct Other {
    pub node_id: NodeId,
    pub role: Role,
    pub meeting: Meeting,
}

/// Remembers the meeting, if the other side is a contact or becomes one.
///
/// # Errors
/// It was to be kept under a name and cannot be. Everything else is only worth a warning: the transfer is done.
pub async fn after_transfer(
    other: &Other,
    keep: Keep<'_>,
    answers: &Answers,
    signals: &Signals,
    reporter: &Reporter,
) -> Result<(), Failure> {
    match (remember(other, keep, answers, signals, reporter).await, keep) {
        (Err(failure), Keep::As(name)) => {
            let message = format!(
                "everything was transferred, but the {} is not kept as {name}: {}",
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

async fn remember(
    other: &Other,
    keep: Keep<'_>,
    answers: &Answers,
    signals: &Signals,
    reporter: &Reporter,
) -> Result<(), Failure> {
    let store = home::open()?.contacts();
    let known = store.load()?.with(other.node_id).is_some();
    match keep {
        Keep::As(name) => add(&store, name, other, reporter),
        _ if known => store.change(|book| -> Result<_, Failure> {
            book.met(other.node_id, &other.meeting, Timestamp::now());
            Ok(())
        }),
        Keep::Ask if reporter.is_interactive() && !NEVER.load(Relaxed) => {
            ask(&store, other, answers, signals, reporter).await
        }
        Keep::Ask | Keep::No => Ok(()),
    }
}

fn add(
    store: &ContactStore,
    name: &Name,
    other: &Other,
    reporter: &Reporter,
) -> Result<(), Failure> {
    let (contact, is_new) = store.change(|book| -> Result<_, Failure> {
        let is_new = book.with(other.node_id).is_none();
        book.add(name, other.node_id).map_err(refused)?;
        book.met(other.node_id, &other.meeting, Timestamp::now());
        Ok((book.with(other.node_id).cloned().expect("it was just added"), is_new))
    })?;
    if is_new {
        tell(&contact, Some("added"), reporter);
        reporter.say(format!(
            "{name} is a contact now: wraith send FILE --to {name}, while wraith listen runs there."
        ));
    }
    Ok(())
}

async fn ask(
    store: &ContactStore,
    other: &Other,
    answers: &Answers,
    signals: &Signals,
    reporter: &Reporter,
) -> Result<(), Failure> {
    let node_id = other.node_id.to_string();
    let short = short_id(&node_id);
    let question =
        format!("Keep the {} ({short}) as a contact? A name, Enter for no, or never: ", other.role);
    for _ in 0..TRIES {
        let answer = tokio::select! {
            answer = answers.ask(&question) => answer,
            _ = signals.wait() => None,
        };
        let Some(text) = answer else { return Ok(()) };
        // An answer to a question that was not asked is no name.
        match text.to_lowercase().as_str() {
            "" | "n" | "no" => return Ok(()),
            "never" => {
                NEVER.store(true, Relaxed);
                let path = config::never_ask_for_contacts()?;
                reporter.say(format!(
                    "wraith does not ask this any more ({}); wraith config unset no-contacts undoes it.",
                    path.display()
                ));
                return Ok(());
            }
            "y" | "yes" => {
                reporter.warn("under which name? for instance: anna");
                continue;
            }
            _ => {}
        }
        let added = match text.parse::<Name>() {
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
