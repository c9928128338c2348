//! The arguments of checking again, and of keeping what that needs.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
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
}

/// What is kept of a transfer.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct RecordArgs {
    /// Keep no list of what arrives; `wraith verify` cannot check it then
    #[arg(long)]
    pub no_record: bool,
}
