//! The examples of each command, for the help and for the man pages.

use clap::Command;

use super::crypto;

/// A command line, and its effect.
type Example = (&'static str, &'static str);

/// The examples of a command, by its words after `wraith`. The crate `wraith-crypto-commands` has
/// those of its commands.
const EXAMPLES: [(&str, &[Example]); 20] = [
    (
        "",
        &[
            ("wraith send holiday/", "Offer a folder, and print the code"),
            ("wraith 7-crater-lemon -o Pictures", "Receive it on the other machine"),
            ("tar c photos | wraith send -", "Send the output of a command"),
        ],
    ),
    (
        "send",
        &[
            ("wraith send film.mov holiday/", "Offer a file and a folder"),
            ("wraith send -n 5 --expires 2h film.mov", "To five receivers, within two hours"),
            ("wraith send film.mov --to anna", "To a contact, without a code"),
        ],
    ),
    (
        "receive",
        &[
            ("wraith receive 7-crater-lemon", "Show the offer, and ask"),
            ("wraith receive -y -o Inbox 7-crater-lemon", "Into a folder, without a question"),
            ("wraith receive -o - 7-crater-lemon | tar x", "Into another program"),
        ],
    ),
    (
        "listen",
        &[
            ("wraith listen", "Show each offer, and ask"),
            ("wraith listen --accept contacts -o Inbox", "Take everything that contacts send"),
            ("wraith listen --accept contacts --json", "The same for a script"),
        ],
    ),
    (
        "verify",
        &[
            ("wraith verify Pictures", "Check the last transfer into a folder"),
            ("wraith verify --list", "List the transfers that can be checked"),
            (
                "wraith verify --receipt film.receipt --by anna",
                "Check what anna has signed as received",
            ),
        ],
    ),
    (
        "contact",
        &[
            ("wraith contact list", "List all contacts"),
            ("wraith contact rename anna anna-laptop", "Change a name"),
            ("wraith contact remove anna", "Forget a contact"),
        ],
    ),
    ("contact list", &[("wraith contact list --json", "One JSON event for each contact")]),
    (
        "contact add",
        &[
            ("wraith contact add anna \"$(ssh anna wraith id)\"", "Ask the machine for its NodeId"),
            (
                "wraith contact add anna \"$(cat anna.id)\" --address anna.example",
                "With an address, for other networks",
            ),
        ],
    ),
    ("contact rename", &[("wraith contact rename anna anna-laptop", "Change a name")]),
    ("contact remove", &[("wraith contact remove anna", "Forget a contact")]),
    (
        "id",
        &[
            ("wraith id", "Print the NodeId"),
            ("wraith id > anna.id", "Into a file, to copy it to the other machine"),
            ("wraith id --json", "As a JSON event"),
        ],
    ),
    (
        "hash",
        &[
            ("wraith hash film.mov", "Print the hash of a file"),
            ("wraith hash *.mov > SUMS", "Several files, in the format of b3sum"),
            ("tar c photos | wraith hash", "Hash the output of a command"),
        ],
    ),
    (
        "demo",
        &[
            ("wraith demo", "256 MiB and 1000 small files"),
            ("wraith demo --size 4G --files 0", "One big file"),
            ("wraith demo --dir /mnt/disk", "On another disk"),
        ],
    ),
    (
        "rendezvous",
        &[
            ("wraith rendezvous", "On the usual port of all addresses"),
            ("wraith rendezvous --listen 5555", "On another port"),
            (
                "wraith send film.mov --rendezvous server.example:5555",
                "Meet there; the receiver needs the same option",
            ),
        ],
    ),
    (
        "relay",
        &[
            ("wraith relay", "On port 443"),
            (
                "wraith relay --token-file tokens --total-rate 50M",
                "Only for clients with a token, with a limit",
            ),
            (
                "wraith send film.mov --relay server.example",
                "Send through it; the receiver needs the same option",
            ),
        ],
    ),
    (
        "doctor",
        &[
            ("wraith doctor", "Test this machine and its network"),
            ("wraith doctor --relay server.example", "Test the way to a relay too"),
            ("wraith doctor --json", "For a script"),
        ],
    ),
    (
        "config",
        &[
            ("wraith config", "List all settings"),
            ("wraith config set relay server.example", "For every command with --relay"),
            ("wraith config set receive.out Downloads", "For wraith receive alone"),
        ],
    ),
    (
        "config set",
        &[
            ("wraith config set relay server.example", "For every command with --relay"),
            ("wraith config set receive.out Downloads", "For wraith receive alone"),
            ("wraith config set json true", "An option without a value"),
        ],
    ),
    (
        "completions",
        &[
            (
                "wraith completions bash > ~/.local/share/bash-completion/completions/wraith",
                "For new shells of this user",
            ),
            ("wraith completions zsh > ~/.zfunc/_wraith", "For zsh, with ~/.zfunc in fpath"),
            ("wraith completions fish > ~/.config/fish/completions/wraith.fish", "For fish"),
        ],
    ),
    (
        "man",
        &[
            ("wraith man | man -l -", "Read the first page"),
            ("wraith man ~/.local/share/man/man1", "For man of this user"),
            ("wraith man man1 && man -l man1/wraith-send.1", "Read the page of a command"),
        ],
    ),
];

