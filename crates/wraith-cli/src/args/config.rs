//! The arguments of `wraith config`.

use clap::{Args, Subcommand};

#[derive(Args, Debug)]
pub struct ConfigArgs {
    /// What to do; without it, list
    #[command(subcommand)]
    pub action: Option<ConfigAction>,
}

#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// List every setting with its value and where that comes from: default, file, env, or flag
    List,
    /// Print the value of a setting
    Get {
        /// As in the list
        key: String,
    },
    /// Put a setting into the config file
    Set {
        /// As in the list, or without the command, for every command that has it
        key: String,
        /// As on the command line; true or false for an option without a value
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Take a setting out of the config file
    Unset {
        /// As in the file
        key: String,
    },
    /// Print where the config file is
    Path,
}
