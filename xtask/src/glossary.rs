//! Checks `docs/GLOSSARY.md` against the code: each word in backticks in the first column of a
//! table is an identifier of a crate.
//!
//! A renamed item fails the test until the glossary has the new name. Words in comments are not
//! treated as identifiers.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cargo;

/// Minimum number of names in the glossary. Fewer names mean that its format changed and the test
/// no longer reads it.
const FEWEST_NAMES: usize = 30;

#[test]
fn names_of_the_glossary_are_identifiers_of_the_crates() {
    let root = cargo::root();
    let glossary = fs::read_to_string(root.join("docs/GLOSSARY.md")).unwrap();
    let names = names(&glossary);
    assert!(names.len() >= FEWEST_NAMES, "only {} names are in its tables", names.len());
    let mut known = HashSet::new();
    for source in sources(&root.join("crates")) {
        collect_identifiers(&fs::read_to_string(source).unwrap(), &mut known);
    }
    let unknown: Vec<_> = names.iter().filter(|name| !is_known(name, &known)).collect();
    assert!(unknown.is_empty(), "docs/GLOSSARY.md has names that no crate has: {unknown:?}");
}

#[test]
fn names_are_in_backticks_in_the_first_column() {
    let text =
        "`Outside`\n| word | is |\n|---|---|\n| access key, `AccessKey`, `a::b` | `Other` |\n";
    assert_eq!(names(text), ["AccessKey", "a::b"]);
}

#[test]
fn comments_have_no_identifiers() {
    let mut known = HashSet::new();
    collect_identifiers("/// Gone\nfn found(key: [u8; 2]) {} // late\n", &mut known);
    for name in ["found", "key", "found::key"] {
        assert!(is_known(name, &known), "{name}");
    }
    for name in ["Gone", "late", "foun", "found::late"] {
        assert!(!is_known(name, &known), "{name}");
    }
}

/// Words in backticks in the first cell of each table row.
fn names(glossary: &str) -> Vec<&str> {
    let rows = glossary.lines().filter_map(|line| line.strip_prefix('|'));
    let cells = rows.filter_map(|row| row.split('|').next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

/// Rust sources in `crates/*/src`.
fn sources(crates: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<_> =
        fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path().join("src")).collect();
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        // A folder that holds no crate has no `src`.
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

/// Adds the words of a source outside its line comments.
fn collect_identifiers(source: &str, known: &mut HashSet<String>) {
    for line in source.lines() {
        let code = line.split("//").next().unwrap_or_default();
        let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
        known.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
    }
}

/// Whether each part of a path is an identifier.
fn is_known(name: &str, known: &HashSet<String>) -> bool {
    name.split("::").all(|part| known.contains(part))
}
