//! Passes the commit, the target and the profile to the program. Without git, or in an unpacked
//! archive, the commit is unknown.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=WRAITH_COMMIT");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    println!("cargo::rustc-env=WRAITH_TARGET={}", variable("TARGET"));
    println!("cargo::rustc-env=WRAITH_PROFILE={}", variable("PROFILE"));
    // A packager that builds from an archive can set the commit.
    let given = variable("WRAITH_COMMIT");
    // Only in release builds: in other profiles, every commit would relink every test.
    let found = if variable("PROFILE") == "release" { commit() } else { None };
    let commit = if given.is_empty() { found.unwrap_or_default() } else { given };
    println!("cargo::rustc-env=WRAITH_COMMIT={commit}");
}

/// Returns the commit of this repository. Ignores another repository around an unpacked archive.
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
    // This file changes with every commit and checkout.
    let log = workspace.join(git(&["rev-parse", "--git-path", "logs/HEAD"])?);
    if log.exists() {
        println!("cargo::rerun-if-changed={}", log.display());
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}
