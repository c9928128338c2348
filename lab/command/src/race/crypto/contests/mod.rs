//! The rows of the race: the name of the operation at each contender. [`absent`] lists the rows of
//! the others that are not raced. A test checks that every row of openHiTLS (`rows-c.txt`) and of
//! openhitls-rs (`rows-rs.txt`) is in the race or in that list.
//!
//! A row has only contenders that measure the same work. If the other contenders include more work
//! in their time, wraith has a separate row for it (`, new key`).

pub mod absent;
mod derived;
mod public;
mod symmetric;

/// Measurement by `openssl speed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSsl {
    /// Arguments after `openssl speed`.
    pub words: Vec<&'static str>,
    /// Figure in the line of results: bytes a second of a text, or operations a second.
    pub figure: Figure,
}

/// Position and unit of the figure in a line with `-mr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The last, in bytes a second.
    BytesPerSecond,
    /// The last but one, in operations a second.
    First,
    /// The last, in operations a second.
    Second,
}

/// Measurement by openHiTLS in C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct C {
    /// Value of `-a`: the group and the operation.
    pub group: &'static str,
    /// Value of `-p`, if there are several.
    pub parameter: Option<String>,
    /// First column of its line.
    pub name: String,
    /// Value of `-l`.
    pub bytes: u32,
    /// Maximum number of operations; more of them fail.
    pub times_max: Option<u64>,
}

/// One row.
#[derive(Clone, Debug)]
pub struct Contest {
    /// Adjacent rows of one family are measured together.
    pub family: &'static str,
    /// Name in `wraith speed --list`.
    pub row: String,
    /// Length of the text, if the row has one.
    pub bytes: Option<u32>,
    pub openssl: Option<OpenSsl>,
    pub c: Option<C>,
    /// Name of the benchmark in openhitls-rs.
    pub rs: Option<String>,
}

/// Length of a text in bytes, as in the report of openHiTLS.
const TEXT_BYTES: u32 = 8192;
/// Length of signed messages in bytes: so short that hashing costs almost nothing.
const MESSAGE_BYTES: u32 = 32;

/// Returns every row that at least one other contender has.
pub fn all() -> Vec<Contest> {
    let mut all = Vec::new();
    symmetric::contests(&mut all);
    public::contests(&mut all);
    derived::contests(&mut all);
    all.retain(|contest| contest.openssl.is_some() || contest.c.is_some() || contest.rs.is_some());
    all
}

fn speed(words: &[&'static str], name: &'static str, figure: Figure) -> Option<OpenSsl> {
    let words = words.iter().copied().chain([name]).collect();
    (!name.is_empty()).then_some(OpenSsl { words, figure })
}

fn c(group: &'static str, parameter: &str, name: String, bytes: u32) -> Option<C> {
    let parameter = (!parameter.is_empty()).then(|| parameter.to_owned());
    Some(C { group, parameter, name, bytes, times_max: None })
}

fn rs(name: &str, rest: &str) -> Option<String> {
    (!name.is_empty()).then(|| format!("{name}{rest}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_is_there_once_and_families_are_together() {
        let all = all();
        let names: BTreeSet<_> = all.iter().map(|each| (&each.row, each.bytes)).collect();
        assert_eq!(names.len(), all.len());
        assert!(!names.contains(&(&"BLAKE3 hash".to_owned(), Some(8192))), "nobody else has it");
        let families: Vec<_> = all.chunk_by(|a, b| a.family == b.family).collect();
        let distinct: BTreeSet<_> = families.iter().map(|family| family[0].family).collect();
        assert_eq!(families.len(), distinct.len());
    }

    #[test]
    fn every_row_of_the_references_is_raced_or_has_its_reason() {
        let all = all();
        let raced_c: BTreeSet<_> =
            all.iter().filter_map(|each| Some(each.c.as_ref()?.name.to_lowercase())).collect();
        let raced_rs: Vec<_> = all.iter().filter_map(|each| each.rs.as_deref()).collect();
        let at_rs: BTreeSet<_> = raced_rs.iter().copied().collect();
        assert_eq!(at_rs.len(), raced_rs.len(), "a row is raced twice");
        for name in absent::rows_of_c() {
            let (is_raced, reasons) =
                (raced_c.contains(&name.to_lowercase()), absent::reasons_for_c(name));
            assert!(u8::from(is_raced) + reasons == 1, "{name}: raced: {is_raced}, {reasons}");
        }
        for name in absent::rows_of_rs() {
            let (is_raced, reasons) = (at_rs.contains(name), absent::reasons_for_rs(name));
            assert!(u8::from(is_raced) + reasons == 1, "{name}: raced: {is_raced}, {reasons}");
        }
    }

    #[test]
    fn every_race_is_a_row_of_the_references() {
        let at_c: BTreeSet<_> = absent::rows_of_c().map(str::to_lowercase).collect();
        let at_rs: BTreeSet<_> = absent::rows_of_rs().collect();
        assert!(at_c.len() == 323 && at_rs.len() == 316, "{} {}", at_c.len(), at_rs.len());
        for contest in all() {
            if let Some(c) = &contest.c {
                assert!(at_c.contains(&c.name.to_lowercase()), "{}", c.name);
            }
            if let Some(rs) = &contest.rs {
                assert!(at_rs.contains(&**rs), "{rs}");
            }
        }
    }
}
