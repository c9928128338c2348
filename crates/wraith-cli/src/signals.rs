//! Ctrl-C and SIGTERM. The first asks the command to stop cleanly: it closes its connections, keeps what it has and returns.
//! The second ends the process at once, whatever it is doing; what is verified is safe by then too.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::failure::{Exit, Failure, plain};
use crate::output::Reporter;

/// Tells whether the process was asked to stop. Clones share one state.
#[derive(Clone, Debug)]
pub struct Signals {
    caught: watch::Receiver<Option<Exit>>,
}

impl Signals {
    /// Starts to catch SIGINT and SIGTERM. `notify` runs once, at the first of them.
    pub fn catch(notify: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        // The handlers themselves count, and end the process at the second: also while this thread is busy.
        let is_second = Arc::new(AtomicBool::new(false));
        for (number, exit) in [(SIGINT, Exit::Interrupted), (SIGTERM, Exit::Terminated)] {
            register_conditional_shutdown(number, exit as i32, Arc::clone(&is_second))?;
        }
        for number in [SIGINT, SIGTERM] {
            register(number, Arc::clone(&is_second))?;
        }
        let (tell, caught) = watch::channel(None);
        tokio::spawn(async move {
            let exit = tokio::select! {
                _ = interrupt.recv() => Exit::Interrupted,
                _ = terminate.recv() => Exit::Terminated,
            };
            notify();
            tell.send_replace(Some(exit));
            // Whoever still looks at the state finds it.
            std::future::pending::<()>().await;
        });
        Ok(Self { caught })
    }

    /// For a transfer: the first signal is acknowledged in words.
    pub fn for_transfer(reporter: &Arc<Reporter>) -> Result<Self, Failure> {
        let reporter = Arc::clone(reporter);
        Self::catch(move || reporter.say("Stopping; once more stops at once.")).map_err(|error| {
            Failure::new(Exit::Other, format!("cannot catch signals: {}", plain(&error)))
        })
    }

    /// Which signal asked the process to stop, as its exit code.
    pub fn caught(&self) -> Option<Exit> {
        *self.caught.borrow()
    }

    /// Waits for the first of them. Cancel-safe.
    pub async fn wait(&self) -> Exit {
        let mut caught = self.caught.clone();
        let exit = caught.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
        match exit {
            Some(exit) => exit,
            // The task that catches them has ended with its runtime.
            None => std::future::pending().await,
        }
    }

    /// What `work` gives; a signal before its end is the end of the command.
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

/// Runs what blocks on a thread of its own, so that signals are heard meanwhile.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || drop(tell.send(work())));
    ended.await.expect("the work ends by returning, and a panic ends the process")
}
