//! The documents and the program's own output must agree.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::World;

pub(crate) fn document(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(name)).unwrap()
}

fn help(words: &[&str]) -> String {
    let output = World::new().wraith("one").args(words).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the cells of each row of the table whose heading starts with `heading`.
pub(crate) fn table(document: &str, heading: &str) -> Vec<Vec<String>> {
    let rows = document.lines().skip_while(|line| !line.starts_with(heading)).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    rows.map(|line| cells(line)[1..].to_vec()).collect()
}

/// Returns the exit codes in `wraith --help`, with their meaning.
fn codes_of_help() -> BTreeMap<u8, String> {
    let help = help(&["--help"]).split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, list) = help.split_once("Exit codes: ").unwrap();
    let code = |text: &str| {
        let (number, meaning) = text.trim().split_once(' ').unwrap();
        (number.parse().unwrap(), meaning.to_owned())
    };
    list.split('·').map(code).collect()
}

#[test]
fn help_and_documents_have_the_same_exit_codes() {
    let of_help = codes_of_help();
    let mut of_guide = Vec::new();
    for row in table(&document("docs/GUIDE.md"), "| exit |") {
        let numbers = row[0].split(',').map(|number| number.trim().parse::<u8>().unwrap());
        of_guide.extend(numbers);
        // The README marks the same codes as resumable as the help.
        let resumable = row[0] == "6" || row[0] == "7";
        assert!(!resumable || row[2].starts_with("continues"), "{row:?}");
        if resumable {
            let code = row[0].parse::<u8>().unwrap();
            assert!(of_help[&code].contains("run again to continue"));
        }
    }
    let numbers: Vec<u8> = of_help.keys().copied().collect();
    assert_eq!(of_guide, numbers);
    let of_json = table(&document("docs/json.md"), "| `exit` |");
    let of_json: Vec<u8> = of_json.iter().map(|row| row[0].parse().unwrap()).collect();
    assert_eq!(of_json, numbers[1..]);
}

#[test]
fn the_words_of_the_exit_codes_are_those_of_the_schema() {
    let schema: serde_json::Value =
        serde_json::from_str(&document("docs/events.schema.json")).unwrap();
    let events = schema["oneOf"].as_array().unwrap();
    let of = |e: &&serde_json::Value| e["properties"]["event"]["const"] == "error";
    let error = events.iter().find(of).unwrap();
    let words: Vec<_> = error["properties"]["code"]["enum"].as_array().unwrap().to_vec();
    let table = table(&document("docs/json.md"), "| `exit` |");
    let documented: Vec<_> = table.iter().map(|row| row[1].trim_matches('`').to_owned()).collect();
    assert_eq!(documented, words);
}

#[test]
fn the_guide_lists_every_command() {
    let guide = document("docs/GUIDE.md");
    for command in crate::pages::commands(&World::new()) {
        let row = format!("| `wraith {command}");
        assert!(guide.contains(&row), "the guide's table of commands lacks {command}");
    }
}

/// Returns the sources of all crates as one text.
fn all_sources() -> String {
    fn collect(folder: &Path, text: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
            let path = entry.path();
            if path.is_dir() {
                collect(&path, text);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text.push_str(&std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut text = String::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut text);
    text
}

#[test]
fn every_promise_of_the_threat_model_names_tests_that_there_are() {
    let rows = table(&document("docs/THREATS.md"), "| to whom | what | test |");
    assert!(rows.len() > 20, "the table of promises is gone");
    let sources = all_sources();
    let sessions =
        table(&document("docs/SESSIONS.md"), "| promise | holds | costs | where it is tested |");
    assert!(sessions.len() > 8, "the table of what sessions promise is gone");
    let sessions = sessions.into_iter().filter(|row| row[3].contains('`'));
    let rows = rows.into_iter().map(|row| (row, 2)).chain(sessions.map(|row| (row, 3)));
    for (row, tests_column) in rows {
        let tests: Vec<&str> = row[tests_column].split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "{}: no test", row[1]);
        for test in tests {
            // A function, or a line of `cases!`.
            let is_there = [format!("fn {test}("), format!("\n    {test}:")];
            let is_there = is_there.iter().any(|declaration| sources.contains(declaration));
            assert!(is_there, "{}: there is no test {test}", row[1]);
        }
    }
}

#[test]
fn the_messenger_of_every_language_has_less_than_150_lines_as_the_guide_says() {
    assert!(document("docs/SESSIONS.md").contains("Each of them is less than 150 lines"));
    for of in [
        "c/examples/messenger.c",
        "kotlin/examples/messenger.kt",
        "python/examples/messenger.py",
        "swift/examples/messenger/messenger.swift",
    ] {
        let lines = document(&format!("bindings/{of}")).lines().count();
        assert!((50..150).contains(&lines), "{of} has {lines} lines");
    }
}
