//! The command line, defined once: parsing, `--help` and usage errors all come from these types.

mod addresses;
mod backends;
mod config;
mod contacts;
pub mod continuing;
#[cfg_attr(feature = "crypto", path = "with_crypto.rs")]
#[cfg_attr(not(feature = "crypto"), path = "without_crypto.rs")]
pub mod crypto;
mod doctor;
pub mod examples;
mod headings;
mod lifetime;
mod log;
mod meeting;
mod pages;
mod peer;
mod relay;
mod shorthand;
mod verify;
pub mod version;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use wraith::state::ContactName;
use wraith_command_text::durations;
use wraith_command_text::units::{RateLimit, Size};
use wraith_transfer::OnConflict as Conflict;

pub use backends::BackendArgs;
pub use config::{ConfigAction, ConfigArgs};
pub use contacts::{Accept, ContactAction, ContactArgs, ListenArgs, NewContactArgs};
#[cfg(feature = "crypto")]
pub use crypto::{CryptoArgs, SpeedArgs};
pub use doctor::DoctorArgs;
pub use log::{LogArgs, QlogArgs};
pub use meeting::MeetingArgs;
#[cfg(test)]
pub use meeting::Switch;
pub use pages::{CompletionsArgs, ManArgs};
pub use peer::PeerName;
pub use relay::RelayArgs;
pub use shorthand::{Split, split, with_command_in_front};
pub use verify::{RecordArgs, VerifyArgs};

use crate::failure::Exit;
use headings::{CONTACTS, CONTENT, NETWORK, OUTPUT, SPEED};
use lifetime::lifetime;

/// The first line of the help; also the description of the package `wraith-cli`.
const ABOUT: &str = "Send files directly between two machines, encrypted and verified";

/// The two forms of a command line. The second is a shorthand for `wraith receive`.
const USAGE: &str =
    "wraith [OPTIONS] <COMMAND>\n       wraith CODE [OPTIONS]      as wraith receive CODE";

/// Move files privately and directly between machines.
#[derive(Debug, Parser)]
#[command(name = "wraith", version, about = ABOUT, arg_required_else_help = true, propagate_version = true)]
#[command(max_term_width = 120)]
#[command(override_usage = USAGE, after_help = exit_codes())]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    #[command(flatten)]
    pub output: OutputArgs,

    #[command(flatten)]
    pub log: LogArgs,

    #[command(flatten)]
    pub cryptography: BackendArgs,
}

/// Options for the output format.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = OUTPUT)]
pub struct OutputArgs {
    /// Print one JSON event a line on standard output
    #[arg(long, global = true)]
    pub json: bool,

    /// Print only errors, and the code or ticket, which the other side needs
    #[arg(short, long, global = true)]
    pub quiet: bool,

    /// Ignore the config file
    #[arg(long, global = true)]
    pub no_config: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Offer files and folders; prints the code with which another machine fetches them
    #[command(visible_alias = "tx")]
    Send(SendArgs),
    /// Fetch the files that a code or a ticket offers
    #[command(visible_aliases = ["recv", "rx", "get"])]
    Receive(ReceiveArgs),
    /// Receive files from contacts, without a code, until Ctrl-C
    Listen(ListenArgs),
    /// Check that all received files are still there and unchanged
    Verify(VerifyArgs),
    /// List and change the contacts of this machine
    #[command(visible_alias = "contacts")]
    Contact(ContactArgs),
    /// Print this machine's NodeId
    Id,
    /// Print the BLAKE3 hash of files, as b3sum does; transfers report it as the content id, except
    /// for files with huge holes
    Hash(HashArgs),
    /// Hash, encrypt, sign, and make keys, with all algorithms of the suite
    #[cfg(feature = "crypto")]
    Crypto(CryptoArgs),
    /// Measure the speed of each algorithm on this machine
    #[cfg(feature = "crypto")]
    Speed(SpeedArgs),
    /// Make data, transfer it between two processes on this machine, and check every byte
    Demo(DemoArgs),
    /// Run a meeting place for codes, which sees no words, names or files
    Rendezvous(RendezvousArgs),
    /// Run a relay for machines without a direct path, which sees only ciphertext; also a meeting
    /// place
    Relay(RelayArgs),
    /// Test this machine and its network, and suggest fixes
    Doctor(DoctorArgs),
    /// List and change settings, which are defaults for options
    Config(ConfigArgs),
    /// Print the completion script for a shell
    Completions(CompletionsArgs),
    /// Write the man pages into a folder, or print the first one
    Man(ManArgs),
}

