//! `wraith man`: the man pages, generated from the definition of the command line.
//!
//! They are the same for every user: the config file and the environment do not change them.

use std::fs;
use std::io;
use std::path::Path;

use clap_mangen::Man;

use crate::args::{self, ManArgs, examples};
use crate::failure::{Exit, Failure};
use crate::output::Reporter;

/// Date of the command line that the pages describe. `mandoc` warns about a page without a date.
const DATE: &str = "2026-11-28";

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
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    if name == "wraith" {
        for section in [exit_status(), environment(), files()] {
            text.extend_from_slice(section.as_bytes());
        }
    }
    text.extend_from_slice(examples(name).as_bytes());
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

/// Returns the section with the examples of a page.
fn examples(page: &str) -> String {
    let path = page.trim_start_matches("wraith").replace('-', " ");
    match examples::of(path.trim()) {
        [] => String::new(),
        examples => terms("EXAMPLES", examples),
    }
}
