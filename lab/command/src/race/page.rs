//! The race in the documents: tables between two marks of `docs/PERFORMANCE.md`, and a chart for
//! each beside the results.

use std::fs;

use anyhow::{Context, Result};

use super::results::{Results, Table};
use super::{chart, table, targets};

const BEGIN: &str = "<!-- race: begin, written by cargo lab charts -->\n";
const END: &str = "<!-- race: end -->\n";

/// Writes tables and charts of `results`.
///
/// # Errors
/// The marks are missing, or a file cannot be written.
pub fn write(results: &Results) -> Result<()> {
    let docs = crate::cargo::root().join("docs");
    for table in results.tables.iter().filter(|table| has_samples(table)) {
        fs::write(docs.join(format!("performance/{}.svg", table.id)), chart::render(table))?;
    }
    let page = docs.join("PERFORMANCE.md");
    let text = fs::read_to_string(&page)?;
    fs::write(&page, replace(&text, &section(results))?)?;
    Ok(())
}

fn has_samples(table: &Table) -> bool {
    table.rows.iter().any(|row| !row.samples.is_empty())
}

fn section(results: &Results) -> String {
    let machine = &results.machine;
    let mut out = format!(
        "`{}`, {}, on {} ({} cores, {} GiB, Linux {}); every sample is in [race.json](performance/race.json).\n\n{}",
        results.command,
        results.date,
        machine.cpu,
        machine.cores,
        machine.memory_gib,
        machine.kernel,
        targets::render(results),
    );
    for table in &results.tables {
        let (title, id) = (&table.title, &table.id);
        out += &format!("\n### {title}\n\n");
        if has_samples(table) {
            out += &format!("![{title}](performance/{id}.svg)\n\n");
        }
        out += &table::one(table);
    }
    out
}

/// Returns `text` with the content between the marks replaced.
fn replace(text: &str, section: &str) -> Result<String> {
    let (before, rest) = text.split_once(BEGIN).context("the mark of the race is missing")?;
    let (_, after) = rest.split_once(END).context("the end of the race is missing")?;
    Ok(format!("{before}{BEGIN}\n{section}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_between_the_marks_changes() {
        let page = format!("a\n{BEGIN}old\n{END}b\n");
        let once = replace(&page, "new\n").unwrap();
        assert_eq!(once, format!("a\n{BEGIN}\nnew\n\n{END}b\n"));
        assert_eq!(replace(&once, "new\n").unwrap(), once);
        assert!(replace("no marks", "new").is_err());
    }

    #[test]
    fn the_page_has_the_marks_and_the_tables_of_the_race_that_is_committed() {
        let page = fs::read_to_string(crate::cargo::root().join("docs/PERFORMANCE.md")).unwrap();
        if !Results::committed().exists() {
            assert!(replace(&page, "").is_ok());
            return;
        }
        let results = Results::load(&Results::committed()).unwrap();
        assert_eq!(replace(&page, &section(&results)).unwrap(), page, "run cargo lab charts");
    }
}
