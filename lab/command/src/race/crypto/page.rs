//! The race of the algorithms in the documents: a table between two marks of `docs/PERFORMANCE.md`,
//! and a chart of the ratios.

use std::fmt::Write;
use std::fs;

use anyhow::{Context, Result};

use super::contenders::{CONSERVATIVE, OPENHITLS, OPENHITLS_RS, OPENSSL, OTHERS, WRAITH};
use super::contests::absent;
use super::{Results, Row};

const BEGIN: &str = "<!-- crypto race: begin, written by cargo lab charts -->\n";
const END: &str = "<!-- crypto race: end -->\n";

/// Work within the measured time of each contender, according to its source.
const SCOPES: &str = "\
What the time of an operation includes:

- wraith, with fast and with conservative backends: `wraith speed --list` names it per row. Keys are set up before the measurement, except for authentication codes and in rows with \"new key\". A single block is a row of ECB with 16 bytes.
- OpenSSL sets up keys before the measurement, also those of authentication codes. For an AEAD it measures a record with 13 bytes of associated data, and ignores whether opening succeeds. RSA is PKCS #1 v1.5. It signs 20 to 36 bytes without hashing them; only Ed25519, Ed448 and SM2 include the hash.
- openHiTLS sets up the key of a cipher before the measurement, and writes into another buffer. For GCM and CCM it creates a context and sets up the key per text, with 128 bytes of associated data; decryption does not check the tag. For ChaCha20-Poly1305 it measures the text alone, without associated data, tag and key. For authentication codes it creates a context and sets up the key per message. It signs 32 bytes and hashes them; RSA is PKCS #1 v1.5. Its XTS stops after 16 MiB, so the figure is the median of nine short runs. For the rows of 65536 bytes, three buffers of 16384 bytes in its benchmark.h and cipher_bench.c must be made larger.
- openhitls-rs sets up the key per text and writes into new memory (CTR and OFB: in place), with 9 bytes of associated data. For ChaCha20-Poly1305 and a single block, the key is set up before. Its SHAKE reads as many bytes as it absorbed (\"long output\" here). ECDSA and RSA sign a digest; the others sign about 35 bytes.
";

/// Writes table and chart.
///
/// # Errors
/// The marks are missing, or a file cannot be written.
pub fn write(results: &Results) -> Result<()> {
    let docs = crate::cargo::root().join("docs");
    fs::write(docs.join("performance/crypto.svg"), chart(results))?;
    let page = docs.join("PERFORMANCE.md");
    let text = fs::read_to_string(&page)?;
    fs::write(&page, replaced(&text, &section(results))?)?;
    Ok(())
}

/// Formats a row in one line, for the terminal.
pub fn line(row: &Row) -> String {
    let ours = row.median(WRAITH).map_or_else(String::new, |rate| figure(row, rate));
    let ratio = |name: &&str| row.ratio(name).map(|ratio| format!("{ratio:.2} × {name}"));
    let ratios: Vec<_> = OTHERS.iter().filter_map(ratio).collect();
    let bytes = row.bytes.map_or_else(String::new, |bytes| format!(", {bytes} bytes"));
    format!("{}{bytes}: {ours}; {}", row.name, ratios.join(", "))
}

/// The whole section without the marks.
pub fn section(results: &Results) -> String {
    let mut out = format!(
        "{}\n\n{SCOPES}\n![How many times as fast wraith is](performance/crypto.svg)\n\n{}\n\
         | operation | bytes | wraith | conservative | {OPENSSL} | × | {OPENHITLS} | × | {OPENHITLS_RS} | × | computed by |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
        origin(results),
        summary(results),
    );
    for row in &results.rows {
        let rate = |name| row.median(name).map_or_else(String::new, |rate| figure(row, rate));
        let (ours, conservative) = (rate(WRAITH), rate(CONSERVATIVE));
        let bytes = row.bytes.map_or_else(String::new, |bytes| bytes.to_string());
        let _ = write!(out, "| {} | {bytes} | {ours} | {conservative} |", row.name);
        for name in OTHERS {
            let theirs = rate(name);
            let ratio = row.ratio(name).map_or_else(String::new, |ratio| format!("{ratio:.2}"));
            let _ = write!(out, " {theirs} | {ratio} |");
        }
        let _ = writeln!(out, " {} |", row.backend);
    }
    let _ = write!(
        out,
        "\nFurther measurements of the others:\n\n{}",
        absent::table(OPENHITLS, OPENHITLS_RS)
    );
    out
}

/// The command, the machine, and the versions.
fn origin(results: &Results) -> String {
    let machine = &results.machine;
    let processor = match &*results.processor {
        "" => String::new(),
        features => format!("; {features}"),
    };
    let versions: Vec<_> = results.versions.values().cloned().collect();
    let beside = match versions.is_empty() {
        true => String::new(),
        false => format!(", beside {}", versions.join(", ")),
    };
    format!(
        "`{}`, {}, on {} ({} cores, Linux {}{processor}){beside}; every sample is in [crypto.json](performance/crypto.json).",
        results.command, results.date, machine.cpu, machine.cores, machine.kernel,
    )
}

/// Counts the faster rows for each contender.
fn summary(results: &Results) -> String {
    let mut out = String::new();
    for name in OTHERS {
        let ratios: Vec<f64> = results.rows.iter().filter_map(|row| row.ratio(name)).collect();
        if ratios.is_empty() {
            continue;
        }
        let faster = ratios.iter().filter(|ratio| **ratio >= 1.0).count();
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        let _ = writeln!(
            out,
            "- {name}: as fast or faster in {faster} of {} rows, {mean:.2} times in the geometric mean.",
            ratios.len()
        );
    }
    out
}

/// Formats text throughput if the row has a text, else operations a second.
fn figure(row: &Row, per_second: f64) -> String {
    match row.bytes {
        Some(bytes) => format!("{:.0} MB/s", per_second * bytes as f64 / 1e6),
        None if per_second >= 1000.0 => format!("{:.1} k/s", per_second / 1e3),
        None => format!("{per_second:.1}/s"),
    }
}

const WIDTH: f64 = 860.0;
const LABEL_WIDTH: f64 = 260.0;
const ROW_HEIGHT: f64 = 15.0;
const HEAD_HEIGHT: f64 = 76.0;
/// Range of the scale, as powers of two: from a sixteenth to 64 times. Values outside are clamped.
const OCTAVES: (f64, f64) = (-4.0, 6.0);

const STYLE: &str = "\
text{font:11px system-ui,sans-serif;fill:#1f2328}.title{font-size:15px;font-weight:600}.note{fill:#59636e}\
.line{stroke:#d1d9e0}.one{stroke:#1f2328}.a{fill:#0969da}.b{fill:#bc4c00}.c{fill:#1a7f37}\
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.note{fill:#9198a1}.line{stroke:#3d444d}.one{stroke:#f0f6fc}\
.a{fill:#4493f8}.b{fill:#f0883e}.c{fill:#3fb950}}";

/// Draws a mark for each ratio on a logarithmic scale; each contender has a shape of its own.
fn chart(results: &Results) -> String {
    let title = "How many times as fast wraith is";
    let height = HEAD_HEIGHT + ROW_HEIGHT * results.rows.len() as f64 + 12.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\" aria-label=\"{title}\">\n<style>{STYLE}</style>\n\
         <text class=\"title\" x=\"8\" y=\"20\">{title}</text>\n\
         <text class=\"note\" x=\"8\" y=\"38\">medians, logarithmic; right of 1: wraith is faster</text>\n",
    );
    for (n, name) in OTHERS.iter().enumerate() {
        let left = LABEL_WIDTH + 130.0 * n as f64;
        svg += &mark(n, left, 52.0);
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"56\">{name}</text>", left + 10.0);
    }
    for octave in OCTAVES.0 as i32..=OCTAVES.1 as i32 {
        let at = x(2_f64.powi(octave));
        let class = if octave == 0 { "one" } else { "line" };
        let label =
            if octave < 0 { format!("1/{}", 1 << -octave) } else { (1 << octave).to_string() };
        let (top, bottom) = (HEAD_HEIGHT - 4.0, height - 8.0);
        let _ = writeln!(
            svg,
            "<path class=\"{class}\" d=\"M{at:.1} {top:.1}V{bottom:.1}\"/>\
             <text class=\"note\" text-anchor=\"middle\" x=\"{at:.1}\" y=\"{:.1}\">{label}</text>",
            top - 4.0
        );
    }
    for (at, row) in results.rows.iter().enumerate() {
        let middle = HEAD_HEIGHT + ROW_HEIGHT * (at as f64 + 0.5);
        let bytes = row.bytes.map_or_else(String::new, |bytes| format!(" {bytes}"));
        let name = format!("{}{bytes}", row.name).replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(
            svg,
            "<text text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
            LABEL_WIDTH - 10.0,
            middle + 4.0
        );
        for (n, other) in OTHERS.iter().enumerate() {
            if let Some(ratio) = row.ratio(other) {
                svg += &mark(n, x(ratio), middle);
            }
        }
    }
    svg + "</svg>\n"
}

