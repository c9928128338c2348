//! The arguments that are about contacts.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use wraith::state::{Address, Name};
use wraith_crypto::NodeId;

use super::units::RateLimit;
use super::{MeetingArgs, OnConflict, QlogArgs, RecordArgs};

#[derive(Args, Debug)]
pub struct ContactArgs {
    #[command(subcommand)]
    pub action: ContactAction,
}

#[derive(Debug, Subcommand)]
pub enum ContactAction {
    /// Show all contacts
    List,
    /// Add somebody whose NodeId you have from a source you trust (`wraith id` prints it there)
    Add {
        /// What to call them
        name: Name,
        /// Their NodeId
        node_id: NodeId,
        /// Where they can be reached, if you know; several times for several places
        #[arg(long, value_name = "HOST[:PORT]")]
        address: Vec<Address>,
        /// The server where they can be found
        #[arg(long, value_name = "HOST[:PORT]")]
        rendezvous: Option<Address>,
    },
    /// Call a contact something else
    Rename { old: Name, new: Name },
    /// Forget a contact: `wraith listen` is silent to them from then on
    #[command(visible_alias = "rm")]
    Remove { name: Name },
}

#[derive(Args, Debug)]
pub struct ListenArgs {
    /// Whose files to take
    #[arg(long, value_enum, default_value_t)]
    pub accept: Accept,

    #[command(flatten)]
    pub meeting: MeetingArgs,

    /// Folder to put the files in
    #[arg(short = 'o', long = "out", value_name = "DIR", default_value = ".")]
    pub out: PathBuf,

    /// What to do when a different file already has the name
    #[arg(long, value_enum, default_value_t = OnConflict::Ask)]
    pub on_conflict: OnConflict,

    /// Ask each sender for no more than this many bytes a second; K, M and G are powers of 1024
    #[arg(long, value_name = "RATE")]
    pub rate: Option<RateLimit>,

    #[command(flatten)]
    pub contacts: NewContactArgs,

    #[command(flatten)]
    pub record: RecordArgs,

    /// Address to listen on; by default every address of this machine and the usual port of its identity
    #[arg(long, value_name = "IP:PORT")]
    pub listen: Option<SocketAddr>,

    #[command(flatten)]
    pub qlog: QlogArgs,
}

/// Whether strangers become contacts.
#[derive(Args, Debug)]
pub struct NewContactArgs {
    /// Do not ask after the transfer whether to keep the other side as a contact
    #[arg(long)]
    pub no_contacts: bool,
}

/// Who may give us files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Accept {
    /// Whoever knows this machine's NodeId; every offer is shown, and you are asked
    #[default]
    Ask,
    /// Contacts, without a question; everybody else gets silence
    Contacts,
    /// Whoever knows this machine's NodeId, without a question
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
