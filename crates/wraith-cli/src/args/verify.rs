//! The arguments of checking again, and of keeping what that needs.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use wraith_crypto::NodeId;

use super::units::Size;

#[derive(Args, Clone, Debug)]
pub struct VerifyArgs {
    /// A folder, for the transfer that came into it last, or the id of a transfer; by default the current folder
    #[arg(value_name = "DIR|ID")]
    pub wanted: Vec<OsString>,

    /// List the transfers that can be checked, the newest first
    #[arg(short, long, conflicts_with = "wanted")]
    pub list: bool,

    /// Look for the files in this folder, because they were moved there
    #[arg(long, value_name = "DIR", conflicts_with = "list")]
    pub moved_to: Option<PathBuf>,

    /// Check this file instead, which `wraith send --receipt` wrote or a receiver's `received` folder has; no other is needed. With a
    /// folder, compare what is there with it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["list", "moved_to"])]
    pub receipt: Option<PathBuf>,

    /// Take the receipt only if this receiver has signed it
    #[arg(long, value_name = "NODEID", requires = "receipt")]
    pub by: Option<NodeId>,
}

/// What is kept of a transfer.
#[derive(Args, Clone, Copy, Debug)]
pub struct RecordArgs {
    /// Keep no list of what arrives; `wraith verify` cannot check it then
    #[arg(long)]
    pub no_record: bool,

    /// Let the list of what arrives grow to this size; what comes later is received and not listed
    #[arg(long, value_name = "SIZE", default_value = ROOM, value_parser = room)]
    pub record_max: Size,
}

/// Some three million names, and half of what all lists may have together.
const ROOM: &str = "256M";
/// The least has room for what stands before the list, with the longest path there is.
const ROOM_MIN: Size = Size(64 << 10);

fn room(text: &str) -> Result<Size, String> {
    match text.parse::<Size>()? {
        size if size.0 >= ROOM_MIN.0 => Ok(size),
        _ => Err("less than 64K is no list; --no-record keeps none".to_owned()),
    }
}

impl RecordArgs {
    /// Bytes that the list may have; None: there is to be none.
    pub fn room(&self) -> Option<u64> {
        (!self.no_record).then_some(self.record_max.0)
    }
}
