//! Answers to questions that may be dropped before they are answered: because of a signal, or because who made the offer
//! has gone.
//!
//! A read from standard input cannot be broken off. So one thread reads lines for the whole process and whoever asks waits
//! for the next; a line that was typed before a question was on the terminal is no answer to it. Nor is a line that was meant for a
//! question that was taken back: whoever types it may not have seen yet that another one stands there, so at a terminal the next line
//! after that is for saying that one has, and no answer, whatever is in it. A command has one of these: a second
//! would take lines that the first one waits for.

use std::io::{self, BufRead, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;

use crate::output::Reporter;

/// How long a line that was read already may take to come.
const TYPED_AHEAD: Duration = Duration::from_millis(5);

/// What is said when a question was taken back, before the next one.
const TAKEN_BACK: &str = "That question is gone. Press Enter for the next one. ";

/// The lines of standard input.
#[derive(Debug)]
pub struct Answers {
    reporter: Arc<Reporter>,
    /// From the first question on.
    lines: Mutex<Option<mpsc::Receiver<String>>>,
    /// A question was taken back, and nobody has said yet that they saw it.
    is_taken_back: AtomicBool,
}

impl Answers {
    pub fn new(reporter: &Arc<Reporter>) -> Self {
        let is_taken_back = AtomicBool::new(false);
        Self { reporter: Arc::clone(reporter), lines: Mutex::default(), is_taken_back }
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
        if stdin.is_terminal() && self.is_taken_back.load(Relaxed) {
            self.put(TAKEN_BACK, lines).await?;
        }
        self.put(question, lines).await
    }

    /// Shows a question and waits for the line behind it.
    async fn put(&self, question: &str, lines: &mut mpsc::Receiver<String>) -> Option<String> {
        let mut standing = Standing { answers: self, is_over: false, is_typed: false };
        self.reporter.show_question(question);
        let answer = lines.recv().await;
        standing.is_typed = answer.is_some() && io::stdin().is_terminal();
        standing.is_over = true;
        answer
    }
}

/// A question on the screen, until it is answered or taken back.
struct Standing<'a> {
    answers: &'a Answers,
    /// It was answered, or never will be.
    is_over: bool,
    is_typed: bool,
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        self.answers.is_taken_back.store(!self.is_over, Relaxed);
        self.answers.reporter.question_over(self.is_typed);
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
