//! C: runs the test script beside the header, installs the library, and builds the examples
//! messenger and echo for the tests in Python, in which the examples of all languages talk to each
//! other.

use std::process::Command;

use anyhow::Result;

use super::{Built, folder, made, scratch};
use crate::cargo;

pub fn test(built: &Built) -> Result<()> {
    let (here, library) = (folder("c"), &built.tested);
    cargo::run(Command::new(here.join("run-tests.sh")).arg(library))?;
    let prefix = scratch("c").join("installed");
    cargo::run(Command::new(here.join("install.sh")).arg(library).arg(&prefix))?;
    let installed = prefix.join("lib");
    for example in ["messenger", "echo"] {
        let mut compile = Command::new("cc");
        compile.args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-pthread", "-I"]);
        compile.arg(prefix.join("include")).arg("-I").arg(&here);
        compile.arg(here.join("examples").join(example).with_extension("c"));
        compile.arg("-o").arg(made(&scratch("c"))?.join(example));
        compile.arg("-L").arg(&installed).arg("-lwraith_c");
        cargo::run(compile.arg(format!("-Wl,-rpath,{}", installed.display())))?;
    }
    Ok(())
}
