//! `docs/performance/micro.md`: hand-written text with marked sections for the table of each group
//! and for the run as a whole.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::reference::{self, Reference};
use super::results::Results;
use super::table;
use crate::{cargo, machine};

/// Name of the section about the whole run.
const RUN: &str = "run";

pub(super) fn path() -> PathBuf {
    cargo::root().join("docs/performance/micro.md")
}

pub(super) fn read() -> Result<String> {
    fs::read_to_string(path()).with_context(|| format!("cannot read {}", path().display()))
}

/// Returns `text` with the results in its marked sections.
pub(super) fn with(text: &str, results: &Results, references: &[Reference]) -> Result<String> {
    let run = format!(
        "`cargo lab bench`, {}, {}, load average {}. {}",
        machine::today(),
        machine::hardware(),
        machine::load(),
        table::summary(results, references)
    );
    let mut text = replace(text, RUN, &run)?;
    for group in reference::groups(references) {
        text = replace(&text, group, &table::table(group, results, references))?;
    }
    Ok(text)
}

/// Returns `text` with the content of the section `name` replaced.
fn replace(text: &str, name: &str, content: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- {name}: written by cargo lab bench -->\n"), "<!-- end -->");
    let (before, rest) =
        text.split_once(&begin).with_context(|| format!("the document has no place for {name}"))?;
    let (_, after) = rest.split_once(end).context("a place in the document has no end")?;
    Ok(format!("{before}{begin}\n{}\n\n{end}{after}", content.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_place_of_that_name_changes() {
        let page = "a\n<!-- x: written by cargo lab bench -->\nold\n<!-- end -->\nb\n\
                    <!-- y: written by cargo lab bench -->\nkept\n<!-- end -->\n";
        let once = replace(page, "x", "new\n").unwrap();
        assert!(once.contains("-->\n\nnew\n\n<!-- end -->\nb") && once.contains("kept"), "{once}");
        assert!(!once.contains("old"));
        assert_eq!(replace(&once, "x", "new\n").unwrap(), once);
        assert!(replace(page, "z", "").is_err());
    }

    #[test]
    fn the_committed_document_has_a_place_for_each_group() {
        let text = read().unwrap();
        let references = Reference::committed().unwrap();
        assert!(replace(&text, RUN, "").is_ok());
        for group in reference::groups(&references) {
            assert!(replace(&text, group, "").is_ok(), "{group}");
        }
    }
}
