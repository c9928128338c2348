//! Every block of code in the documents for users has a test that compiles or runs it.
//!
//! A block in another language, or in a document without a runner, fails.

use std::path::Path;

use super::blocks::{Block, blocks};
use super::{DOCUMENTS, document};

/// Languages of blocks that are no code: drawings, and formats.
const NO_CODE: &str = "text";

/// A document, a language of its blocks, the file that compiles or runs the first of them, and the
/// name of the document there. [`SEVERAL`] has the exceptions.
const RUNNERS: &[(&str, &str, &str, &str)] = &[
    ("README.md", "rust", "crates/wraith/tests/it/examples.rs", "../../README.md"),
    ("docs/GUIDE.md", "toml", "crates/wraith-cli/tests/it/recipes/mod.rs", "docs/GUIDE.md"),
    ("docs/SESSIONS.md", "console", PYTHON, "docs/SESSIONS.md"),
    ("docs/SESSIONS.md", "python", PYTHON, "docs/SESSIONS.md"),
    ("docs/SESSIONS.md", "kotlin", "xtask/src/bindings/readme.rs", "docs/SESSIONS.md"),
    ("bindings/README.md", "console", "xtask/src/main.rs", "bindings/README.md"),
    ("bindings/c/README.md", "sh", "bindings/c/run-tests.sh", "README.md"),
    ("bindings/c/README.md", "c", "bindings/c/run-tests.sh", "README.md"),
    ("bindings/kotlin/README.md", "console", "xtask/src/main.rs", "bindings/kotlin/README.md"),
    (
        "bindings/kotlin/README.md",
        "kotlin",
        "xtask/src/bindings/readme.rs",
        "bindings/kotlin/README.md",
    ),
    (
        "bindings/python/README.md",
        "console",
        "xtask/src/bindings/python.rs",
        "bindings/python/README.md",
    ),
    ("bindings/python/README.md", "python", PYTHON, "README.md"),
    (
        "bindings/swift/README.md",
        "console",
        "xtask/src/bindings/swift.rs",
        "bindings/swift/README.md",
    ),
    (
        "bindings/swift/README.md",
        "swift",
        "xtask/src/bindings/swift.rs",
        "bindings/swift/README.md",
    ),
];
/// Documents with more than one block in a language, which their runner takes apart.
const SEVERAL: &[(&str, &str, usize)] = &[
    ("docs/SESSIONS.md", "console", 2),
    // The second one needs Xcode.
    ("bindings/swift/README.md", "console", 2),
];
const PYTHON: &str = "bindings/python/tests/test_readme.py";

/// Returns the READMEs of the folders in `folder`.
fn readmes_in(folder: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let entries = std::fs::read_dir(root.join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let paths = names.map(|name| format!("{folder}/{name}/README.md"));
    paths.filter(|path| root.join(path).exists()).collect()
}

/// Asserts that a test compiles or runs the block.
fn assert_has_runner(block: &Block) {
    let (name, language) = (&*block.document, &*block.language);
    let is_session = language == "console" && DOCUMENTS.contains(&name);
    if is_session || language == NO_CODE {
        return;
    }
    if let Some(folder) = name.strip_suffix("/README.md").filter(|_| name.starts_with("crates/")) {
        let source = document(&format!("{folder}/src/lib.rs"));
        assert!(language == "rust", "{name}:{}: {language} has no runner", block.line);
        assert!(
            source.contains("doc = include_str!(\"../README.md\")"),
            "{folder}/src/lib.rs does not compile the examples of {name}"
        );
        return;
    }
    let runner = RUNNERS.iter().find(|runner| (runner.0, runner.1) == (name, language));
    let at = block.line;
    let runner = runner.unwrap_or_else(|| panic!("{name}:{at}: no test runs this {language}"));
    let is_named = document(runner.2).contains(runner.3);
    assert!(is_named, "{} does not name {}, whose blocks it runs", runner.2, runner.3);
}

#[test]
fn every_block_of_code_has_a_runner() {
    let mut documents: Vec<String> = DOCUMENTS.map(str::to_owned).to_vec();
    documents.extend(["docs/SESSIONS.md".to_owned(), "bindings/README.md".to_owned()]);
    documents.extend(readmes_in("crates").into_iter().filter(|name| !name.contains("wraith-cli")));
    documents.extend(readmes_in("bindings"));
    let blocks: Vec<Block> =
        documents.iter().flat_map(|name| blocks(name, &document(name))).collect();
    assert!(blocks.len() > 60, "the blocks of the documents are not found");
    for block in &blocks {
        assert_has_runner(block);
    }
    for (name, language, ..) in RUNNERS {
        let is_of = |block: &&Block| (&*block.document, &*block.language) == (*name, *language);
        let several = SEVERAL.iter().find(|entry| (entry.0, entry.1) == (*name, *language));
        let expected = several.map_or(1, |entry| entry.2);
        let there = blocks.iter().filter(is_of).count();
        assert_eq!(there, expected, "{name}: does its runner run each block in {language}?");
    }
}
