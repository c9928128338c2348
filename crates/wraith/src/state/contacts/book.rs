//! The contacts as text that people can read and edit:
//!
//! ```toml
//! version = 1
//!
//! [contacts.anna]
//! node_id = "qsfwq3ypd2sbynilrb7qtgqrbrrndalbwcgo3ujfhtzgpkrq6vbq"
//! addresses = ["home.example.org"]          # yours: HOST or HOST:PORT
//! seen_at = ["192.0.2.7:21034"]             # learned when you met, the last first
//! rendezvous = "server.example.org:49737"
//! first_met = 2026-11-22T06:15:53Z
//! last_met = 2026-11-22T06:15:53Z
//! ```
//!
//! Invariants of a [`ContactBook`]:
//!
//! - Every name is a [`ContactName`] and differs from all others in more than case.
//! - Every NodeId is valid and has one name.
//! - There are at most [`MAX_CONTACTS`] contacts.
//! - Foreign keys and comments stay where they are.

use std::net::SocketAddr;

use jiff::Timestamp;
use thiserror::Error;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};
use wraith_crypto::NodeId;
use wraith_discovery::contact::MAX_CONTACTS;

use super::address::{ContactAddress, is_lasting};
use super::name::{ContactName, ContactNameError};

/// Maximum number of addresses per contact and kind: places where a person uses a machine.
const MAX_ADDRESSES: usize = 8;
const TABLE: &str = "contacts";
const HEADER: &str =
    "# Contacts of this machine. A node_id is the public key that identifies a contact.\n\n";

/// A contact of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// The name given by the user.
    pub name: ContactName,
    /// The public key.
    pub node_id: NodeId,
    /// Addresses at which the contact listens, given by the user.
    pub addresses: Vec<ContactAddress>,
    /// Addresses at which the contact was met, the latest first.
    pub seen_at: Vec<SocketAddr>,
    /// The rendezvous server of the contact.
    pub rendezvous: Option<String>,
    /// End of the first transfer since it became a contact.
    pub first_met: Option<Timestamp>,
    /// End of the latest transfer.
    pub last_met: Option<Timestamp>,
}

/// Facts about a contact from a completed transfer.
#[derive(Clone, Debug, Default)]
pub struct LastSeen {
    /// The address for dialling it.
    pub at: Option<SocketAddr>,
    /// The rendezvous server that both sides used, or could have used.
    pub rendezvous: Option<String>,
}

/// All contacts, and the text that contains them.
#[derive(Clone, Debug)]
pub struct ContactBook {
    document: DocumentMut,
    contacts: Vec<Contact>,
}

/// Why a change was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ContactError {
    /// Another identity has the name.
    #[error("the name belongs to another identity, {0}; a contact's key is never replaced")]
    NameTaken(NodeId),
    /// The identity already has another name.
    #[error("this identity is already a contact, named {0}")]
    KnownAs(ContactName),
    /// There are already [`MAX_CONTACTS`] contacts.
    #[error("the list of contacts is full")]
    Full,
    /// No contact has this name.
    #[error("there is no contact named {0}")]
    NotFound(ContactName),
}

impl ContactBook {
    /// The format version that this program supports. It is also the default for a text without
    /// one.
    pub const VERSION: u32 = 1;

    /// Returns a book without contacts.
    pub fn empty() -> Self {
        Self::parse("").expect("nothing is TOML")
    }

