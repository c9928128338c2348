//! The JSON events. Fields only get added, never renamed or removed: scripts rely on them.

use serde::Serialize;

/// One line of `--json`.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<'a> {
    /// The sender listens; the other side can run `command`. Without a code `waiting_at` is empty.
    Ready {
        ticket: &'a str,
        command: &'a str,
        node_id: &'a str,
        code: Option<&'a str>,
        code_expires_seconds: Option<u64>,
        waiting_at: &'a [String],
    },
    /// The receiver has made a code; the sender can run `command`.
    Waiting { code: &'a str, command: &'a str, waiting_at: &'a [String], code_expires_seconds: u64 },
    /// Something about the code: `used`, `wrong_guess`, `expired`, or a place was `lost` or is `back`.
    Code { state: &'a str, place: Option<&'a str>, message: Option<&'a str> },
    /// The two sides of a code have met.
    Met { place: &'a str },
    /// A rendezvous server takes connections.
    Listening { address: &'a str },
    /// A session with the other side is up.
    Connected { peer: &'a str, address: &'a str, path: &'a str },
    /// What is offered, by a first look at the tree.
    Offer { name: &'a str, files: u64, folders: u64, links: u64, bytes: u64, largest: u64 },
    /// In a dry run: an entry, and what would happen to it: `new`, `continue`, `same`, `overwrite`, `rename` or `skip`.
    WouldReceive { path: &'a str, kind: &'a str, bytes: u64, action: &'a str },
    /// The offer was accepted.
    Accept { files: u64, bytes: u64 },
    /// How far it is; `eta_seconds` is null while nothing moves.
    Progress {
        bytes: u64,
        total: u64,
        bytes_per_second: u64,
        eta_seconds: Option<u64>,
        files: u64,
        total_files: u64,
        file: &'a str,
    },
    /// What became of one file. `root` is the BLAKE3 of its content, where known.
    File { path: &'a str, status: &'a str, bytes: u64, root: Option<&'a str> },
    /// Something to know that does not stop the transfer.
    Note { path: &'a str, message: &'a str },
    /// The connection was lost and is being made again.
    Reconnecting { message: &'a str, seconds_left: u64 },
    /// One of several receivers did not get everything; the others are served all the same. `code` as in `error`.
    ReceiverFailed { code: &'a str, message: &'a str },
    /// Everything is done and confirmed. `bytes_moved` are those of the last connection; the others were there already.
    Done {
        files: u64,
        bytes: u64,
        bytes_moved: u64,
        already_here: u64,
        skipped: u64,
        failed: u64,
        seconds: f64,
        bytes_per_second: u64,
        receipt: &'a str,
    },
    /// A NodeId that was asked for.
    Id { node_id: &'a str },
    /// A hash that was asked for.
    Hash { path: &'a str, root: &'a str },
    /// The figures of a demonstration.
    Demo {
        bytes: u64,
        files: u64,
        seconds: f64,
        bytes_per_second: u64,
        cp_seconds: f64,
        cp_bytes_per_second: u64,
        matched: bool,
    },
    /// The command failed; `exit` is its exit code.
    Error { code: &'a str, exit: u8, message: &'a str, hint: Option<&'a str> },
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
