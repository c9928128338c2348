//! `cargo xtask package`: builds the artifacts that people install, a Debian package and an archive
//! of the same files. The command succeeds only after each artifact was unpacked into an empty
//! folder and run from there.
//!
//! Invariant: the same program gives the same bytes. Times are those of the commit, owners are
//! root, and files are in alphabetical order.

mod deb;
mod elf;
mod layout;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{cargo, skip};
use layout::Layout;

const MUSL: &str = "x86_64-unknown-linux-musl";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Output folder [default: package in the target folder]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Package this program instead of building one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Also build a program that needs no libraries (musl), and fail if that is not possible
    #[arg(long = "static")]
    fully_static: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let out = args.out.clone().unwrap_or_else(|| cargo::target().join("package"));
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let program = match &args.program {
        Some(program) => program.clone(),
        None => cargo::build_release()?,
    };
    package(&program, &out)?;
    match (lacks_for_static(), args.fully_static) {
        (None, true) => package_static(&out),
        (None, false) => {
            println!("This machine can build a static program: --static");
            Ok(())
        }
        (Some(why), true) => bail!("no static build: {why}"),
        (Some(why), false) => {
            println!("This machine cannot build a static program: {why}");
            Ok(())
        }
    }
}

/// Packages the test build of the program into a temporary folder. The release profile strips the program, so this build is
/// stripped here.
pub fn smoke_test() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("wraith");
    let mut strip = Command::new("strip");
    strip.arg("--remove-section=.debug_gdb_scripts").arg("-o").arg(&program);
    cargo::run(strip.arg(cargo::build_debug()?))?;
    package(&program, folder.path())
}

fn package(program: &Path, out: &Path) -> Result<()> {
    let layout = Layout::of(program)?;
    let deb = out.join(layout.deb_name());
    fs::write(&deb, deb::archive(&layout)?)?;
    try_deb(&deb, &layout)?;
    println!("{} ({} files): unpacked and tested", deb.display(), layout.files.len());
    let tar = out.join(layout.tar_name());
    fs::write(&tar, layout.tar_gz(&layout.folder_name())?)?;
    try_tar(&tar, &layout)?;
    println!("{}: unpacked and tested", tar.display());
    Ok(())
}

/// Returns the missing requirement of a static build, or `None` if it is possible.
fn lacks_for_static() -> Option<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let words = ["--print", "target-libdir", "--target", MUSL];
    let told = Command::new(rustc).args(words).output().ok();
    let folder = told.and_then(|output| String::from_utf8(output.stdout).ok());
    if !folder.is_some_and(|folder| Path::new(folder.trim()).exists()) {
        return Some(format!("this Rust has no {MUSL} (rustup target add {MUSL})"));
    }
    // The ciphers are C code, which the system's own compiler would build for the system's C
    // library.
    let compiler = Command::new("musl-gcc").arg("--version").output();
    compiler.is_err().then(|| "musl-gcc is missing (apt install musl-tools)".into())
}

fn package_static(out: &Path) -> Result<()> {
    cargo::build(cargo::WORKSPACE, "wraith-p2p-cli", &["--target", MUSL])?;
    let program = cargo::target().join(MUSL).join("release/wraith");
    let layout = Layout::of(&program)?;
    ensure!(layout.glibc.is_none(), "{} needs a libc", program.display());
    let tar = out.join(layout.tar_name().replace("linux", "linux-static"));
    fs::write(&tar, layout.tar_gz(&layout.folder_name())?)?;
    try_tar(&tar, &layout)?;
    println!("{}: needs no library; unpacked and tested", tar.display());
    Ok(())
}

/// Installs the package with Debian's own tools, if they exist.
fn try_deb(deb: &Path, layout: &Layout) -> Result<()> {
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        skip::skipped("the Debian package", "dpkg-deb is not installed");
        return Ok(());
    }
    let root = tempfile::tempdir()?;
    succeed(Command::new("dpkg-deb").arg("--info").arg(deb))?;
    succeed(Command::new("dpkg-deb").arg("-x").arg(deb).arg(root.path()))?;
    for file in &layout.files {
        let there = fs::read(root.path().join(&file.path));
        let there = there.with_context(|| format!("{} is not in the package", file.path))?;
        ensure!(there == file.bytes, "{} came out of the package as something else", file.path);
    }
    try_program(&root.path().join("usr/bin/wraith"))?;
    if is_root() {
        install(deb)?;
    }
    Ok(())
}

/// Installs into a separate root with an empty database, which does not contain the libraries the
/// package depends on.
fn install(deb: &Path) -> Result<()> {
    let root = tempfile::tempdir()?;
    let at = |name: &str| root.path().join(name);
    for folder in ["var/lib/dpkg/updates", "var/lib/dpkg/info", "var/log"] {
        fs::create_dir_all(at(folder))?;
    }
    fs::write(at("var/lib/dpkg/status"), "")?;
    fs::write(at("var/lib/dpkg/available"), "")?;
    let mut dpkg = Command::new("dpkg");
    dpkg.arg(format!("--root={}", root.path().display())).arg("--force-depends");
    dpkg.arg(format!("--log={}", at("var/log/dpkg.log").display()));
    succeed(dpkg.arg("--install").arg(deb))?;
    try_program(&at("usr/bin/wraith"))
}

fn try_tar(tar: &Path, layout: &Layout) -> Result<()> {
    let root = tempfile::tempdir()?;
    succeed(Command::new("tar").arg("-xzf").arg(tar).arg("-C").arg(root.path()))?;
    try_program(&root.path().join(layout.folder_name()).join("usr/bin/wraith"))
}

/// Runs a real transfer with the program in an empty environment.
fn try_program(program: &Path) -> Result<()> {
    let home = tempfile::tempdir()?;
    let clean = |words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words).env_clear().env("HOME", home.path()).env("PATH", "/usr/bin:/bin");
        command.env("TMPDIR", home.path());
        succeed(&mut command)
    };
    let version = clean(&["-V"])?;
    ensure!(version.starts_with("wraith "), "it prints {version:?}");
    clean(&["demo", "--size", "8M", "--files", "20"]).map(|_| ())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a command that must succeed, and returns its output.
fn succeed(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("failed ({}): {command:?}\n{said}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
