//! Hides local folder names from the peer. An error names folders for the user of this machine; the
//! copy sent to the peer names no folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The folders of one transfer on this machine, as they appear in errors. The longest folder comes
/// first, so that no folder is replaced only in part.
#[derive(Debug, Default)]
pub(crate) struct LocalFolders(Vec<String>);

impl LocalFolders {
    /// Returns the target folder.
    pub(crate) fn target(folder: &Path) -> Self {
        Self::of(std::iter::once(folder))
    }

    /// Returns the folders that contain the offered paths. The offer has the names below them.
    pub(crate) fn sources(paths: &[PathBuf]) -> Self {
        Self::of(paths.iter().filter_map(|path| path.parent()))
    }

    fn of<'a>(folders: impl Iterator<Item = &'a Path>) -> Self {
        // Of many thousands of paths, most lie in one folder.
        let folders: BTreeSet<&Path> = folders.collect();
        let forms = folders.into_iter().flat_map(|folder| {
            [Some(folder.to_owned()), std::path::absolute(folder).ok(), folder.canonicalize().ok()]
        });
        let mut written: Vec<String> =
            forms.flatten().map(|folder| folder.display().to_string()).collect();
        written.retain(|folder| folder.chars().any(char::is_alphanumeric));
        written.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        written.dedup();
        Self(written)
    }

    /// Returns `text` with each of the folders replaced by `…`.
    pub(crate) fn hidden(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, folder| without(&text, folder))
    }
}

/// Replaces `folder` where it stands as a whole: "a" is not replaced in "cannot".
fn without(text: &str, folder: &str) -> String {
    let (mut hidden, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(folder) {
        let (before, after) = (&rest[..at], &rest[at + folder.len()..]);
        let begins = !before.chars().next_back().is_some_and(char::is_alphanumeric);
        let ends = !after.chars().next().is_some_and(char::is_alphanumeric);
        hidden.push_str(before);
        hidden.push_str(if begins && ends { "…" } else { folder });
        rest = after;
    }
    hidden + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_hidden_wherever_it_stands_as_a_whole() {
        let folders = LocalFolders::target(Path::new("/home/ann/secret plan"));
        let hidden = |text| folders.hidden(text);
        assert_eq!(
            hidden("cannot make the folder /home/ann/secret plan: denied"),
            "cannot make the folder …: denied"
        );
        assert_eq!(hidden("/home/ann/secret plan/a/b: full"), "…/a/b: full");
        assert_eq!(hidden("/home/ann/secret plans: full"), "/home/ann/secret plans: full");
        assert_eq!(hidden("no space left"), "no space left");
    }

    #[test]
    fn a_relative_folder_is_hidden_in_both_its_forms_and_no_word_with_it() {
        let folders = LocalFolders::target(Path::new("a"));
        let absolute = std::path::absolute("a").unwrap();
        assert_eq!(folders.hidden("cannot read a/film"), "cannot read …/film");
        assert_eq!(folders.hidden(&format!("{}: full", absolute.display())), "…: full");
    }

    #[test]
    fn the_folder_of_an_offered_path_is_hidden_and_the_name_is_kept() {
        let folders = LocalFolders::sources(&["/home/ann/film".into(), "/srv/x/film".into()]);
        assert_eq!(
            folders.hidden("cannot read /home/ann/film: denied"),
            "cannot read …/film: denied"
        );
        assert_eq!(folders.hidden("cannot read /srv/x/film: denied"), "cannot read …/film: denied");
        let root = LocalFolders::sources(&["/film".into(), "film".into(), "./film".into()]);
        let text = "cannot read /film: denied";
        assert_eq!(root.hidden(text).replace('…', ""), text);
    }
}
