//! `cargo xtask publishable`: assembles the archives that a registry would get, from the files in
//! the working tree.
//!
//! Every publishable crate needs:
//!
//! - a licence with its texts, a description and a README;
//! - a version beside the path of each of our crates that it depends on, which cargo checks.
//!
//! With `--verify`, each crate is also compiled from the archives alone. Without it nothing is
//! built: other checks prove that the crates compile from the working tree.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cargo;

/// Files that each archive holds beside the code.
const TEXTS: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Compile each crate from the archives; takes some minutes
    #[arg(long)]
    verify: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let packages = publishable()?;
    let mut words = vec!["package", "--allow-dirty", "--locked", "--quiet"];
    if !args.verify {
        words.push("--no-verify");
    }
    for package in &packages {
        words.extend(["--package", package["name"].as_str().context("no name")?]);
        check(package)?;
    }
    cargo::run(&mut cargo::cargo(words))?;
    println!("{} crates can be published", packages.len());
    Ok(())
}

/// Returns cargo's metadata of each package of the workspace that may be published.
fn publishable() -> Result<Vec<Value>> {
    let mut metadata: Command = cargo::cargo(["metadata", "--no-deps", "--format-version", "1"]);
    let output = metadata.output().context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut all: Value = serde_json::from_slice(&output.stdout)?;
    let packages = all["packages"].as_array_mut().context("no packages")?;
    // `publish = false` is an empty list of registries.
    packages.retain(|package| package["publish"].is_null());
    Ok(std::mem::take(packages))
}

fn check(package: &Value) -> Result<()> {
    let name = &package["name"];
    for field in ["description", "license"] {
        ensure!(package[field].is_string(), "{name} has no {field}");
    }
    for field in ["keywords", "categories"] {
        let words = package[field].as_array().context("a list")?;
        ensure!((1..=5).contains(&words.len()), "{name} needs one to five {field}");
    }
    let manifest = package["manifest_path"].as_str().context("no manifest")?;
    let folder = Path::new(manifest).parent().context("a folder")?;
    for text in TEXTS {
        ensure!(folder.join(text).exists(), "{name} has no {text}");
    }
    Ok(())
}
