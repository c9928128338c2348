//! The arguments that control logging.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{ArgAction, Args};
use tracing_subscriber::filter::Targets;
use wraith::{NodeBuilder, QlogWriter};

use super::headings::OUTPUT;
use crate::failure::Failure;

/// The filter and the destination of the log. Without any of these options, nothing is logged.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = OUTPUT)]
pub struct LogArgs {
    /// Log events to standard error; repeat it to log each step too
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub verbose: u8,

    /// Append the log to this file, which only you can read, instead of showing it
    #[arg(long, value_name = "FILE", env = "WRAITH_LOG_FILE", global = true)]
    pub log: Option<PathBuf>,

    /// Log filter: a level (error, warn, info, debug, trace), or levels of parts, as in
    /// info,wraith_transfer=trace
    #[arg(long, value_name = "FILTER", env = "WRAITH_LOG", global = true)]
    pub log_filter: Option<Targets>,
}

/// The qlog file of a transfer.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = OUTPUT)]
pub struct QlogArgs {
    /// Write recovery and congestion events into this file, for qlog viewers; those of further
    /// connections into FILE-2, FILE-3 before its extension. Existing files are replaced
    #[arg(long, value_name = "FILE")]
    pub qlog: Option<PathBuf>,
}

impl QlogArgs {
    /// Starts the writer if the option is set.
    pub fn start(&self) -> Result<Qlog, Failure> {
        let Some(path) = &self.qlog else { return Ok(Qlog(None)) };
        let writer = QlogWriter::to_file(path)
            .map_err(|error| Failure::disk(format!("cannot write {}", path.display()), &error))?;
        Ok(Qlog(Some(writer)))
    }
}

/// A running qlog writer. Drop finishes the file.
#[derive(Debug)]
pub struct Qlog(Option<QlogWriter>);

impl Qlog {
    /// Makes the node write qlog events of its connections.
    pub fn of(&self, builder: NodeBuilder) -> NodeBuilder {
        match &self.0 {
            Some(writer) => builder.qlog(Arc::new(writer.clone())),
            None => builder,
        }
    }
}

impl Drop for Qlog {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.0.take().map(|writer| writer.finish()) {
            tracing::warn!(%error, "the event log is not complete");
        }
    }
}
