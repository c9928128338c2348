//! `cargo xtask fuzz`: runs the targets of `fuzz` under libFuzzer, each for a limited time,
//! starting from the committed inputs.
//!
//! No nightly compiler is needed: the LLVM of a stable rustc emits the coverage that libFuzzer
//! reads, and with `--asan` the checks of AddressSanitizer. The decoders forbid `unsafe`. The crates
//! below them that use it have targets too: those called `kernel_…` compare `wraith-kernels` with its
//! portable twins and, through `wraith-aws-lc`, with another library.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{address_sanitizer, cargo};

/// Coverage for libFuzzer: counters of edges, a table of their locations, and the operands of
/// comparisons.
const RUSTFLAGS: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";
/// Memory limit, in MiB: more than any target has a reason to use.
const MEMORY_MAX_MIB: u32 = 512;
/// The same under AddressSanitizer, which keeps freed memory for a while.
const MEMORY_MAX_MIB_ASAN: u32 = 2048;
/// Maximum length of an input, in bytes: room for a few packets.
const INPUT_BYTES_MAX: u32 = 4096;
/// Seconds after which an input counts as an endless loop.
const INPUT_SECONDS_MAX: u32 = 10;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run only these targets
    targets: Vec<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Check every access to memory with AddressSanitizer; two to four times slower
    #[arg(long)]
    asan: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let known = targets()?;
    if let Some(unknown) = args.targets.iter().find(|name| !known.contains(name)) {
        bail!("no target is called {unknown}; the targets are {}", known.join(", "));
    }
    let program = build(args.asan)?;
    for name in known.iter().filter(|name| args.targets.is_empty() || args.targets.contains(name)) {
        fuzz(&program, name, args)?;
    }
    Ok(())
}

/// The committed inputs of all targets.
fn corpus() -> PathBuf {
    cargo::root().join("fuzz/corpus")
}

fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for item in fs::read_dir(corpus()).context("fuzz/corpus cannot be read")? {
        names.push(item?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn build(asan: bool) -> Result<PathBuf> {
    let host = cargo::host()?;
    let (folder, flags) = match asan {
        true => ("fuzz-asan", format!("{RUSTFLAGS} {}", address_sanitizer::flags(&host)?)),
        false => ("fuzz", RUSTFLAGS.to_owned()),
    };
    let folder = cargo::target().join(folder);
    // With an explicit target triple the flags do not apply to build scripts, which would fail to
    // link with them.
    cargo::build_elsewhere("fuzz/libfuzzer/Cargo.toml", &folder, &host, &flags)?;
    Ok(folder.join(host).join("release/wraith-libfuzzer"))
}

fn fuzz(program: &PathBuf, name: &str, args: &Args) -> Result<()> {
    let memory = if args.asan { MEMORY_MAX_MIB_ASAN } else { MEMORY_MAX_MIB };
    // libFuzzer writes new inputs to the first folder; only people add inputs to the committed one.
    let found = cargo::target().join("fuzz/corpus").join(name);
    let failures = cargo::target().join("fuzz/failures");
    fs::create_dir_all(&found)?;
    fs::create_dir_all(&failures)?;
    println!("{name}:");
    let status = Command::new(program)
        .env("WRAITH_FUZZ_TARGET", name)
        .arg(format!("-max_total_time={}", args.seconds))
        .arg(format!("-rss_limit_mb={memory}"))
        .arg(format!("-max_len={INPUT_BYTES_MAX}"))
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg("-print_final_stats=1")
        .arg(format!("-artifact_prefix={}/{name}-", failures.display()))
        .args([&found, &corpus().join(name)])
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    if !status.success() {
        bail!(
            "{name} failed ({status}); the input is in {}. Put it into fuzz/corpus/{name}, \
             and `cargo test -p wraith-fuzz` fails until it is mended.",
            failures.display()
        );
    }
    Ok(())
}
