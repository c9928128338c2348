//! The code and the commands in the documents of the bindings: `bindings/*/README.md` and
//! `docs/SESSIONS.md`. The tests compile and run them as written.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::made;
use crate::cargo;

/// Returns the first block of a language in a document of the repository.
pub fn block(document: &str, language: &str) -> Result<String> {
    let text = fs::read_to_string(cargo::root().join(document))?;
    let found = text.split_once(&format!("\n```{language}\n"));
    let found = found.and_then(|(_, rest)| rest.split_once("\n```\n")).map(|(block, _)| block);
    Ok(format!("{}\n", found.with_context(|| format!("{document} has no block in {language}"))?))
}

/// Returns the commands of the first shell session in a document, without their prompts.
pub fn commands(document: &str) -> Result<Vec<String>> {
    let session = block(document, "console")?;
    Ok(session.lines().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned).collect())
}

/// Returns the command with cargo's target folder in place of `target/`.
pub fn in_target(command: &str) -> String {
    let target = cargo::target().display().to_string();
    command.replace("$PWD/target/", "target/").replace("target/", &format!("{target}/"))
}

/// Makes files of the blocks in Kotlin, and returns their folder. Nodes listen on loopback only.
pub fn kotlin(folder: &Path) -> Result<PathBuf> {
    let readme = block("bindings/kotlin/README.md", "kotlin")?;
    let sessions = block("docs/SESSIONS.md", "kotlin")?;
    let options =
        "fun NodeOptions() = org.wraith.NodeOptions(lan = \"off\", listen = \"127.0.0.1:0\")";
    let readme = format!("package org.wraith.readme\n\n{readme}\n{options}\n");
    let sessions = format!(
        "package org.wraith.readme\n\nimport org.wraith.*\n\n\
         fun responder(): Handshake {{\n{sessions}return handshake\n}}\n"
    );
    let folder = folder.join("readme");
    fs::write(made(&folder)?.join("Readme.kt"), readme)?;
    fs::write(folder.join("Sessions.kt"), sessions)?;
    Ok(folder)
}
