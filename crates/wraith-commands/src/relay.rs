//! `wraith relay`: forwards packets between machines without a direct path.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE32_NOPAD;
use wraith::state::users_folder;
use wraith_command_text::units::{RateLimit, Size};
use wraith_relay::{Admission, Certificate, Limits, Options, Server, StartError, Token};

use crate::args::RelayArgs;
use crate::failure::{Exit, Failure, plain};
use crate::output::{Event, Reporter};
use crate::signals::Signals;

/// Name of the relay's folder in the user's state.
const FOLDER: &str = "relay";

/// Serves until a signal, and then until its pairs are done.
pub async fn run(args: &RelayArgs, reporter: &Arc<Reporter>) -> Result<(), Failure> {
    let server = Server::bind(options(args)?).await.map_err(|error| cannot_start(args, &error))?;
    let failed = |error: &std::io::Error| {
        Failure::new(Exit::Other, format!("the server failed: {}", plain(error)))
    };
    let address = server.local_addr().map_err(|error| failed(&error))?;
    let noticed = Arc::clone(reporter);
    let drain = args.drain;
    let signals = Signals::catch(move || {
        noticed.status(format!(
            "Stopping. No new pairs; existing pairs may continue for {drain} s. Press Ctrl-C again to stop at once."
        ));
    })
    .map_err(|error| {
        Failure::new(Exit::Other, format!("cannot catch signals: {}", plain(&error)))
    })?;
    let pin = BASE32_NOPAD.encode(server.pin()).to_ascii_lowercase();
    reporter.event(&Event::server_listening(&address.to_string(), Some(&pin)));
    let ways = if args.no_udp { "TCP" } else { "TCP and UDP" };
    reporter.status(format!(
        "Listening on {address} ({ways}). Both sides use it with --relay HOST:{}, or WRAITH_RELAY.\n\
         Its key is {pin}.\n\
         It forwards encrypted packets only. Ctrl-C stops.",
        address.port()
    ));
    if let Some(port) = server.other_port() {
        reporter.status(format!(
            "UDP port {port} lets clients classify their NAT. Open it in the firewall too."
        ));
    }
    if let Some(metrics) = server.metrics_addr() {
        reporter.status(format!("Metrics: http://{metrics}/metrics"));
    }
    let theirs = signals.clone();
    let stopped = async move {
        theirs.wait().await;
    };
    server.run_until(stopped).await.map_err(|error| failed(&error))?;
    Err(Failure::new(signals.caught().unwrap_or(Exit::Interrupted), "stopped"))
}

fn options(args: &RelayArgs) -> Result<Options, Failure> {
    let certificate = match (&args.certificate, &args.key) {
        (Some(chain), Some(key)) => Certificate::Files { chain: chain.clone(), key: key.clone() },
        (Some(_), None) => return Err(half("--certificate", "--key")),
        (None, Some(_)) => return Err(half("--key", "--certificate")),
        (None, None) => {
            let folder = args.state.clone().or_else(|| Some(users_folder()?.join(FOLDER)));
            let folder = folder.ok_or_else(|| {
                Failure::new(Exit::Other, "no folder for the relay's key: HOME is not set")
                    .hint("name a folder with --state")
            })?;
            Certificate::SelfSigned { folder }
        }
    };
    let bytes = |rate: &Option<RateLimit>| rate.as_ref().map(|rate| rate.bytes);
    Ok(Options {
        listen: args.listen,
        udp: !args.no_udp,
        other_port: args.other_port,
        certificate,
        admission: admission(args)?,
        limits: Limits {
            clients: args.clients.get(),
            clients_per_address: args.clients_per_address.get(),
            pairs: args.pairs.get(),
            pairs_per_address: args.pairs_per_address.get(),
            pair_rate: bytes(&args.pair_rate),
            address_rate: bytes(&args.address_rate),
            total_rate: bytes(&args.total_rate),
            day_bytes: args.day.map(|Size(bytes)| bytes),
        },
        drain: Duration::from_secs(args.drain),
        metrics: args.metrics,
        rendezvous: !args.no_rendezvous,
        log_addresses: args.log_addresses,
    })
}

/// Returns the failure for one half of a certificate. Either half may be a setting, so this is no
/// matter of the command line.
fn half(given: &str, missing: &str) -> Failure {
    Failure::new(Exit::Usage, format!("{given} needs {missing} too"))
        .hint(format!("add {missing} FILE, or leave {given} out for the relay's own certificate"))
}

fn admission(args: &RelayArgs) -> Result<Admission, Failure> {
    if !args.only.is_empty() {
        return Ok(Admission::Nodes(args.only.iter().copied().collect()));
    }
    let text = match (&args.token, &args.token_file) {
        (Some(token), _) => token.clone(),
        (None, Some(path)) => fs::read_to_string(path).map_err(|error| {
            let what = format!("cannot read {}: {}", path.display(), plain(&error));
            Failure::new(Exit::Usage, what)
        })?,
        (None, None) => return Ok(Admission::Open),
    };
    let tokens: Vec<_> =
        text.lines().filter(|line| !line.trim().is_empty()).map(Token::new).collect();
    if tokens.is_empty() {
        // An empty variable or file is a mistake; it must not open the relay to everyone.
        return Err(Failure::new(Exit::Usage, "the value or file that should contain a token is empty")
            .hint("set a token; or leave out --token and --token-file, and every client may use the relay"));
    }
    Ok(Admission::Tokens(tokens))
}

fn cannot_start(args: &RelayArgs, error: &StartError) -> Failure {
    let (what, hint) = match error {
        StartError::Listen(error) => {
            let hint = if error.kind() == std::io::ErrorKind::PermissionDenied {
                "ports below 1024 need root or CAP_NET_BIND_SERVICE; or choose another port with --listen"
            } else {
                "choose another address or port with --listen"
            };
            (format!("cannot listen on {}: {}", args.listen, plain(error)), hint)
        }
        StartError::OtherPort(error) => {
            let port = args.other_port.map_or_else(String::new, |port| format!(" {port}"));
            let what = format!("cannot open the second UDP port{port}: {}", plain(error));
            (what, "choose another port with --other-port; 0 means any")
        }
        StartError::Metrics(error) => {
            let address = args.metrics.map(|address| address.to_string()).unwrap_or_default();
            let what = format!("cannot listen on {address}: {}", plain(error));
            (what, "choose another address or port with --metrics")
        }
        StartError::Certificate { path, why } => (
            format!("cannot use the certificate in {}: {why}", path.display()),
            match args.certificate {
                Some(_) => {
                    "use PEM files; without --certificate the relay makes its own certificate"
                }
                None => {
                    "the relay keeps its own certificate there; choose another folder with --state"
                }
            },
        ),
        error => (error.to_string(), "for the details: wraith relay -vv"),
    };
    Failure::new(Exit::Other, what).hint(hint)
}
