//! Quotes words for a shell, so that a command can be copied from a message.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Quotes a word for a shell.
pub fn shell_word(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref();
    let plain = |c: char| c.is_alphanumeric() || "-_./:,+@%=".contains(c);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(plain) => text.to_owned(),
        Some(text) if !text.contains(is_unsafe) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => spelt_out(word.as_bytes()),
    }
}

/// Quotes a word as `$'…'`, which bash, zsh and ksh read. Escapes control characters, characters
/// that change the reading direction, and bytes that are not UTF-8.
fn spelt_out(bytes: &[u8]) -> String {
    let mut quoted = String::from("$'");
    for part in bytes.utf8_chunks() {
        for c in part.valid().chars() {
            match c {
                '\'' | '\\' => quoted.extend(['\\', c]),
                '\n' => quoted.push_str("\\n"),
                c if c.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
                c if is_unsafe(c) => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => quoted.push(c),
            }
        }
        part.invalid().iter().for_each(|byte| quoted.push_str(&format!("\\x{byte:02x}")));
    }
    quoted + "'"
}

/// Returns whether `c` is a control character or changes the reading direction.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_a_word_as_it_was_meant() {
        let words: [&[u8]; 12] = [
            b"film.mov",
            b"my film",
            b"it's",
            b"$HOME",
            b"",
            b"-rf",
            b"we ird\x1b[31m\n;id'\\x",
            "a\u{202e}b".as_bytes(),
            "\u{85}next".as_bytes(),
            b"tab\there",
            "émile ü 文".as_bytes(),
            b"no\xfftext\xc3",
        ];
        for word in words {
            let quoted = shell_word(OsStr::from_bytes(word));
            assert!(!quoted.chars().any(is_unsafe), "{quoted:?}");
            let script = format!("printf %s {quoted}");
            let mut bash = std::process::Command::new("bash");
            let Ok(said) = bash.args(["-c", &script]).env("LC_ALL", "C.UTF-8").output() else {
                return eprintln!("skipped: there is no bash");
            };
            assert_eq!(said.stdout, word, "{quoted}");
        }
    }

    #[test]
    fn words_can_be_pasted_into_a_shell() {
        assert_eq!(shell_word("film.mov"), "film.mov");
        assert_eq!(shell_word("my film.mov"), "'my film.mov'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
