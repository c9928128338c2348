//! `cargo xtask prose`: how readable the documents, comments and messages are, in figures.
//!
//! Two counts find most sentences that a reader decodes twice: free relatives ("who sends is told
//! what was lost"), and words in a sentence. The count is a smoke alarm: no sentence loses a fact,
//! or becomes a telegram, to lower it.
//!
//! [`Limits`] has the limits, and a test of this module keeps them.

mod extract;
mod measure;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use self::extract::Passage;
use self::measure::Measure;
use crate::cargo;

/// Documents with limits of their own: the ones that a user reads first.
const SHORT_SENTENCES: [&str; 2] = ["README.md", "docs/GUIDE.md"];

/// Limits of a text.
struct Limits {
    /// Free relatives in 1,000 words.
    relatives: f64,
    /// Words of a sentence in the middle, and at the ninth decile.
    sentences: Option<(usize, usize)>,
}

impl Limits {
    fn of(name: &str) -> Self {
        let sentences = SHORT_SENTENCES.contains(&name).then_some((14, 26));
        Self { relatives: 4.0, sentences }
    }

    fn hold_for(&self, measure: &Measure) -> bool {
        let short = self.sentences.is_none_or(|(median, decile)| {
            measure.sentence(0.5) <= median && measure.sentence(0.9) <= decile
        });
        // A short text may have as many as 1,000 words may: one more sentence would not make it
        // worse.
        let few = measure.relatives as f64 <= self.relatives;
        (few || measure.relatives_per_1000() <= self.relatives) && short
    }
}

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only texts whose name contains this
    filter: Option<String>,
    /// Sentences to list for each text: those with a free relative first, then the longest
    #[arg(long, value_name = "N", default_value_t = 0)]
    worst: usize,
}

/// A document, the comments of a crate, or the messages of a crate.
struct Text {
    name: String,
    measure: Measure,
}

/// Prints a line for each text, and the worst sentences.
pub fn run(args: &Args) -> Result<()> {
    println!("relatives in 1,000 words; words of a sentence: median, 9th decile\n");
    println!("{:>7} {:>9} {:>6} {:>6}  text", "words", "relatives", "median", "decile");
    for Text { name, measure } in texts()? {
        if args.filter.as_ref().is_some_and(|filter| !name.contains(filter.as_str())) {
            continue;
        }
        let over = if Limits::of(&name).hold_for(&measure) { "" } else { "  above the bar" };
        let (relatives, words) = (measure.relatives_per_1000(), measure.words);
        let (median, decile) = (measure.sentence(0.5), measure.sentence(0.9));
        println!("{words:7} {relatives:9.1} {median:6} {decile:6}  {name}{over}");
        for line in measure.worst(args.worst) {
            println!("        {line}");
        }
    }
    Ok(())
}

/// All texts of the project.
fn texts() -> Result<Vec<Text>> {
    let root = cargo::root();
    let mut texts = Vec::new();
    for file in files(&root, "md")? {
        let name = relative(&root, &file);
        let passages = extract::markdown(&name, &read(&file)?);
        texts.push(Text { name, measure: Measure::of(&passages) });
    }
    for package in packages(&root)? {
        let name = relative(&root, &package);
        let (mut comments, mut messages) = (Vec::new(), Vec::new());
        for file in files(&package, "rs")? {
            let place = relative(&root, &file);
            let (found, strings) = extract::rust(&place, &read(&file)?);
            comments.extend(found);
            if has_messages(&place) {
                messages.extend(strings);
            }
        }
        texts.push(Text { name: format!("{name} comments"), measure: Measure::of(&comments) });
        texts.push(Text { name: format!("{name} messages"), measure: Measure::of(&messages) });
    }
    Ok(texts)
}

/// Whether the strings of a file reach people: those of tests and examples do not.
fn has_messages(file: &str) -> bool {
    let inside = ["/tests/", "/examples/", "/benches/"].iter().any(|folder| file.contains(folder));
    !inside && !file.ends_with("tests.rs")
}

/// The folders with a manifest.
fn packages(root: &Path) -> Result<Vec<PathBuf>> {
    let manifests = files(root, "toml")?.into_iter();
    let manifests = manifests.filter(|file| file.ends_with("Cargo.toml"));
    let folders = manifests.filter_map(|file| file.parent().map(Path::to_owned));
    Ok(folders
        .filter(|folder| folder.join("src").exists() || folder.join("benches").exists())
        .collect())
}

/// The files below `folder` with this extension, sorted, without those that a build made.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            let hidden = name.to_string_lossy().starts_with('.') || name == "target";
            if entry.file_type()?.is_dir() && !hidden {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

fn relative(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_below_its_bars() {
        let above = texts()
            .unwrap()
            .into_iter()
            .filter(|text| !Limits::of(&text.name).hold_for(&text.measure));
        let above: Vec<String> = above.map(|text| text.name).collect();
        assert!(above.is_empty(), "cargo xtask prose --worst 20 lists the sentences of {above:#?}");
    }

    #[test]
    fn the_readme_and_the_map_are_short() {
        for (name, most) in [("README.md", 150), ("ARCHITECTURE.md", 200)] {
            let text = read(&cargo::root().join(name)).unwrap();
            assert!(text.lines().count() <= most, "{name} has more than {most} lines");
            let long = text.lines().find(|line| line.chars().count() > 120);
            assert_eq!(long, None, "a line of {name} has more than 120 characters");
        }
    }
}
