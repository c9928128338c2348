//! Python: the package, its types checked by mypy, and pytest on it.
//!
//! The package under test is a folder that contains the library. With `--release`, the package is a
//! wheel that maturin packs and pip installs into a separate folder. The README's commands call
//! maturin.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Built, folder, made, readme, scratch};
use crate::cargo;

const README: &str = "bindings/python/README.md";
/// Packages that build, check and test the library.
const TOOLS: [&str; 4] =
    ["maturin>=1.9,<2", "pytest>=8,<10", "pytest-asyncio>=0.24,<2", "mypy>=1.10,<3"];
const PIP_INSTALL: [&str; 5] = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];

pub fn test(built: &Built, sources: &Path, bench: bool) -> Result<()> {
    let environment = environment()?;
    let python = environment.join("bin/python3");
    let package = match built.release {
        true => {
            let wheel = wheel(built, &environment)?;
            let place = scratch("python").join("installed");
            let words = ["--no-deps", "--force-reinstall", "--upgrade", "--target"];
            let mut install = Command::new(&python);
            install.args(PIP_INSTALL).args(words).arg(&place).arg(wheel);
            cargo::run(&mut install)?;
            place
        }
        false => {
            check_commands(&environment)?;
            assemble(built, sources)?
        }
    };
    let run = |words: &[&str]| {
        let mut command = Command::new(&python);
        command.args(words).current_dir(folder("python")).env("PYTHONPATH", &package);
        command.env("WRAITH_LIBRARIES", &built.libraries);
        command.env("CARGO_TARGET_DIR", cargo::target());
        cargo::run(command.env("PYTHONDONTWRITEBYTECODE", "1"))
    };
    run(&["stubs.py", "--check"])?;
    run(&["-m", "mypy", "--cache-dir", text(&scratch("python").join("mypy"))?])?;
    let cache = format!("cache_dir={}", text(&scratch("python").join("pytest"))?);
    run(&["-m", "pytest", "-q", "-o", &cache])?;
    if bench {
        run(&["bench.py"])?;
    }
    Ok(())
}

/// Returns the virtual environment with the tools; creates it on first use.
fn environment() -> Result<PathBuf> {
    let environment = scratch("python").join("venv");
    // The tools are installed last, so their presence proves that the environment is complete.
    if !environment.join("bin/mypy").exists() {
        cargo::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        let mut install = Command::new(environment.join("bin/python3"));
        cargo::run(install.args(PIP_INSTALL).args(TOOLS))?;
    }
    Ok(environment)
}

/// Assembles the package as an importable folder, and returns its path. The layout is maturin's:
/// the generated module is a package of its own.
fn assemble(built: &Built, sources: &Path) -> Result<PathBuf> {
    let place = scratch("python").join("package");
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    let package = place.join("wraith");
    let generated = package.join("wraith");
    let by_hand = folder("python").join("python/wraith");
    let parts =
        [(&*by_hand, &package), (&by_hand.join("wraith"), &generated), (sources, &generated)];
    for (from, to) in parts {
        for file in fs::read_dir(from)? {
            let file = file?;
            if file.file_type()?.is_file() {
                fs::copy(file.path(), made(to)?.join(file.file_name()))?;
            }
        }
    }
    fs::write(generated.join("__init__.py"), "from .wraith import *\n")?;
    let library = built.library();
    let name = library.file_name().context("a library has a name")?;
    fs::copy(&library, generated.join(name))?;
    Ok(place)
}

/// Builds the wheel by the README's commands, and returns its path.
fn wheel(built: &Built, environment: &Path) -> Result<PathBuf> {
    let wheels = cargo::target().join("wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels)?;
    }
    // Maturin moves the library away, but other processes still load it.
    let library = built.library();
    let kept = library.with_extension("kept");
    fs::copy(&library, &kept)?;
    let packed = run_commands(environment, |command| command.to_owned());
    fs::rename(kept, library)?;
    packed?;
    let mut packed = fs::read_dir(&wheels)?;
    Ok(packed.next().context("maturin made no wheel")??.path())
}

/// Checks the README's commands, except for the long build of maturin: there it only checks that
/// maturin finds the generator.
fn check_commands(environment: &Path) -> Result<()> {
    let found = "maturin --version && uniffi-bindgen --help >/dev/null";
    // The generator is built. A build of it alone would have other features.
    let change = |command: &str| match command.starts_with("cargo build ") {
        true => String::new(),
        false => command.replace("maturin build", found),
    };
    run_commands(environment, change)
}

/// Runs the README's commands for a wheel by hand, each after `change`.
fn run_commands(environment: &Path, change: impl Fn(&str) -> String) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(environment.join("bin")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(path)?;
    let commands = readme::commands(README)?;
    let by_hand = commands.iter().filter(|command| !command.starts_with("cargo xtask "));
    let script: Vec<String> = by_hand.map(|command| change(&readme::in_target(command))).collect();
    ensure!(script.iter().any(|line| line.contains("uniffi-bindgen")), "{README} builds no wheel");
    let mut shell = Command::new("sh");
    shell.args(["-ec", &script.join("\n")]).current_dir(cargo::root());
    cargo::run(shell.env("PATH", path).env("CARGO_TARGET_DIR", cargo::target()))
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}