/// Horizontal position of a ratio.
fn x(ratio: f64) -> f64 {
    let (low, high) = OCTAVES;
    let part = (ratio.log2().clamp(low, high) - low) / (high - low);
    LABEL_WIDTH + part * (WIDTH - LABEL_WIDTH - 20.0)
}

/// A circle, a square, a triangle.
fn mark(contender: usize, x: f64, y: f64) -> String {
    match contender {
        0 => format!("<circle class=\"a\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>\n"),
        1 => {
            let (left, top) = (x - 3.5, y - 3.5);
            format!("<rect class=\"b\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"7\" height=\"7\"/>\n")
        }
        _ => {
            let (left, low) = (x - 4.0, y + 3.5);
            format!("<path class=\"c\" d=\"M{left:.1} {low:.1}h8l-4 -8z\"/>\n")
        }
    }
}

/// Returns `text` with the content between the marks replaced.
fn replaced(text: &str, section: &str) -> Result<String> {
    let (before, rest) =
        text.split_once(BEGIN).context("the mark of the crypto race is missing")?;
    let (_, after) = rest.split_once(END).context("the end of the crypto race is missing")?;
    Ok(format!("{before}{BEGIN}\n{section}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::super::results::Machine;
    use super::*;

    fn results() -> Results {
        let samples = |pairs: &[(&str, &[f64])]| {
            let pairs = pairs.iter().map(|(name, values)| ((*name).to_owned(), values.to_vec()));
            pairs.collect::<BTreeMap<_, _>>()
        };
        let row = |name: &str, bytes, samples| Row {
            name: name.into(),
            bytes,
            backend: "AWS-LC".into(),
            scope: String::new(),
            samples,
        };
        Results {
            command: "cargo lab race crypto".into(),
            date: "2026-11-25".into(),
            machine: Machine { cpu: "x".into(), cores: 2, memory_gib: 1, kernel: "6".into() },
            processor: "x86-64 with vaes".into(),
            versions: BTreeMap::new(),
            rows: vec![
                row(
                    "SHA-256 hash",
                    Some(8192),
                    samples(&[
                        (WRAITH, &[3e5, 1e5, 2e5]),
                        (CONSERVATIVE, &[1e5]),
                        (OPENSSL, &[1e5]),
                    ]),
                ),
                row(
                    "SM2 sign",
                    None,
                    samples(&[(WRAITH, &[4e4]), (OPENHITLS, &[2e4]), (OPENHITLS_RS, &[500.0])]),
                ),
            ],
        }
    }

    #[test]
    fn the_table_has_medians_and_ratios() {
        let text = section(&results());
        assert!(
            text.contains(
                "| SHA-256 hash | 8192 | 1638 MB/s | 819 MB/s | 819 MB/s | 2.00 |  |  |  |  | AWS-LC |"
            ),
            "{text}"
        );
        assert!(
            text.contains(
                "| SM2 sign |  | 40.0 k/s |  |  |  | 20.0 k/s | 2.00 | 500.0/s | 80.00 | AWS-LC |"
            ),
            "{text}"
        );
        assert!(text.contains("(2 cores, Linux 6; x86-64 with vaes)"), "{text}");
        assert!(text.contains("| SM9 | it is identity-based"), "{text}");
        assert!(text.contains("openHiTLS: as fast or faster in 1 of 1 rows, 2.00 times"), "{text}");
    }

    #[test]
    fn the_chart_keeps_every_mark_on_its_scale() {
        let svg = chart(&results());
        assert!(svg.contains("SM2 sign") && svg.matches("class=\"a\"").count() == 2, "{svg}");
        assert!(x(1e9) <= WIDTH && (x(1e-9) - LABEL_WIDTH).abs() < 1e-9);
        assert!(x(2.0) > x(1.0) && (x(4.0) - x(2.0) - (x(2.0) - x(1.0))).abs() < 1e-9);
    }

    #[test]
    fn the_page_has_the_marks_and_the_table_of_the_race_that_is_committed() {
        let page = fs::read_to_string(crate::cargo::root().join("docs/PERFORMANCE.md")).unwrap();
        if !super::super::committed().exists() {
            assert!(replaced(&page, "").is_ok());
            return;
        }
        let results = super::super::load().unwrap();
        let raced: BTreeSet<_> = results.rows.iter().map(|row| (&*row.name, row.bytes)).collect();
        let contests = super::super::contests::all();
        let all: BTreeSet<_> =
            contests.iter().map(|each| (&*each.row, each.bytes.map(u64::from))).collect();
        let others: Vec<_> = raced.symmetric_difference(&all).collect();
        assert!(others.is_empty(), "race again, these rows are in one of both only: {others:?}");
        assert_eq!(replaced(&page, &section(&results)).unwrap(), page, "run cargo lab charts");
    }
}
