//! `wraith completions` and `wraith man`: shell completions and man pages, generated from the
//! definition of the command line.
//!
//! They are the same for every user: the config file and the environment do not change them.

use std::fs;
use std::io;
use std::path::Path;

use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::{self, CompletionsArgs, ManArgs};
use crate::crypto;
use crate::failure::{Exit, Failure};
use crate::output::Reporter;

/// Date of the command line that the pages describe. `mandoc` warns about a page without a date.
const DATE: &str = "2026-11-25";

pub fn completions(args: &CompletionsArgs, reporter: &Reporter) -> Result<(), Failure> {
    let mut text = Vec::new();
    let mut definition = crypto::with_names(args::definition());
    clap_complete::generate(args.shell, &mut definition, "wraith", &mut text);
    let text = String::from_utf8(text).expect("completions are text");
    reporter.document(with_contacts(&text, args.shell).as_bytes());
    Ok(())
}

/// Shell command that prints the names of all contacts, independent of the user's settings. Names
/// have no spaces and no characters that a shell expands.
const NAMES: &str =
    r"env -u WRAITH_JSON wraith --no-config contact list 2>/dev/null | cut -d\  -f1";

/// Adds contact names to the completions of `--to` and `--by`, except for `wraith crypto`, where it names a
/// file. Shells that are not handled here get no names.
fn with_contacts(text: &str, shell: Shell) -> String {
    match shell {
        Shell::Bash => {
            let names = format!("COMPREPLY=($(compgen -W \"$({NAMES})\" -- \"${{cur}}\"))");
            let (mut is_to, mut is_crypto) = (false, false);
            let line = |line: &str| {
                if line.trim_start().starts_with("wraith__") {
                    is_crypto = line.contains("__crypto__");
                }
                let is_behind =
                    std::mem::replace(&mut is_to, ["--to)", "--by)"].contains(&line.trim()))
                        && !is_crypto;
                match line.trim_start().starts_with("COMPREPLY=") && is_behind {
                    true => format!("{names}\n"),
                    false => format!("{line}\n"),
                }
            };
            text.lines().map(line).collect()
        }
        Shell::Zsh => {
            let line = |line: &str| match line.contains(")--to=[") || line.contains("--by=[") {
                true => {
                    format!(
                        "{}\n",
                        line.replace(":NAME:_default", &format!(":NAME:{{compadd -- $({NAMES})}}"))
                    )
                }
                false => format!("{line}\n"),
            };
            text.lines().map(line).collect()
        }
        Shell::Fish => {
            let is_peer = |line: &str| line.contains(" -l to ") || line.contains(" -l by ");
            let line = |line: &str| match is_peer(line) && line.ends_with(" -r") {
                true => format!("{line} -f -a \"({NAMES})\"\n"),
                false => format!("{line}\n"),
            };
            text.lines().map(line).collect()
        }
        _ => text.to_owned(),
    }
}

pub fn man(args: &ManArgs, reporter: &Reporter) -> Result<(), Failure> {
    let pages = pages().expect("writing into memory does not fail");
    let Some(dir) = &args.dir else {
        reporter.document(&pages[0].1);
        return Ok(());
    };
    let failed =
        |path: &Path, e: &io::Error| Failure::disk(format!("cannot write {}", path.display()), e);
    fs::create_dir_all(dir).map_err(|e| failed(dir, &e))?;
    for (name, text) in &pages {
        let path = dir.join(name);
        fs::write(&path, text).map_err(|e| failed(&path, &e))?;
    }
    reporter.status(format!("{} man pages are in {}.", pages.len(), dir.display()));
    Ok(())
}

/// Returns every page with its file name, that of `wraith` itself first.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut definition = args::definition().disable_help_subcommand(true);
    definition.build();
    let mut pages = Vec::new();
    collect(&definition, "wraith", &mut pages)?;
    Ok(pages)
}

fn collect(
    command: &clap::Command,
    name: &str,
    pages: &mut Vec<(String, Vec<u8>)>,
) -> io::Result<()> {
    // The name of the page has dashes; the command line in it has spaces.
    let of = command.clone().display_name(name.to_owned());
    let mut text = Vec::new();
    let man = Man::new(of).date(DATE).manual("wraith");
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    man.render_subcommands_section(&mut text)?;
    if name == "wraith" {
        for section in [exit_status(), environment(), files(), examples()] {
            text.extend_from_slice(section.as_bytes());
        }
    }
    man.render_version_section(&mut text)?;
    pages.push((format!("{name}.1"), mended(&text)));
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        collect(sub, &format!("{name}-{}", sub.get_name()), pages)?;
    }
    Ok(())
}

/// Makes a page portable between readers. An empty line between two breaks, to which mandoc
/// objects, becomes a space request. Characters beyond ASCII become groff names, because a reader
/// may not assume UTF-8.
fn mended(page: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(page).replace("\n.br\n\n.br\n", "\n.sp\n");
    let mut ascii = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_ascii() => ascii.push(c),
            c => ascii.push_str(&format!("\\[u{:04X}]", u32::from(c))),
        }
    }
    ascii.into_bytes()
}

/// Returns the section with the meaning of the exit codes.
fn exit_status() -> String {
    let code = |number: u8, meaning: &str| format!(".TP\n{number}\n{meaning}\n");
    let failures = Exit::ALL.iter().map(|exit| code(*exit as u8, exit.meaning()));
    format!(".SH \"EXIT STATUS\"\n{}{}", code(0, "done"), failures.collect::<String>())
}

/// Returns a section of terms with their meaning.
fn terms(title: &str, terms: &[(&str, &str)]) -> String {
    let term =
        |(term, meaning): &(&str, &str)| format!(".TP\n{}\n{meaning}\n", term.replace('-', "\\-"));
    format!(".SH {title}\n{}", terms.iter().map(term).collect::<String>())
}

fn environment() -> String {
    terms(
        "ENVIRONMENT",
        &[
            ("WRAITH_HOME", "The home folder, in place of ~/.config/wraith."),
            (
                "WRAITH_OPTION",
                "Sets an option for all commands: WRAITH_RATE=10M is \\-\\-rate 10M.",
            ),
            (
                "WRAITH_COMMAND_OPTION",
                "Sets an option for one command: WRAITH_RECEIVE_OUT is \\-\\-out of wraith receive.",
            ),
            ("HTTPS_PROXY, ALL_PROXY, NO_PROXY", "The proxy for relays and rendezvous servers."),
            ("NO_COLOR", "Turns colours off."),
        ],
    )
}

fn files() -> String {
    terms(
        "FILES",
        &[
            ("~/.config/wraith/config.toml", "Settings; wraith config lists and changes them."),
            ("~/.config/wraith/contacts.toml", "Contacts; wraith contact lists and changes them."),
            ("~/.config/wraith/identity", "The secret key of this machine."),
            ("~/.config/wraith/received", "Lists of received files, for wraith verify."),
        ],
    )
}

fn examples() -> String {
    terms(
        "EXAMPLES",
        &[
            ("wraith send holiday/", "Offer a folder, and print the code."),
            ("wraith 7-crater-lemon -o Pictures", "Receive it on the other machine."),
            ("tar c photos | wraith send -", "Send the output of a command."),
        ],
    )
}
