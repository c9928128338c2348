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
    /// List every setting with its value and its source: default, file, env, or flag
    List,
    /// Print the value of a setting
    Get {
        /// Name of the setting, as in the list
        key: String,
    },
    /// Write a setting into the config file
    Set {
        /// Name as in the list; without the command, it holds for every command that has it
        key: String,
        /// Value as on the command line; true or false for an option without a value
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Remove a setting from the config file
    Unset {
        /// Name of the setting, as in the file
        key: String,
    },
    /// Print the path of the config file
    Path,
}
