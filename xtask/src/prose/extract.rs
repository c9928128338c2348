//! Prose out of files: paragraphs of Markdown, comments and messages of Rust.

/// A paragraph, an item of a list, a cell of a table, or a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// `FILE:LINE` of its first line.
    pub place: String,
    pub text: String,
}

/// A string literal counts as a message from so many words.
const MESSAGE_WORDS: usize = 3;

/// The passages of a Markdown text, without code and links' targets.
pub fn markdown(file: &str, text: &str) -> Vec<Passage> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    paragraphs(file, lines)
}

/// The comments and the messages of a Rust file.
pub fn rust(file: &str, text: &str) -> (Vec<Passage>, Vec<Passage>) {
    let (mut comments, mut messages) = (Vec::new(), Vec::new());
    let mut block: Vec<(usize, &str)> = Vec::new();
    for piece in pieces(text) {
        match piece {
            Piece::Comment { line, text } => {
                // Lines of one block follow each other.
                if block.last().is_some_and(|(last, _)| last + 1 != line) {
                    comments.extend(paragraphs(file, std::mem::take(&mut block)));
                }
                block.push((line, text));
            }
            Piece::String { line, text } => {
                let text = text.replace("\\n", " ").replace('\\', " ");
                let text = without_placeholders(&text);
                if text.split_whitespace().count() >= MESSAGE_WORDS {
                    messages.push(Passage { place: format!("{file}:{line}"), text });
                }
            }
        }
    }
    comments.extend(paragraphs(file, block));
    (comments, messages)
}

/// Joins lines to passages; a blank line, a heading, an item, and a row of a table end one.
fn paragraphs<'a>(file: &str, lines: impl IntoIterator<Item = (usize, &'a str)>) -> Vec<Passage> {
    let mut found = Vec::new();
    let mut current = Passage { place: String::new(), text: String::new() };
    let mut fenced = false;
    let mut end = |current: &mut Passage| {
        let text = plain(current.text.trim());
        if !text.is_empty() {
            found.push(Passage { place: std::mem::take(&mut current.place), text });
        }
        current.text.clear();
    };
    for (at, line) in lines {
        let place = format!("{file}:{at}");
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            fenced = !fenced;
            end(&mut current);
        } else if fenced
            || trimmed.is_empty()
            || (line.starts_with("    ") && current.text.is_empty())
        {
            end(&mut current);
        } else if trimmed.starts_with('|') {
            end(&mut current);
            for cell in trimmed.split('|') {
                current = Passage { place: place.clone(), text: cell.to_owned() };
                end(&mut current);
            }
        } else {
            let starts = ["- ", "* ", "# ", "## ", "### ", "#### "]
                .iter()
                .any(|mark| trimmed.starts_with(mark));
            let numbered = trimmed.split_once(". ").is_some_and(|(n, _)| n.parse::<u32>().is_ok());
            if starts || numbered {
                end(&mut current);
            }
            if current.text.is_empty() {
                current.place = place;
            }
            current.text.push(' ');
            current.text.push_str(trimmed.trim_start_matches(['-', '*', '#', ' ']));
            if trimmed.starts_with('#') {
                end(&mut current);
            }
        }
    }
    end(&mut current);
    found
}

/// The text with code as one word and links as their texts.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['`', ']']) {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        rest = if rest[at..].starts_with('`') {
            out.push_str("code");
            after.find('`').map_or("", |end| &after[end + 1..])
        } else if after.starts_with('(') {
            after.find(')').map_or("", |end| &after[end + 1..])
        } else {
            after
        };
    }
    out.push_str(rest);
    let words = out.split_whitespace().filter(|word| !word.contains("://"));
    words.map(|word| word.trim_start_matches('[')).collect::<Vec<_>>().join(" ")
}

/// A message without the places that values take.
fn without_placeholders(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut depth = 0;
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => {
                depth -= 1;
                out.push_str("code");
            }
            c if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

/// What is prose in a Rust file.
enum Piece<'a> {
    Comment { line: usize, text: &'a str },
    String { line: usize, text: String },
}

/// The comments and string literals of a Rust file in order. Block comments are left out: the project has none.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let rest = &text[at..];
        let taken = if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            let comment = rest[..end].trim_start_matches(['/', '!']);
            found.push(Piece::Comment { line, text: comment.strip_prefix(' ').unwrap_or(comment) });
            end
        } else if let Some(length) = raw_string(rest) {
            let text = rest[..length].trim_matches(['r', 'b', '#', '"']).to_owned();
            found.push(Piece::String { line, text });
            length
        } else if rest.starts_with('"') {
            let length = string(rest);
            let text = rest[1..length.max(2) - 1].to_owned();
            found.push(Piece::String { line, text });
            length
        } else if rest.starts_with('\'') {
            character(rest)
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        line += rest[..taken].matches('\n').count();
        at += taken;
    }
    found
}

/// Length of the raw string that `text` starts with.
fn raw_string(text: &str) -> Option<usize> {
    let body = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = body.len() - body.trim_start_matches('#').len();
    let open = text.len() - body.len() + hashes;
    text[open..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    text[open + 1..].find(&close).map(|end| open + 1 + end + close.len())
}

/// Length of the string that `text` starts with.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' if !escaped => escaped = true,
            _ => escaped = false,
        }
    }
    text.len()
}

/// Length of the character that `text` starts with; 1 for a lifetime.
fn character(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match characters.next() {
        Some((_, '\\')) => {
            text[2..].char_indices().skip(1).find(|(_, c)| *c == '\'').map_or(1, |(at, _)| at + 3)
        }
        Some(_) => characters.next().filter(|(_, c)| *c == '\'').map_or(1, |(at, _)| at + 1),
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(passages: &[Passage]) -> Vec<&str> {
        passages.iter().map(|passage| passage.text.as_str()).collect()
    }

    #[test]
    fn markdown_loses_code_and_keeps_cells_and_items() {
        let text = "# A head\n\nOne `x` and\n[two](a.md).\n\n```\nno\n```\n\n- three\n  more\n- four\n\n| five | six |\n";
        let found = markdown("a.md", text);
        let expected = ["A head", "One code and two.", "three more", "four", "five", "six"];
        assert_eq!(texts(&found), expected);
        assert_eq!(found[1].place, "a.md:3");
    }

    #[test]
    fn rust_has_comments_and_messages_and_nothing_of_its_code() {
        let text = "/// One\n/// two.\nfn f<'a>(c: char) -> &'a str { '\"'; '\\''; \"three more {words}\" } // four\nr#\"a b c\"#";
        let (comments, messages) = rust("a.rs", text);
        assert_eq!(texts(&comments), ["One two. four"]);
        assert_eq!(texts(&messages), ["three more code", "a b c"]);
        assert_eq!(messages[1].place, "a.rs:4");
    }
}
