//! The committed counts, as tab-separated text, so that a changed count is a changed line.

use anyhow::{Context, Result, bail};

use super::conditions::Conditions;
use super::{baseline_file, text_of};

const HEADER: &str = "\
# Instructions of each path of lab/guard, as callgrind counts them. `cargo lab guard` compares, and only where the
# conditions are the same; `cargo lab guard --bless` rewrites this file.
";

/// Cost of one unit of a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Count {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) instructions: f64,
}

/// Counts, and the conditions under which they were taken.
#[derive(Debug, PartialEq)]
pub(super) struct Baseline {
    pub(super) conditions: Conditions,
    pub(super) paths: Vec<Count>,
}

impl Baseline {
    pub(super) fn read() -> Result<Self> {
        let file = baseline_file();
        Self::decode(&text_of(&file)?).with_context(|| format!("in {}", file.display()))
    }

    pub(super) fn write(&self) -> Result<()> {
        let file = baseline_file();
        std::fs::write(&file, self.encode())
            .with_context(|| format!("cannot write {}", file.display()))
    }

    pub(super) fn encode(&self) -> String {
        let conditions =
            self.conditions.iter().map(|(key, value)| format!("with\t{key}\t{value}\n"));
        let paths = self.paths.iter().map(|Count { name, unit, instructions }| {
            format!("path\t{name}\t{instructions:.1}\t{unit}\n")
        });
        HEADER.to_owned() + &conditions.chain(paths).collect::<String>()
    }

    fn decode(text: &str) -> Result<Self> {
        let mut baseline = Self { conditions: Conditions::new(), paths: Vec::new() };
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line.split('\t').collect::<Vec<_>>()[..] {
                ["with", key, value] => {
                    baseline.conditions.insert(key.to_owned(), value.to_owned());
                }
                ["path", name, instructions, unit] => baseline.paths.push(Count {
                    name: name.to_owned(),
                    unit: unit.to_owned(),
                    instructions: instructions.parse().context(line.to_owned())?,
                }),
                _ => bail!("cannot parse line: {line}"),
            }
        }
        Ok(baseline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_round_trip() {
        let conditions = [("rustc", "1.95.0 (a b)"), ("flags", "none")];
        let conditions = conditions.map(|(key, value)| (key.into(), value.into())).into();
        let paths = [("seal", "packet", 12.5), ("root", "chunk", 3_000_000.0)];
        let paths = paths.map(|(name, unit, instructions)| Count {
            name: name.into(),
            unit: unit.into(),
            instructions,
        });
        let baseline = Baseline { conditions, paths: paths.into() };
        assert_eq!(Baseline::decode(&baseline.encode()).unwrap(), baseline);
        assert!(Baseline::decode("path\tseal\tmany\tpacket").is_err());
        assert!(Baseline::decode("seal 5").is_err());
    }
}
