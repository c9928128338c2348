//! The questions about an offer: yes or no, the list, and what to do where a name is taken.

use wraith::{Conflicts, OnConflict, Preview, PreviewOutcome, Previewed};

use super::{Proposal, list, text};
use crate::args::units::Bytes;
use crate::ask::Answers;
use crate::output::Reporter;

/// One offer that is put to a person.
pub struct Question<'a> {
    pub proposal: &'a Proposal<'a>,
    pub out: &'a std::path::Path,
    pub reporter: &'a Reporter,
    /// What the command line says about names that are taken; None: ask.
    pub conflicts: Option<OnConflict>,
    /// A person is there to be asked about them.
    pub terminal: bool,
    pub answers: &'a Answers,
}

/// What a person said.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    Yes(Conflicts),
    No,
    /// Nothing: the end of standard input, or a signal.
    None,
}

impl Question<'_> {
    /// Asks until there is an answer. Dropping the future takes the question back.
    pub async fn put(self) -> Answer {
        let policy =
            Conflicts { otherwise: self.conflicts.unwrap_or_default(), ..Conflicts::default() };
        let preview = self.proposal.preview;
        let choices = if preview.is_some() { "[y/N/l = list]" } else { "[y/N]" };
        let mut question = format!("{}\nAccept? {choices} ", text(self.proposal, self.out));
        loop {
            let Some(answer) = self.answers.ask(&question).await else { return Answer::None };
            match (answer.to_lowercase().as_str(), preview) {
                ("y" | "yes", _) => break,
                ("n" | "no" | "", _) => return Answer::No,
                ("l" | "list", Some(preview)) => {
                    if list::show(preview, &policy, self.reporter, self.answers).await.is_none() {
                        return Answer::None;
                    }
                }
                _ => self.reporter.warn("please answer y or n"),
            }
            question = format!("Accept? {choices} ");
        }
        match preview {
            Some(preview) if self.conflicts.is_none() && self.terminal => {
                self.resolve(preview).await.map_or(Answer::None, Answer::Yes)
            }
            _ => Answer::Yes(policy),
        }
    }

    /// Asks what to do about names that are taken, if any are.
    async fn resolve(&self, preview: &Preview) -> Option<Conflicts> {
        let is_taken =
            |outcome| matches!(outcome, PreviewOutcome::Differs | PreviewOutcome::SameSize);
        let taken = || preview.entries.iter().filter(|previewed| is_taken(previewed.outcome));
        let mut conflicts = Conflicts::default();
        let count = taken().count();
        if count == 0 {
            return Some(conflicts);
        }
        let names = if count == 1 { "1 name is".into() } else { format!("{count} names are") };
        let same_size =
            taken().filter(|previewed| previewed.outcome == PreviewOutcome::SameSize).count();
        let by = match same_size {
            0 => "by something else".to_owned(),
            all if all == count => "by a file of the same size; if its content differs".to_owned(),
            some => format!("by something else ({some} by a file of the same size, if it differs)"),
        };
        let question = format!(
            "{names} taken {by}: [o]verwrite, [r]ename the new, [s]kip, or decide [e]ach? [r] "
        );
        loop {
            let answer = self.answers.ask(&question).await?;
            match (policy(&answer), answer.to_lowercase().as_str()) {
                (Some(policy), _) => {
                    conflicts.otherwise = policy;
                    return Some(conflicts);
                }
                (None, "e" | "each") => break,
                _ => self.reporter.warn("please answer o, r, s or e"),
            }
        }
        for previewed in taken() {
            let question = format!(
                "{}: [o]verwrite, [r]ename, [s]kip; O, R or S for all that follow? [r] ",
                described(previewed)
            );
            let (policy, all) = loop {
                let answer = self.answers.ask(&question).await?;
                match policy(&answer) {
                    Some(policy) => break (policy, answer.starts_with(char::is_uppercase)),
                    None => self.reporter.warn("please answer o, r or s"),
                }
            };
            if all {
                conflicts.otherwise = policy;
                return Some(conflicts);
            }
            conflicts.of.insert(previewed.entry.path.clone(), policy);
        }
        Some(conflicts)
    }
}

fn described(previewed: &Previewed) -> String {
    format!("{} ({})", previewed.entry.path.display(), Bytes(previewed.entry.size()))
}

/// The policy that an answer names; nothing means the safe one.
fn policy(answer: &str) -> Option<OnConflict> {
    match answer.to_lowercase().as_str() {
        "o" | "overwrite" => Some(OnConflict::Overwrite),
        "r" | "rename" | "" => Some(OnConflict::Rename),
        "s" | "skip" => Some(OnConflict::Skip),
        _ => None,
    }
}
