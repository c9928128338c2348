//! The JSON events. Fields only get added, never renamed or removed: scripts rely on them.
//!
//! The comments here are the documentation: `docs/events.schema.json` and the tables of `docs/json.md` are made from these types
//! (`schema.rs`), and a test fails when they differ.

use serde::Serialize;

/// One line of `--json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<'a> {
    /// The sender listens; the other side can run `command`.
    Ready {
        /// What a receiver without a code needs; it is a secret. Null with a code, whose ticket is for who has the code only.
        ticket: Option<&'a str>,
        /// What to run on the other machine, with the same `--rendezvous` or `--relay` if there is a code; null where there is neither code nor ticket, and only those of `continues_for` can come.
        command: Option<&'a str>,
        /// The sender's NodeId.
        node_id: &'a str,
        /// The code; null with `--ticket`, and where there is no place to meet.
        code: Option<&'a str>,
        /// How long the code is good; null without one.
        code_expires_seconds: Option<u64>,
        /// Where the code is waited with: `lan`, or a rendezvous server. Empty without a code.
        waiting_at: &'a [String],
        /// NodeIds that had the code of an earlier run, which did not come to its end, and go on without this one; `--new` ends that.
        continues_for: &'a [String],
    },
    /// A long code for what `ready` told of is good, too: it needs no common network and no server.
    LongCode {
        /// The code.
        code: &'a str,
        /// What to run on the other machine.
        command: &'a str,
    },
    /// The receiver has made a code; the sender can run `command`.
    Waiting {
        /// The code.
        code: &'a str,
        /// What to run on the sender's machine.
        command: &'a str,
        /// Where the code is waited with: `lan`, or a rendezvous server.
        waiting_at: &'a [String],
        /// How long the code is good.
        code_expires_seconds: u64,
    },
    /// Something happened to the code.
    Code {
        /// `used`, `wrong_guess`, `expired`, or a place was `lost` or is `back` (of a listener too).
        state: &'a str,
        /// The place it is about: `lan`, or a rendezvous server.
        place: Option<&'a str>,
        /// Why, in words.
        message: Option<&'a str>,
        /// Of `used`: the NodeId of whoever proved the words, for whom the ticket is.
        peer: Option<&'a str>,
        /// What we call it; null if it is no contact.
        contact: Option<&'a str>,
    },
    /// The two sides of a code have met.
    Met {
        /// Where: `lan`, or a rendezvous server; of a contact also `address`, one that was known.
        place: &'a str,
    },
    /// A rendezvous server or a relay takes connections, or `wraith listen` does; then no field but `pin` is null.
    Listening {
        /// IP address and port (TCP of a rendezvous server, TCP and UDP of a relay, UDP of a listener).
        address: &'a str,
        /// The listener's NodeId.
        node_id: Option<&'a str>,
        /// Whose files it takes: `ask`, `contacts` or `always`.
        accept: Option<&'a str>,
        /// The folder that they go into.
        folder: Option<&'a str>,
        /// How many contacts there are.
        contacts: Option<u64>,
        /// Where contacts can find it: `lan`, or a rendezvous server.
        waiting_at: Option<&'a [String]>,
        /// The key of a relay.
        pin: Option<&'a str>,
    },
    /// The contacts of a listener have changed; from now on it serves them as they are.
    #[serde(rename = "guests")]
    ContactsChanged {
        /// How many there are.
        contacts: u64,
    },
    /// A listener that asks has refused offers of strangers without asking, because there were too many of them. Once a minute at most,
    /// and at the end.
    RefusedUnread {
        /// So many since this was said before.
        offers: u64,
    },
    /// A contact is looked for.
    Calling {
        /// Its name.
        contact: &'a str,
        /// Its NodeId.
        peer: &'a str,
        /// Addresses that are dialled.
        addresses: &'a [String],
        /// Where else: `lan`, or a rendezvous server.
        looking_at: &'a [String],
    },
    /// A session with the other side is up.
    Connected {
        /// The other side's NodeId.
        peer: &'a str,
        /// Its IP address and port.
        address: &'a str,
        /// `loopback`, `lan`, `direct` or `relay`.
        path: &'a str,
        /// How the path came about: `same-machine`, `same-network`, `ipv6`, `address` (one that can be dialled as it is), `punched`
        /// (both sides opened their NATs for each other) or `relay`.
        how: &'a str,
        /// What we call it; null if it is no contact.
        contact: Option<&'a str>,
        /// What its keys come from and what packets are sealed with: `X25519+ML-KEM-768, AES-256-GCM`,
        /// `X25519+ML-KEM-768, ChaCha20-Poly1305` or `X25519+ML-KEM-768, SM4-GCM`.
        suite: &'a str,
    },
    /// The session goes another way from now on; or it still goes through a relay, and `message` says why.
    Path {
        /// The other side's NodeId.
        peer: &'a str,
        /// Its IP address and port, or those of the relay.
        address: &'a str,
        /// As in `connected`.
        path: &'a str,
        /// As in `connected`.
        how: &'a str,
        /// Why nothing better was found, in words; null where the path has changed.
        message: Option<&'a str>,
    },
    /// The other side is there and has kept this one waiting for some seconds; again every minute.
    Awaiting {
        /// What is waited for: `offer`.
        what: &'a str,
        /// After this long it is given up.
        seconds_left: u64,
    },
    /// What is offered, by a first look at the tree.
    Offer {
        /// The first name; escaped, it can be shown.
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
        /// Files, folders and links of the tree that the sender cannot send: a name that no receiver takes, a folder that it may
        /// not list. They are in none of the other numbers.
        left_out: u64,
    },
    /// What of an offer leads out of it or is open to others, where its names were looked at: before the question, and in a dry run.
    Openings {
        /// Links that lead out of what arrives.
        leading_out: u64,
        /// The first of them, escaped.
        leading_out_first: &'a [String],
        /// Files and folders that their group or everybody may write to.
        writable: u64,
        /// The first of them, escaped.
        writable_first: &'a [String],
    },
    /// In a dry run: an entry of the offer, and what would happen to it.
    WouldReceive {
        /// Its path in the offer, escaped.
        path: &'a str,
        /// `file`, `folder` or `link`.
        kind: &'a str,
        /// Its bytes; 0 if it is no file.
        bytes: u64,
        /// `new`, `continue`, `same`, `overwrite`, `rename` or `skip`; `compare`: a file of the same size and another time is there,
        /// which stays if its content is the same.
        action: &'a str,
        /// Where it would be found, escaped, if not under its own path: it, or a folder above it, gets another name.
        arrives_as: Option<&'a str>,
        /// It is a link that leads out of what arrives.
        leads_out: bool,
        /// Its mode lets its group or everybody write to it; what arrives of that the umask and `--keep-modes` decide.
        writable: bool,
    },
    /// The offer was accepted.
    Accept {
        /// Number of files.
        files: u64,
        /// Bytes of all files.
        bytes: u64,
    },
    /// How far it is; several a second from the first offer on, and once at the end.
    Progress {
        /// Bytes settled: moved, there already, or of files that failed.
        bytes: u64,
        /// Bytes of all files.
        total: u64,
        /// The rate of the last five seconds; 0 while nobody is connected.
        bytes_per_second: u64,
        /// Time left at this rate; null while nothing moves.
        eta_seconds: Option<u64>,
        /// Files settled.
        files: u64,
        /// Number of files.
        total_files: u64,
        /// The file that is being moved, escaped; empty before the first.
        file: &'a str,
        /// `loopback`, `lan`, `direct` or `relay`; null while there is no connection.
        path: Option<&'a str>,
        /// What it waits for most: `net` (or the other side), `disk`, `cpu`, or `rate`, the `--rate` of this side or, at a sender, of its receiver; null in the first second and while nobody is connected.
        bottleneck: Option<&'a str>,
    },
    /// What became of one file.
    File {
        /// Its path in the offer, escaped.
        path: &'a str,
        /// `done`, `already-here`, `skipped`, `changed`, `unreadable`, `stale` or `blocked`; the last four are failures. At the sender `done` says that it
        /// was sent; what the receiver could not put in its place is counted in `failed` at the end.
        status: &'a str,
        /// Its bytes.
        bytes: u64,
        /// The BLAKE3 of its content in hexadecimal, as `b3sum` prints it; null where it is not known.
        root: Option<&'a str>,
        /// Of a file of which its sender says that it has 16 GiB of holes or more, in place of `root`: the root of its position-free
        /// tree in hexadecimal, which is not what `b3sum` prints. Null of every other file, and of every one below 16 GiB.
        position_free_root: Option<&'a str>,
        /// What happened to the file at the sender, if that is why it did not arrive and can be said: `missing`, `replaced`, `grew` or
        /// `shrank`.
        change: Option<&'a str>,
    },
    /// Something to know that does not stop the transfer.
    Note {
        /// The path it is about, escaped.
        path: &'a str,
        /// What, in words.
        message: &'a str,
    },
    /// The connection was lost and is being made again.
    Reconnecting {
        /// How it was lost, in words.
        message: &'a str,
        /// How long this side goes on trying.
        seconds_left: u64,
    },
    /// One of several receivers did not get everything; the others are served all the same.
    ReceiverFailed {
        /// Which kind of failure, as in `error`.
        code: &'a str,
        /// What happened and why.
        message: &'a str,
    },
    /// Everything is done and confirmed. Also when some files failed: then an `error` follows.
    Done {
        /// Files the receiver has now.
        files: u64,
        /// Bytes settled.
        bytes: u64,
        /// Bytes that moved on the last connection; the others were there already.
        bytes_moved: u64,
        /// Bytes of the datagrams of the last connection, both ways.
        wire_bytes: u64,
        /// Connections that carried it at once (`--connections`).
        connections: u64,
        /// The same, under its earlier name.
        lanes: u64,
        /// Files that were there already.
        already_here: u64,
        /// Files, folders and links left out because something else has their names (`--on-conflict skip`).
        skipped: u64,
        /// Files that could not be transferred.
        failed: u64,
        /// Files, folders and links that the sender could not offer; a `note` at the sender names each.
        left_out: u64,
        /// Seconds of the last connection, from when the offer was accepted on it: the same on both sides, whenever each was begun.
        seconds: f64,
        /// `bytes_moved` by `seconds`.
        bytes_per_second: u64,
        /// The receipt that the receiver signed, in base32.
        receipt: &'a str,
        /// Whether all of it survives a power cut, as the receipt says: `on-disk`, `not-awaited` (`--no-sync`), `cannot-sync` (a pipe, a file
        /// system in memory), or `not-said` by an earlier version.
        durability: &'a str,
    },
    /// What the receiver has signed was kept (`wraith send --receipt`).
    Receipt {
        /// The file, escaped.
        path: &'a str,
    },
    /// A transfer to a listener did not end well; it goes on listening.
    Failed {
        /// Which kind of failure, as in `error`.
        code: &'a str,
        /// The exit code that it would have alone.
        exit: u8,
        /// What happened and why.
        message: &'a str,
        /// The sender's NodeId.
        peer: &'a str,
        /// What we call it; null if it is no contact.
        contact: Option<&'a str>,
    },
    /// Somebody we know: one that was asked for, or that has changed.
    Contact {
        /// What we call it.
        name: &'a str,
        /// Its NodeId.
        node_id: &'a str,
        /// Where its user says that it listens.
        addresses: &'a [String],
        /// Where it was met, the last first.
        seen_at: &'a [String],
        /// The rendezvous server where it can be found.
        rendezvous: Option<&'a str>,
        /// When it was met first, as in RFC 3339; null if never.
        first_met: Option<&'a str>,
        /// When it was met last.
        last_met: Option<&'a str>,
        /// `added`, `renamed` or `removed`; null in a list.
        done: Option<&'a str>,
    },
    /// A transfer that `wraith verify` can check; the newest first.
    Received {
        /// Its name for `wraith verify`.
        id: &'a str,
        /// The folder that it went into, escaped.
        folder: &'a str,
        /// The sender's NodeId.
        from: &'a str,
        /// What we call it; null if it is no contact.
        contact: Option<&'a str>,
        /// When, as in RFC 3339.
        received_at: &'a str,
        /// Files that arrived or were there already.
        files: u64,
    },
    /// Something is not as it was received.
    Differs {
        /// Its path below the folder, escaped.
        path: &'a str,
        /// `missing`, `changed`, `kind` (a folder where a file was, a link on the way) or `unreadable`.
        status: &'a str,
        /// How, in words.
        message: &'a str,
    },
    /// A receipt was checked, and says what was signed (`wraith verify --receipt`). If the receiver lacks something for another
    /// reason than `skipped`, or a folder differs, an `error` follows.
    Signed {
        /// The receiver's NodeId, who signed.
        by: &'a str,
        /// What we call it; null if it is no contact.
        contact: Option<&'a str>,
        /// The sender's NodeId.
        from: &'a str,
        /// When, by the receiver's clock, as in RFC 3339.
        signed_at: &'a str,
        /// Files that the receiver has.
        files: u64,
        /// Their bytes.
        bytes: u64,
        /// Entries in whose place something else stays there.
        skipped: u64,
        /// Entries that it does not have for another reason.
        failed: u64,
        /// Whether all of it survives a power cut there, as in `done`.
        durability: &'a str,
        /// Files, folders and links that are not so in the folder that was named; null without one.
        differ: Option<u64>,
    },
    /// An entry of the offer was not received, as the receipt says.
    Lacks {
        /// Its path in the offer, escaped.
        path: &'a str,
        /// `skipped` (its name was taken there, and what has it was left as it is), `changed` or `unreadable` (at the sender), `stale` (an earlier part was of
        /// another file) or `blocked` (the receiver could not put it in place).
        reason: &'a str,
    },
    /// A transfer was checked. If anything differs, an `error` follows in the end.
    Verified {
        /// Its name.
        id: &'a str,
        /// The folder that was looked at, escaped.
        folder: &'a str,
        /// The sender's NodeId.
        from: &'a str,
        /// When it was received, as in RFC 3339.
        received_at: &'a str,
        /// Files that were compared.
        files: u64,
        /// Their bytes.
        bytes: u64,
        /// Files, folders and links that are not as they were received.
        differ: u64,
        /// Entries of the offer that were not received; a `lacks` event names each.
        lacking: u64,
        /// Files that the list had no room for; they were not compared.
        unlisted: u64,
    },
    /// A NodeId that was asked for.
    Id {
        /// The NodeId.
        node_id: &'a str,
    },
    /// A hash that was asked for.
    Hash {
        /// The file as it was named.
        path: &'a str,
        /// The BLAKE3 of its content in hexadecimal.
        root: &'a str,
    },
    /// A file whose hash was asked for cannot be read. The others are hashed all the same; the error at the end counts those that were not.
    HashFailed {
        /// The file as it was named.
        path: &'a str,
        /// Why, in words.
        message: &'a str,
    },
    /// A hash or an authentication code that was asked for (`wraith crypto hash`, `wraith crypto mac`).
    Digest {
        /// The file as it was named, `-` for standard input.
        path: &'a str,
        /// The algorithm.
        algorithm: &'a str,
        /// The hash or code, in hexadecimal.
        value: &'a str,
    },
    /// An algorithm of the list that was asked for (`wraith crypto list`).
    Algorithm {
        /// `hash`, `cipher`, `aead`, `mac`, `sign`, `agree`, `kem` or `encrypt`.
        kind: &'a str,
        /// Its name.
        name: &'a str,
        /// What defines it.
        standard: &'a str,
        /// What computes it on this processor: a library, or `own` with the features of the processor that it uses.
        backend: &'a str,
    },
    /// `wraith crypto` has written a result, all of it.
    Written {
        /// What: `encrypted`, `decrypted`, `secret`, `private-key`, `public-key`, `signature`, `ciphertext` or `random`.
        what: &'a str,
        /// The algorithm; null for random bytes.
        algorithm: Option<&'a str>,
        /// The file, escaped; null for standard output. Events are on standard error then.
        path: Option<&'a str>,
        /// Bytes of it.
        bytes: u64,
    },
    /// A signature is good (`wraith crypto verify`).
    Good {
        /// The signed file as it was named, `-` for standard input.
        path: &'a str,
        /// The algorithm.
        algorithm: &'a str,
    },
    /// An operation and how fast it is here (`wraith speed`).
    Speed {
        /// The algorithm and the operation.
        name: &'a str,
        /// Bytes of the text that each operation is about; null where it is about none.
        bytes: Option<u64>,
        /// Operations in a second: the median of several slices of the time; null with `--list`.
        operations_per_second: Option<f64>,
        /// Text in a second; null where there is none.
        bytes_per_second: Option<f64>,
        /// Operations that were measured.
        operations: u64,
        /// What computes it, as in `algorithm`.
        backend: &'a str,
        /// What is within the measured time.
        scope: &'a str,
    },
    /// A setting that was asked for.
    Setting {
        /// `COMMAND.OPTION`, or an option of all commands.
        key: &'a str,
        /// Its value; null if it has none.
        value: Option<&'a str>,
        /// `default`, `file`, `env` or `flag`.
        source: &'a str,
        /// The line of the file, or the variable of the environment.
        place: Option<&'a str>,
    },
    /// Where the config file is, or would be.
    Config {
        /// Its path.
        path: &'a str,
    },
    /// One thing that `wraith doctor` tried.
    Check {
        /// What was tried.
        name: &'a str,
        /// `ok`, `warn` or `fail`; `none` where there is nothing to try, or it is not wanted.
        status: &'a str,
        /// What was found.
        found: &'a str,
        /// What that means for transfers.
        meaning: &'a str,
        /// What to do; null if nothing is to be done.
        next: Option<&'a str>,
    },
    /// The figures of a demonstration.
    Demo {
        /// Bytes that were transferred.
        bytes: u64,
        /// Files that were transferred.
        files: u64,
        /// How long it took.
        seconds: f64,
        /// Their ratio.
        bytes_per_second: u64,
        /// How long `cp -r` of the same took.
        cp_seconds: f64,
        /// Their ratio.
        cp_bytes_per_second: u64,
        /// Every byte, mode and time is the same.
        matched: bool,
    },
    /// The command failed. The last line.
    Error {
        /// Which kind, as a word of the table of exit codes.
        code: &'a str,
        /// The exit code.
        exit: u8,
        /// What happened and why.
        message: &'a str,
        /// What to do next; null where that is not known.
        hint: Option<&'a str>,
    },
}

/// An event, with the number of the receiver it is about where there are several.
#[derive(Clone, Debug, Serialize)]
pub struct Numbered<'a> {
    #[serde(flatten)]
    pub event: &'a Event<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_that_begins_with_its_name() {
        let event = Event::Error { code: "disk", exit: 7, message: "a\nb", hint: None };
        let line = |receiver| serde_json::to_string(&Numbered { event: &event, receiver }).unwrap();
        let text = r#"{"event":"error","code":"disk","exit":7,"message":"a\nb","hint":null"#;
        assert_eq!(line(None), format!("{text}}}"));
        assert_eq!(line(Some(2)), format!("{text},\"receiver\":2}}"));
    }
}
