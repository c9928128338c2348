//! `cargo lab bench`: runs the microbenchmarks (`lab/micro`), sets them beside the figures of `reference.csv` and writes
//! all of it into `docs/performance/micro.md`, whose text is by hand: only what stands between its marks is replaced.

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
    /// Only rows with this in their name; they are printed, the document stays as it is
    filter: Option<String>,
}

pub fn run(args: &Args) -> Result<()> {
    // Not cargo's own folder for it: nothing of an earlier run may pass for a result of this one.
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
