//! Questions about an offer: whether to accept it, the list of names, and the policy for names that
//! are taken.

use wraith::{Conflicts, OnConflict, Preview, PreviewOutcome, Previewed};
use wraith_command_text::units::Bytes;
use wraith_transfer::Kind;

use super::{Proposal, list, text};
use crate::ask::Answers;
use crate::output::Reporter;

/// One offer, presented to a person.
pub struct Question<'a> {
    pub proposal: &'a Proposal<'a>,
    pub out: &'a std::path::Path,
    pub reporter: &'a Reporter,
    /// The policy of the command line for names that are taken; None means to ask.
    pub conflicts: Option<OnConflict>,
    /// Whether a person is at the terminal to decide about them.
    pub terminal: bool,
    pub answers: &'a Answers,
}

/// The answer of a person.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    Yes(Conflicts),
    No,
    /// No answer: the end of standard input, or a signal.
    None,
}

impl Question<'_> {
    /// Asks until there is an answer. Dropping the future withdraws the question.
    pub async fn ask(self) -> Answer {
        let policy =
            Conflicts { otherwise: self.conflicts.unwrap_or_default(), ..Conflicts::default() };
        let preview = self.proposal.preview;
        if let Some(preview) = preview {
            list::report_risky_entries(preview, self.reporter);
        }
        let choices = if preview.is_some() { "[y/N/l = list]" } else { "[y/N]" };
        let text = text(self.proposal, self.out, self.reporter.shows_status());
        let mut question = format!("{text}\nAccept? {choices} ");
        let mut is_listed = false;
        loop {
            let Some(answer) = self.answers.ask(&question).await else { return Answer::None };
            match (answer.to_lowercase().as_str(), preview) {
                ("y" | "yes", _) => break,
                // One Enter too many at the end of the list is no answer to the offer.
                ("" | "q", _) if is_listed => {}
                ("n" | "no" | "", _) => return Answer::No,
                ("l" | "list", Some(preview)) => {
                    if list::show(
                        self.proposal.offer,
                        preview,
                        &policy,
                        self.reporter,
                        self.answers,
                    )
                    .await
                    .is_none()
                    {
                        return Answer::None;
                    }
                    is_listed = true;
                    question = format!("Accept? {choices} ");
                    continue;
                }
                _ => self.reporter.warn("please answer y or n"),
            }
            is_listed = false;
            question = format!("Accept? {choices} ");
        }
        match preview {
            Some(preview) if self.conflicts.is_none() && self.terminal => {
                self.resolve(preview).await.map_or(Answer::None, Answer::Yes)
            }
            _ => Answer::Yes(policy),
        }
    }

    /// Asks for a policy if any names are taken.
    async fn resolve(&self, preview: &Preview) -> Option<Conflicts> {
        let is_taken = |outcome| {
            !matches!(
                outcome,
                PreviewOutcome::New | PreviewOutcome::Same | PreviewOutcome::Continues(_)
            )
        };
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
            0 => "by another entry".to_owned(),
            all if all == count => "by a file of the same size; if its content differs".to_owned(),
            some => format!("by another entry ({some} by a file of the same size, if it differs)"),
        };
        let question = format!(
            "{names} taken {by}: [o]verwrite, [r]ename the new, [s]kip, or decide for [e]ach? [r] "
        );
        loop {
            let answer = self.answers.ask(&question).await?;
            match (policy(&answer), answer.to_lowercase().as_str()) {
                (Some(policy), _) => {
                    set_policy(&mut conflicts, policy, taken());
                    return Some(conflicts);
                }
                (None, "e" | "each") => break,
                _ => self.reporter.warn("please answer o, r, s or e"),
            }
        }
        let mut rest = taken();
        while let Some(previewed) = rest.next() {
            let question = format!(
                "{}: [o]verwrite, [r]ename, [s]kip; O, R or S for all others? [r] ",
                described(previewed)
            );
            let (policy, all) = loop {
                let answer = self.answers.ask(&question).await?;
                match policy(&answer) {
                    Some(policy) => break (policy, answer.starts_with(char::is_uppercase)),
                    None => self.reporter.warn("please answer o, r or s"),
                }
            };
            conflicts.of.insert(previewed.entry.path.clone(), policy);
            if all {
                set_policy(&mut conflicts, policy, rest);
                return Some(conflicts);
            }
        }
        Some(conflicts)
    }
}

/// Applies one policy to all of these names. Names that were not shown are never overwritten; they
/// get a new name.
fn set_policy<'p>(
    conflicts: &mut Conflicts,
    policy: OnConflict,
    taken: impl Iterator<Item = &'p Previewed>,
) {
    conflicts.of.extend(taken.map(|previewed| (previewed.entry.path.clone(), policy)));
    if policy != OnConflict::Overwrite {
        conflicts.otherwise = policy;
    }
}

fn described(previewed: &Previewed) -> String {
    let path = previewed.entry.path.display();
    match (&previewed.entry.kind, previewed.outcome) {
        (Kind::Dir, _) => format!("{path} (a folder, with everything in it)"),
        (Kind::Symlink { .. }, _) => format!("{path} (a link)"),
        (_, PreviewOutcome::Irreplaceable) => {
            format!("{path} (a folder that is not empty is here, and is never replaced)")
        }
        _ => format!("{path} ({})", Bytes(previewed.entry.size())),
    }
}

/// Returns the policy of an answer. An empty answer means the safe one.
fn policy(answer: &str) -> Option<OnConflict> {
    match answer.to_lowercase().as_str() {
        "o" | "overwrite" => Some(OnConflict::Overwrite),
        "r" | "rename" | "" => Some(OnConflict::Rename),
        "s" | "skip" => Some(OnConflict::Skip),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use wraith_files::{Entry, Mtime, RelPath};

    use super::*;

    #[test]
    fn overwriting_holds_for_the_names_that_were_shown_and_for_no_others() {
        let path = |name: &str| RelPath::parse(name.as_bytes()).unwrap();
        let shown = ["a", "t/b"].map(|name| Previewed {
            entry: Entry {
                path: path(name),
                kind: Kind::File { size: 1, sparse: None },
                mode: 0o644,
                mtime: Mtime::default(),
            },
            outcome: PreviewOutcome::Differs,
            copy: None,
        });
        for (policy, others) in [
            (OnConflict::Overwrite, OnConflict::Rename),
            (OnConflict::Skip, OnConflict::Skip),
            (OnConflict::Rename, OnConflict::Rename),
        ] {
            let mut conflicts = Conflicts::default();
            set_policy(&mut conflicts, policy, shown.iter());
            assert_eq!((conflicts.of[&path("a")], conflicts.of[&path("t/b")]), (policy, policy));
            assert_eq!((conflicts.of.len(), conflicts.otherwise), (2, others));
        }
    }
}