impl Command {
    /// Returns the name on the command line.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Send(_) => "send",
            Self::Receive(_) => "receive",
            Self::Listen(_) => "listen",
            Self::Verify(_) => "verify",
            Self::Contact(_) => "contact",
            Self::Id => "id",
            Self::Hash(_) => "hash",
            #[cfg(feature = "crypto")]
            Self::Crypto(_) => "crypto",
            #[cfg(feature = "crypto")]
            Self::Speed(_) => "speed",
            Self::Demo(_) => "demo",
            Self::Rendezvous(_) => "rendezvous",
            Self::Relay(_) => "relay",
            Self::Doctor(_) => "doctor",
            Self::Config(_) => "config",
            Self::Completions(_) => "completions",
            Self::Man(_) => "man",
        }
    }
}

/// Number of parallel connections of a transfer.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = SPEED)]
pub struct ConnectionArgs {
    /// Connections of one transfer, each with a core of its own on both sides; the lower limit of
    /// the two sides applies. With this option they are made at once, without it only on a fast
    /// path [default: one for every two cores, at most 4]
    #[arg(
        long,
        alias = "lanes",
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(1..=i64::from(wraith::CONNECTIONS_MAX))
    )]
    pub connections: Option<u8>,
}

#[derive(Args, Debug)]
pub struct RendezvousArgs {
    /// TCP address to listen on, or a port alone for all addresses
    #[arg(long, value_name = "[IP:]PORT", default_value = "[::]:49737", value_parser = addresses::listening)]
    pub listen: SocketAddr,
}

#[derive(Args, Debug)]
pub struct SendArgs {
    /// Files and folders to offer; - is standard input
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Send to this contact, or to the machine with this NodeId, which runs `wraith listen`; no code
    /// is needed
    #[arg(long, value_name = "NAME", conflicts_with_all = ["ticket", "code", "save_as", "receivers", "keep"])]
    pub to: Option<PeerName>,

    /// Send to the receiver that made this code with `wraith receive --code`
    #[arg(long, value_name = "CODE", conflicts_with = "ticket")]
    pub code: Option<String>,

    /// Send to this many receivers, in parallel if they come at the same time; the code then has
    /// three words
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub receivers: u32,

    /// Keep sending to every receiver that comes, until Ctrl-C
    #[arg(long, conflicts_with_all = ["receivers", "code"])]
    pub keep: bool,

    /// Print the long ticket, which needs no meeting place, instead of a code
    #[arg(long)]
    pub ticket: bool,

    /// Also show the code or the ticket as a QR code
    #[arg(long)]
    pub qr: bool,

    /// Lifetime of the code, such as 15m or 2h; a number alone is in seconds [default: 1h; with
    /// --keep 24h]
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    pub expires: Option<u64>,

    /// Do not continue an earlier run: its tickets are no longer valid
    #[arg(long)]
    pub new: bool,

    /// Name of standard input at the receiver
    #[arg(help_heading = CONTENT, long, value_name = "NAME", default_value = "stdin")]
    pub name: String,

    /// Send whole files, even if the receiver has an older copy
    #[arg(help_heading = CONTENT, short = 'W', long)]
    pub whole_file: bool,

    /// Do not wait until everything is on the receiver's disk: it is verified, but a power cut
    /// there can still lose it
    #[arg(help_heading = CONTENT, long)]
    pub no_sync: bool,

    /// Write the receiver's signed receipt into this file, with the name and hash of everything in
    /// it; `wraith verify --receipt` checks it anywhere. In a folder, each receiver gets a file of
    /// its own
    #[arg(help_heading = CONTENT, long, value_name = "FILE")]
    pub receipt: Option<PathBuf>,

    /// Keep the receiver as a contact with this name, without asking
    #[arg(help_heading = CONTACTS, long, value_name = "NAME", conflicts_with_all = ["receivers", "keep"])]
    pub save_as: Option<ContactName>,

    #[command(flatten)]
    pub contacts: NewContactArgs,

