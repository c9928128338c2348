//! Takes the place of `with_crypto.rs` in a program without the commands `crypto` and `speed`.

use clap::Command;
use wraith_command_text::foreign::ForeignOption;

pub const EXAMPLES: &[(&str, &[(&str, &str)])] = &[];
pub const FOREIGN_OPTIONS: &[ForeignOption] = &[];
/// The missing commands, and the answer to them.
pub const FOREIGN_COMMANDS: &[(&[&str], &str)] =
    &[(&["crypto", "speed"], "this program was built without wraith crypto and wraith speed")];

pub fn with_names(definition: Command) -> Command {
    definition
}

#[cfg(test)]
mod tests {
    use crate::{args, guess};

    #[test]
    fn a_command_that_was_left_out_is_answered_with_the_reason() {
        let definition = args::definition();
        for name in ["crypto", "speed"] {
            assert!(definition.find_subcommand(name).is_none(), "{name}");
            let hint = guess::command(name, &[]).and_then(|failure| failure.hint);
            assert!(hint.is_some_and(|hint| hint.contains("built without")), "{name}");
        }
    }
}
