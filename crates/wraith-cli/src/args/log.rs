//! The arguments of logging.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use tracing_subscriber::filter::Targets;

/// What is logged, and where to. Without any of these nothing is.
#[derive(Args, Clone, Debug, Default)]
pub struct LogArgs {
    /// Log what happens to standard error; twice, also each step
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub verbose: u8,

    /// Append the log to this file, which only you can read, instead of showing it
    #[arg(long, value_name = "FILE", env = "WRAITH_LOG_FILE", global = true)]
    pub log: Option<PathBuf>,

    /// What is logged: a level (error, warn, info, debug, trace), or levels of parts, as in info,wraith_transfer=trace
    #[arg(long, value_name = "FILTER", env = "WRAITH_LOG", global = true)]
    pub log_filter: Option<Targets>,
}

/// Where a transfer's packets are written down.
#[derive(Args, Clone, Debug, Default)]
pub struct QlogArgs {
    /// Write recovery and congestion events into this file, for qlog viewers
    #[arg(long, value_name = "FILE")]
    pub qlog: Option<PathBuf>,
}
