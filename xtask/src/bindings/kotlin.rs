//! Kotlin on the JVM: compiled, tested and packed by Maven.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{Built, folder, readme, scratch};
use crate::cargo;

pub fn test(built: &Built, sources: &Path, bench: bool) -> Result<()> {
    let mut maven = Command::new("mvn");
    maven.args(["--batch-mode", "--no-transfer-progress"]);
    for (name, value) in [
        ("wraith.target", cargo::target()),
        ("wraith.generated", sources.to_owned()),
        ("wraith.library", built.libraries.clone()),
        ("wraith.readme", readme::kotlin(&scratch("kotlin"))?),
    ] {
        let mut word = OsString::from(format!("-D{name}="));
        word.push(value);
        maven.arg(word);
    }
    if bench {
        maven.arg("-Dwraith.bench=true");
    }
    cargo::run(maven.arg("package").current_dir(folder("kotlin")))
}
