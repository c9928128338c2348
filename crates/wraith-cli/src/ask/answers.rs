//! Answers to questions that may be dropped before they are answered: because of a signal, or because who made the offer
//! has gone.
//!
//! A read from standard input cannot be broken off. So one thread reads lines for the whole process and whoever asks waits
//! for the next; a line that was typed before a question was on the terminal is no answer to it.

use std::io::{self, BufRead, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::termios::{QueueSelector, tcflush};

use crate::output::Reporter;

/// How often it is looked whether the question still matters.
const GLANCE: Duration = Duration::from_millis(100);
/// How long a line that was read already may take to come.
const TYPED_AHEAD: Duration = Duration::from_millis(5);

/// The lines of standard input.
#[derive(Debug)]
pub struct Answers {
    reporter: Arc<Reporter>,
    /// From the first question on.
    lines: Mutex<Option<Receiver<String>>>,
    /// Set by others when the question that stands is to be taken back.
    hurry: Arc<AtomicBool>,
}

impl Answers {
    pub fn new(reporter: &Arc<Reporter>) -> Self {
        let (lines, hurry) = (Mutex::default(), Arc::default());
        Self { reporter: Arc::clone(reporter), lines, hurry }
    }

    /// The same; whoever sets `hurry` takes the question back that stands then.
    pub fn in_a_hurry(self, hurry: Arc<AtomicBool>) -> Self {
        Self { hurry, ..self }
    }

    /// The answer; None at the end of standard input, or as soon as nobody cares any more. One question at a time.
    pub fn ask(&self, question: &str, is_pointless: impl Fn() -> bool) -> Option<String> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = lines.get_or_insert_with(read);
        let stdin = io::stdin();
        if stdin.is_terminal() {
            // What cannot be thrown away is taken for an answer, as everywhere.
            let _ = tcflush(&stdin, QueueSelector::IFlush);
            while lines.recv_timeout(TYPED_AHEAD).is_ok() {}
        }
        self.hurry.store(false, Relaxed);
        self.reporter.show_question(question);
        let answer = loop {
            match lines.recv_timeout(GLANCE) {
                Ok(line) => break Some(line),
                Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout)
                    if is_pointless() || self.hurry.swap(false, Relaxed) =>
                {
                    self.reporter.say("");
                    break None;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        self.reporter.question_over();
        answer
    }
}

fn read() -> Receiver<String> {
    // Room for one: what is read ahead is what was typed ahead.
    let (tell, lines) = mpsc::sync_channel(1);
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if tell.send(line.trim().to_owned()).is_err() {
                break;
            }
        }
    });
    lines
}
