//! `wraith completions`: the completion script for a shell.
//!
//! clap generates the scripts from the definition of the command line. Values that the definition
//! does not list are added here: algorithms, settings, and the names of contacts and received
//! lists. The script asks the program for the latter two, because they change. A script is the same
//! for every user: the config file and the environment do not change it.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command};
use clap_complete::Shell;

use crate::args::{self, CompletionsArgs, crypto};
use crate::config;
use crate::failure::Failure;
use crate::output::Reporter;

/// Values that the script asks the program for when the user completes a word.
struct DynamicValues {
    /// Stands for the values in the text that clap generates.
    marker: &'static str,
    /// The shell command that prints one value a line, independent of the user's settings. A value
    /// has no spaces and no characters that a shell expands. The command stands in single and in
    /// double quotes.
    query: &'static str,
}

const CONTACTS: DynamicValues = DynamicValues {
    marker: "EVERY-CONTACT",
    query: r"env -u WRAITH_JSON wraith --no-config contact list 2>/dev/null | cut -d\  -f1",
};
const RECEIVED: DynamicValues = DynamicValues {
    marker: "EVERY-RECEIVED-LIST",
    query: r"env -u WRAITH_JSON wraith --no-config verify --list 2>/dev/null | cut -d\  -f1",
};

/// Arguments with such values, with the commands that lead to them.
const DYNAMIC_ARGUMENTS: [(&[&str], &str, DynamicValues); 5] = [
    (&["send"], "to", CONTACTS),
    (&["verify"], "by", CONTACTS),
    (&["verify"], "wanted", RECEIVED),
    (&["contact", "rename"], "old", CONTACTS),
    (&["contact", "remove"], "name", CONTACTS),
];

/// Commands of `wraith config` that take a key.
const OF_KEYS: [&str; 3] = ["get", "set", "unset"];

pub fn run(args: &CompletionsArgs, reporter: &Reporter) -> Result<(), Failure> {
    let mut definition = with_values(args::definition());
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut definition, "wraith", &mut text);
    let text = String::from_utf8(text).expect("completions are text");
    let text = match args.shell {
        Shell::Bash => bash(&text, &definition),
        Shell::Zsh => replace_markers(&mended_for_zsh(&text), "(", ")", |values| {
            match values.marker == RECEIVED.marker {
                true => format!("{{_files -/; compadd -- $({})}}", values.query),
                false => format!("{{compadd -- $({})}}", values.query),
            }
        }),
        Shell::Fish => {
            let text = mended_for_fish(&text) + &positional_in_fish(&definition);
            replace_markers(&text, "", "", |values| format!("({})", values.query))
        }
        _ => text,
    };
    reporter.document(text.as_bytes());
    Ok(())
}

/// Returns the definition with possible values for every argument that can be completed.
fn with_values(definition: Command) -> Command {
    let keys = PossibleValuesParser::new(config::names_of_settings());
    let definition = OF_KEYS.iter().fold(crypto::with_names(definition), |definition, command| {
        let keys = keys.clone();
        with_changed_arg(definition, &["config", command], "key", &move |arg| {
            arg.value_parser(keys.clone())
        })
    });
    DYNAMIC_ARGUMENTS.iter().fold(definition, |definition, (path, arg, values)| {
        with_changed_arg(definition, path, arg, &|arg| {
            arg.value_parser(PossibleValuesParser::new([values.marker]))
        })
    })
}

/// Changes one argument of the command at `path`. `mut_arg` would move it to the end.
fn with_changed_arg(
    command: Command,
    path: &[&str],
    id: &str,
    change: &dyn Fn(Arg) -> Arg,
) -> Command {
    match path {
        [] => command.mut_args(|arg| if arg.get_id() == id { change(arg) } else { arg }),
        [first, rest @ ..] => {
            command.mut_subcommand(first, |command| with_changed_arg(command, rest, id, change))
        }
    }
}

/// Replaces every marker, with `before` and `after` around it, by the text that `ask` returns.
fn replace_markers(
    text: &str,
    before: &str,
    after: &str,
    ask: impl Fn(&DynamicValues) -> String,
) -> String {
    [CONTACTS, RECEIVED].iter().fold(text.to_owned(), |text, values| {
        text.replace(&format!("{before}{}{after}", values.marker), &ask(values))
    })
}

/// Treats `wraith CODE` as `wraith receive CODE`, and allows options behind any argument.
fn mended_for_zsh(text: &str) -> String {
    // With two colons, everything behind the first argument is an argument.
    let text = text.replace("\n'*::", "\n'*:");
    let begin = "_wraith() {\n";
    let shifted = r#"    if [[ ${words[2]} == <->-* ]]; then
        words=("${words[1]}" receive "${(@)words[2,-1]}")
        (( CURRENT += 1 ))
    fi
"#;
    text.replacen(begin, &format!("{begin}{shifted}"), 1)
}

/// Treats `wraith CODE` as `wraith receive CODE`.
fn mended_for_fish(text: &str) -> String {
    let test = "    contains -- $cmd[1] $argv\n";
    let also = "    or begin; string match -qr '^[0-9]+-' -- $cmd[1]; and contains -- receive $argv; end\n";
    text.replacen(test, &format!("{test}{also}"), 1)
}

