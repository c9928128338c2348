//! `openssl speed`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::process::Command;

use anyhow::{Context, Result};

use super::super::contests::{Contest, Figure, OpenSsl};
use super::said;

/// Measures the rows. Rows that one command measures together, such as signing and verifying, share
/// one run.
pub fn measure(contests: &[&Contest], seconds: f64) -> Vec<Result<f64>> {
    // OpenSSL counts in whole seconds.
    let seconds = (seconds.ceil() as u64).max(1).to_string();
    let mut outputs = HashMap::new();
    contests.iter().map(|contest| of_row(contest, &mut outputs, &seconds)).collect()
}

/// Output of each command with a text length.
type Outputs<'a> = HashMap<(&'a [&'static str], Option<u32>), String>;

fn of_row<'a>(contest: &'a Contest, outputs: &mut Outputs<'a>, seconds: &str) -> Result<f64> {
    let of = contest.openssl.as_ref().context("it has no such row")?;
    let bytes = contest.bytes.filter(|_| of.figure == Figure::BytesPerSecond);
    let output = match outputs.entry((&of.words[..], bytes)) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) => entry.insert(run(of, bytes, seconds)?),
    };
    found(output, of.figure, bytes).context("openssl speed gives no figure")
}

fn run(of: &OpenSsl, bytes: Option<u32>, seconds: &str) -> Result<String> {
    let mut command = Command::new("openssl");
    command.args(["speed", "-mr", "-seconds", seconds]);
    if let Some(bytes) = bytes {
        command.args(["-bytes", &bytes.to_string()]);
    }
    said(command.args(&of.words))
}

/// Finds the figure in the output of `openssl speed -mr`, as operations a second.
fn found(output: &str, figure: Figure, bytes: Option<u32>) -> Option<f64> {
    let line = output.lines().rfind(|line| line.starts_with("+F"))?;
    let mut fields = line.rsplit(':').map(str::parse::<f64>);
    let last = fields.next()?.ok()?;
    match figure {
        Figure::BytesPerSecond => Some(last / f64::from(bytes?)),
        Figure::First => fields.next()?.ok(),
        Figure::Second => Some(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_found() {
        let rate = "+DT:sha256:1:8192\n+R:70952:sha256:0.33\n+H:8192\n+F:25:sha256:1638400.00\n";
        assert_eq!(found(rate, Figure::BytesPerSecond, Some(8192)), Some(200.0));
        let signature = "+R6:4589:256:0.28\n+F4:3:256:51090.000000:16389.285714\n";
        assert_eq!(found(signature, Figure::First, None), Some(51090.0));
        assert_eq!(found(signature, Figure::Second, None), Some(16389.285714));
        assert_eq!(found("+F5:3:256:21702.9:0.000046\n", Figure::First, None), Some(21702.9));
        assert_eq!(found("nothing\n", Figure::First, None), None);
    }
}
