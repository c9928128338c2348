//! Handles Ctrl-C, Ctrl-\, SIGTERM and a closed terminal. The first signal asks the command to stop
//! cleanly: the command closes its connections, keeps its data and returns. The second signal ends
//! the process at once; verified data is safe even then.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Poll;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::flag::{register, register_conditional_shutdown};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::failure::{Exit, Failure, plain};
use crate::output::Reporter;

/// Signals that stop a command, with their exit codes.
const ENDS: [(i32, Exit); 4] = [
    (SIGINT, Exit::Interrupted),
    (SIGTERM, Exit::Terminated),
    (SIGHUP, Exit::HungUp),
    (SIGQUIT, Exit::Quit),
];

/// The stop request of the process. Clones share one state.
#[derive(Clone, Debug)]
pub struct Signals {
    caught: watch::Receiver<Option<Exit>>,
}

impl Signals {
    /// Installs the handlers. `notify` runs once, at the first signal.
    pub fn catch(notify: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let mut heard = Vec::new();
        // The handlers themselves count signals and end the process at the second, even if this
        // thread is busy.
        let is_second = Arc::new(AtomicBool::new(false));
        for (number, exit) in ENDS.into_iter().filter(|(number, _)| is_for_us(*number)) {
            heard.push((signal(SignalKind::from_raw(number))?, exit));
            // A closed terminal may send it twice: by itself, and through its shell.
            if number != SIGHUP {
                register_conditional_shutdown(number, exit as i32, Arc::clone(&is_second))?;
            }
            register(number, Arc::clone(&is_second))?;
        }
        let (tell, caught) = watch::channel(None);
        tokio::spawn(async move {
            let exit = first(&mut heard).await;
            notify();
            tell.send_replace(Some(exit));
            // Keeps the sender alive, so that the state stays readable.
            std::future::pending::<()>().await;
        });
        Ok(Self { caught })
    }

    /// Installs the handlers for a transfer. A message acknowledges the first signal.
    pub fn for_transfer(reporter: &Arc<Reporter>) -> Result<Self, Failure> {
        let reporter = Arc::clone(reporter);
        Self::catch(move || reporter.status("Stopping; press Ctrl-C again to stop at once."))
            .map_err(|error| {
                Failure::new(Exit::Other, format!("cannot catch signals: {}", plain(&error)))
            })
    }

    /// Returns the exit code of the signal that stopped the process, if any.
    pub fn caught(&self) -> Option<Exit> {
        *self.caught.borrow()
    }

    /// Waits for the first signal. Cancel-safe.
    pub async fn wait(&self) -> Exit {
        let mut caught = self.caught.clone();
        let exit = caught.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
        match exit {
            Some(exit) => exit,
            // The task that catches signals has ended with its runtime.
            None => std::future::pending().await,
        }
    }

    /// Returns the result of `work`. A signal before its end is a failure.
    pub async fn or<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            exit = self.wait() => Err(Failure::new(exit, "stopped")),
            result = work => result,
        }
    }
}

/// Waits for the first signal of the list.
async fn first(heard: &mut [(Signal, Exit)]) -> Exit {
    std::future::poll_fn(|context| {
        let caught = heard
            .iter_mut()
            .find_map(|(signal, exit)| signal.poll_recv(context).is_ready().then_some(*exit));
        caught.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Returns whether to handle the signal. SIGHUP and SIGQUIT are left alone if they were ignored at
/// the start, as under `nohup`. If that is unknown, they keep their default action.
fn is_for_us(number: i32) -> bool {
    if ![SIGHUP, SIGQUIT].contains(&number) {
        return true;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    ignored.is_some_and(|ignored| ignored >> (number - 1) & 1 == 0)
}

/// Turns a write beyond the limit of `ulimit -f` into an error instead of the end of the process.
pub fn outlive_file_limit() {
    // If it fails, the signal ends the process, as it does by default.
    let _ = register(SIGXFSZ, Arc::default());
}

/// Runs blocking work on a thread of its own, so that signals are handled meanwhile.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || drop(tell.send(work())));
    ended.await.expect("the work ends by returning, and a panic ends the process")
}
