//! `cargo xtask bindings`: builds the library for other languages, generates the sources of each,
//! and runs their tests.
//!
//! ```text
//! wraith-ffi ──cargo──▶ libwraith_ffi ──wraith-generate──▶ wraith.py, wraith.kt, Wraith.swift
//!                                                          │ mypy, pytest  │ JUnit   │ swift test, where there is one
//! wraith-c   ──cargo──▶ libwraith_c, and bindings/c/run-tests.sh on it
//! ```
//!
//! All results are in cargo's target folder. By default the library is built as the tests of the
//! workspace are. With `--release` it is built as users get it: in the profile `ffi`, which differs
//! from the release's only in panics, and as a maturin wheel in place of a package folder.
//!
//! A language without its tools is skipped with a message, or fails if it is `--required`.

mod c;
mod kotlin;
mod python;
mod readme;
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
    /// Test only these languages
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Language>,
    /// Fail if the tools of one of these languages are missing
    #[arg(long, value_enum, value_delimiter = ',')]
    required: Vec<Language>,
    /// Build the library as users get it, and a wheel from it
    #[arg(long)]
    release: bool,
    /// Build as with --release, and print the cost of calls
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

    /// Programs that the language's tests need.
    fn tools(self) -> &'static [&'static str] {
        match self {
            Self::Python => &["python3"],
            Self::Kotlin => &["mvn", "java"],
            Self::Swift => &["swift"],
            Self::C => &["cc"],
        }
    }
}

/// Result of a language.
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
    // Kotlin runs before Python: Python's tests talk to Kotlin's example if it is built.
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
    // Sources are generated and checked even if they cannot be compiled.
    let sources = match language {
        Language::C => None,
        _ => Some(built.generate(language)?),
    };
    if let Some(missing) = language.tools().iter().find(|tool| !is_there(tool)) {
        if let (Language::Swift, Some(sources)) = (language, &sources) {
            swift::look_at(built, sources)?;
        }
        return Ok(Outcome::Skipped(format!("{missing} is not installed")));
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

/// Paths of the built libraries and the generator.
struct Built {
    /// Whether the library is built as users get it.
    release: bool,
    /// Folder of the libraries that are built as the tests are.
    tested: PathBuf,
    /// Folder of the library under test.
    libraries: PathBuf,
    /// The program that generates the sources.
    generator: PathBuf,
}

impl Built {
    fn new(release: bool, chosen: &[Language]) -> Result<Self> {
        let mut packages = vec!["--package", "wraith-ffi", "--package", "wraith-generate"];
        if chosen.contains(&Language::C) {
            packages.extend(["--package", "wraith-c"]);
        }
        cargo::build_tested(&packages)?;
        let debug = cargo::target().join("debug");
        // Tests are built without a link to libraries in the folder above.
        let tested = debug.join("deps");
        let libraries = match release {
            false => tested.clone(),
            true => {
                // Only this crate type, as maturin requests it: with another one, link-time
                // optimization would compile all crates again.
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

    /// Generates the sources of a language, and returns their folder.
    fn generate(&self, language: Language) -> Result<PathBuf> {
        let folder = scratch(language.name()).join("generated");
        let mut generate = Command::new(&self.generator);
        generate.args(["generate", "--no-format", "--language", language.name(), "--library"]);
        generate.arg(self.library()).arg("--out-dir").arg(&folder).current_dir(cargo::root());
        cargo::run(&mut generate)?;
        Ok(folder)
    }
}

/// Returns the folder of a language in the repository.
fn folder(name: &str) -> PathBuf {
    cargo::root().join("bindings").join(name)
}

/// Returns the target folder of a language.
fn scratch(name: &str) -> PathBuf {
    cargo::target().join("bindings").join(name)
}

fn is_there(program: &str) -> bool {
    let mut version = Command::new(program);
    // Java accepts only one dash. Other programs accept it too, or complain, which also proves that
    // they exist.
    version.arg("-version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok()
}

/// Creates the folder if necessary, and returns it.
fn made(folder: &Path) -> Result<&Path> {
    std::fs::create_dir_all(folder)?;
    Ok(folder)
}
