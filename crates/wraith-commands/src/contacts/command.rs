//! `wraith contact`.

use wraith::state::{Contact, ContactError, ContactStore};
use wraith_crypto::NodeId;

use crate::args::{ContactAction, ContactArgs, PeerName};
use crate::failure::{Exit, Failure};
use crate::home;
use crate::output::{Event, Reporter};
use crate::report::decision_id;

/// Lists or changes the contacts.
pub fn run(args: &ContactArgs, reporter: &Reporter) -> Result<(), Failure> {
    let home = home::open()?;
    let store = home.contacts();
    match &args.action {
        ContactAction::List => list(&store, reporter),
        ContactAction::Add { name, node_id, address, rendezvous } => {
            if home.identity()?.node_id() == *node_id {
                return Err(Failure::new(Exit::Usage, "this is the NodeId of this machine"));
            }
            let server =
                rendezvous.as_ref().map(|server| wraith::rendezvous_address(&server.to_string()));
            let contact = store.change(|book| -> Result<_, Failure> {
                book.add(name, *node_id).map_err(contact_failure)?;
                if !address.is_empty() {
                    book.set_addresses(*node_id, address);
                }
                if let Some(server) = &server {
                    book.set_rendezvous(*node_id, server);
                }
                Ok(book.with(*node_id).cloned().expect("it was just added"))
            })?;
            report_contact(&contact, Some("added"), reporter);
            reporter.status(format!("{name} is a contact now."));
            Ok(())
        }
        ContactAction::Rename { old, new } => {
            let contact = store.change(|book| -> Result<_, Failure> {
                book.rename(old, new).map_err(contact_failure)?;
                Ok(book.named(new).cloned().expect("it was just renamed"))
            })?;
            report_contact(&contact, Some("renamed"), reporter);
            reporter.status(format!("{old} is called {new} now."));
            Ok(())
        }
        ContactAction::Remove { name } => {
            let contact = store.change(|book| book.remove(name).map_err(contact_failure))?;
            report_contact(&contact, Some("removed"), reporter);
            reporter.status(format!("{} is no longer a contact.", contact.name));
            Ok(())
        }
    }
}

fn list(store: &ContactStore, reporter: &Reporter) -> Result<(), Failure> {
    let book = store.load()?;
    let longest = book.contacts().iter().map(|c| c.name.as_str().chars().count()).max();
    for contact in book.contacts() {
        report_contact(contact, None, reporter);
        let met = contact.last_met.map(|time| format!("  met {}", time.strftime("%Y-%m-%d")));
        let Contact { name, node_id, .. } = contact;
        let width = longest.unwrap_or_default();
        reporter.print(format!("{name:<width$}  {node_id}{}", met.unwrap_or_default()));
    }
    if book.contacts().is_empty() {
        reporter.status(
            "There are no contacts yet. After a transfer you can save the other side as one.",
        );
    }
    Ok(())
}

/// Reports the event about a contact.
pub fn report_contact(contact: &Contact, done: Option<&str>, reporter: &Reporter) {
    let texts = |items: &[String]| items.to_vec();
    let addresses: Vec<_> = contact.addresses.iter().map(ToString::to_string).collect();
    let seen_at: Vec<_> = contact.seen_at.iter().map(ToString::to_string).collect();
    let time = |time: Option<jiff::Timestamp>| time.map(|time| format!("{time:.0}"));
    let (first_met, last_met) = (time(contact.first_met), time(contact.last_met));
    reporter.event(&Event::Contact {
        name: contact.name.as_str(),
        node_id: &contact.node_id.to_string(),
        addresses: &texts(&addresses),
        seen_at: &texts(&seen_at),
        rendezvous: contact.rendezvous.as_deref(),
        first_met: first_met.as_deref(),
        last_met: last_met.as_deref(),
        done,
    });
}

/// Converts the reason why a change of the contacts was refused into a failure.
pub fn contact_failure(why: ContactError) -> Failure {
    match why {
        ContactError::NameTaken(theirs) => name_taken(theirs),
        ContactError::KnownAs(name) => {
            Failure::new(Exit::Other, format!("this identity is already a contact, named {name}"))
                .hint(format!("to rename it: wraith contact rename {name} NEW"))
        }
        ContactError::Full => Failure::new(Exit::Other, "the list of contacts is full")
            .hint("remove some: wraith contact remove NAME"),
        ContactError::NotFound(name) => unknown_contact(name.as_str()),
    }
}

fn name_taken(theirs: NodeId) -> Failure {
    let message = format!(
        "the name belongs to another identity, {theirs}; a contact's key is never replaced"
    );
    Failure::new(Exit::Other, message).hint(
        "choose another name. If the contact has a new key, confirm it with them, then remove the old one: wraith contact remove NAME",
    )
}

/// Returns the contact with this name. A NodeId that is no contact is returned under its first
/// letters, without an address.
///
/// # Errors
/// There is no contact with this name, or the contacts cannot be read.
pub fn find(store: &ContactStore, peer: &PeerName) -> Result<Contact, Failure> {
    let mut book = store.load()?;
    let found = match peer {
        PeerName::Contact(name) => book.named(name),
        PeerName::Node(node_id) => {
            if book.with(*node_id).is_none() {
                let text = node_id.to_string();
                let name = decision_id(&text).parse().expect("it is short and has only letters");
                // The book is not stored.
                book.add(&name, *node_id).map_err(contact_failure)?;
            }
            book.with(*node_id)
        }
    };
    let unknown = || match peer {
        PeerName::Contact(name) => unknown_contact(name.as_str()),
        PeerName::Node(node_id) => unknown_contact(&node_id.to_string()),
    };
    found.cloned().ok_or_else(unknown)
}

/// Returns the failure for an unknown contact name.
pub fn unknown_contact(name: &str) -> Failure {
    Failure::new(Exit::Usage, format!("there is no contact named {name}"))
        .hint("wraith contact list shows all; wraith contact add NAME NODEID adds one")
}
