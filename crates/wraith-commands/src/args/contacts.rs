//! The arguments of `wraith contact` and `wraith listen`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use wraith::state::{ContactAddress, ContactName};
use wraith_command_text::units::RateLimit;
use wraith_crypto::NodeId;

use super::headings::{CONTACTS, NETWORK, SPEED};
use super::{MeetingArgs, OnConflict, QlogArgs, RecordArgs, addresses};

#[derive(Args, Debug)]
pub struct ContactArgs {
    #[command(subcommand)]
    pub action: ContactAction,
}

#[derive(Debug, Subcommand)]
pub enum ContactAction {
    /// List all contacts
    List,
    /// Add a contact by its NodeId, from a source you trust (`wraith id` prints it there)
    Add {
        /// Name of the contact
        name: ContactName,
        /// NodeId of the contact
        node_id: NodeId,
        /// Address where the contact listens, if known; repeat for several addresses
        #[arg(long, value_name = "HOST[:PORT]")]
        address: Vec<ContactAddress>,
        /// Rendezvous server where the contact can be found
        #[arg(long, value_name = "HOST[:PORT]")]
        rendezvous: Option<ContactAddress>,
    },
    /// Rename a contact
    Rename { old: ContactName, new: ContactName },
    /// Remove a contact: `wraith listen --accept contacts` no longer answers it
    #[command(visible_alias = "rm")]
    Remove { name: ContactName },
}

#[derive(Args, Debug)]
pub struct ListenArgs {
    /// Senders to accept files from
    #[arg(long, value_enum, default_value_t)]
    pub accept: Accept,

    /// Folder to put the files in
    #[arg(short = 'o', long = "out", value_name = "DIR", default_value = ".")]
    pub out: PathBuf,

    /// What to do when a different file already has the name
    #[arg(long, value_name = "ACTION", value_enum, default_value_t = OnConflict::Ask)]
    pub on_conflict: OnConflict,

    #[command(flatten)]
    pub record: RecordArgs,

    #[command(flatten)]
    pub contacts: NewContactArgs,

    #[command(flatten)]
    pub meeting: MeetingArgs,

    /// Address to listen on, or a port alone for all addresses; by default every address of this
    /// machine and the usual port of its identity
    #[arg(help_heading = NETWORK, long, value_name = "[IP:]PORT", value_parser = addresses::listening)]
    pub listen: Option<SocketAddr>,

    /// Limit each sender to this many bytes a second; K, M and G are powers of 1024
    #[arg(help_heading = SPEED, long, value_name = "RATE")]
    pub rate: Option<RateLimit>,

    #[command(flatten)]
    pub qlog: QlogArgs,
}

/// Whether unknown peers become contacts.
#[derive(Args, Debug)]
#[command(next_help_heading = CONTACTS)]
pub struct NewContactArgs {
    /// Do not ask after the transfer whether to keep the other side as a contact
    #[arg(long)]
    pub no_contacts: bool,
}

/// The accept filter of `wraith listen`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Accept {
    /// Any sender that has this machine's NodeId; show each offer and ask
    #[default]
    Ask,
    /// Contacts, without a question; other senders get no answer
    Contacts,
    /// Any sender that has this machine's NodeId, without a question
    Always,
}

impl Accept {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Contacts => "contacts",
            Self::Always => "always",
        }
    }
}