    /// Parses the text.
    ///
    /// # Errors
    /// The reason, with the line number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
            let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
            let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            format!("{line}{}", error.message())
        })?;
        let mut contacts: Vec<Contact> = Vec::new();
        let table = match document.get(TABLE) {
            None => None,
            Some(item) => Some(item.as_table_like().ok_or("contacts is no table")?),
        };
        for (name, item) in table.into_iter().flat_map(TableLike::iter) {
            let contact = contact(name, item)?;
            if contacts.len() >= MAX_CONTACTS {
                return Err(format!("there are more than {MAX_CONTACTS} contacts"));
            }
            for other in &contacts {
                if other.name == contact.name {
                    return Err(format!("two contacts are called {}", contact.name));
                }
                if other.node_id == contact.node_id {
                    let (one, two) = (&other.name, &contact.name);
                    return Err(format!("{one} and {two} have the same node_id"));
                }
            }
            contacts.push(contact);
        }
        Ok(Self { document, contacts })
    }

    /// Returns the text.
    pub fn text(&self) -> String {
        self.document.to_string()
    }

    /// Returns all contacts, in the order of the text.
    pub fn contacts(&self) -> &[Contact] {
        &self.contacts
    }

    /// Returns the contact with this name.
    pub fn named(&self, name: &ContactName) -> Option<&Contact> {
        self.contacts.iter().find(|contact| contact.name == *name)
    }

    /// Returns the contact with this NodeId.
    pub fn with(&self, node_id: NodeId) -> Option<&Contact> {
        self.contacts.iter().find(|contact| contact.node_id == node_id)
    }

    /// Adds a contact. Adding the same name with the same identity again is no error. Nothing is
    /// ever replaced.
    ///
    /// # Errors
    /// The name or the identity belongs to another contact, or there is no room.
    pub fn add(&mut self, name: &ContactName, node_id: NodeId) -> Result<(), ContactError> {
        match (self.named(name), self.with(node_id)) {
            (Some(there), _) if there.node_id == node_id => return Ok(()),
            (Some(there), _) => return Err(ContactError::NameTaken(there.node_id)),
            (None, Some(there)) => return Err(ContactError::KnownAs(there.name.clone())),
            (None, None) => {}
        }
        if self.contacts.len() >= MAX_CONTACTS {
            return Err(ContactError::Full);
        }
        let mut entry = Table::new();
        entry["node_id"] = value(node_id.to_string());
        if self.text().is_empty() {
            self.document["version"] = value(i64::from(Self::VERSION));
            let mut version = self.document.key_mut("version").expect("it was just put there");
            version.leaf_decor_mut().set_prefix(HEADER);
        }
        let table = self.document.entry(TABLE).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let table = table.as_table_like_mut().expect("parsing refuses anything else");
        table.insert(name.as_str(), Item::Table(entry));
        self.parse_again();
        Ok(())
    }

    /// Sets the addresses that the user gives for a contact.
    pub fn set_addresses(&mut self, node_id: NodeId, addresses: &[ContactAddress]) {
        let addresses = &addresses[..addresses.len().min(MAX_ADDRESSES)];
        self.set(node_id, "addresses", value(array(addresses)));
    }

    /// Sets the rendezvous server of a contact.
    pub fn set_rendezvous(&mut self, node_id: NodeId, server: &str) {
        self.set(node_id, "rendezvous", value(server));
    }

    /// Records a last_seen with a contact. Does nothing if the peer is not a contact.
    pub fn record_seen(&mut self, node_id: NodeId, last_seen: &LastSeen, now: Timestamp) {
        let Some(contact) = self.with(node_id).cloned() else { return };
        if let Some(at) = last_seen.at.filter(|at| is_lasting(*at)) {
            let mut seen_at = contact.seen_at;
            seen_at.retain(|address| *address != at);
            seen_at.insert(0, at);
            seen_at.truncate(MAX_ADDRESSES);
            self.set(node_id, "seen_at", value(array(&seen_at)));
        }
        if let Some(server) = &last_seen.rendezvous {
            self.set_rendezvous(node_id, server);
        }
        // Rounded to seconds, for readability.
        let now = format!("{now:.0}").parse::<toml_edit::Datetime>();
        let now = now.expect("a timestamp is a date and time of RFC 3339");
        if contact.first_met.is_none() {
            self.set(node_id, "first_met", value(now));
        }
        self.set(node_id, "last_met", value(now));
    }

    /// Renames a contact.
    ///
    /// # Errors
    /// There is none with the old name, or the new name belongs to another contact.
    pub fn rename(&mut self, old: &ContactName, new: &ContactName) -> Result<(), ContactError> {
        let there = self.named(old).ok_or_else(|| ContactError::NotFound(old.clone()))?;
        if let Some(other) = self.named(new).filter(|other| other.node_id != there.node_id) {
            return Err(ContactError::NameTaken(other.node_id));
        }
        let old = there.name.clone();
        let table = self.table();
        let entry = table.remove(old.as_str()).expect("it was just found");
        table.insert(new.as_str(), entry);
        self.parse_again();
        Ok(())
    }

    /// Removes a contact and returns it.
    ///
    /// # Errors
    /// There is none with this name.
    pub fn remove(&mut self, name: &ContactName) -> Result<Contact, ContactError> {
        let contact =
            self.named(name).cloned().ok_or_else(|| ContactError::NotFound(name.clone()))?;
        self.table().remove(contact.name.as_str());
        self.parse_again();
        Ok(contact)
    }

    fn set(&mut self, node_id: NodeId, key: &str, item: Item) {
        let Some(name) = self.with(node_id).map(|contact| contact.name.clone()) else { return };
        let entry = self.table().get_mut(name.as_str()).and_then(Item::as_table_like_mut);
        entry.expect("every contact is a table").insert(key, item);
        self.parse_again();
    }

    /// Returns the table of contacts; the book must have one.
    fn table(&mut self) -> &mut dyn TableLike {
        let table = self.document.get_mut(TABLE).and_then(Item::as_table_like_mut);
        table.expect("the contacts stand in it")
    }

    /// Parses the text again. The text is authoritative, so a change is read back exactly as at the
    /// next load.
    fn parse_again(&mut self) {
        *self = Self::parse(&self.text()).expect("our own changes keep it well formed");
    }
}

