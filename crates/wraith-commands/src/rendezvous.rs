//! `wraith rendezvous`: a server at which the two sides of a code find each other.

use std::sync::Arc;

use wraith_relay::rendezvous::Server;

use crate::args::RendezvousArgs;
use crate::failure::{Exit, Failure, plain};
use crate::output::{Event, Reporter};
use crate::signals::Signals;

/// Serves until a signal.
pub async fn run(args: &RendezvousArgs, reporter: &Arc<Reporter>) -> Result<(), Failure> {
    let failed = |what: &str, error: &std::io::Error| {
        Failure::new(Exit::Other, format!("{what}: {}", plain(error)))
    };
    let server = Server::bind(args.listen).await.map_err(|error| {
        failed(&format!("cannot listen on {}", args.listen), &error)
            .hint("choose another address or port with --listen")
    })?;
    let address = server.local_addr().map_err(|error| failed("cannot listen", &error))?;
    let signals = Signals::catch(|| ()).map_err(|error| failed("cannot catch signals", &error))?;
    reporter.event(&Event::server_listening(&address.to_string(), None));
    reporter.status(format!(
        "Listening on {address} (TCP). Both sides use it with --rendezvous HOST:{}, or WRAITH_RENDEZVOUS.\n\
         It forwards encrypted messages only. Ctrl-C stops.",
        address.port()
    ));
    let theirs = signals.clone();
    let stopped = async move {
        theirs.wait().await;
    };
    server.run_until(stopped).await.map_err(|error| failed("the server failed", &error))?;
    Err(Failure::new(signals.caught().unwrap_or(Exit::Interrupted), "stopped"))
}
