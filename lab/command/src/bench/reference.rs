//! `lab/micro/reference.csv`: each of our rows, and the row of another system that it is compared
//! with.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::cargo;

/// A line: one of our rows and one of another system. A row may have several lines.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reference {
    /// Name of our row, `group/row`.
    pub(super) row: String,
    /// Name and median, in nanoseconds, of the other system's row; `None` if there is nothing
    /// comparable.
    pub(super) theirs: Option<(String, f64)>,
}

impl Reference {
    pub(super) fn committed() -> Result<Vec<Self>> {
        let file = cargo::root().join("lab/micro/reference.csv");
        let text = fs::read_to_string(&file);
        parse(&text.with_context(|| format!("cannot read {}", file.display()))?)
    }

    pub(super) fn group(&self) -> &str {
        self.row.split_once('/').map_or(&self.row, |(group, _)| group)
    }
}

/// Parses the lines after comments and the line of titles: our row, the other row, and its median.
fn parse(text: &str) -> Result<Vec<Reference>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).skip(1);
    let parsed = lines.map(|line| match line.split(',').collect::<Vec<_>>()[..] {
        [row, "", ""] => Ok(Reference { row: row.into(), theirs: None }),
        [row, name, median] => {
            let median = median.parse().with_context(|| format!("no number: {line}"))?;
            Ok(Reference { row: row.into(), theirs: Some((name.into(), median)) })
        }
        _ => bail!("not three fields: {line}"),
    });
    parsed.collect()
}

/// Returns the groups in order.
pub(super) fn groups(references: &[Reference]) -> Vec<&str> {
    let mut groups: Vec<&str> = references.iter().map(Reference::group).collect();
    groups.dedup();
    groups
}

/// Checks that every row was measured, and that every measured row has a line.
pub(super) fn check<'a>(
    references: &[Reference],
    measured: impl Iterator<Item = &'a String>,
) -> Result<()> {
    let measured: Vec<&String> = measured.collect();
    if let Some(line) = references.iter().find(|line| !measured.contains(&&line.row)) {
        bail!("reference.csv names {}, which was not measured", line.row);
    }
    if let Some(row) = measured.iter().find(|row| references.iter().all(|line| line.row != ***row))
    {
        bail!("{row} was measured, but reference.csv has no line for it");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_lines_are_parsed_and_others_refused() {
        let text = "# of a test\nrow,reference,reference_ns\na/1,theirs/1,100.5\na/2,,\nb/1,,\n";
        let references = parse(text).unwrap();
        assert_eq!(references[0].theirs, Some(("theirs/1".into(), 100.5)));
        assert_eq!(references[1].theirs, None);
        assert_eq!(groups(&references), ["a", "b"]);
        assert!(parse("titles\na/1,theirs").is_err());
        assert!(parse("titles\na/1,theirs,fast").is_err());
    }

    #[test]
    fn a_row_on_one_side_only_is_a_complaint() {
        let references = parse("titles\na/1,,\na/2,,\n").unwrap();
        let rows = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert!(check(&references, rows(&["a/1", "a/2"]).iter()).is_ok());
        assert!(check(&references, rows(&["a/1"]).iter()).is_err());
        assert!(check(&references, rows(&["a/1", "a/2", "a/3"]).iter()).is_err());
    }
}
