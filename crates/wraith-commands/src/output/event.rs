//! The JSON events of the commands. `wraith::json` has those of transfers, and the crate
//! `wraith-crypto-commands` those of its commands.
//!
//! Scripts rely on the names and fields: add new ones, and list every rename in `RENAMED` of
//! `schema.rs`. The comments in this file are the documentation. `schema.rs` makes
//! `docs/events.schema.json` and the tables of `docs/json.md` from these types, and a test fails
//! when they differ.

use serde::Serialize;

/// One line of `--json` that is no event of a transfer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<'a> {
    /// The sender listens; the other side can run `command`.
    Ready {
        /// Ticket for a receiver without a code; it is a secret. Null with a code: then only a
        /// receiver with the code gets the ticket.
        ticket: Option<&'a str>,
        /// Command for the other machine; with a code, it needs the same `--rendezvous` or
        /// `--relay`. Null if there is neither code nor ticket, and only the receivers of
        /// `continues_for` can come.
        command: Option<&'a str>,
        /// The sender's NodeId.
        node_id: &'a str,
        /// The code; null with `--ticket`, and without a meeting place.
        code: Option<&'a str>,
        /// Lifetime of the code; null without one.
        code_expires_seconds: Option<u64>,
        /// Meeting places of the code: `lan`, or a rendezvous server. Empty without a code.
        waiting_at: &'a [String],
        /// NodeIds of receivers that had the code of an unfinished earlier run. They continue
        /// without the new code; `--new` ends that.
        continues_for: &'a [String],
    },
    /// The receiver has made a code; the sender can run `command`.
    Waiting {
        /// The code.
        code: &'a str,
        /// Command for the sender's machine.
        command: &'a str,
        /// Meeting places of the code: `lan`, or a rendezvous server.
        waiting_at: &'a [String],
        /// Lifetime of the code.
        code_expires_seconds: u64,
    },
    /// A rendezvous server, a relay or `wraith listen` accepts connections. For `wraith listen`,
    /// only `pin` is null.
    Listening {
        /// IP address and port (TCP of a rendezvous server, TCP and UDP of a relay, UDP of a
        /// listener).
        address: &'a str,
        /// The listener's NodeId.
        node_id: Option<&'a str>,
        /// Accept filter of the listener: `ask`, `contacts` or `always`.
        accept: Option<&'a str>,
        /// Folder for the received files.
        folder: Option<&'a str>,
        /// Number of contacts.
        contacts: Option<u64>,
        /// Places where contacts can find the listener: `lan`, or a rendezvous server.
        waiting_at: Option<&'a [String]>,
        /// Public key of the relay, for its clients.
        pin: Option<&'a str>,
    },
    /// The search for a contact begins.
    Calling {
        /// Name of the contact; for a NodeId that is no contact, its first 16 letters.
        contact: &'a str,
        /// NodeId of the contact.
        peer: &'a str,
        /// Addresses that are dialled.
        addresses: &'a [String],
        /// Places of the search: `lan`, or a rendezvous server.
        looking_at: &'a [String],
    },
    /// The other side is connected and has been silent for some seconds; repeated every minute.
    Awaiting {
        /// The missing message: `offer`.
        what: &'a str,
        /// Time until this side gives up.
        seconds_left: u64,
    },
    /// Entries of an offer that lead out of it or that others can write to. Reported when the names
    /// were checked: before the question, and in a dry run.
    RiskyEntries {
        /// Number of links that lead out of the received files.
        leading_out: u64,
        /// The first of these links, escaped.
        leading_out_first: &'a [String],
        /// Number of files and folders that their group or every user may write to.
        writable: u64,
        /// The first of these files and folders, escaped.
        writable_first: &'a [String],
    },
    /// In a dry run: an entry of the offer, and the planned action.
    WouldReceive {
        /// Path in the offer, escaped.
        path: &'a str,
        /// `file`, `folder` or `link`.
        kind: &'a str,
        /// Size in bytes; 0 if it is not a file.
        bytes: u64,
        /// `new`, `continue`, `same`, `overwrite`, `rename` or `skip`; `compare`: there is a file
        /// of the same size and another time, which stays if its content is the same.
        action: &'a str,
        /// Target path, escaped, if it differs from the path in the offer: the entry, or a folder
        /// above it, gets another name.
        arrives_as: Option<&'a str>,
        /// Whether it is a link that leads out of the received files.
        leads_out: bool,
        /// Whether its mode lets its group or every user write to it; the umask and `--keep-modes`
        /// decide which permissions it gets here.
        writable: bool,
    },
    /// A transfer to a listener failed; the listener continues.
    Failed {
        /// Kind of failure, as in `error`.
        code: &'a str,
        /// Exit code of a command that fails this way.
        exit: u8,
        /// The failure and its reason.
        message: &'a str,
        /// The sender's NodeId.
        peer: &'a str,
        /// Name of the contact; null if the sender is no contact.
        contact: Option<&'a str>,
    },
    /// A contact that was asked for, or that has changed.
    Contact {
        /// Name of the contact.
        name: &'a str,
        /// NodeId of the contact.
        node_id: &'a str,
        /// Addresses where the contact listens, as the user entered them.
        addresses: &'a [String],
        /// Addresses where it was met, the last first.
        seen_at: &'a [String],
        /// Rendezvous server where it can be found.
        rendezvous: Option<&'a str>,
        /// Time of the first meeting, as in RFC 3339; null if never.
        first_met: Option<&'a str>,
        /// Time of the last meeting.
        last_met: Option<&'a str>,
        /// `added`, `renamed` or `removed`; null in a list.
        done: Option<&'a str>,
    },
    /// A transfer that `wraith verify` can check; the newest first.
    Received {
        /// Id of the transfer for `wraith verify`.
        id: &'a str,
        /// Target folder, escaped.
        folder: &'a str,
        /// The sender's NodeId.
        from: &'a str,
        /// Name of the contact; null if the sender is no contact.
        contact: Option<&'a str>,
        /// Time of the transfer, as in RFC 3339.
        received_at: &'a str,
        /// Files that arrived or were there already.
        files: u64,
    },
    /// An entry differs from the received one.
    Differs {
        /// Path below the folder, escaped.
        path: &'a str,
        /// `missing`, `changed`, `kind` (a folder in place of a file, or a link on the way) or
        /// `unreadable`.
        status: &'a str,
        /// The difference, as text for people.
        message: &'a str,
    },
    /// A receipt was checked (`wraith verify --receipt`); the fields are its content. If the
    /// receiver lacks an entry for another reason than `skipped`, or a folder differs, an `error`
    /// follows.
    Signed {
        /// NodeId of the receiver, which signed the receipt.
        by: &'a str,
        /// Name of the contact; null if the receiver is no contact.
        contact: Option<&'a str>,
        /// The sender's NodeId.
        from: &'a str,
        /// Time of the signature by the receiver's clock, as in RFC 3339.
        signed_at: &'a str,
        /// Files that the receiver has.
        files: u64,
        /// Bytes of these files.
        bytes: u64,
        /// Entries that the receiver skipped because something else has their names.
        skipped: u64,
        /// Entries that the receiver lacks for another reason.
        failed: u64,
        /// Whether all files survive a power cut at the receiver, as in `done`.
        durability: &'a str,
        /// Number of files, folders and links in the named folder that differ; null without a
        /// folder.
        differ: Option<u64>,
    },
    /// An entry of the offer was not received, as the receipt states.
    NotReceived {
        /// Path in the offer, escaped.
        path: &'a str,
        /// `skipped` (its name was taken at the receiver, which kept the existing entry), `changed`
        /// or `unreadable` (at the sender), `stale` (an earlier part belonged to another file) or
        /// `blocked` (the receiver could not put it in place).
        reason: &'a str,
    },
    /// A transfer was checked. If anything differs, an `error` follows at the end.
    Verified {
        /// Id of the transfer.
        id: &'a str,
        /// The folder that was checked, escaped.
        folder: &'a str,
        /// The sender's NodeId.
        from: &'a str,
        /// Time of the transfer, as in RFC 3339.
        received_at: &'a str,
        /// Files that were compared.
        files: u64,
        /// Bytes of these files.
        bytes: u64,
        /// Number of files, folders and links that differ from the received ones.
        differ: u64,
        /// Number of entries of the offer that were not received; a `not_received` event names each.
        not_received: u64,
        /// Number of files for which the list had no room; they were not compared.
        unlisted: u64,
    },
    /// A NodeId that was asked for.
    Id {
        /// The NodeId.
        node_id: &'a str,
    },
    /// A hash that was asked for.
    Hash {
        /// The file as named on the command line.
        path: &'a str,
        /// BLAKE3 hash of the content in hexadecimal.
        root: &'a str,
    },
    /// A file to hash cannot be read. The command still hashes the others; the error at the end
    /// counts the unreadable ones.
    HashFailed {
        /// The file as named on the command line.
        path: &'a str,
        /// The reason, as text for people.
        message: &'a str,
    },
    /// A setting that was asked for.
    Setting {
        /// `COMMAND.OPTION`, or an option of all commands.
        key: &'a str,
        /// Value of the setting; null if it has none.
        value: Option<&'a str>,
        /// `default`, `file`, `env` or `flag`.
        source: &'a str,
        /// The line of the file, or the environment variable.
        place: Option<&'a str>,
    },
    /// The place of the config file, which need not exist.
    Config {
        /// Path of the file.
        path: &'a str,
    },
    /// The result of one test of `wraith doctor`.
    Check {
        /// Name of the test.
        name: &'a str,
        /// `ok`, `warn` or `fail`; `none` if there is nothing to test, or the test is turned off.
        status: &'a str,
        /// The finding.
        found: &'a str,
        /// Its consequence for transfers.
        meaning: &'a str,
        /// What to do; null if there is nothing to do.
        next: Option<&'a str>,
    },
    /// The figures of `wraith demo`.
    Demo {
        /// Bytes that were transferred.
        bytes: u64,
        /// Files that were transferred.
        files: u64,
        /// Duration of the transfer.
        seconds: f64,
        /// `bytes` divided by `seconds`.
        bytes_per_second: u64,
        /// Duration of `cp -a` of the same data.
        cp_seconds: f64,
        /// `bytes` divided by `cp_seconds`.
        cp_bytes_per_second: u64,
        /// Whether every byte, mode and time is the same.
        matched: bool,
    },
    /// The command failed. This is the last line.
    Error {
        /// Kind of failure, as a word from the table of exit codes.
        code: &'a str,
        /// The exit code.
        exit: u8,
        /// The failure and its reason.
        message: &'a str,
        /// What to do next; null if unknown.
        hint: Option<&'a str>,
    },
}

impl<'a> Event<'a> {
    /// Returns the event of a rendezvous server or a relay.
    pub fn server_listening(address: &'a str, pin: Option<&'a str>) -> Self {
        let (node_id, accept, folder, contacts, waiting_at) = (None, None, None, None, None);
        Self::Listening { address, node_id, accept, folder, contacts, waiting_at, pin }
    }
}

/// An event, with the number of its receiver if there are several.
#[derive(Clone, Debug, Serialize)]
pub struct NumberedEvent<'a, E> {
    #[serde(flatten)]
    pub event: &'a E,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_that_begins_with_its_name() {
        let event = Event::Error { code: "disk", exit: 7, message: "a\nb", hint: None };
        let line =
            |receiver| serde_json::to_string(&NumberedEvent { event: &event, receiver }).unwrap();
        let text = r#"{"event":"error","code":"disk","exit":7,"message":"a\nb","hint":null"#;
        assert_eq!(line(None), format!("{text}}}"));
        assert_eq!(line(Some(2)), format!("{text},\"receiver\":2}}"));
    }
}
