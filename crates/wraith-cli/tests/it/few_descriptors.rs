//! A low limit of open files (`ulimit -n`) only makes a transfer hold fewer files at once.

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::support::{Process, World, expect_arrival, tree};

/// Limits the files that the command may have open.
fn limited(command: &mut Command, files: u64) -> &mut Command {
    let limit = Rlimit { current: Some(files), maximum: Some(files) };
    // SAFETY: setrlimit is a system call that allocates nothing.
    unsafe { command.pre_exec(move || Ok(setrlimit(Resource::Nofile, limit)?)) }
}

#[test]
fn a_tree_of_many_folders_arrives_with_few_open_files() {
    for files in [64, 128, 256] {
        let world = World::new();
        let root = world.source().join("tree");
        for n in 0..1500 {
            tree::file(&root.join(format!("{}/{n}/file", n % 7)), n, 100 + n as usize % 50);
        }
        for n in 0..20 {
            tree::file(&root.join(format!("large/{n}/file")), n, 300_000);
        }
        let mut command = world.wraith("sender");
        command.args(["send", "--json", "--ticket", "--listen", "127.0.0.1:0"]).arg(&root);
        let mut sender = Process::start("send", limited(&mut command, files));
        let ticket = sender.ticket();
        let mut command = world.wraith("receiver");
        command.args(["receive", "--json", "--yes", "-o"]).arg(world.target()).arg(&ticket);
        let receiver = Process::start("receive", limited(&mut command, files));
        expect_arrival(receiver, sender, &root, &world.target());
    }
}
