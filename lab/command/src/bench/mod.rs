//! `cargo lab bench`: runs the microbenchmarks (`lab/micro`), compares them with the figures of
//! `reference.csv` and writes the tables into `docs/performance/micro.md`. The text of that
//! document is hand-written; only the marked sections are replaced.

mod document;
mod reference;
mod results;
mod table;

use std::fs;

use anyhow::{Context, Result};

use crate::{cargo, programs};
use reference::Reference;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run only rows with this in their name; print them and leave the document unchanged
    filter: Option<String>,
}

pub fn run(args: &Args) -> Result<()> {
    // A folder of its own, not cargo's default, so that no result of an earlier run is taken for
    // one of this run.
    let folder = cargo::target().join("wraith-micro");
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    programs::bench("wraith-micro", &folder, args.filter.as_deref())?;
    let results = results::read(&folder)?;
    let references = Reference::committed()?;
    if args.filter.is_some() {
        for group in reference::groups(&references) {
            let table = table::table(group, &results, &references);
            if !table.is_empty() {
                println!("{group}\n\n{table}");
            }
        }
        return Ok(());
    }
    reference::check(&references, results.keys())?;
    let text = document::with(&document::read()?, &results, &references)?;
    fs::write(document::path(), &text)?;
    println!(
        "{}\nThe tables: {}",
        table::summary(&results, &references),
        document::path().display()
    );
    Ok(())
}
