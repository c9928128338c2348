//! How each contender is run, and where its figure stands in what it prints.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::contests::{C, Contest, Figure, OpenSsl, TEXT_BYTES};

pub const WRAITH: &str = "wraith";
pub const OPENSSL: &str = "OpenSSL";
pub const OPENHITLS: &str = "openHiTLS";
pub const OPENHITLS_RS: &str = "openhitls-rs";
/// Beside wraith, in the order of the columns.
pub const OTHERS: [&str; 3] = [OPENSSL, OPENHITLS, OPENHITLS_RS];

/// The programs that race.
pub struct Programs {
    wraith: PathBuf,
    /// Its version.
    openssl: Option<String>,
    openhitls: Option<PathBuf>,
    openhitls_rs: Option<PathBuf>,
    /// Where criterion leaves what it measured.
    scratch: tempfile::TempDir,
}

/// A `speed` event.
#[derive(Debug, Deserialize)]
pub struct Ours {
    name: String,
    pub bytes: Option<u64>,
    operations_per_second: Option<f64>,
    pub backend: String,
    pub scope: String,
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
                Some(path) => ensure!(path.is_file(), "there is no {}", path.display()),
                None => eprintln!("!! SKIPPED {name}: no program is named"),
            }
        }
        Ok(Self {
            wraith: wraith.into(),
            openssl,
            openhitls: openhitls.map(Into::into),
            openhitls_rs: openhitls_rs.map(Into::into),
            scratch: tempfile::tempdir()?,
        })
    }

    pub fn versions(&self) -> BTreeMap<String, String> {
        let openssl = self.openssl.as_ref().map(|said| {
            let version: Vec<_> = said.split_whitespace().take(2).collect();
            (OPENSSL.to_owned(), version.join(" "))
        });
        openssl.into_iter().collect()
    }

    /// Who takes part in a row.
    pub fn entered(&self, contest: &Contest) -> Vec<&'static str> {
        let mut entered = vec![WRAITH];
        let others = [
            (OPENSSL, contest.openssl.is_some() && self.openssl.is_some()),
            (OPENHITLS, contest.c.is_some() && self.openhitls.is_some()),
            (OPENHITLS_RS, contest.rs.is_some() && self.openhitls_rs.is_some()),
        ];
        entered.extend(others.iter().filter(|(_, takes_part)| *takes_part).map(|(name, _)| name));
        entered
    }

    /// Operations in a second.
    pub fn measure(&self, contender: &str, contest: &Contest, seconds: f64) -> Result<f64> {
        let whole = (seconds.ceil() as u64).max(1).to_string();
        let figure = match (contender, &contest.openssl, &contest.c, &contest.rs) {
            (OPENSSL, Some(of), ..) => openssl(of, &whole),
            (OPENHITLS, _, Some(of), _) => {
                openhitls(self.openhitls.as_deref().context("it is not named")?, of, &whole)
            }
            (OPENHITLS_RS, _, _, Some(name)) => self.openhitls_rs(name, seconds),
            _ => self
                .ours(contest, seconds)?
                .and_then(|ours| ours.operations_per_second)
                .context("it has no such row any more"),
        }?;
        ensure!(figure.is_finite() && figure > 0.0, "{contender} gives {figure}");
        Ok(figure)
    }

    /// What wraith says of the row; none if it has no such row, or cannot compute it.
    pub fn ours(&self, contest: &Contest, seconds: f64) -> Result<Option<Ours>> {
        let mut command = Command::new(&self.wraith);
        command.args(["speed", "--json", "--no-config", &contest.row]);
        command.args(["--seconds", &seconds.to_string(), "--bytes", &TEXT_BYTES.to_string()]);
        let output = command.stdin(Stdio::null()).output()?;
        // 2: there is no such row. 10: it cannot be computed.
        if matches!(output.status.code(), Some(2 | 10)) {
            return Ok(None);
        }
        let text = text(output, "wraith speed")?;
        let events = text.lines().map(serde_json::from_str::<Ours>);
        let events = events.collect::<Result<Vec<_>, _>>()?;
        Ok(events.into_iter().find(|event| event.name == contest.row))
    }

    fn openhitls_rs(&self, name: &str, seconds: f64) -> Result<f64> {
        let program = self.openhitls_rs.as_deref().context("it is not named")?;
        let mut command = Command::new(program);
        let exactly = format!("^{}$", name.replace('+', "\\+"));
        command.args(["--bench", &exactly, "--noplot", "--sample-size", "10"]);
        command.args(["--warm-up-time", "0.1", "--measurement-time", &seconds.to_string()]);
        command.env("CRITERION_HOME", self.scratch.path());
        of_criterion(&said(&mut command)?)
            .with_context(|| format!("it does not tell how long {name} takes"))
    }
}

