//! Conditions that change the counts although our code is the same: compilers, libraries, flags,
//! and the processor that valgrind presents.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Names and values.
pub(super) type Conditions = BTreeMap<String, String>;

/// Returns the version of valgrind, if it is installed.
pub(crate) fn valgrind() -> Option<String> {
    first_line("valgrind", &["--version"])
}

pub(super) fn gather(program: &Path, valgrind: String) -> Result<Conditions> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    // aws-lc is C code, and memcpy comes from the C library.
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let unknown = || "unknown".to_owned();
    let conditions = [
        ("rustc", first_line(&rustc, &["--version"]).context("cannot run rustc")?),
        ("target", format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS)),
        ("flags", flags()),
        ("cc", first_line(&cc, &["--version"]).unwrap_or_else(unknown)),
        ("libc", first_line("ldd", &["--version"]).unwrap_or_else(unknown)),
        ("valgrind", valgrind),
        ("cpu", cpu(program)?),
    ];
    Ok(conditions.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// A valgrind command with this tool, in an environment that is the same everywhere.
pub(crate) fn valgrind_command(tool: &str) -> Command {
    let mut command = Command::new("valgrind");
    let kept = ["PATH", "TMPDIR", "VALGRIND_LIB"];
    let kept = kept.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    command.env_clear().envs(kept).args([&format!("--tool={tool}"), "-q"]);
    // Without this setting, large copies by `rep movsb` would count as one instruction per byte.
    command.env("GLIBC_TUNABLES", "glibc.cpu.x86_rep_movsb_threshold=1073741824");
    command
}

/// Describes where `here` differs from the conditions of the baseline.
pub(super) fn difference(baseline: &Conditions, here: &Conditions) -> Option<String> {
    let keys: std::collections::BTreeSet<&String> = baseline.keys().chain(here.keys()).collect();
    let of = |side: &Conditions, key: &String| side.get(key).map_or("nothing", |v| v).to_owned();
    let differences: Vec<String> = keys
        .into_iter()
        .filter(|key| baseline.get(*key) != here.get(*key))
        .map(|key| {
            format!(
                "baseline was taken with {key} {:?}, this machine has {:?}",
                of(baseline, key),
                of(here, key)
            )
        })
        .collect();
    (!differences.is_empty()).then(|| differences.join("; "))
}

/// Environment variables that change the generated release code.
fn flags() -> String {
    let matters = |name: &str| {
        name.starts_with("CARGO_PROFILE_RELEASE_")
            || name.ends_with("RUSTFLAGS")
            || matches!(name, "CFLAGS" | "RUSTC_WRAPPER" | "CARGO_INCREMENTAL")
    };
    let mut set: Vec<String> = std::env::vars()
        .filter(|(name, value)| matters(name) && !value.is_empty())
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    set.sort();
    if set.is_empty() { "none".into() } else { set.join(" ") }
}

/// The processor as the program sees it under valgrind.
fn cpu(program: &Path) -> Result<String> {
    let mut command = valgrind_command("none");
    let output = command.arg(program).arg("cpu").output().context("cannot run valgrind")?;
    if !output.status.success() {
        bail!("valgrind failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn first_line(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next()?.trim().to_owned();
    output.status.success().then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_difference_is_named() {
        let conditions = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<Conditions>()
        };
        let baseline = conditions(&[("rustc", "1"), ("cpu", "avx2")]);
        assert_eq!(difference(&baseline, &baseline.clone()), None);
        let said = difference(&baseline, &conditions(&[("rustc", "2"), ("cpu", "avx2")])).unwrap();
        assert!(said.contains("rustc \"1\"") && said.contains("\"2\"") && !said.contains("avx2"));
        assert!(difference(&baseline, &conditions(&[("rustc", "1")])).is_some());
    }
}