fn all() -> impl Iterator<Item = &'static (&'static str, &'static [Example])> {
    EXAMPLES.iter().chain(crypto::EXAMPLES)
}

/// Returns the examples of the command with these words.
pub fn of(path: &str) -> &'static [Example] {
    all().find(|(command, _)| *command == path).map_or(&[], |(_, examples)| examples)
}

/// Adds the examples to the help of each command.
pub fn in_help(command: Command) -> Command {
    below(command, "")
}

fn below(command: Command, path: &str) -> Command {
    let command = match of(path) {
        [] => command,
        examples => {
            let line = |(line, effect): &Example| format!("  {line}\n      {effect}\n");
            let lines: String = examples.iter().map(line).collect();
            let before = command.get_after_help().map(|text| format!("\n{text}"));
            command.after_help(format!("Examples:\n{lines}{}", before.unwrap_or_default()))
        }
    };
    command.mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name());
        below(sub, path.trim_start())
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    /// Splits a line of the shell into its commands and their words. The examples need no more.
    fn commands(line: &str) -> Vec<Vec<OsString>> {
        let mut commands = vec![Vec::new()];
        let mut words = line.split(' ');
        while let Some(word) = words.next() {
            match word {
                "|" | "&&" => commands.push(Vec::new()),
                ">" => drop(words.next()),
                // The output of a command, up to the closing quote: the NodeId of the base point.
                word if word.starts_with("\"$(") => {
                    words.find(|word| word.ends_with(")\""));
                    commands.last_mut().unwrap().push(
                        wraith_crypto::SecretIdentity::from_seed([7; 32])
                            .node_id()
                            .to_string()
                            .into(),
                    );
                }
                word => commands.last_mut().unwrap().push(word.into()),
            }
        }
        commands
    }

    #[test]
    fn every_example_is_a_valid_command_line() {
        for (_, examples) in all() {
            for (line, _) in *examples {
                let of_ours = |words: &Vec<OsString>| words[0] == "wraith";
                for words in commands(line).into_iter().filter(of_ours) {
                    let words = super::super::with_command_in_front(words);
                    let parsed = super::super::definition().try_get_matches_from(words);
                    assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
                }
            }
        }
    }

    #[test]
    fn every_command_has_examples() {
        let definition = super::super::definition();
        for command in definition.get_subcommands() {
            assert_eq!(of(command.get_name()).len(), 3, "{}", command.get_name());
        }
        for (path, _) in all() {
            let command = path
                .split_whitespace()
                .try_fold(&definition, |command, name| command.find_subcommand(name));
            assert!(command.is_some(), "there is no command {path}");
        }
    }
}
