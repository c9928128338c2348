//! The commands of the `wraith` program. [`main`] reads the command line, runs one command, and
//! reports the result as text, a JSON event and an exit code. The crate `wraith` implements
//! transfers; this crate is only the interface for people and scripts.

#![forbid(unsafe_code)]

mod args;
mod ask;
mod code;
mod completions;
mod config;
mod contacts;
#[cfg(feature = "crypto")]
mod crypto;
mod demo;
mod doctor;
mod failure;
mod foreign;
mod guess;
mod hash;
mod home;
mod listen;
mod offer;
mod output;
mod pages;
mod pipe;
mod receive;
mod relay;
mod rendezvous;
mod report;
mod send;
mod signals;
mod usage;
mod verify;

use std::io::ErrorKind;
use std::process::ExitCode;
use std::sync::Arc;

use args::{Cli, Command, OutputArgs};
use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
use config::CommandLineError;
use failure::{Exit, Failure};
use output::{Event, Reporter};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use wraith_crypto::Backends;

/// Maximum number of parallel name lookups. Each takes a thread.
const NAME_LOOKUPS: usize = 2;

/// Runs the program: the command on the command line of this process. Returns its exit code.
pub fn main() -> ExitCode {
    signals::outlive_file_limit();
    raise_open_files_limit();
    let cli = match config::command_line() {
        Ok(cli) => cli,
        Err(none) => return command_line_failure(none),
    };
    if let Some(backends) = cli.cryptography.backends {
        Backends::choose(Some(backends));
    }
    let reporter = Arc::new(Reporter::new(cli.output));
    if let Err(failure) = output::log::start(&cli.log, &reporter) {
        reporter.failure(&failure);
        return ExitCode::from(failure.exit as u8);
    }
    tracing::info!(version = env!("CARGO_PKG_VERSION"), command = cli.command.name(), "begins");
    for warning in config::unknown_variables() {
        reporter.note("", &warning);
    }
    let result = run(&cli, &reporter);
    reporter.end();
    // The failure of the command explains more than a failed write.
    match result.and_then(|()| reporter.unwritten()) {
        Ok(()) => {
            tracing::info!(exit = 0, "ends");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            tracing::info!(exit = failure.exit as u8, code = failure.exit.name(), "ends");
            reporter.failure(&failure);
            ExitCode::from(failure.exit as u8)
        }
    }
}

/// Raises the limit of open files to the highest that the system allows this process.
fn raise_open_files_limit() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    // Under the old limit the same work is done with fewer open files at once.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Runs the command on one thread, which waits for network events, signals and answers. Packets and
/// files have threads of their own.
fn run(cli: &Cli, reporter: &Arc<Reporter>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(NAME_LOOKUPS)
        .build()
        .map_err(|error| {
            Failure::new(Exit::Other, format!("cannot start: {}", failure::plain(&error)))
        })?;
    let result = runtime.block_on(command(cli, reporter));
    // A pending name lookup must not delay the exit.
    runtime.shutdown_background();
    result
}

async fn command(cli: &Cli, reporter: &Arc<Reporter>) -> Result<(), Failure> {
    match &cli.command {
        Command::Id => id(reporter),
        Command::Hash(args) => hash::run(args, reporter),
        #[cfg(feature = "crypto")]
        Command::Crypto(args) => crypto::run(args, reporter).await,
        #[cfg(feature = "crypto")]
        Command::Speed(args) => crypto::speed(args, reporter),
        Command::Send(args) => send::run(args, reporter).await,
        Command::Receive(args) => receive::run(args, reporter).await,
        Command::Listen(args) => listen::run(args, reporter).await,
        Command::Verify(args) => verify::run(args, reporter).await,
        Command::Contact(args) => contacts::run(args, reporter),
        Command::Demo(args) => demo::run(args, reporter).await,
        Command::Relay(args) => relay::run(args, reporter).await,
        Command::Rendezvous(args) => rendezvous::run(args, reporter).await,
        Command::Config(args) => config::run(args, cli.output, reporter),
        Command::Completions(args) => completions::run(args, reporter),
        Command::Doctor(args) => doctor::run(args, reporter).await,
        Command::Man(args) => pages::man(args, reporter),
    }
}

/// Handles a command line without a command. Help and version are clap's own text; an empty command
/// line shows help too. A mistake is a failure like any other.
fn command_line_failure(none: CommandLineError) -> ExitCode {
    let words = args::with_command_in_front(std::env::args_os().collect());
    let json = words.iter().any(|word| word == "--json");
    let reporter = Reporter::new(OutputArgs { json, ..OutputArgs::default() });
    if args::means_standard_output(&words) {
        reporter.keep_off_stdout();
    }
    let failure = match none {
        CommandLineError::Settings(failure) => failure,
        CommandLineError::Clap(error) => {
            let is_help = error.kind() == DisplayHelpOnMissingArgumentOrSubcommand;
            if let Some(failure) = usage::one_hyphen(&words) {
                failure
            } else if error.use_stderr() && (json || !is_help) {
                usage::failure(&error, &words)
            } else {
                match error.print() {
                    Err(unwritten) if unwritten.kind() != ErrorKind::BrokenPipe && !is_help => {
                        output::cannot_print(&unwritten)
                    }
                    _ => return ExitCode::from(error.exit_code() as u8),
                }
            }
        }
    };
    reporter.failure(&failure);
    ExitCode::from(failure.exit as u8)
}

fn id(reporter: &Reporter) -> Result<(), Failure> {
    let node_id = home::open()?.identity()?.node_id().to_string();
    reporter.event(&Event::Id { node_id: &node_id });
    reporter.print(node_id);
    Ok(())
}
