//! The files of `docs/model`: whole models (`.vp`), and variants of them (`.diff`) in two folders,
//! each with its expected verdicts.
//!
//! A variant contains prose, a line `base: FILE`, and blocks of lines. It has a line `sessions: 1`
//! if the checker would take too long for two sessions. The `- ` lines of a block occur in the base
//! once, in sequence, and the `+ ` lines of the block replace them. Leading white space is ignored.
//! The base may be a variant itself.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

pub const FOLDER: &str = "docs/model";
/// Variants with the same protocol and another attacker.
const ATTACKERS: &str = "attackers";
/// Variants with the same attacker and a protocol that lacks one mechanism.
const BROKEN: &str = "broken";
/// Maximum depth of a chain of bases; a reader cannot follow longer chains.
const BASES_MAX: usize = 3;
/// Default number of sessions: a replay needs two.
const SESSIONS: u8 = 2;

/// Answer to a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No attack was found.
    Holds,
    /// An attack was found.
    Found,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Holds => "holds",
            Self::Found => "found",
        })
    }
}

/// A model as the checker reads it.
#[derive(Debug)]
pub struct Model {
    /// File name without its extension.
    pub name: String,
    /// Path of the file below [`FOLDER`].
    pub path: String,
    pub text: String,
    /// Parallel runs of each side. An attack that needs more is not found.
    pub sessions: u8,
    pub queries: Vec<(String, Verdict)>,
}

impl Model {
    fn read(root: &Path, path: &str) -> Result<Self> {
        let own = fs::read_to_string(root.join(path))?;
        let sessions = value(&own, "sessions: ").map_or(Ok(SESSIONS), str::parse)?;
        let text = text(root, path, BASES_MAX)?;
        let queries = queries(&text).with_context(|| path.to_owned())?;
        let name = Path::new(path).file_stem().context("a file")?;
        let name = name.to_str().context("a name of ASCII")?.to_owned();
        Ok(Self { name, path: path.to_owned(), text, sessions, queries })
    }

    /// File name for the checker, which requires this extension.
    pub fn file_name(&self) -> String {
        format!("{}.vp", self.name)
    }

    /// The checker's short form of all verdicts: the first letter of each query, and 1 for an
    /// attack.
    pub fn code(&self) -> String {
        let codes = self.queries.iter().map(|(query, verdict)| {
            format!("{}{}", &query[..1], u8::from(*verdict == Verdict::Found))
        });
        codes.collect()
    }
}

/// Reads all models, sorted by path.
pub fn read(root: &Path) -> Result<Vec<Model>> {
    let mut paths = Vec::new();
    for (folder, ending) in [("", ".vp"), (ATTACKERS, ".diff"), (BROKEN, ".diff")] {
        let items = fs::read_dir(root.join(folder));
        for item in items.with_context(|| format!("{FOLDER}/{folder} cannot be read"))? {
            let name = item?.file_name().to_string_lossy().into_owned();
            if name.ends_with(ending) {
                paths.push(Path::new(folder).join(name).to_string_lossy().into_owned());
            }
        }
    }
    paths.sort();
    paths.iter().map(|path| Model::read(root, path)).collect()
}

/// Returns the whole text of the model at `path`, applied to at most `bases` other models.
fn text(root: &Path, path: &str, bases: usize) -> Result<String> {
    let own = fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
    if path.ends_with(".vp") {
        return Ok(own);
    }
    ensure!(bases > 0, "{path} has a base too many");
    let base = value(&own, "base: ").with_context(|| format!("{path} names no base"))?;
    vary(&text(root, base, bases - 1)?, &own).with_context(|| path.to_owned())
}

/// Returns the text after `key` at the head of a variant.
fn value<'a>(variant: &'a str, key: &str) -> Option<&'a str> {
    variant.lines().find_map(|line| line.strip_prefix(key))
}

fn vary(base: &str, variant: &str) -> Result<String> {
    let mut lines: Vec<&str> = base.lines().collect();
    for block in variant.split("\n\n") {
        let of = |sign| move |line| str::strip_prefix(line, sign).map(str::trim);
        let old: Vec<&str> = block.lines().filter_map(of('-')).collect();
        let new: Vec<&str> = block.lines().filter_map(of('+')).collect();
        let Some(first) = old.first() else {
            ensure!(new.is_empty(), "lines without a place in the base: {}", new.join(" "));
            continue;
        };
        let places: Vec<usize> = (0..lines.len())
            .filter(|&at| {
                let here = lines[at..].iter().take(old.len()).map(|line| line.trim());
                here.eq(old.iter().copied())
            })
            .collect();
        let [at] = places[..] else {
            bail!("the base has {} places that start with: {first}", places.len());
        };
        lines.splice(at..at + old.len(), new);
    }
    Ok(lines.join("\n") + "\n")
}

/// Returns the queries of a model, each with its expected verdict.
fn queries(text: &str) -> Result<Vec<(String, Verdict)>> {
    let (_, block) = text.split_once("queries[").context("no queries")?;
    let lines = block.lines().map(str::trim).filter(|line| line.contains('?'));
    lines
        .map(|line| {
            let (query, verdict) = line.split_once("//").unwrap_or((line, ""));
            let verdict = match verdict.trim() {
                "holds" => Verdict::Holds,
                "found" => Verdict::Found,
                _ => bail!("says neither `holds` nor `found`: {line}"),
            };
            Ok((query.trim().to_owned(), verdict))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo;

    #[test]
    fn a_variant_takes_the_place_of_lines_that_stand_in_the_base_once() {
        let base = "a\n\tb\nc\nb2\n";
        assert_eq!(
            vary(base, "// prose\nbase: x\n\n- b\n- c\n+ d\n+ e\n").unwrap(),
            "a\nd\ne\nb2\n"
        );
        assert!(vary(base, "- z\n+ d\n").is_err());
        assert!(vary("a\na\n", "- a\n+ d\n").is_err());
        assert!(vary(base, "+ d\n").is_err());
    }

    #[test]
    fn the_readme_lists_each_model_with_its_expected_result() {
        let root = cargo::root().join(FOLDER);
        let readme = fs::read_to_string(root.join("README.md")).unwrap();
        let models = read(&root).unwrap();
        for model in &models {
            let row = format!("| [{}]({}) |", model.name, model.path);
            let row = readme.lines().find(|line| line.starts_with(&row));
            let row = row.unwrap_or_else(|| panic!("no row of {} in the README", model.path));
            let code = format!("| `{}` |", model.code());
            assert!(row.ends_with(&code), "{}: the row does not end with {code}", model.path);
        }
        let rows = readme.lines().filter(|line| line.starts_with("| [")).count();
        assert_eq!(rows, models.len(), "rows of missing models");
    }

    #[test]
    fn each_broken_model_expects_an_attack_that_its_base_lacks() {
        let root = cargo::root().join(FOLDER);
        for model in read(&root).unwrap().iter().filter(|model| model.path.starts_with(BROKEN)) {
            let own = fs::read_to_string(root.join(&model.path)).unwrap();
            let base = Model::read(&root, value(&own, "base: ").unwrap()).unwrap();
            let is_new = |(query, verdict): &(String, Verdict)| {
                *verdict == Verdict::Found
                    && base.queries.contains(&(query.clone(), Verdict::Holds))
            };
            assert!(model.queries.iter().any(is_new), "{} breaks nothing", model.path);
        }
    }
}
