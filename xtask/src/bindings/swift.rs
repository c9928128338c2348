//! Swift: compiles and tests the bindings if there is a compiler; otherwise only checks the
//! generated files.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use super::{Built, folder};
use crate::cargo;

/// Generated files: the source, the C header it uses, and the module map of that header.
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

/// Checks that every file was generated.
pub fn look_at(sources: &Path) -> Result<()> {
    for file in FILES {
        let is_there = fs::metadata(sources.join(file)).is_ok_and(|facts| facts.len() > 0);
        ensure!(is_there, "the generator made no {file}");
    }
    Ok(())
}
