//! The code or ticket that the user typed or pasted.

use std::io::{self, IsTerminal};

use wraith::{Cause, Code, CodeError, Source};

use crate::args::ReceiveArgs;
use crate::ask::{LineInput, read};
use crate::failure::{Exit, Failure};
use crate::guess;
use crate::output::Reporter;

/// The source of a receive command.
#[derive(Debug)]
pub enum SourceChoice {
    From(Source),
    /// Make a new code for the sender.
    NewCode,
}

/// Returns the source from the command line, or asks the user.
pub fn wanted(args: &ReceiveArgs, reporter: &Reporter) -> Result<SourceChoice, Failure> {
    if args.code {
        return Ok(SourceChoice::NewCode);
    }
    let words: Vec<_> = args.wanted.iter().map(|word| word.to_string_lossy()).collect();
    if !words.is_empty() && words != ["-"] {
        return source(&words.join(" "))
            .map_err(|failure| guess::behind_a_code(&args.wanted, &args.out).unwrap_or(failure));
    }
    let nothing = || {
        Failure::new(Exit::Usage, "the code or ticket is missing: wraith receive 7-crater-lemon")
            .hint("wraith send on the other machine prints it")
    };
    if !io::stdin().is_terminal() {
        let text = reporter.read_line().filter(|line| !line.is_empty()).ok_or_else(nothing)?;
        return source(&text);
    }
    loop {
        let line = read("Code or ticket (Tab completes): ")
            .map_err(|error| Failure::disk("cannot read from the terminal", &error))?;
        match line {
            LineInput::Interrupted => return Err(Failure::new(Exit::Interrupted, "stopped")),
            LineInput::Typed(text) if !text.is_empty() => match source(&text) {
                // It is safe to ask again, because nothing was sent.
                Err(failure) => reporter.warn(failure.message),
                wanted => return wanted,
            },
            LineInput::Typed(_) | LineInput::End => return Err(nothing()),
        }
    }
}

/// Parses a code as typed.
pub fn parse(text: &str) -> Result<Code, Failure> {
    text.parse().map_err(|error: CodeError| {
        Failure::new(Exit::Usage, error.to_string())
            .hint("nothing was sent, so the code is still valid: type it again")
    })
}

/// Parses a code or ticket that was typed, or pasted as the other side shows it.
fn source(text: &str) -> Result<SourceChoice, Failure> {
    let text = text.trim().trim_matches(['"', '\'', '`', '“', '”']);
    let text = text.strip_prefix("wraith receive ").unwrap_or(text).trim();
    if Code::looks_like(text) {
        return parse(text).map(|code| SourceChoice::From(Source::Code(code)));
    }
    text.parse().map(SourceChoice::From).map_err(|error: wraith::Error| {
        let meant = || {
            let failure = Failure::new(Exit::Usage, error.to_string());
            match error.cause() {
                Some(Cause::TicketVersion) => failure,
                _ => {
                    failure.hint("a code looks like 7-crater-lemon; copy a ticket as a whole line")
                }
            }
        };
        guess::wanted(text).unwrap_or_else(meant)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_tickets_are_distinguished() {
        let code = source("7-crater-lemon");
        assert!(matches!(code, Ok(SourceChoice::From(Source::Code(_)))), "the docs say this one");
        for pasted in ["wraith receive 7-crater-lemon", " '7-crater-lemon' ", "“7-crater-lemon”"]
        {
            assert!(matches!(source(pasted), Ok(SourceChoice::From(Source::Code(_)))), "{pasted}");
        }
        let slip = source("7-cratr-lemon").unwrap_err();
        assert_eq!(slip.exit, Exit::Usage);
        assert!(slip.message.contains("cratr"), "{}", slip.message);
        assert!(source("hello").unwrap_err().message.contains("neither"));
    }
}
