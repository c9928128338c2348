//! Answers to questions that may be withdrawn before they are answered: after a signal, or when the
//! sender of the offer has left.
//!
//! A read from standard input cannot be cancelled. So one thread reads lines for the whole process,
//! and each question waits for the next line. Two kinds of lines are not used as answers:
//!
//! - A line typed before the question was on the terminal.
//! - The next line at a terminal after a question was withdrawn. The user may not have seen that
//!   yet, so that line only confirms it.
//!
//! Invariant: a command has one [`Answers`]. A second one would take lines from the first.

use std::io::{self, BufRead, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;

use crate::output::Reporter;

/// Maximum delay of a line that the reading thread has read already.
const TYPED_AHEAD: Duration = Duration::from_millis(5);

/// Text shown after a withdrawn question, before the next one.
const WITHDRAWN_NOTICE: &str = "That question was withdrawn. Press Enter for the next one. ";

/// The lines of standard input, as answers to questions.
#[derive(Debug)]
pub struct Answers {
    reporter: Arc<Reporter>,
    /// Set by the first question.
    lines: Mutex<Option<mpsc::Receiver<String>>>,
    /// Whether a question was withdrawn and the user has not confirmed that yet.
    is_withdrawn: AtomicBool,
}

impl Answers {
    pub fn new(reporter: &Arc<Reporter>) -> Self {
        let is_withdrawn = AtomicBool::new(false);
        Self { reporter: Arc::clone(reporter), lines: Mutex::default(), is_withdrawn }
    }

    /// Asks a question and returns the answer; None at the end of standard input. Takes one
    /// question at a time. Dropping the future withdraws the question.
    pub async fn ask(&self, question: &str) -> Option<String> {
        let mut lines = self.lines.lock().await;
        let lines = lines.get_or_insert_with(read);
        let stdin = io::stdin();
        if stdin.is_terminal() {
            // If the flush fails, input typed ahead counts as an answer, as in other programs.
            let _ = tcflush(&stdin, QueueSelector::IFlush);
            while matches!(timeout(TYPED_AHEAD, lines.recv()).await, Ok(Some(_))) {}
        }
        if stdin.is_terminal() && self.is_withdrawn.load(Relaxed) {
            self.show_and_wait(WITHDRAWN_NOTICE, lines).await?;
        }
        self.show_and_wait(question, lines).await
    }

    /// Shows a question and waits for the next line.
    async fn show_and_wait(
        &self,
        question: &str,
        lines: &mut mpsc::Receiver<String>,
    ) -> Option<String> {
        let mut shown = ShownQuestion { answers: self, is_over: false, is_typed: false };
        self.reporter.show_question(question);
        let answer = lines.recv().await;
        shown.is_typed = answer.is_some() && io::stdin().is_terminal();
        shown.is_over = true;
        answer
    }
}

/// A question on the screen. Drop removes it, answered or withdrawn.
struct ShownQuestion<'a> {
    answers: &'a Answers,
    /// Whether it was answered, or standard input has ended.
    is_over: bool,
    is_typed: bool,
}

impl Drop for ShownQuestion<'_> {
    fn drop(&mut self) {
        self.answers.is_withdrawn.store(!self.is_over, Relaxed);
        self.answers.reporter.question_over(self.is_typed);
    }
}

fn read() -> mpsc::Receiver<String> {
    // Room for one line: a line in the channel was typed ahead.
    let (line_tx, lines) = mpsc::channel(1);
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if line_tx.blocking_send(line.trim().to_owned()).is_err() {
                break;
            }
        }
    });
    lines
}
