//! Ctrl-C and SIGTERM. The first one asks the command to stop cleanly: the registered action closes its connections, the
//! engines keep what they have and return. The second one ends the process at once; what is verified is safe by then too.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{Exit, Failure, plain};
use crate::output::Reporter;

type Action = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    caught: Option<Exit>,
    action: Option<Action>,
}

/// Tells whether the process was asked to stop. Clones share one state.
#[derive(Clone, Default)]
pub struct Interrupt {
    state: Arc<Mutex<State>>,
}

impl Interrupt {
    /// Starts to catch SIGINT and SIGTERM. `notify` runs once, at the first of them.
    pub fn install(notify: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let interrupt = Self::default();
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let theirs = interrupt.clone();
        thread::Builder::new().name("signals".into()).spawn(move || {
            let mut notify = Some(notify);
            for signal in signals.forever() {
                let exit = if signal == SIGTERM { Exit::Terminated } else { Exit::Interrupted };
                match notify.take() {
                    Some(notify) => {
                        notify();
                        theirs.raise(exit);
                    }
                    None => std::process::exit(exit as i32),
                }
            }
        })?;
        Ok(interrupt)
    }

    /// For a transfer: the first signal is acknowledged in words.
    pub fn for_transfer(reporter: &Arc<Reporter>) -> Result<Self, Failure> {
        let reporter = Arc::clone(reporter);
        let notify = move || reporter.say("Stopping; once more stops at once.");
        Self::install(notify).map_err(|error| {
            Failure::new(Exit::Other, format!("cannot catch signals: {}", plain(&error)))
        })
    }

    /// Which signal asked the process to stop, as its exit code.
    pub fn caught(&self) -> Option<Exit> {
        self.lock().caught
    }

    /// What the first signal does, in place of an earlier action; runs at once when the signal has already come.
    pub fn on_signal(&self, action: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        if state.caught.is_some() {
            drop(state);
            action();
        } else {
            state.action = Some(Box::new(action));
        }
    }

    fn raise(&self, exit: Exit) {
        let mut state = self.lock();
        state.caught = Some(exit);
        let action = state.action.take();
        drop(state);
        if let Some(action) = action {
            action();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // The state is two plain fields; a panic elsewhere cannot leave them half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interrupt").field("caught", &self.caught()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn the_action_runs_once_whether_registered_before_or_after_the_signal() {
        for before in [true, false] {
            let (interrupt, runs) = (Interrupt::default(), Arc::new(AtomicU32::new(0)));
            let counter = runs.clone();
            let count = move || {
                counter.fetch_add(1, Ordering::Relaxed);
            };
            if before {
                interrupt.on_signal(count);
                interrupt.raise(Exit::Interrupted);
            } else {
                interrupt.raise(Exit::Interrupted);
                interrupt.on_signal(count);
            }
            assert_eq!(runs.load(Ordering::Relaxed), 1);
            assert_eq!(interrupt.caught(), Some(Exit::Interrupted));
        }
    }
}
