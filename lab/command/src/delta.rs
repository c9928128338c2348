//! `cargo lab delta`: the cost of sending a changed file if the receiver has an old copy. It
//! reports bytes on the wire, time and memory. It compares them with sending the whole file, and
//! with rsync's own algorithm.
//!
//! wraith's bytes are those of all datagrams in both directions, as counted by wraith (`wire_bytes`
//! of `--json`). rsync's bytes are those of its stream in both directions, as counted by rsync,
//! without any transport. Every result is compared with the source byte by byte.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::race::process::{self, Usage};
use crate::{cargo, machine};

const BLOCK_BYTES: usize = 1 << 20;

/// Length of the appended, prepended or inserted data in each case.
const ADDED_BYTES: usize = 1 << 20;

const EDITS: usize = 500;
const EDIT_BYTES: usize = 100;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Size of the file in megabytes
    #[arg(long, default_value_t = 1000)]
    megabytes: usize,

    /// Program to measure, instead of a new release build
    #[arg(long)]
    program: Option<PathBuf>,

    /// Folder for the data (four times the size of the file)
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// One way to change a file.
#[derive(Clone, Copy, Debug)]
enum Case {
    Appended,
    Prepended,
    Edited,
}

/// Cost of updating the file.
struct Cost {
    wire_bytes: u64,
    seconds: f64,
    usage: Vec<Usage>,
}

/// Prints a table.
///
/// # Errors
/// A program fails, or its result differs from the source.
pub fn run(args: &Args) -> Result<()> {
    let program = match &args.program {
        Some(program) => program.clone(),
        None => cargo::build_release()?,
    };
    let base = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::Builder::new().prefix("wraith-delta-").tempdir_in(base)?;
    let (old, new) = (folder.path().join("old"), folder.path().join("new/file"));
    fs::create_dir_all(folder.path().join("new"))?;
    println!("{}, load {}, {}", machine::hardware(), machine::load(), machine::today());
    println!("{} MB of random bytes, loopback, both sides from the page cache\n", args.megabytes);
    println!(
        "| case | program | bytes on the wire | beyond the change | seconds | peak memory of each side |"
    );
    println!("|---|---|--:|--:|--:|--:|");
    for case in [Case::Appended, Case::Prepended, Case::Edited] {
        let changed = make(case, args.megabytes * 1_000_000, &old, &new)?;
        let fresh = || fresh_copy(folder.path(), &old);
        show(case, "wraith", changed, &new, wraith(&program, &new, &fresh()?, &[])?)?;
        show(case, "wraith -W", changed, &new, wraith(&program, &new, &fresh()?, &["-W"])?)?;
        match rsync(&new, &fresh()?) {
            Ok(cost) => show(case, "rsync", changed, &new, cost)?,
            Err(error) => eprintln!("no rsync: {error:#}"),
        }
    }
    Ok(())
}

/// Writes both versions. Returns the number of bytes of the new one that are not in the old one.
fn make(case: Case, bytes: usize, old_path: &Path, new_path: &Path) -> Result<usize> {
    let (mut old, mut new) = (writer(old_path)?, writer(new_path)?);
    let mut changes = SplitMix64(7);
    let mut added = vec![0; ADDED_BYTES];
    changes.fill(&mut added);
    if matches!(case, Case::Prepended) {
        new.write_all(&added)?;
    }
    let (mut noise, mut block) = (SplitMix64(1), vec![0; BLOCK_BYTES]);
    let blocks = bytes.div_ceil(BLOCK_BYTES);
    let mut left = bytes;
    for n in 0..blocks {
        let len = left.min(BLOCK_BYTES);
        left -= len;
        noise.fill(&mut block);
        old.write_all(&block[..len])?;
        if matches!(case, Case::Edited) {
            match n {
                _ if n == blocks / 3 => new.write_all(&added)?,
                _ if n == blocks / 3 * 2 => continue,
                _ => {}
            }
            // Each block gets the same number of edits, plus or minus one, at random offsets.
            for _ in n * EDITS / blocks..(n + 1) * EDITS / blocks {
                let at = changes.next() as usize % len.saturating_sub(EDIT_BYTES).max(1);
                let end = (at + EDIT_BYTES).min(len);
                changes.fill(&mut block[at..end]);
            }
        }
        new.write_all(&block[..len])?;
    }
    if matches!(case, Case::Appended) {
        new.write_all(&added)?;
    }
    old.flush()?;
    new.flush()?;
    let edits = if matches!(case, Case::Edited) { EDITS * EDIT_BYTES } else { 0 };
    Ok(ADDED_BYTES + edits)
}

fn writer(path: &Path) -> Result<BufWriter<File>> {
    Ok(BufWriter::new(File::create(path).with_context(|| path.display().to_string())?))
}

/// Deterministic, incompressible bytes (SplitMix64).
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for eight in bytes.chunks_mut(8) {
            let word = self.next().to_le_bytes();
            eight.copy_from_slice(&word[..eight.len()]);
        }
    }
}