fn openssl(of: &OpenSsl, seconds: &str) -> Result<f64> {
    let mut command = Command::new("openssl");
    command.args(["speed", "-mr", "-seconds", seconds]);
    let is_rate = of.figure == Figure::BytesPerSecond;
    if is_rate {
        command.args(["-bytes", &TEXT_BYTES.to_string()]);
    }
    let output = said(command.args(&of.words))?;
    of_openssl(&output, of.figure).context("openssl speed gives no figure")
}

/// The figure in what `openssl speed -mr` prints, as operations in a second.
fn of_openssl(output: &str, figure: Figure) -> Option<f64> {
    let line = output.lines().rfind(|line| line.starts_with("+F"))?;
    let mut fields = line.rsplit(':').map(str::parse::<f64>);
    let last = fields.next()?.ok()?;
    match figure {
        Figure::BytesPerSecond => Some(last / f64::from(TEXT_BYTES)),
        Figure::First => fields.next()?.ok(),
        Figure::Second => Some(last),
    }
}

fn openhitls(program: &Path, of: &C, seconds: &str) -> Result<f64> {
    let mut command = Command::new(program);
    command.args(["-a", of.group, "-s", seconds, "-l", &of.bytes.to_string()]);
    if let Some(parameter) = &of.parameter {
        command.args(["-p", parameter]);
    }
    let output = said(&mut command)?;
    of_openhitls(&output, &of.name).with_context(|| format!("it gives no figure for {}", of.name))
}

/// The figure of the row in what the C program prints: `name , bytes, times, milliseconds, operations a second`.
fn of_openhitls(output: &str, name: &str) -> Option<f64> {
    let line = output.lines().find_map(|line| {
        let (first, rest) = line.split_once(',')?;
        first.trim().eq_ignore_ascii_case(name).then_some(rest)
    })?;
    // A line of an operation that failed in the middle is no figure.
    let failed = output.lines().any(|line| line.starts_with("Error") || line.starts_with("Failed"));
    let figure = line.rsplit(',').next()?.trim().parse().ok()?;
    (!failed).then_some(figure)
}

/// The middle of `time:   [1.2 µs 1.3 µs 1.4 µs]`, as operations in a second.
fn of_criterion(output: &str) -> Option<f64> {
    let (_, times) = output.split_once("time:")?;
    let (times, _) = times.trim_start().strip_prefix('[')?.split_once(']')?;
    let mut words = times.split_whitespace().skip(2);
    let (value, unit) = (words.next()?.parse::<f64>().ok()?, words.next()?);
    let seconds = match unit {
        "ps" => value * 1e-12,
        "ns" => value * 1e-9,
        "µs" | "us" => value * 1e-6,
        "ms" => value * 1e-3,
        "s" => value,
        _ => return None,
    };
    Some(1.0 / seconds)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_openssl_are_found() {
        let rate = "+DT:sha256:1:8192\n+R:70952:sha256:0.33\n+H:8192\n+F:25:sha256:1638400.00\n";
        assert_eq!(of_openssl(rate, Figure::BytesPerSecond), Some(200.0));
        let signature = "+R6:4589:256:0.28\n+F4:3:256:51090.000000:16389.285714\n";
        assert_eq!(of_openssl(signature, Figure::First), Some(51090.0));
        assert_eq!(of_openssl(signature, Figure::Second), Some(16389.285714));
        assert_eq!(of_openssl("+F5:3:256:21702.9:0.000046\n", Figure::First), Some(21702.9));
        assert_eq!(of_openssl("nothing\n", Figure::First), None);
    }

    #[test]
    fn the_figures_of_openhitls_are_found_and_failures_are_none() {
        let good = "algorithm operation , len, run times, time elapsed(ms), ops/s\n\
                    aes128-cbc encrypt , 8192, 165541, 1000.00, 165540.52\n";
        assert_eq!(of_openhitls(good, "aes128-cbc encrypt"), Some(165540.52));
        assert_eq!(of_openhitls(good, "aes128-cbc"), None);
        let failed = format!("Error: DoCipherEnc(ctx, opts), ret = 01100004\n{good}");
        assert_eq!(of_openhitls(&failed, "aes128-cbc encrypt"), None);
    }

    #[test]
    fn the_figures_of_criterion_are_found() {
        let text = "sm3/hash/8192           time:   [35.553 µs 40.000 µs 39.617 µs]\n   thrpt: [197.20 MiB/s]";
        assert!((of_criterion(text).unwrap() - 25_000.0).abs() < 1e-6);
        assert!((of_criterion("x time: [1 s 2.0 s 3 s]").unwrap() - 0.5).abs() < 1e-9);
        assert_eq!(of_criterion("time: [1 y 2 y 3 y]"), None);
    }
}
