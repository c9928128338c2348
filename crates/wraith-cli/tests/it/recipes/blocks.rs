//! The fenced blocks of a document, and the commands in those of a shell session.
//!
//! A line with a prompt (`$`, `alice$`) is a command. A `\` at its end continues it. Every other
//! line is output of the command before it.

/// A fenced block.
#[derive(Clone, Debug)]
pub struct Block {
    pub document: String,
    /// Line of the first fence, from 1.
    pub line: usize,
    /// The nearest heading above, without `#`.
    pub section: String,
    /// The language after the fence, such as `console`.
    pub language: String,
    pub text: String,
}

/// A command of a shell session.
#[derive(Clone, Debug)]
pub struct Command {
    /// The name before the `$`, or `here`.
    pub machine: String,
    pub line: String,
    /// The documented output.
    pub output: Vec<String>,
}

/// Returns all fenced blocks of a document.
pub fn blocks(document: &str, text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut section = String::new();
    let mut is_open = false;
    for (at, line) in text.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (is_open, fence) {
            (true, Some(_)) => is_open = false,
            (true, None) => {
                let block = blocks.last_mut().expect("an open block");
                block.text.push_str(line);
                block.text.push('\n');
            }
            (false, Some(language)) => {
                is_open = true;
                blocks.push(Block {
                    document: document.to_owned(),
                    line: at + 1,
                    section: section.clone(),
                    language: language.split(',').next().unwrap_or_default().to_owned(),
                    text: String::new(),
                });
            }
            (false, None) if line.starts_with('#') => {
                section = line.trim_start_matches('#').trim().to_owned();
            }
            (false, None) => {}
        }
    }
    blocks
}

/// Returns the commands of a shell session. Fails if the text begins with output.
pub fn commands(session: &str) -> Result<Vec<Command>, String> {
    let mut commands: Vec<Command> = Vec::new();
    let mut is_continued = false;
    for line in session.lines() {
        match (prompt(line), commands.last_mut()) {
            (_, Some(last)) if is_continued => {
                last.line.pop();
                last.line.push_str(line.trim_start());
            }
            (Some((machine, command)), _) => {
                let machine = if machine.is_empty() { "here" } else { machine };
                commands.push(Command {
                    machine: machine.to_owned(),
                    line: command.trim().to_owned(),
                    output: Vec::new(),
                });
            }
            (None, Some(last)) => last.output.push(line.to_owned()),
            (None, None) if line.trim().is_empty() => {}
            (None, None) => return Err(format!("no command has the output {line:?}")),
        }
        is_continued = commands.last().is_some_and(|last| last.line.ends_with('\\'))
            && (is_continued || prompt(line).is_some());
    }
    Ok(commands)
}

/// Splits a line into the machine and the command.
fn prompt(line: &str) -> Option<(&str, &str)> {
    let (machine, command) = line.split_once("$ ")?;
    machine.chars().all(|c| c.is_ascii_lowercase()).then_some((machine, command))
}

/// Returns a command line without its comment.
pub fn without_comment(line: &str) -> &str {
    line.split_once(" #").map_or(line, |(command, _)| command).trim_end()
}

/// Compares documented lines with a screen. Returns the first documented line that does not follow
/// the earlier ones there. A line `…` stands for any lines, and blank lines do not count. The last
/// line may be a question without its answer.
pub fn missing_line<'a>(documented: &'a [String], screen: &str) -> Option<&'a str> {
    let mut shown = screen.lines().map(shape);
    let lines = documented.iter().map(|line| line.trim());
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty() && *line != "…").collect();
    let is_missing = |(at, line): &(usize, &&str)| {
        let expected = shape(line);
        let is_last = at + 1 == lines.len();
        !shown.any(|line| line == expected || is_last && line.starts_with(&expected))
    };
    lines.iter().enumerate().find(is_missing).map(|(_, line)| *line)
}

/// Returns the words of a line. Words that differ in each run have a common form: figures with
/// their units, codes, and short NodeIds.
fn shape(line: &str) -> Vec<String> {
    const UNITS: [&str; 9] = ["B", "kB", "MB", "GB", "B/s", "kB/s", "MB/s", "GB/s", "s"];
    let words = line.split_whitespace();
    let words = words.map(|word| word.trim_matches(['(', ')', ',', '.', ':']));
    let form = |word: &str| {
        let is_figure = word.contains(|c: char| c.is_ascii_digit()) || UNITS.contains(&word);
        let is_id = [8, 16].contains(&word.len()) && word.chars().all(|c| c.is_ascii_lowercase());
        let is_long_code = word.matches('-').count() == 5;
        if is_figure || is_id || is_long_code { "#".to_owned() } else { word.to_owned() }
    };
    words.map(form).collect()
}

#[test]
fn a_session_has_commands_of_machines_with_their_output() {
    let session = "alice$ wraith send x\nready\n\nbob$   wraith \\\n    verify   # all\n$ date\n";
    let found: Vec<_> = commands(session).unwrap();
    let lines: Vec<_> = found.iter().map(|one| (&*one.machine, &*one.line)).collect();
    let expected = [("alice", "wraith send x"), ("bob", "wraith verify   # all"), ("here", "date")];
    assert_eq!(lines, expected);
    assert_eq!(found[0].output, ["ready", ""]);
    assert_eq!(without_comment(&found[1].line), "wraith verify");
    assert!(commands("output\n$ date").is_err());
}

#[test]
fn figures_codes_and_ids_may_differ_and_words_may_not() {
    let documented = ["Sent 1 file, 419 MB in 0.43 s.".to_owned(), "abcdefgh offers a".into()];
    let screen = "Sent 2 file, 3 kB in 1 s.\nhgfedcba offers a b\n";
    assert_eq!(missing_line(&documented, screen), None);
    assert_eq!(missing_line(&documented, "Sent 2 file, 3 kB at 1 s."), Some(&*documented[0]));
    assert_eq!(missing_line(&documented[1..], "hgfedcba offers b"), Some(&*documented[1]));
    let reversed: Vec<_> = documented.iter().rev().cloned().collect();
    assert_eq!(missing_line(&reversed, screen), Some(&*documented[1]));
}
