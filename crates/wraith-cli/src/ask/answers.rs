//! Answers to questions that may be dropped before they are answered: because of a signal, or because who made the offer
//! has gone.
//!
//! A read from standard input cannot be broken off. So one thread reads lines for the whole process and whoever asks waits
//! for the next; a line that was typed before a question was on the terminal is no answer to it. A command has one of these: a second
//! would take lines that the first one waits for.

use std::io::{self, BufRead, IsTerminal};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;

use crate::output::Reporter;

/// How long a line that was read already may take to come.
const TYPED_AHEAD: Duration = Duration::from_millis(5);

/// The lines of standard input.
#[derive(Debug)]
pub struct Answers {
    reporter: Arc<Reporter>,
    /// From the first question on.
    lines: Mutex<Option<mpsc::Receiver<String>>>,
}

impl Answers {
    pub fn new(reporter: &Arc<Reporter>) -> Self {
        Self { reporter: Arc::clone(reporter), lines: Mutex::default() }
    }

    /// The answer; None at the end of standard input. One question at a time. Dropping the future takes the question back.
    pub async fn ask(&self, question: &str) -> Option<String> {
        let mut lines = self.lines.lock().await;
        let lines = lines.get_or_insert_with(read);
        let stdin = io::stdin();
        if stdin.is_terminal() {
            // What cannot be thrown away is taken for an answer, as everywhere.
            let _ = tcflush(&stdin, QueueSelector::IFlush);
            while matches!(timeout(TYPED_AHEAD, lines.recv()).await, Ok(Some(_))) {}
        }
        let mut standing = Standing { reporter: &self.reporter, is_typed: false };
        self.reporter.show_question(question);
        let answer = lines.recv().await;
        standing.is_typed = answer.is_some() && stdin.is_terminal();
        answer
    }
}

/// A question on the screen, until it is answered or taken back.
struct Standing<'a> {
    reporter: &'a Reporter,
    is_typed: bool,
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        self.reporter.question_over(self.is_typed);
    }
}

fn read() -> mpsc::Receiver<String> {
    // Room for one: what is read ahead is what was typed ahead.
    let (tell, lines) = mpsc::channel(1);
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if tell.blocking_send(line.trim().to_owned()).is_err() {
                break;
            }
        }
    });
    lines
}
