//! `cargo xtask bindings`: the library for other languages, its sources for each, and their tests.
//!
//! ```text
//! wraith-ffi ──cargo──▶ libwraith_ffi ──uniffi-bindgen──▶ wraith.py, wraith.kt, wraith.swift
//!                                                          │ a wheel    │ a jar   │ compiled where there is a swift
//!                                                          ▼ pytest     ▼ JUnit   ▼ swift test
//! wraith-c   ──cargo──▶ libwraith_c, wraith.h ──cc──▶ a program that tests it
//! ```
//!
//! Everything that is made lies in cargo's target folder. The library is that of the tests' profile, which is built already where tests were
//! run; what users get is of the profile `ffi`, which is the release's but for panics. A language whose tools are missing is skipped aloud,
//! and is an error where it is `--required`, or in CI.

mod kotlin;
mod python;
mod swift;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use crate::{cargo, skip};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only these languages
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Language>,
    /// An error if the tools for one of these are missing
    #[arg(long, value_enum, value_delimiter = ',')]
    required: Vec<Language>,
    /// Build the library as users get it, and print what calls cost
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
    let built = Built::new(if args.bench { Profile::Ffi } else { Profile::Dev })?;
    let mut outcomes = Vec::new();
    // Kotlin goes before Python, whose tests talk with Kotlin's example if it is there.
    for language in chosen.collect::<Vec<_>>().into_iter().rev() {
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
        Language::Python | Language::C => None,
        Language::Kotlin | Language::Swift => Some(built.generate(language)?),
    };
    if let Some(missing) = language.tools().iter().find(|tool| !is_there(tool)) {
        if let (Language::Swift, Some(sources)) = (language, &sources) {
            swift::look_at(sources)?;
        }
        return Ok(Outcome::Skipped(format!("no {missing} here")));
    }
    match (language, sources) {
        (Language::Python, _) => python::test(built, bench)?,
        (Language::Kotlin, Some(sources)) => kotlin::test(built, &sources, bench)?,
        (Language::Swift, Some(sources)) => swift::test(built, &sources)?,
        (Language::C, _) if !c_script().exists() => {
            return Ok(Outcome::Skipped("bindings/c has no test.sh".into()));
        }
        (Language::C, _) => {
            cargo::run(Command::new(c_script()).env("CARGO_TARGET_DIR", cargo::target()))?;
        }
        _ => unreachable!("the sources were made above"),
    }
    Ok(Outcome::Passed)
}

fn c_script() -> PathBuf {
    folder("c").join("test.sh")
}

/// Which of cargo's profiles the library is built with.
#[derive(Clone, Copy, Debug)]
enum Profile {
    Dev,
    Ffi,
}

impl Profile {
    const fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Ffi => "ffi",
        }
    }
}

/// The library and the generator, built.
struct Built {
    profile: Profile,
    /// Where the library is.
    libraries: PathBuf,
    /// Where `uniffi-bindgen` is.
    programs: PathBuf,
}

impl Built {
    fn new(profile: Profile) -> Result<Self> {
        let words = ["build", "--locked", "--package", "wraith-ffi", "--package"];
        cargo::run(cargo::cargo(words).args(["wraith-generate", "--profile", "dev"]))?;
        let debug = cargo::target().join("debug");
        let libraries = match profile {
            Profile::Dev => debug.clone(),
            Profile::Ffi => {
                let words = ["build", "--locked", "--package", "wraith-ffi", "--profile", "ffi"];
                cargo::run(&mut cargo::cargo(words))?;
                cargo::target().join("ffi")
            }
        };
        Ok(Self { profile, libraries, programs: debug })
    }

    fn library(&self) -> PathBuf {
        let name = format!("{}wraith_ffi{}", std::env::consts::DLL_PREFIX, DLL_SUFFIX);
        self.libraries.join(name)
    }

    /// The sources of the bindings for a language, in a folder that is returned.
    fn generate(&self, language: Language) -> Result<PathBuf> {
        let folder = scratch(language.name()).join("generated");
        let mut generate = Command::new(self.programs.join("uniffi-bindgen"));
        generate.args(["generate", "--no-format", "--language", language.name(), "--library"]);
        generate.arg(self.library()).arg("--out-dir").arg(&folder).current_dir(cargo::root());
        cargo::run(&mut generate)?;
        Ok(folder)
    }

    /// The path of this process with the generator in it.
    fn path(&self) -> Result<OsString> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.programs.clone()).chain(std::env::split_paths(&path));
        Ok(std::env::join_paths(folders)?)
    }
}

use std::env::consts::DLL_SUFFIX;

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
