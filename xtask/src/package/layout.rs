//! The files of an installation and their paths in Debian's layout; other systems use nearly the
//! same one.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use flate2::{Compression, GzBuilder};

use super::{elf, succeed};
use crate::cargo;

/// One file.
#[derive(Debug)]
pub struct File {
    /// Path below the root, without a leading slash.
    pub path: String,
    pub mode: u32,
    pub bytes: Vec<u8>,
}

/// All files, sorted by path, and the metadata of a package.
#[derive(Debug)]
pub struct Layout {
    pub files: Vec<File>,
    pub version: String,
    /// Time of the commit, in seconds since 1970.
    pub time: u64,
    /// Oldest glibc that the program runs with, as `2.34`; `None` if it needs no glibc.
    pub glibc: Option<String>,
}

impl Layout {
    /// Collects the program and the files that it generates.
    pub fn of(program: &Path) -> Result<Self> {
        let scratch = tempfile::tempdir()?;
        let run = |words: &[&str]| {
            // The output depends on the program's definition, not on the packager's environment.
            let mut command = Command::new(program);
            command
                .args(words)
                .env("WRAITH_HOME", scratch.path().join("home"))
                .envs(crate::OFFLINE);
            succeed(&mut command)
        };
        let version = run(&["-V"])?;
        let version = version.trim().strip_prefix("wraith ").context("no version")?.to_owned();
        let bytes =
            fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
        let debug = elf::debug_sections(&bytes).context("the program is no ELF file of 64 bits")?;
        ensure!(debug.is_empty(), "the program is not stripped; it has {}", debug.join(", "));
        let glibc = oldest_glibc(&bytes);
        let time = commit_time();
        let mut files = vec![file("usr/bin/wraith", 0o755, bytes)];
        for (shell, path) in [
            ("bash", "usr/share/bash-completion/completions/wraith"),
            ("zsh", "usr/share/zsh/vendor-completions/_wraith"),
            ("fish", "usr/share/fish/vendor_completions.d/wraith.fish"),
        ] {
            files.push(file(path, 0o644, run(&["completions", shell])?.into_bytes()));
        }
        let man = scratch.path().join("man");
        run(&["man", man.to_str().context("a name that is text")?])?;
        for page in fs::read_dir(&man)? {
            let page = page?;
            let name = page.file_name().into_string().ok().context("a name that is text")?;
            let bytes = compressed(&fs::read(page.path())?)?;
            files.push(file(&format!("usr/share/man/man1/{name}.gz"), 0o644, bytes));
        }
        for name in ["README.md", "docs/json.md", "docs/events.schema.json", "docs/THREATS.md"] {
            let short = name.trim_start_matches("docs/");
            let path = format!("usr/share/doc/wraith/{short}");
            files.push(file(&path, 0o644, fs::read(cargo::root().join(name))?));
        }
        files.push(file("usr/share/doc/wraith/copyright", 0o644, copyright()?));
        files.sort_by(|a, b| a.path.cmp(&b.path));
        ensure!(files.iter().all(|file| !file.bytes.is_empty()), "a file is empty");
        Ok(Self { files, version, time, glibc })
    }

    pub fn deb_name(&self) -> String {
        format!("wraith_{}_{}.deb", self.version, debian_architecture())
    }

    pub fn tar_name(&self) -> String {
        format!("{}-linux-{}.tar.gz", self.folder_name(), std::env::consts::ARCH)
    }

    pub fn folder_name(&self) -> String {
        format!("wraith-{}", self.version)
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes.len() as u64).sum()
    }

    /// The files in a compressed archive, below `prefix`.
    pub fn tar_gz(&self, prefix: &str) -> Result<Vec<u8>> {
        tar_gz(prefix, &self.files, self.time)
    }
}

fn file(path: &str, mode: u32, bytes: Vec<u8>) -> File {
    File { path: path.to_owned(), mode, bytes }
}

