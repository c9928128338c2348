//! Tells the program what it is built from and for. Without git, or from an archive, the commit is simply not known.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=WRAITH_COMMIT");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    println!("cargo::rustc-env=WRAITH_TARGET={}", variable("TARGET"));
    println!("cargo::rustc-env=WRAITH_PROFILE={}", variable("PROFILE"));
    if variable("CARGO_CFG_TARGET_OS") == "linux"
        && variable("PROFILE") == "release"
        && variable("DEBUG") == "false"
    {
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    }
    // Whoever packages an archive may say what it is of.
    let given = variable("WRAITH_COMMIT");
    // Only in what users get: otherwise every commit would have every test linked again.
    let found = if variable("PROFILE") == "release" { commit() } else { None };
    let commit = if given.is_empty() { found.unwrap_or_default() } else { given };
    println!("cargo::rustc-env=WRAITH_COMMIT={commit}");
}

/// The commit of this very repository; not of another that an archive happens to be unpacked in.
fn commit() -> Option<String> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = package.parent()?.parent()?.canonicalize().ok()?;
    let git = |words: &[&str]| {
        let output = Command::new("git").arg("-C").arg(&workspace).args(words).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let top = Path::new(&git(&["rev-parse", "--show-toplevel"])?).canonicalize().ok()?;
    if top != workspace {
        return None;
    }
    // Changes with every commit and checkout.
    let log = workspace.join(git(&["rev-parse", "--git-path", "logs/HEAD"])?);
    if log.exists() {
        println!("cargo::rerun-if-changed={}", log.display());
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}
