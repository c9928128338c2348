//! The arguments of `wraith completions` and `wraith man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// Which shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

#[derive(Args, Debug)]
pub struct ManArgs {
    /// Folder to write wraith.1 and a page of each command into
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
}
