//! Asking a person at the terminal: a code with its words completed, or a question that may be taken back.

mod answers;
mod code_line;

use std::io::{BufRead, IsTerminal};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use answers::Answers;
pub use code_line::{Line, read};

use crate::failure::{Exit, Failure};

/// Whether standard input can still have an answer to the question, before anything is used up for it. `instead`: what asks nobody.
pub fn check_somebody_answers(instead: &str) -> Result<(), Failure> {
    let mut stdin = std::io::stdin().lock();
    if stdin.is_terminal() {
        return Ok(());
    }
    let mut looked = [PollFd::new(&stdin, PollFlags::IN)];
    let at_once = Timespec::default();
    let is_ready = poll(&mut looked, Some(&at_once)).is_ok_and(|ready| ready > 0);
    // What is ready is read without waiting, and the end looks like nothing.
    if is_ready && stdin.fill_buf().is_ok_and(<[u8]>::is_empty) {
        let message = "nobody can be asked whether to accept: standard input has no answer";
        return Err(Failure::new(Exit::Usage, message).hint(instead));
    }
    Ok(())
}