/// A compressed archive of these files and their folders.
pub fn tar_gz(prefix: &str, files: &[File], time: u64) -> Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut made = std::collections::BTreeSet::new();
    let header = |mode: u32, size: usize, kind: tar::EntryType| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(size as u64);
        header.set_mtime(time);
        header.set_uid(0);
        header.set_gid(0);
        header
    };
    for file in files {
        let path = format!("{prefix}/{}", file.path);
        // The parent folders, each once, from the top.
        for (at, _) in path.match_indices('/') {
            let folder = &path[..=at];
            if made.insert(folder.to_owned()) && folder != "./" {
                let mut header = header(0o755, 0, tar::EntryType::Directory);
                builder.append_data(&mut header, folder, std::io::empty())?;
            }
        }
        let mut header = header(file.mode, file.bytes.len(), tar::EntryType::Regular);
        builder.append_data(&mut header, &path, &file.bytes[..])?;
    }
    compressed(&builder.into_inner()?)
}

fn compressed(bytes: &[u8]) -> Result<Vec<u8>> {
    // The header holds no name and no time.
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// Returns the highest version among the version names in the program (`GLIBC_2.34`).
fn oldest_glibc(program: &[u8]) -> Option<String> {
    const MARK: &[u8] = b"GLIBC_2.";
    let found = program.windows(MARK.len()).enumerate().filter(|(_, bytes)| *bytes == MARK);
    let minor = |at: usize| {
        let digits = program[at + MARK.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0, |number: u32, byte| number.saturating_mul(10) + u32::from(byte - b'0'))
    };
    found.map(|(at, _)| minor(at)).max().map(|minor| format!("2.{minor}"))
}

/// Returns `SOURCE_DATE_EPOCH`, as Debian's tools do; else the time of the commit, else 1980.
fn commit_time() -> u64 {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok());
    let of_commit = || {
        let mut git = Command::new("git");
        git.arg("-C").arg(cargo::root()).args(["log", "-1", "--format=%ct"]);
        succeed(&mut git).ok()?.trim().parse().ok()
    };
    given.or_else(of_commit).unwrap_or(315_532_800)
}

pub fn debian_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The copyright file in Debian's format.
fn copyright() -> Result<Vec<u8>> {
    let mit = fs::read_to_string(cargo::root().join("LICENSE-MIT"))?;
    let holder =
        mit.lines().find(|line| line.starts_with("Copyright")).unwrap_or("Copyright wraith");
    let holder = holder.trim_start_matches("Copyright").trim_start_matches(" (c)").trim();
    let body: String = mit
        .lines()
        .map(|line| if line.trim().is_empty() { " .\n".into() } else { format!(" {line}\n") })
        .collect();
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: wraith\n\nFiles: *\nCopyright: {holder}\nLicense: Expat or Apache-2.0\n\n\
         License: Expat\n{body}\nLicense: Apache-2.0\n On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.\n"
    )
    .into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_glibc_is_the_newest_that_a_symbol_asks_for() {
        let program = b"..GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.17\0GLIBC_PRIVATE";
        assert_eq!(oldest_glibc(program).as_deref(), Some("2.34"));
        assert_eq!(oldest_glibc(b"static"), None);
    }

    #[test]
    fn the_same_files_give_the_same_archive_with_every_folder_once() {
        let files =
            [file("usr/bin/a", 0o755, b"1".to_vec()), file("usr/bin/b", 0o644, b"2".to_vec())];
        let archive = tar_gz(".", &files, 7).unwrap();
        assert_eq!(archive, tar_gz(".", &files, 7).unwrap());
        let mut read = tar::Archive::new(flate2::read::GzDecoder::new(&archive[..]));
        let entries: Vec<_> = read
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let path = entry.path().unwrap().display().to_string();
                (path, entry.header().mode().unwrap(), entry.header().uid().unwrap())
            })
            .collect();
        let paths: Vec<_> =
            entries.iter().map(|(path, ..)| path.trim_start_matches("./")).collect();
        assert_eq!(paths, ["usr/", "usr/bin/", "usr/bin/a", "usr/bin/b"]);
        assert!(entries[2].1 == 0o755 && entries[3].1 == 0o644 && entries.iter().all(|e| e.2 == 0));
    }
}
