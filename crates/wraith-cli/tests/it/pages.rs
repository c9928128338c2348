//! A man page and help exist for every command, and their readers accept them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{World, skipped};

pub(crate) fn run(world: &World, words: &[&str]) -> String {
    // The variable must not appear in the output.
    let mut command = world.wraith("one");
    let output = command.args(words).env("WRAITH_SEND_TIMEOUT", "4711").output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the names of all commands, as listed in the help.
pub(crate) fn commands(world: &World) -> Vec<String> {
    let help = run(world, &["--help"]);
    let lines = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // A long description continues on further lines.
    let names =
        lines.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let names = names.map(|line| line.split(' ').next().unwrap().to_owned());
    let names: Vec<_> = names.filter(|name| name != "help").collect();
    assert!(names.len() >= 6, "{names:?}");
    names
}

/// Returns whether a program is installed.
pub(crate) fn has(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let there = command.status().is_ok();
    if !there {
        skipped(&format!("{program} is not installed"));
    }
    there
}

#[test]
fn every_command_has_a_man_page_that_man_accepts() {
    let world = World::new();
    let folder = world.path("man");
    let dir = folder.to_str().unwrap();
    assert_eq!(run(&world, &["man", dir]), "");
    assert_eq!(run(&world, &["man"]), fs::read_to_string(folder.join("wraith.1")).unwrap());
    for command in commands(&world) {
        let page = fs::read_to_string(folder.join(format!("wraith-{command}.1"))).unwrap();
        assert!(page.contains(&format!("wraith {command}")), "{page}");
        assert!(page.contains("\n.SH EXAMPLES\n"), "{page}");
        assert!(!page.contains("4711"));
    }
    assert!(folder.join("wraith-config-set.1").exists());
    let main = fs::read_to_string(folder.join("wraith.1")).unwrap();
    assert!(main.contains("EXIT STATUS") && main.contains("peer not found"), "{main}");
    for section in ["ENVIRONMENT", "FILES", "EXAMPLES"] {
        assert!(main.contains(&format!("\n.SH {section}\n")), "{main}");
    }
    let pages = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let pages: Vec<_> = pages.collect();
    if has("groff") {
        pages
            .iter()
            .for_each(|page| assert_accepted(page, "groff", &["-man", "-ww", "-z", "-Tutf8"]));
    }
    if has("mandoc") {
        pages.iter().for_each(|page| assert_accepted(page, "mandoc", &["-Tlint", "-Wwarning"]));
    }
}

#[track_caller]
fn assert_accepted(page: &Path, program: &str, words: &[&str]) {
    let output = Command::new(program).args(words).arg(page).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.trim().is_empty(), "{}: {said}", page.display());
}

/// Returns the help of a command, as shown in a terminal of this width.
fn help(world: &World, command: &str, flag: &str, columns: usize) -> String {
    let mut wraith = world.wraith("one");
    wraith.args([command, flag]).env("COLUMNS", columns.to_string()).stdin(Stdio::null());
    let output = wraith.output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn help_is_wrapped_at_words_and_has_the_same_words_at_any_width() {
    let world = World::new();
    for command in commands(&world) {
        for flag in ["-h", "--help"] {
            let words = |text: &str| {
                // Above a certain width, the first column is a line of its own.
                text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
            };
            let wide = words(&help(&world, &command, flag, 120));
            for columns in [60, 80, 100, 120] {
                let text = help(&world, &command, flag, columns);
                // Only a single word may be longer, such as an address, or a line to copy.
                let example = text.find("\nExamples:").unwrap();
                for line in text[..example].lines() {
                    assert!(line.chars().count() <= columns, "{command} {columns}: {line}");
                }
                assert_eq!(words(&text), wide, "{command} at {columns}");
            }
        }
    }
}

#[test]
fn help_groups_the_options_and_ends_with_three_examples() {
    let world = World::new();
    for command in commands(&world) {
        let text = help(&world, &command, "-h", 80);
        let (_, examples) = text.split_once("\nExamples:\n").unwrap();
        let is_command = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
        assert_eq!(examples.lines().filter(is_command).count(), 3, "{text}");
    }
    let send = help(&world, "send", "-h", 80);
    let headings: Vec<_> =
        send.lines().filter(|line| line.ends_with(':') && !line.starts_with(' ')).collect();
    let expected = ["Arguments:", "Options:", "Content:", "Contacts:", "Network:"];
    let rest = ["Time and speed:", "Output:", "Examples:"];
    assert_eq!(headings, [&expected[..], &rest].concat());
}
