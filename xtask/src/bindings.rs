//! `cargo xtask bindings`: the library for other languages, its sources for each, and their tests.
//!
//! ```text
//! wraith-ffi ──cargo──▶ libwraith_ffi ──wraith-generate──▶ wraith.py, wraith.kt, Wraith.swift
//!                                                          │ mypy, pytest  │ JUnit   │ swift test, where there is one
//! wraith-c   ──cargo──▶ libwraith_c, and bindings/c/run-tests.sh on it
//! ```
//!
//! Everything that is made lies in cargo's target folder. The library is as the tests of the workspace are built, unless it is to be as users
//! get it (`--release`): the profile `ffi`, which is the release's but for panics, and a wheel by maturin in place of a folder with the package.
//! A language whose tools are missing is skipped aloud, and is an error where it is `--required`.

mod c;
mod kotlin;
mod python;
mod swift;

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use crate::{cargo, skip};

/// Cargo's profile of the library as users get it.
const PROFILE: &str = "ffi";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only these languages
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Language>,
    /// An error if the tools for one of these are missing
    #[arg(long, value_enum, value_delimiter = ',')]
    required: Vec<Language>,
    /// Build the library as users get it, and a wheel of it
    #[arg(long)]
    release: bool,
    /// The same, and print what calls cost
    #[arg(long)]
    bench: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Language {
    Python,
    Kotlin,
    Swift,
    C,
}

impl Language {
    const ALL: [Self; 4] = [Self::Python, Self::Kotlin, Self::Swift, Self::C];

    fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Kotlin => "kotlin",
            Self::Swift => "swift",
            Self::C => "c",
        }
    }

    /// Programs that its tests need.
    fn tools(self) -> &'static [&'static str] {
        match self {
            Self::Python => &["python3"],
            Self::Kotlin => &["mvn", "java"],
            Self::Swift => &["swift"],
            Self::C => &["cc"],
        }
    }
}

/// How a language came off.
enum Outcome {
    Passed,
    Skipped(String),
}

pub fn run(args: &Args) -> Result<()> {
    let chosen = Language::ALL.into_iter();
    let chosen = chosen.filter(|one| args.only.is_empty() || args.only.contains(one));
    let chosen: Vec<_> = chosen.collect();
    let built = Built::new(args.release || args.bench, &chosen)?;
    let mut outcomes = Vec::new();
    // Kotlin goes before Python, whose tests talk with Kotlin's example if it is there.
    for language in chosen.into_iter().rev() {
        let outcome = test(language, &built, args.bench)?;
        if let Outcome::Skipped(why) = &outcome {
            skip::skipped(&format!("bindings for {}", language.name()), why);
            let is_required = args.required.contains(&language);
            ensure!(!is_required, "{} is required, and {why}", language.name());
        }
        outcomes.push((language, outcome));
    }
    for (language, outcome) in &outcomes {
        match outcome {
            Outcome::Passed => println!("{}: passed", language.name()),
            Outcome::Skipped(why) => println!("{}: skipped: {why}", language.name()),
        }
    }
    Ok(())
}

fn test(language: Language, built: &Built, bench: bool) -> Result<Outcome> {
    // The sources can be made, and are looked at, where they cannot be compiled.
    let sources = match language {
        Language::C => None,
        _ => Some(built.generate(language)?),
    };
    if let Some(missing) = language.tools().iter().find(|tool| !is_there(tool)) {
        if let (Language::Swift, Some(sources)) = (language, &sources) {
            swift::look_at(sources)?;
        }
        return Ok(Outcome::Skipped(format!("no {missing} here")));
    }
    match (language, sources) {
        (Language::Python, Some(sources)) => python::test(built, &sources, bench)?,
        (Language::Kotlin, Some(sources)) => kotlin::test(built, &sources, bench)?,
        (Language::Swift, Some(sources)) => swift::test(built, &sources)?,
        (Language::C, _) => c::test(built)?,
        _ => unreachable!("the sources were made above"),
    }
    Ok(Outcome::Passed)
}

/// The libraries and the generator, built.
struct Built {
    /// As users get it.
    release: bool,
    /// Where what tests are built with is.
    tested: PathBuf,
    /// Where the library is.
    libraries: PathBuf,
    /// What makes the sources.
    generator: PathBuf,
}

impl Built {
    fn new(release: bool, chosen: &[Language]) -> Result<Self> {
        let mut packages = vec!["--package", "wraith-ffi", "--package", "wraith-generate"];
        if chosen.contains(&Language::C) {
            packages.extend(["--package", "wraith-c"]);
        }
        // In CI all tests were just built. Whatever else is selected, cargo would give dependencies other features, and compile them again.
        let words = match std::env::var_os("CI").is_some_and(|ci| ci == "true") {
            true => ["test", "--workspace", "--no-run", "--locked"].to_vec(),
            false => ["build", "--locked"].into_iter().chain(packages).collect(),
        };
        cargo::run(&mut cargo::cargo(words))?;
        let debug = cargo::target().join("debug");
        // Tests are built without a link to libraries in the folder above.
        let tested = debug.join("deps");
        let libraries = match release {
            false => tested.clone(),
            true => {
                // Of this kind alone, as maturin asks for it: link-time optimization has all crates compiled anew for another one.
                let words = ["rustc", "--locked", "--package", "wraith-ffi", "--lib"];
                let mut build = cargo::cargo(words);
                cargo::run(build.args(["--crate-type", "cdylib", "--profile", PROFILE]))?;
                cargo::target().join(PROFILE)
            }
        };
        Ok(Self { release, tested, libraries, generator: debug.join("wraith-generate") })
    }

    fn library(&self) -> PathBuf {
        self.libraries.join(format!("{DLL_PREFIX}wraith_ffi{DLL_SUFFIX}"))
    }

    /// The sources of the bindings for a language, in a folder that is returned.
    fn generate(&self, language: Language) -> Result<PathBuf> {
        let folder = scratch(language.name()).join("generated");
        let mut generate = Command::new(&self.generator);
        generate.args(["generate", "--no-format", "--language", language.name(), "--library"]);
        generate.arg(self.library()).arg("--out-dir").arg(&folder).current_dir(cargo::root());
        cargo::run(&mut generate)?;
        Ok(folder)
    }
}

/// The folder of a language in the repository.
fn folder(name: &str) -> PathBuf {
    cargo::root().join("bindings").join(name)
}

/// Where what is made for a language lies.
fn scratch(name: &str) -> PathBuf {
    cargo::target().join("bindings").join(name)
}

fn is_there(program: &str) -> bool {
    let mut version = Command::new(program);
    // Java knows only one dash, and so do all others, or they complain and are there all the same.
    version.arg("-version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok()
}

/// A folder that is there.
fn made(folder: &Path) -> Result<&Path> {
    std::fs::create_dir_all(folder)?;
    Ok(folder)
}
