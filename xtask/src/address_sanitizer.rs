//! `cargo xtask asan`: runs tests under AddressSanitizer, with a stable compiler. By default these
//! are the tests of the cryptographic crates, two of which have the `unsafe` code.
//!
//! `-Zsanitizer` needs nightly, but its parts do not: the pass is in the LLVM of a stable rustc, and
//! the runtime is beside the standard library. The flags below attach both.
//!
//! What is checked: each access to memory by the Rust code of the workspace and its dependencies.
//! What is not: the standard library and AWS-LC, whose code has no checks, and inline assembly. Of
//! these only the calls of `malloc`, `free`, `memcpy` and the like are seen.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo;

/// Marks every function for the pass, and runs it. Link-time optimization would run it twice.
const PASSES: &str = "-Clto=no \
    -Cpasses=forceattrs -Cllvm-args=-force-attribute=sanitize_address \
    -Cpasses=asan";
/// Libraries that the runtime needs.
const LIBRARIES: &str = "-Clink-arg=-lpthread -Clink-arg=-ldl -Clink-arg=-lm -Clink-arg=-lrt";

/// `wraith-kernels` and `wraith-aws-lc` have the `unsafe` code; the other two call it.
const PACKAGES: [&str; 4] = ["wraith-kernels", "wraith-aws-lc", "wraith-crypto", "wraith-suite"];

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Packages to test, instead of the cryptographic ones
    #[arg(long, short, default_values = PACKAGES)]
    package: Vec<String>,
    /// Words in the names of the tests to run, and options of the test program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

pub fn run(args: &Args) -> Result<()> {
    let host = cargo::host()?;
    // With an explicit target triple the flags do not apply to build scripts.
    let mut command = cargo::cargo(["test", "--locked", "--lib", "--tests"]);
    command.args(args.package.iter().flat_map(|package| ["--package", package]));
    command.args(["--target", &host, "--target-dir"]).arg(cargo::target().join("asan"));
    command.arg("--").args(&args.words).env("RUSTFLAGS", flags(&host)?);
    cargo::run(&mut command)
}

/// Returns the flags of rustc that compile and link with AddressSanitizer.
pub fn flags(host: &str) -> Result<String> {
    let runtime = runtime(host)?;
    Ok(format!(
        "{PASSES} -Clink-arg=-Wl,--whole-archive -Clink-arg={} -Clink-arg=-Wl,--no-whole-archive \
         -Clink-arg=-Wl,--export-dynamic {LIBRARIES}",
        runtime.display()
    ))
}

/// Returns the path of the runtime that is installed with the compiler.
fn runtime(host: &str) -> Result<PathBuf> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = String::from_utf8(sysroot.context("cannot run rustc")?.stdout)?;
    let folder = PathBuf::from(sysroot.trim()).join("lib/rustlib").join(host).join("lib");
    let mut files =
        folder.read_dir().with_context(|| format!("cannot read {}", folder.display()))?;
    let is_runtime = |name: &str| name.starts_with("librustc") && name.ends_with("_rt.asan.a");
    let found = files.find_map(|file| {
        let file = file.ok()?;
        file.file_name().to_str().is_some_and(is_runtime).then(|| file.path())
    });
    found.with_context(|| {
        format!(
            "{} has no runtime of AddressSanitizer; rustup installs it on Linux",
            folder.display()
        )
    })
}