/// The case of bash for `wraith CODE`, which is `wraith receive CODE`.
const BASH_CODES: &str = r#"            wraith,[0-9]*-*)
                cmd="wraith__subcmd__receive"
                ;;
"#;

/// Completes options only after a hyphen, and commands and values in front of them. clap's script
/// mixes them, and offers no file as the first argument.
fn bash(text: &str, definition: &Command) -> String {
    let mut branch = Branch::default();
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let word = line.trim();
        if line == "            wraith,completions)" {
            out += BASH_CODES;
        }
        if let Some(path) = word.strip_suffix(')').filter(|path| path.starts_with("wraith")) {
            branch = Branch::of(path, definition);
        }
        if let Some(words) = word.strip_prefix("opts=\"").and_then(|rest| rest.strip_suffix('"')) {
            let (options, values): (Vec<_>, Vec<_>) =
                words.split(' ').partition(|word| word.starts_with('-'));
            out += &format!("            opts=\"{}\"\n", options.join(" "));
            branch.values = values.join(" ");
        } else if let Some(position) = position(word) {
            let (values, cur) = (&branch.values, branch.current_word());
            let folders = if values.contains(RECEIVED.marker) { BASH_FOLDERS } else { "" };
            out += &format!(
                "            if [[ ${{cur}} != -* && ${{COMP_CWORD}} -eq {position} ]] ; then\n                \
                 COMPREPLY=( $(compgen -W \"{values}\" -- \"{cur}\") )\n{folders}                return 0\n            \
                 elif [[ ${{cur}} == -* ]] ; then\n"
            );
        } else if line.starts_with("            COMPREPLY=( $(compgen -W \"${opts}\"") {
            let values = if branch.has_commands { branch.values.as_str() } else { "" };
            out +=
                &format!("            COMPREPLY=( $(compgen -W \"{values}\" -- \"${{cur}}\") )\n");
        } else if word == "COMPREPLY=($(compgen -f \"${cur}\"))" {
            // The shell completes files itself, with spaces and folders.
            out += &line.replace("$(compgen -f \"${cur}\")", "");
            out.push('\n');
        } else if branch.is_crypto && word.starts_with("COMPREPLY=($(compgen -W ") {
            out += &line.replace("\"${cur}\"", "\"${cur,,}\"");
            out.push('\n');
        } else {
            out += line;
            out.push('\n');
        }
    }
    replace_markers(&out, "", "", |values| format!("$({})", values.query))
}

/// Adds the folders to the ids of received lists.
const BASH_FOLDERS: &str = r#"                compopt -o filenames 2>/dev/null
                mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "${cur}")
"#;

/// A command in the script for bash.
#[derive(Default)]
struct Branch {
    /// Its commands, or the values of its first argument.
    values: String,
    has_commands: bool,
    is_crypto: bool,
}

impl Branch {
    fn of(name: &str, definition: &Command) -> Self {
        let mut command = Some(definition);
        let path: Vec<_> = name.split("__subcmd__").skip(1).collect();
        for part in &path {
            command = command.and_then(|command| command.find_subcommand(part));
        }
        Self {
            values: String::new(),
            has_commands: command.is_none_or(Command::has_subcommands),
            is_crypto: path.first() == Some(&"crypto"),
        }
    }

    /// Returns the word to complete. Algorithms are offered in lower case, and accepted in any.
    fn current_word(&self) -> &'static str {
        if self.is_crypto { "${cur,,}" } else { "${cur}" }
    }
}

/// Returns the position of the first argument in clap's condition for it.
fn position(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("if [[ ${cur} == -* || ${COMP_CWORD} -eq ")?;
    rest.strip_suffix(" ]] ; then")
}

/// Returns the lines for the values of arguments without an option, which clap's script for fish
/// lacks.
fn positional_in_fish(definition: &Command) -> String {
    let mut lines = String::new();
    for command in definition.get_subcommands() {
        let is_of = format!("__fish_wraith_using_subcommand {}", names(command));
        lines += &line_in_fish(command, &is_of, 2);
        for sub in command.get_subcommands() {
            let is_of = format!("{is_of}; and __fish_seen_subcommand_from {}", names(sub));
            lines += &line_in_fish(sub, &is_of, 3);
        }
    }
    lines
}

/// Returns the name of a command and its aliases.
fn names(command: &Command) -> String {
    let aliases = command.get_visible_aliases();
    [command.get_name()].into_iter().chain(aliases).collect::<Vec<_>>().join(" ")
}

/// Returns the line for the first argument of a command, which stands behind this number of words.
fn line_in_fish(command: &Command, condition: &str, words: usize) -> String {
    let condition = format!(
        "{condition}; and test (count (string match -v -- '-*' (commandline -opc))) -eq {words}"
    );
    let values = command.get_positionals().next().map(Arg::get_possible_values);
    let values = values.unwrap_or_default();
    if values.is_empty() {
        return String::new();
    }
    let values: Vec<_> = values.iter().map(|value| value.get_name()).collect();
    format!("complete -c wraith -n \"{condition}\" -a \"{}\"\n", values.join(" "))
}