/// Makes a folder that holds the old version as `file`.
fn fresh_copy(folder: &Path, old: &Path) -> Result<PathBuf> {
    let target = folder.join("target");
    if target.exists() {
        fs::remove_dir_all(&target)?;
    }
    fs::create_dir(&target)?;
    fs::copy(old, target.join("file"))?;
    Ok(target)
}

fn wraith(program: &Path, new: &Path, target: &Path, more: &[&str]) -> Result<Cost> {
    let home = tempfile::tempdir()?;
    let command = |side: &str| {
        let mut command = Command::new(program);
        command
            .env("WRAITH_HOME", home.path().join(side))
            .envs(crate::OFFLINE)
            .stdin(Stdio::null());
        command.stdout(Stdio::piped());
        command
    };
    let mut sender = command("sender")
        .args(["send", "--json", "--ticket", "--listen", "127.0.0.1:0"])
        .arg(new)
        .spawn()?;
    let mut said = BufReader::new(sender.stdout.take().context("the sender has no output")?);
    let ready = event(&mut said, "ready");
    let start = Instant::now();
    let received = ready.and_then(|ready| {
        let ticket = ready["ticket"].as_str().context("no ticket")?.to_owned();
        let mut receiver = command("receiver")
            .args(["receive", "--json", "--yes", "--on-conflict", "overwrite", "-o"])
            .arg(target)
            .args(more)
            .arg(ticket)
            .spawn()?;
        let said = receiver.stdout.take().context("the receiver has no output")?;
        let done = event(&mut BufReader::new(said), "done");
        Ok((process::wait(receiver, "wraith receive")?, done?))
    });
    if received.is_err() {
        sender.kill()?;
    }
    let seconds = start.elapsed().as_secs_f64();
    // Reads the output to the end, so that the sender never writes into a closed pipe.
    std::io::copy(&mut said, &mut std::io::sink())?;
    let sent = process::wait(sender, "wraith send");
    let (received, done) = received?;
    let wire_bytes = done["wire_bytes"].as_u64().context("no wire_bytes")?;
    Ok(Cost { wire_bytes, seconds, usage: vec![sent?, received] })
}

/// Returns the next event of this kind.
fn event(said: &mut impl BufRead, kind: &str) -> Result<Value> {
    let mut line = String::new();
    loop {
        line.clear();
        ensure!(said.read_line(&mut line)? > 0, "wraith printed no {kind} event");
        let event: Value = serde_json::from_str(&line)?;
        if event["event"] == kind {
            return Ok(event);
        }
    }
}

fn rsync(new: &Path, target: &Path) -> Result<Cost> {
    let start = Instant::now();
    let mut rsync = Command::new("rsync")
        .args(["--no-whole-file", "--stats", "--ignore-times"])
        .arg(new)
        .arg(target)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("not installed")?;
    let mut said = String::new();
    rsync.stdout.take().context("rsync has no output")?.read_to_string(&mut said)?;
    let usage = process::wait(rsync, "rsync")?;
    let seconds = start.elapsed().as_secs_f64();
    let count = |what: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(what));
        let digits: String =
            line.unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
        digits.parse::<u64>().with_context(|| format!("rsync printed no {what}"))
    };
    let wire_bytes = count("Total bytes sent:")? + count("Total bytes received:")?;
    Ok(Cost { wire_bytes, seconds, usage: vec![usage] })
}

/// Checks the result and prints a row.
fn show(case: Case, who: &str, changed: usize, new: &Path, cost: Cost) -> Result<()> {
    let made = new.parent().and_then(Path::parent).context("no folder")?.join("target/file");
    ensure!(is_same(new, &made)?, "{who}: the copy differs from the source");
    let size = fs::metadata(new)?.len() as f64;
    let beyond = cost.wire_bytes as f64 - changed as f64;
    let peaks: Vec<String> =
        cost.usage.iter().map(|usage| format!("{} MB", usage.peak_rss_bytes / 1_000_000)).collect();
    println!(
        "| {} | {who} | {:.2} MB | {:.2} % | {:.2} | {} |",
        match case {
            Case::Appended => "1 MiB appended",
            Case::Prepended => "1 MiB in front",
            Case::Edited => "500 edits of 100 bytes, 1 MiB inserted, 1 MiB removed",
        },
        cost.wire_bytes as f64 / 1e6,
        100.0 * beyond / size,
        cost.seconds,
        peaks.join(", "),
    );
    Ok(())
}

fn is_same(a: &Path, b: &Path) -> Result<bool> {
    if fs::metadata(a)?.len() != fs::metadata(b)?.len() {
        return Ok(false);
    }
    let (mut a, mut b) = (File::open(a)?, File::open(b)?);
    let (mut of_a, mut of_b) = (vec![0; BLOCK_BYTES], vec![0; BLOCK_BYTES]);
    loop {
        let len = a.read(&mut of_a)?;
        if len == 0 {
            return Ok(true);
        }
        b.read_exact(&mut of_b[..len])?;
        if of_a[..len] != of_b[..len] {
            return Ok(false);
        }
    }
}