fn array<T: ToString>(items: &[T]) -> Array {
    items.iter().map(ToString::to_string).collect()
}

fn contact(name: &str, item: &Item) -> Result<Contact, String> {
    let name: ContactName = name.parse().map_err(|e: ContactNameError| e.to_string())?;
    let entry = item.as_table_like().ok_or_else(|| format!("{name} is no table"))?;
    let wrong = |key: &str, why: &str| format!("{key} of {name} is wrong: {why}");
    let text = |key| match entry.get(key) {
        None => Ok(None),
        Some(item) => item.as_str().map(Some).ok_or_else(|| wrong(key, "it is no text")),
    };
    let time = |key| match entry.get(key) {
        None => Ok(None),
        Some(item) => {
            let time = item.as_datetime().and_then(|time| time.to_string().parse().ok());
            time.map(Some).ok_or_else(|| wrong(key, "it is no date with time and zone"))
        }
    };
    let node_id = text("node_id")?.ok_or_else(|| wrong("node_id", "it is missing"))?;
    let node_id = node_id.parse().map_err(|e| wrong("node_id", &format!("{e}")))?;
    let rendezvous = text("rendezvous")?.map(str::to_owned);
    let (first_met, last_met) = (time("first_met")?, time("last_met")?);
    let addresses = list(entry, "addresses").map_err(|why| wrong("addresses", &why))?;
    let seen_at = list(entry, "seen_at").map_err(|why| wrong("seen_at", &why))?;
    Ok(Contact { node_id, addresses, seen_at, rendezvous, first_met, last_met, name })
}

