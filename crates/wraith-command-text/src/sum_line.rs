//! Formats a digest and a file name as `sha256sum` and `b3sum` do.
//!
//! Invariant: the result is one line for every name, and at a terminal it contains no control
//! sequences.

use std::io::{self, IsTerminal};

use wraith_files::shown;

/// Returns the line for standard output, without its line end.
pub fn sum_line(digest: &str, name: &[u8]) -> Vec<u8> {
    line(digest, name, io::stdout().is_terminal())
}

/// Formats `DIGEST  NAME`. A leading backslash marks a name with escaped backslashes and line
/// breaks. For people, a name with any other unsafe character is escaped as in all other output;
/// such a line cannot be checked by `sha256sum -c`.
fn line(digest: &str, name: &[u8], for_people: bool) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(name.len());
    let mut visible = Vec::with_capacity(name.len());
    for &byte in name {
        match byte {
            b'\\' => escaped.extend(b"\\\\"),
            b'\n' => escaped.extend(b"\\n"),
            b'\r' => escaped.extend(b"\\r"),
            other => {
                escaped.push(other);
                visible.push(other);
            }
        }
    }
    if for_people && shown(&visible).as_bytes() != visible {
        escaped = shown(name).into_bytes();
    }
    let mark: &[u8] = if escaped == name { b"" } else { b"\\" };
    [mark, digest.as_bytes(), b"  ", &escaped].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_on_one_line_and_are_otherwise_unchanged() {
        for for_people in [true, false] {
            assert_eq!(line("ab", b"x y", for_people), b"ab  x y");
            assert_eq!(line("ab", b"x\n\\\ry", for_people), b"\\ab  x\\n\\\\\\ry");
        }
        assert_eq!(line("ab", b"\xff\x1b[2J", false), b"ab  \xff\x1b[2J");
    }

    #[test]
    fn no_name_steers_a_terminal() {
        assert_eq!(line("ab", b"\xff\x1b[2J\n", true), b"\\ab  \\xff\\x1b[2J\\x0a");
        assert_eq!(line("ab", "\u{202e}fdp.exe".as_bytes(), true), b"\\ab  \\u{202e}fdp.exe");
    }
}
