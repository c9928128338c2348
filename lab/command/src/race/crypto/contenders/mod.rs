//! The programs that race: which of them enter a row, and how each measures a batch of rows. Each
//! program has a module that runs it and reads its output.

mod openhitls;
mod openhitls_rs;
mod openssl;
mod ours;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::contests::Contest;
pub use ours::Ours;

pub const WRAITH: &str = "wraith";
/// wraith with conservative backends.
pub const CONSERVATIVE: &str = "wraith, conservative";
pub const OPENSSL: &str = "OpenSSL";
pub const OPENHITLS: &str = "openHiTLS";
pub const OPENHITLS_RS: &str = "openhitls-rs";
/// The other contenders, in the order of the columns.
pub const OTHERS: [&str; 3] = [OPENSSL, OPENHITLS, OPENHITLS_RS];
/// All contenders.
pub const ALL: [&str; 5] = [WRAITH, CONSERVATIVE, OPENSSL, OPENHITLS, OPENHITLS_RS];

/// The programs that race.
pub struct Programs {
    wraith: PathBuf,
    /// Version of OpenSSL, if it is installed.
    openssl: Option<String>,
    openhitls: Option<PathBuf>,
    openhitls_rs: Option<PathBuf>,
}

impl Programs {
    pub fn new(
        wraith: &Path,
        openhitls: Option<&Path>,
        openhitls_rs: Option<&Path>,
    ) -> Result<Self> {
        let openssl = said(Command::new("openssl").arg("version")).ok();
        if openssl.is_none() {
            eprintln!("!! SKIPPED {OPENSSL}: not installed");
        }
        for (name, program) in [(OPENHITLS, openhitls), (OPENHITLS_RS, openhitls_rs)] {
            match program {
                Some(path) => ensure!(path.is_file(), "no such file: {}", path.display()),
                None => eprintln!("!! SKIPPED {name}: no program is named"),
            }
        }
        Ok(Self {
            wraith: wraith.into(),
            openssl,
            openhitls: openhitls.map(Into::into),
            openhitls_rs: openhitls_rs.map(Into::into),
        })
    }

    pub fn versions(&self) -> BTreeMap<String, String> {
        let openssl = self.openssl.as_ref().map(|said| {
            let version: Vec<_> = said.split_whitespace().take(2).collect();
            (OPENSSL.to_owned(), version.join(" "))
        });
        openssl.into_iter().collect()
    }

    /// Returns the processor features that wraith's algorithms use.
    pub fn processor(&self) -> Result<String> {
        ours::processor(&self.wraith)
    }

    /// Returns wraith's description of each row; wraith has them all.
    pub fn described(&self, contests: &[Contest]) -> Result<Vec<Ours>> {
        ours::described(&self.wraith, contests)
    }

    /// Returns whether the contender takes part in the row.
    pub fn enters(&self, contender: &str, contest: &Contest) -> bool {
        match contender {
            OPENSSL => contest.openssl.is_some() && self.openssl.is_some(),
            OPENHITLS => contest.c.is_some() && self.openhitls.is_some(),
            OPENHITLS_RS => contest.rs.is_some() && self.openhitls_rs.is_some(),
            _ => true,
        }
    }

    /// Measures the operations a second of each of these rows, all of which the contender enters.
    pub fn measure(
        &self,
        contender: &str,
        contests: &[&Contest],
        seconds: f64,
    ) -> Vec<Result<f64>> {
        let measured = match (contender, &self.openhitls, &self.openhitls_rs) {
            (OPENSSL, ..) => Ok(openssl::measure(contests, seconds)),
            (OPENHITLS, Some(program), _) => Ok(openhitls::measure(program, contests, seconds)),
            (OPENHITLS_RS, _, Some(program)) => openhitls_rs::measure(program, contests, seconds),
            (CONSERVATIVE, ..) => {
                ours::measure(&self.wraith, ours::CONSERVATIVE, contests, seconds)
            }
            _ => ours::measure(&self.wraith, ours::FAST, contests, seconds),
        };
        let plausible = |figure: Result<f64>| {
            figure.and_then(|figure| {
                ensure!(figure.is_finite() && figure > 0.0, "{contender} gives {figure}");
                Ok(figure)
            })
        };
        match measured {
            Ok(figures) => figures.into_iter().map(plausible).collect(),
            // The program failed, so each of its rows failed.
            Err(error) => contests.iter().map(|_| Err(anyhow!("{error:#}"))).collect(),
        }
    }
}

fn said(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {name}"))?;
    text(output, &name)
}

fn text(output: Output, name: &str) -> Result<String> {
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("{name} failed ({}): {}", output.status, why.lines().last().unwrap_or_default());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
