//! Python: a wheel by maturin, installed into an environment of its own, and pytest on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Built, folder, made, scratch};
use crate::cargo;

/// What builds and tests the wheel.
const TOOLS: [&str; 4] = ["maturin>=1.9,<2", "pytest>=8", "pytest-asyncio>=0.24", "mypy>=1.10"];

pub fn test(built: &Built, bench: bool) -> Result<()> {
    let environment = scratch("python").join("venv");
    let python = environment.join("bin/python3");
    // An earlier run's serves again: it is made whole or not at all, since the tools come last.
    if !environment.join("bin/mypy").exists() {
        cargo::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        cargo::run(Command::new(&python).args(pip).args(TOOLS))?;
    }
    let wheel = wheel(built, &environment)?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    cargo::run(
        Command::new(&python).args(pip).args(["--force-reinstall", "--no-deps"]).arg(wheel),
    )?;
    let here = folder("python");
    let run = |words: &[&str]| {
        let mut command = Command::new(&python);
        command.args(words).current_dir(&here).env("CARGO_TARGET_DIR", cargo::target());
        cargo::run(command.env("PYTHONDONTWRITEBYTECODE", "1"))
    };
    run(&["-m", "mypy", "--cache-dir", text(&scratch("python").join("mypy"))?])?;
    let cache = format!("cache_dir={}", text(&scratch("python").join("pytest"))?);
    run(&["-m", "pytest", "-q", "-o", &cache])?;
    if bench {
        run(&["bench.py"])?;
    }
    Ok(())
}

/// Builds the wheel and says where it is.
fn wheel(built: &Built, environment: &Path) -> Result<PathBuf> {
    let wheels = scratch("python").join("wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels)?;
    }
    let mut maturin = Command::new(environment.join("bin/maturin"));
    maturin.args(["build", "--locked", "--profile", built.profile.name(), "--out"]);
    maturin.arg(made(&wheels)?).current_dir(folder("python")).env("PATH", built.path()?);
    cargo::run(maturin.env("CARGO_TARGET_DIR", cargo::target()))?;
    let mut made = fs::read_dir(&wheels)?;
    Ok(made.next().context("maturin made no wheel")??.path())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}
