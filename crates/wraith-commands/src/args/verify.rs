//! The arguments of `wraith verify`, and those that control the received list it reads.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use wraith_command_text::units::Size;

use super::PeerName;
use super::headings::CONTENT;

#[derive(Args, Clone, Debug)]
pub struct VerifyArgs {
    /// A folder, for the last transfer into it, or the id of a transfer; by default the current
    /// folder
    #[arg(value_name = "DIR|ID")]
    pub wanted: Vec<OsString>,

    /// List the transfers that can be checked, newest first
    #[arg(short, long, conflicts_with = "wanted")]
    pub list: bool,

    /// Look for the files in this folder, because they were moved there
    #[arg(long, value_name = "DIR", conflicts_with = "list")]
    pub moved_to: Option<PathBuf>,

    /// Check this receipt instead, from `wraith send --receipt` or from a receiver's `received`
    /// folder; no other file is needed. With a folder, compare its content with the receipt
    #[arg(long, value_name = "FILE", conflicts_with_all = ["list", "moved_to"])]
    pub receipt: Option<PathBuf>,

    /// Accept the receipt only if this contact, or the machine with this NodeId, signed it
    #[arg(long, value_name = "NAME", requires = "receipt")]
    pub by: Option<PeerName>,
}

/// The received list of a transfer.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = CONTENT)]
pub struct RecordArgs {
    /// Keep no list of received files; `wraith verify` cannot check the transfer then
    #[arg(long)]
    pub no_record: bool,

    /// Maximum size of the list of received files; later files are received but not listed
    #[arg(long, value_name = "SIZE", default_value = ROOM, value_parser = room)]
    pub record_max: Size,
}

/// Enough for some three million names, and half of the total for all lists.
const ROOM: &str = "256M";
/// Minimum size: the header of a list with the longest possible path fits.
const ROOM_MIN: Size = Size(64 << 10);

fn room(text: &str) -> Result<Size, String> {
    match text.parse::<Size>()? {
        size if size.0 >= ROOM_MIN.0 => Ok(size),
        _ => Err("the minimum size is 64K; --no-record turns the list off".to_owned()),
    }
}

impl RecordArgs {
    /// Returns the maximum size of the list in bytes; None means no list.
    pub fn room(&self) -> Option<u64> {
        (!self.no_record).then_some(self.record_max.0)
    }
}