    #[command(flatten)]
    pub meeting: MeetingArgs,

    /// Address to listen on, or a port alone for all addresses; by default every address of this
    /// machine and a port of its own choosing
    #[arg(help_heading = NETWORK, long, value_name = "[IP:]PORT", value_parser = addresses::listening)]
    pub listen: Option<SocketAddr>,

    /// Stop if no receiver has come after this time, such as 5m (default: wait)
    #[arg(help_heading = SPEED, long, value_name = "TIME", value_parser = durations::seconds)]
    pub timeout: Option<u64>,

    /// Wait this long for a lost receiver to come back
    #[arg(help_heading = SPEED, long, value_name = "TIME", value_parser = durations::seconds, default_value = "10m")]
    pub reconnect: u64,

    /// Send at most this many bytes a second, to all receivers together; K, M and G are powers of
    /// 1024
    #[arg(help_heading = SPEED, long, value_name = "RATE")]
    pub rate: Option<RateLimit>,

    #[command(flatten)]
    pub connections: ConnectionArgs,

    /// Congestion control: bbr also fills a lossy link, cubic shares a link as most of TCP does
    #[arg(help_heading = SPEED, long, value_enum, default_value_t)]
    pub congestion: Congestion,

    #[command(flatten)]
    pub qlog: QlogArgs,
}

impl SendArgs {
    /// Returns whether standard input is sent.
    pub fn is_piped(&self) -> bool {
        self.paths.iter().any(|path| path.as_os_str() == "-")
    }

    /// Returns the number of receivers; None means any number.
    pub fn receivers(&self) -> Option<u32> {
        (!self.keep).then_some(self.receivers)
    }

    /// Returns the lifetime of the code, in seconds.
    pub fn life(&self) -> u64 {
        self.expires.unwrap_or(if self.keep { 24 * 3600 } else { 3600 })
    }
}

/// The congestion controller of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Congestion {
    /// BBRv3
    #[default]
    Bbr,
    /// CUBIC with HyStart++
    Cubic,
}

#[derive(Args, Debug)]
pub struct ReceiveArgs {
    /// The code or the ticket that `wraith send` printed; `-` or nothing: ask for it
    #[arg(value_name = "CODE|TICKET")]
    pub wanted: Vec<OsString>,

    /// Folder to put the files in; - writes one file, or piped data, to standard output
    #[arg(short = 'o', long = "out", value_name = "DIR", default_value = ".")]
    pub out: PathBuf,

    /// Accept without asking
    #[arg(short, long)]
    pub yes: bool,

    /// What to do when a different file already has the name
    #[arg(long, value_name = "ACTION", value_enum, default_value_t = OnConflict::Ask)]
    pub on_conflict: OnConflict,

    /// Show the offer and its effects, and write nothing; the code or ticket stays valid
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,

    /// Make a code for the sender, which then runs `wraith send --code CODE PATH…`
    #[arg(long, conflicts_with = "wanted")]
    pub code: bool,

    /// Lifetime of an unused code from --code, such as 15m or 2h; a number alone is in seconds
    #[arg(long, value_name = "TIME", value_parser = lifetime, default_value = "1h", requires = "code")]
    pub expires: u64,

    /// Fetch whole files, even if an older copy is here; on a fast network that can be quicker
    #[arg(help_heading = CONTENT, short = 'W', long)]
    pub whole_file: bool,

    /// Keep all permissions, even those that the umask of this machine removes; set-uid, set-gid
    /// and sticky are never kept
    #[arg(help_heading = CONTENT, long)]
    pub keep_modes: bool,

    /// Let the system decide when to write verified data to the disk: a power cut before that can
    /// lose it
    #[arg(help_heading = CONTENT, long)]
    pub no_sync: bool,

    /// Write to standard output even if it is a terminal
    #[arg(help_heading = CONTENT, long)]
    pub force: bool,

    #[command(flatten)]
    pub record: RecordArgs,

    /// Keep the sender as a contact with this name, without asking
    #[arg(help_heading = CONTACTS, long, value_name = "NAME")]
    pub save_as: Option<ContactName>,

    #[command(flatten)]
    pub contacts: NewContactArgs,

    #[command(flatten)]
    pub meeting: MeetingArgs,

