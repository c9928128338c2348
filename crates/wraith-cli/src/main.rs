//! The `wraith` program: reads the command line, runs one command, and turns how it ended into words, a JSON event and an
//! exit code. What a transfer is lives in `wraith-transfer`; here is only what a person or a script meets.

#![forbid(unsafe_code)]

mod addresses;
mod args;
mod code;
mod demo;
mod endpoint;
mod failure;
mod find;
mod hash;
mod home;
mod interrupt;
mod made;
mod offer;
mod output;
mod pending;
mod prompt;
mod qr;
mod receive;
mod rendezvous;
mod report;
mod saved;
mod send;
mod serve;
mod size;

use std::process::ExitCode;
use std::sync::Arc;

use args::Command;
use failure::Failure;
use home::Home;
use output::{Event, Reporter};

fn main() -> ExitCode {
    let cli = match args::from_environment() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output with 0, mistakes to standard error with 2; clap knows which.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    let reporter = Arc::new(Reporter::new(cli.output));
    let result = match &cli.command {
        Command::Id => id(&reporter),
        Command::Hash(args) => hash::run(args, &reporter),
        Command::Send(args) => send::run(args, &reporter),
        Command::Receive(args) => receive::run(args, &reporter),
        Command::Demo(args) => demo::run(args, &reporter),
        Command::Rendezvous(args) => rendezvous::run(args, &reporter),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            reporter.failure(&failure);
            ExitCode::from(failure.exit as u8)
        }
    }
}

fn id(reporter: &Reporter) -> Result<(), Failure> {
    let node_id = Home::open()?.identity()?.node_id().to_string();
    reporter.event(&Event::Id { node_id: &node_id });
    reporter.answer(node_id);
    Ok(())
}
