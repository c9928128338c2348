//! The JSON events. Scripts rely on their names and fields: add new ones, and list every rename in
//! `RENAMED` of `schema.rs`.
//!
//! The comments in this file are the documentation. `schema.rs` makes `docs/events.schema.json` and
//! the tables of `docs/json.md` from these types, and a test fails when they differ. The crate
//! `wraith-crypto-commands` has the events of its commands.

use serde::Serialize;

/// One line of `--json`.
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
    /// A long code for the offer of `ready` is valid too; it needs no common network and no server.
    LongCode {
        /// The code.
        code: &'a str,
        /// Command for the other machine.
        command: &'a str,
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
    /// The state of the code, or of one of its meeting places, has changed.
    Code {
        /// `used`, `wrong_guess` or `expired`; `lost` or `back` for a meeting place, also that of a
        /// listener.
        state: &'a str,
        /// The meeting place: `lan`, or a rendezvous server.
        place: Option<&'a str>,
        /// The reason, as text for people.
        message: Option<&'a str>,
        /// With `used`: NodeId of the peer that proved the words and gets the ticket.
        peer: Option<&'a str>,
        /// Name of the contact; null if the peer is no contact.
        contact: Option<&'a str>,
    },
    /// The two sides of a code have met.
    Met {
        /// The meeting place: `lan`, or a rendezvous server; for a contact also `address`, a known
        /// address.
        place: &'a str,
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
    /// The contacts of a listener have changed; it uses the new list from now on.
    ContactsChanged {
        /// Number of contacts.
        contacts: u64,
    },
    /// A listener with `--accept ask` has refused offers of unknown senders without asking, because
    /// there were too many. Reported at most once a minute, and at the end.
    RefusedUnread {
        /// Number of offers refused since the last report.
        offers: u64,
    },
    /// A handshake or call was refused, because its time differs too much from this machine's clock.
    /// A replay also causes this event. Reported at most once an hour per contact, and once an hour
    /// for all other peers together.
    ClocksDiffer {
        /// NodeId of the contact; null if the peer has not shown its identity.
        peer: Option<&'a str>,
        /// Name of the contact; null if the peer has not shown its identity.
        contact: Option<&'a str>,
        /// The time of the message minus that of this machine.
        seconds: i64,
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
    /// A session with the other side is established.
    Connected {
        /// The other side's NodeId.
        peer: &'a str,
        /// The other side's IP address and port.
        address: &'a str,
        /// `loopback`, `lan`, `direct` or `relay`.
        path: &'a str,
        /// How the path came about: `same-machine`, `same-network`, `ipv6`, `address` (a directly
        /// reachable address), `punched` (hole punching: both sides opened their NATs for each
        /// other) or `relay`.
        how: &'a str,
        /// Name of the contact; null if the peer is no contact.
        contact: Option<&'a str>,
        /// Key agreement and packet cipher: `X25519+ML-KEM-768, AES-256-GCM`, `X25519+ML-KEM-768,
        /// ChaCha20-Poly1305` or `X25519+ML-KEM-768, SM4-GCM`.
        suite: &'a str,
        /// Implementation of the packet cipher on this machine, such as `own (AVX-512, VAES,
        /// VPCLMULQDQ)` or `AWS-LC, AES instructions`.
        backend: &'a str,
    },
    /// The session uses another path from now on; or it still uses a relay, and `message` gives the
    /// reason.
    Path {
        /// The other side's NodeId.
        peer: &'a str,
        /// IP address and port of the other side, or of the relay.
        address: &'a str,
        /// As in `connected`.
        path: &'a str,
        /// As in `connected`.
        how: &'a str,
        /// Why no better path was found, as text for people; null if the path has changed.
        message: Option<&'a str>,
    },
    /// The other side is connected and has been silent for some seconds; repeated every minute.
    Awaiting {
        /// The missing message: `offer`.
        what: &'a str,
        /// Time until this side gives up.
        seconds_left: u64,
    },
    /// The offer, by a first look at the tree.
    Offer {
        /// The first name, escaped so that it is safe to show.
        name: &'a str,
        /// Number of files.
        files: u64,
        /// Number of folders.
        folders: u64,
        /// Number of symbolic links.
        links: u64,
        /// Bytes of all files.
        bytes: u64,
        /// Bytes of the largest file.
        largest: u64,
        /// Number of files, folders and links that the sender cannot send: a name that no receiver
        /// accepts, or a folder that it may not list. The other numbers do not include them.
        left_out: u64,
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
    /// The offer was accepted.
    Accept {
        /// Number of files.
        files: u64,
        /// Bytes of all files.
        bytes: u64,
    },
    /// Progress of the transfer; several a second from the first offer on, and once at the end.
    Progress {
        /// Bytes settled: transferred, already there, or of failed files.
        bytes: u64,
        /// Bytes of all files.
        total: u64,
        /// Rate over the last five seconds; 0 without a connection.
        bytes_per_second: u64,
        /// Time left at this rate; null while no data moves.
        eta_seconds: Option<u64>,
        /// Files settled.
        files: u64,
        /// Number of files.
        total_files: u64,
        /// The current file, escaped; empty before the first.
        file: &'a str,
        /// Bytes of content on this machine's disk that were read and hashed, before the rest is
        /// requested; null while nothing is checked.
        checked: Option<u64>,
        /// Bytes of all content to check; null while nothing is checked.
        to_check: Option<u64>,
        /// `loopback`, `lan`, `direct` or `relay`; null without a connection.
        path: Option<&'a str>,
        /// The limiting factor: `net` (or the other side), `disk`, `cpu`, or `rate` (the `--rate`
        /// of this side or, at a sender, of its receiver); null in the first second and without a
        /// connection.
        bottleneck: Option<&'a str>,
    },
    /// The result for one file.
    File {
        /// Path in the offer, escaped.
        path: &'a str,
        /// `done`, `already-here`, `skipped`, `changed`, `unreadable`, `stale` or `blocked`; the
        /// last four are failures. At the sender, `done` means that the file was sent; `failed` at
        /// the end counts files that the receiver could not put in place.
        status: &'a str,
        /// Size in bytes.
        bytes: u64,
        /// BLAKE3 hash of the content in hexadecimal, as `b3sum` prints it; null if unknown.
        root: Option<&'a str>,
        /// Root of the position-free tree in hexadecimal, in place of `root`, for files with 16 GiB
        /// of holes or more by the sender's account. It differs from the output of `b3sum`. Null
        /// for every other file, and for every file below 16 GiB.
        position_free_root: Option<&'a str>,
        /// Change of the file at the sender, if it is known as the reason why the file did not
        /// arrive: `missing`, `replaced`, `grew` or `shrank`.
        change: Option<&'a str>,
    },
    /// A notice that does not stop the transfer.
    Note {
        /// The path concerned, escaped.
        path: &'a str,
        /// The notice, as text for people.
        message: &'a str,
    },
    /// The connection was lost; this side tries to reconnect.
    Reconnecting {
        /// How it was lost, as text for people.
        message: &'a str,
        /// Time until this side gives up.
        seconds_left: u64,
    },
    /// One of several receivers did not get everything; the sender continues with the others.
    ReceiverFailed {
        /// Kind of failure, as in `error`.
        code: &'a str,
        /// The failure and its reason.
        message: &'a str,
    },
    /// The transfer is complete and confirmed. Also reported if some files failed: then an `error`
    /// follows.
    Done {
        /// Files that the receiver has now.
        files: u64,
        /// Bytes of the files that the receiver has now.
        bytes: u64,
        /// Bytes that moved on the last connection; the others were there already.
        bytes_moved: u64,
        /// Bytes of the datagrams of the last connection, in both directions.
        wire_bytes: u64,
        /// Number of parallel connections (`--connections`).
        connections: u64,
        /// Earlier name of `connections`, with the same value.
        lanes: u64,
        /// Files that were there already.
        already_here: u64,
        /// Files, folders and links left out because something else has their names (`--on-conflict
        /// skip`).
        skipped: u64,
        /// Files that could not be transferred.
        failed: u64,
        /// Files, folders and links that the sender could not offer; a `note` at the sender names
        /// each.
        left_out: u64,
        /// Duration of the last connection in seconds, from the acceptance of the offer on it. It
        /// is the same on both sides, whichever started first.
        seconds: f64,
        /// `bytes_moved` divided by `seconds`.
        bytes_per_second: u64,
        /// The receipt that the receiver signed, in base32.
        receipt: &'a str,
        /// Whether all files survive a power cut, as the receipt states: `on-disk`, `not-awaited`
        /// (`--no-sync`), `cannot-sync` (a pipe, a file system in memory), or `unknown` for an
        /// earlier version.
        durability: &'a str,
    },
    /// The signed receipt of the receiver was written to a file (`wraith send --receipt`).
    Receipt {
        /// The file, escaped.
        path: &'a str,
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
