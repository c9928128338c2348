//! Helpers for two or more sides that are contacts.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{Outcome, Process, World};

impl World {
    /// Returns the NodeId of a side.
    pub fn node_id(&self, side: &str) -> String {
        let id = Process::start("id", self.wraith(side).args(["id", "--json"])).finish();
        id.last("id")["node_id"].as_str().unwrap().to_owned()
    }

    /// Runs `wraith contact …` on one side.
    pub fn contact(&self, side: &str, words: &[&str]) -> Outcome {
        let mut command = self.wraith(side);
        Process::start("contact", command.args(["contact", "--json"]).args(words)).finish()
    }

    /// Returns the contacts that a side lists.
    pub fn contacts(&self, side: &str) -> Vec<Value> {
        let listed = self.contact(side, &["list"]);
        listed.expect_exit(0);
        listed.all("contact").cloned().collect()
    }

    /// Adds `other` as a contact of `side`, with an address if there is one.
    pub fn know(&self, side: &str, other: &str, address: Option<&str>) {
        let node_id = self.node_id(other);
        let mut words = vec!["add", other, &node_id];
        words.extend(address.iter().flat_map(|address| ["--address", address]));
        self.contact(side, &words).expect_exit(0);
    }

    /// Sends `film` by ticket, and saves each side as a contact of the other: the receiver as bob,
    /// the sender as anna. Returns the sender's end.
    pub fn become_contacts(&self, film: &Path) -> Outcome {
        let mut sender = self.send_with(&[film], &["--save-as", "bob"]);
        self.receive_with(&sender.ticket(), &["--save-as", "anna"]).succeed();
        sender.succeed()
    }

    /// Returns a `wraith listen --json` of a side, into the target folder.
    pub fn listen_command(&self, side: &str, more: &[&str]) -> Command {
        let mut command = self.wraith(side);
        command.args(["listen", "--json", "-o"]).arg(self.target()).args(more);
        command
    }

    /// Starts it on a port of its own on loopback. Returns it with its address.
    pub fn listen(&self, side: &str, more: &[&str]) -> (Process, String) {
        let mut command = self.listen_command(side, more);
        let mut listener = Process::start("listen", command.args(["--listen", "127.0.0.1:0"]));
        let address = listener.event("listening")["address"].as_str().unwrap().to_owned();
        (listener, address)
    }

    /// Starts `wraith send --json --to` with a file of the source folder.
    pub fn send_to(&self, side: &str, to: &str, name: &str, more: &[&str]) -> Process {
        let mut command = self.wraith(side);
        command.args(["send", "--json", "--to", to]).args(more).arg(self.source().join(name));
        Process::start("send", &mut command)
    }
}