    /// Try to reach the sender for this time at first (default: 10s, or 30s where the DHT is asked)
    #[arg(help_heading = SPEED, long, value_name = "TIME", value_parser = durations::seconds)]
    pub timeout: Option<u64>,

    /// Try to reconnect for this time after a connection is lost
    #[arg(help_heading = SPEED, long, value_name = "TIME", value_parser = durations::seconds, default_value = "10m")]
    pub reconnect: u64,

    /// Limit the sender to this many bytes a second; K, M and G are powers of 1024
    #[arg(help_heading = SPEED, long, value_name = "RATE")]
    pub rate: Option<RateLimit>,

    #[command(flatten)]
    pub connections: ConnectionArgs,

    #[command(flatten)]
    pub qlog: QlogArgs,
}

impl ReceiveArgs {
    /// Returns whether the data goes to standard output.
    pub fn is_piped(&self) -> bool {
        self.out.as_os_str() == "-"
    }
}

/// The policy for a name that a different file already has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnConflict {
    /// Ask at a terminal, with the offer; without a terminal, rename
    Ask,
    /// Keep both: the new file or folder gets a number
    Rename,
    /// Replace the old one once the new one is complete; a folder that is not empty stays, and the
    /// new one gets a number
    Overwrite,
    /// Keep the old one
    Skip,
}

impl OnConflict {
    /// Returns the policy; None means to ask.
    pub fn policy(self) -> Option<Conflict> {
        match self {
            Self::Ask => None,
            Self::Rename => Some(Conflict::Rename),
            Self::Overwrite => Some(Conflict::Overwrite),
            Self::Skip => Some(Conflict::Skip),
        }
    }
}

#[derive(Args, Debug)]
pub struct HashArgs {
    /// Files to hash; - or none is standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub struct DemoArgs {
    /// Size of the big file; K, M and G are powers of 1024
    #[arg(long, value_name = "SIZE", default_value = "256M")]
    pub size: Size,

    /// Number of small files
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub files: u32,

    /// Folder for the data (needs twice its size); by default the folder for temporary files
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Returns all exit codes with their meaning, in one line.
fn exit_codes() -> String {
    let codes = Exit::ALL.iter().map(|exit| format!(" · {} {}", *exit as u8, exit.meaning()));
    format!("Exit codes: 0 done{}", codes.collect::<String>())
}

/// Returns the bare definition, without changes from the config file or the environment. It has the
/// facts of [`version`] only if the command line asks for them, because they take self-tests.
pub fn definition() -> clap::Command {
    let command = Cli::command();
    with_repeatable_switches(match std::env::args_os().any(|word| word == VERSION) {
        true => command.long_version(version::long()),
        false => command,
    })
}

/// Option that prints the version and its facts.
pub const VERSION: &str = "--version";

/// Returns the definition in which a repeated switch means the same as one, as in `wraith -q id -q`
/// with an alias for `wraith -q`.
fn with_repeatable_switches(command: clap::Command) -> clap::Command {
    let repeatable = |arg: clap::Arg| match arg.get_action() {
        clap::ArgAction::SetTrue => {
            let id = arg.get_id().clone();
            arg.overrides_with(id)
        }
        _ => arg,
    };
    command.mut_args(repeatable).mut_subcommands(with_repeatable_switches)
}

/// Returns whether a command line sends the data to standard output. The command line may be
/// invalid.
pub fn means_standard_output(arguments: &[OsString]) -> bool {
    let alone = ["-o-", "-o=-", "--out=-"];
    let is_option = |word: &OsString| word == "-o" || word == "--out";
    arguments.iter().any(|word| alone.iter().any(|option| word == option))
        || arguments.windows(2).any(|pair| is_option(&pair[0]) && pair[1] == "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_begins_with_the_description_of_the_program() {
        assert_eq!(Cli::command().get_about().unwrap().to_string(), ABOUT);
        let manifest = include_str!("../../../wraith-cli/Cargo.toml");
        assert!(manifest.contains(&format!("description = \"{ABOUT}\"")));
    }

    #[test]
    fn flags_for_output_work_before_and_after_the_command() {
        for words in [["wraith", "--json", "id"], ["wraith", "id", "--json"]] {
            assert!(Cli::try_parse_from(words).unwrap().output.json);
        }
    }
}
