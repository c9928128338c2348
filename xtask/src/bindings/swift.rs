//! Swift: compiled and tested where there is a compiler; elsewhere only what was generated is looked at.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use super::{Built, folder};
use crate::cargo;

/// What the generator writes: the source, the header that it stands on, and the map of modules that makes that one.
const FILES: [&str; 3] = ["Wraith.swift", "WraithFFI.h", "WraithFFI.modulemap"];

pub fn test(built: &Built, sources: &Path) -> Result<()> {
    look_at(sources)?;
    let mut script = Command::new(folder("swift").join("generate.sh"));
    cargo::run(script.arg(sources).arg(&built.libraries))?;
    let mut test = Command::new("swift");
    test.args(["test", "--build-path"]).arg(super::scratch("swift").join("build"));
    test.env("LD_LIBRARY_PATH", &built.libraries).env("DYLD_LIBRARY_PATH", &built.libraries);
    cargo::run(test.current_dir(folder("swift")))
}

/// Whether everything was written.
pub fn look_at(sources: &Path) -> Result<()> {
    for file in FILES {
        let is_there = fs::metadata(sources.join(file)).is_ok_and(|facts| facts.len() > 0);
        ensure!(is_there, "the generator made no {file}");
    }
    Ok(())
}
