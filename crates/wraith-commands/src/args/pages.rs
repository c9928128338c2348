//! The arguments of `wraith completions` and `wraith man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// Shell to complete for
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

#[derive(Args, Debug)]
pub struct ManArgs {
    /// Folder for wraith.1 and a page of each command
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
}
