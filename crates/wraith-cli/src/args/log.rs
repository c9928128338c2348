//! The arguments of logging.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{ArgAction, Args};
use tracing_subscriber::filter::Targets;
use wraith::{NodeBuilder, QlogWriter};

use crate::failure::Failure;

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
    /// Write recovery and congestion events into this file, for qlog viewers; of further connections into FILE-2, FILE-3
    /// before its extension. What is there is replaced
    #[arg(long, value_name = "FILE")]
    pub qlog: Option<PathBuf>,
}

impl QlogArgs {
    /// Begins to write, if it was asked for.
    pub fn begin(&self) -> Result<Qlog, Failure> {
        let Some(path) = &self.qlog else { return Ok(Qlog(None)) };
        let writer = QlogWriter::to_file(path)
            .map_err(|error| Failure::disk(format!("cannot write {}", path.display()), &error))?;
        Ok(Qlog(Some(writer)))
    }
}

/// Packets that are written down, until this is dropped.
#[derive(Debug)]
pub struct Qlog(Option<QlogWriter>);

impl Qlog {
    /// A node whose connections are written down.
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