fn list<T: std::str::FromStr>(entry: &dyn TableLike, key: &str) -> Result<Vec<T>, String> {
    let Some(item) = entry.get(key) else { return Ok(Vec::new()) };
    let array = item.as_array().ok_or("it is no list")?;
    let parse = |item: &toml_edit::Value| {
        let text = item.as_str().ok_or("an address is a text in quotes")?;
        let shown = || text.chars().take(80).flat_map(char::escape_debug).collect::<String>();
        text.parse().map_err(|_| format!("\"{}\" is no address", shown()))
    };
    // Entries of the user beyond our limit are not read, but stay in the text.
    array.iter().take(MAX_ADDRESSES).map(parse).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wraith_crypto::SecretIdentity;

    use super::*;

    fn id(n: u8) -> NodeId {
        SecretIdentity::from_seed([n; 32]).node_id()
    }

    fn name(text: &str) -> ContactName {
        text.parse().unwrap()
    }

    fn now() -> Timestamp {
        "2026-11-22T06:15:53.5Z".parse().unwrap()
    }

    #[test]
    fn contacts_round_trip_as_readable_toml() {
        let mut book = ContactBook::empty();
        book.add(&name("anna"), id(1)).unwrap();
        book.add(&name("Zoë"), id(2)).unwrap();
        let at = |text: &str| LastSeen { at: Some(text.parse().unwrap()), rendezvous: None };
        book.record_seen(id(1), &at("192.0.2.1:9"), now());
        let server = LastSeen { at: None, rendezvous: Some("example.org:1".into()) };
        book.record_seen(id(1), &server, "2027-01-01T00:00:00Z".parse().unwrap());
        book.set_addresses(id(1), &["home.example".parse().unwrap()]);
        let text = book.text();
        assert!(text.starts_with(HEADER), "{text}");
        for line in [
            "[contacts.anna]",
            "[contacts.\"Zoë\"]",
            "addresses = [\"home.example\"]",
            "seen_at = [\"192.0.2.1:9\"]",
            "rendezvous = \"example.org:1\"",
            "first_met = 2026-11-22T06:15:53Z",
            "last_met = 2027-01-01T00:00:00Z",
        ] {
            assert!(text.lines().any(|l| l == line), "no {line} in\n{text}");
        }
        let again = ContactBook::parse(&text).unwrap();
        assert_eq!(again.contacts(), book.contacts());
        assert_eq!(again.text(), text);
    }

    #[test]
    fn nothing_is_replaced() {
        let mut book = ContactBook::empty();
        book.add(&name("anna"), id(1)).unwrap();
        let before = book.text();
        assert_eq!(book.add(&name("Anna"), id(2)), Err(ContactError::NameTaken(id(1))));
        assert_eq!(book.add(&name("berta"), id(1)), Err(ContactError::KnownAs(name("anna"))));
        assert_eq!(book.add(&name("anna"), id(1)), Ok(()), "it is there already");
        book.record_seen(id(2), &LastSeen::default(), now());
        assert_eq!(book.text(), before);
    }

    #[test]
    fn a_rename_keeps_all_fields_and_refuses_a_taken_name() {
        let mut book = ContactBook::parse(&format!(
            "[contacts.anna]\nnode_id = \"{}\"\nbirthday = 1990-01-01 # hers\n[contacts.bob]\nnode_id = \"{}\"\n",
            id(1),
            id(2)
        ))
        .unwrap();
        assert_eq!(book.rename(&name("anna"), &name("BOB")), Err(ContactError::NameTaken(id(2))));
        assert_eq!(book.rename(&name("x"), &name("y")), Err(ContactError::NotFound(name("x"))));
        book.rename(&name("anna"), &name("Anna")).unwrap();
        book.rename(&name("anna"), &name("hanna")).unwrap();
        assert_eq!(book.named(&name("hanna")).unwrap().node_id, id(1));
        assert!(book.text().contains("birthday = 1990-01-01 # hers"), "{}", book.text());
        assert_eq!(book.remove(&name("bob")).unwrap().node_id, id(2));
        assert_eq!(book.contacts().len(), 1);
    }

    #[test]
    fn keys_that_are_not_ours_stay_through_every_change() {
        let text = format!(
            "theme = \"dark\"\n# a friend\n[contacts.anna]\nnode_id = \"{}\" # hers\ncolour = {{ r = 1 }}\n\n[other]\nx = 1\n",
            id(1)
        );
        let mut book = ContactBook::parse(&text).unwrap();
        book.add(&name("bob"), id(2)).unwrap();
        book.record_seen(id(1), &LastSeen::default(), now());
        book.remove(&name("bob")).unwrap();
        for kept in ["theme = \"dark\"", "# a friend", "# hers", "colour = { r = 1 }", "[other]"] {
            assert!(book.text().contains(kept), "{kept} went from\n{}", book.text());
        }
    }

    #[test]
    fn the_last_eight_addresses_are_kept_without_duplicates() {
        let mut book = ContactBook::empty();
        book.add(&name("anna"), id(1)).unwrap();
        for n in (0..20).chain([15]) {
            let at = Some(SocketAddr::from(([192, 0, 2, n], 9)));
            book.record_seen(id(1), &LastSeen { at, rendezvous: None }, now());
        }
        let link_local = Some("[fe80::1]:9".parse().unwrap());
        book.record_seen(id(1), &LastSeen { at: link_local, rendezvous: None }, now());
        let last: Vec<_> = book.contacts()[0].seen_at.iter().map(|a| a.to_string()).collect();
        assert_eq!(last.len(), MAX_ADDRESSES);
        assert_eq!(last[..3], ["192.0.2.15:9", "192.0.2.19:9", "192.0.2.18:9"]);
    }

    #[test]
    fn a_parse_error_names_its_line() {
        let (a, b) = (id(1), id(2));
        for (text, says) in [
            ("contacts = 1".to_owned(), "no table"),
            ("x = 1\n[contacts.anna\n".to_owned(), "line 2"),
            ("[contacts.anna]".to_owned(), "node_id of anna is wrong: it is missing"),
            ("[contacts.anna]\nnode_id = \"abc\"".to_owned(), "node_id of anna"),
            ("[contacts.\"a b\"]\nnode_id = \"abc\"".to_owned(), "no name"),
            (format!("[contacts.a]\nnode_id = \"{a}\"\nlast_met = 5"), "last_met of a"),
            (format!("[contacts.a]\nnode_id = \"{a}\"\nseen_at = [\"x\"]"), "\"x\" is no address"),
            (
                format!("[contacts.a]\nnode_id = \"{a}\"\n[contacts.A]\nnode_id = \"{b}\""),
                "two contacts",
            ),
            (
                format!("[contacts.a]\nnode_id = \"{a}\"\n[contacts.b]\nnode_id = \"{a}\""),
                "the same node_id",
            ),
        ] {
            let why = ContactBook::parse(&text).unwrap_err();
            assert!(why.contains(says), "{why} for {text}");
        }
    }

    #[test]
    fn the_number_of_contacts_is_limited() {
        let mut book = ContactBook::empty();
        for n in 0..MAX_CONTACTS {
            let mut seed = [0; 32];
            seed[..8].copy_from_slice(&(n as u64).to_be_bytes());
            let id = SecretIdentity::from_seed(seed).node_id();
            book.add(&name(&format!("c{n}")), id).unwrap();
        }
        assert_eq!(book.add(&name("more"), id(77)), Err(ContactError::Full));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,80}|(\\[contacts\\.[a-c]\\]\n|node_id = \"[a-z2-7]{52}\"\n|[a-z_]{1,9} = [0-9\\[\\]\"]{1,5}\n){0,6}") {
            let _ = ContactBook::parse(&text);
        }
    }
}
