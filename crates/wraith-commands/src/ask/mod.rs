//! Questions at the terminal: a code with completion, or a question that may be withdrawn.

mod answers;
mod code_line;

use std::io::{BufRead, IsTerminal};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use answers::Answers;
pub use code_line::{LineInput, read};

use crate::failure::{Exit, Failure};

/// Checks that standard input can still provide an answer, before anything is used up. `instead`:
/// the option that avoids the question.
pub fn check_somebody_answers(instead: &str) -> Result<(), Failure> {
    let mut stdin = std::io::stdin().lock();
    if stdin.is_terminal() {
        return Ok(());
    }
    let mut looked = [PollFd::new(&stdin, PollFlags::IN)];
    let at_once = Timespec::default();
    let is_ready = poll(&mut looked, Some(&at_once)).is_ok_and(|ready| ready > 0);
    // A ready stream is read without waiting; at the end of input the buffer is empty.
    if is_ready && stdin.fill_buf().is_ok_and(<[u8]>::is_empty) {
        let message = "nothing on standard input can answer the question whether to accept";
        return Err(Failure::new(Exit::Usage, message).hint(instead));
    }
    Ok(())
}
