//! Small requests over streams, between two processes on loopback: wraith-transport beside quinn.
//!
//! ```text
//! echo-peer --transport wraith                   # two processes over loopback
//! echo-peer --transport wraith-movers            # with a second mover at both endpoints
//! echo-peer --transport quinn --in-flight 64 --requests 100000 --bytes 64
//! echo-peer [options] serve [ADDRESS]            prints the address, serves until killed
//! echo-peer [options] load ADDRESS               prints one line of JSON
//! ```
//!
//! Each request opens a stream, sends its bytes and the end, and reads the answer to its end. The
//! server reads the whole request and answers with the same bytes. Every request has bytes of its
//! own, and every answer is compared. Both sides of both transports use a current-thread runtime of
//! tokio, a task for each request at the server, and a task for each place in flight at the client.
//! Both transports have their default settings and the same stream limit.

mod quinn_echo;
mod wraith_echo;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use bytes::Bytes;
use clap::{Parser, Subcommand, ValueEnum};
use serde::Serialize;
use wraith_peers::{ServerProcess, cpu_time};

/// Maximum number of streams that a side may have open at once.
const STREAMS_MAX: u32 = 128;
/// Maximum size of a message.
const MESSAGE_MAX: usize = 1 << 20;
/// Length of a message's number, with which it begins.
const NUMBER_BYTES: usize = 8;

#[derive(Debug, Parser)]
#[command(about = "Small requests over streams")]
struct Options {
    #[arg(long)]
    transport: Transport,
    /// Number of requests that wait for an answer at once
    #[arg(long, default_value_t = 1)]
    in_flight: usize,
    /// Number of requests
    #[arg(long, default_value_t = 20_000)]
    requests: u64,
    /// Bytes of a request, and of its answer
    #[arg(long, default_value_t = 64)]
    bytes: usize,
    #[command(subcommand)]
    side: Option<Side>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Transport {
    Wraith,
    /// Wraith with a second mover at both endpoints, as nodes have
    WraithMovers,
    Quinn,
}

#[derive(Debug, Subcommand)]
enum Side {
    /// Answer until killed
    Serve {
        #[arg(default_value = "127.0.0.1:0")]
        address: SocketAddr,
    },
    /// Send requests to a server
    Load { address: SocketAddr },
}

/// A connected client.
trait Client: Clone + Send + 'static {
    /// Sends a request on a stream of its own and returns the whole answer.
    fn ask(&self, request: Bytes) -> impl Future<Output = Result<Vec<u8>>> + Send;
}

/// Costs of the requests.
#[derive(Debug, Serialize)]
struct Report {
    requests: u64,
    seconds: f64,
    p50_us: f64,
    p95_us: f64,
    p99_us: f64,
    requests_per_second: f64,
    /// User and system time per request.
    client_cpu_us: f64,
    server_cpu_us: f64,
}

fn main() -> Result<()> {
    let options = Options::parse();
    ensure!((NUMBER_BYTES..=MESSAGE_MAX).contains(&options.bytes), "8 bytes to 1 MiB");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = match options.side {
        Some(Side::Serve { address }) => {
            return runtime.block_on(async {
                match options.transport {
                    Transport::Wraith => wraith_echo::serve(address, false).await,
                    Transport::WraithMovers => wraith_echo::serve(address, true).await,
                    Transport::Quinn => quinn_echo::serve(address).await,
                }
            });
        }
        Some(Side::Load { address }) => runtime.block_on(load(&options, address))?,
        None => {
            let (_server, line) = ServerProcess::start()?;
            runtime.block_on(load(&options, line.parse()?))?
        }
    };
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

async fn load(options: &Options, address: SocketAddr) -> Result<Report> {
    match options.transport {
        Transport::Wraith | Transport::WraithMovers => {
            let with_pool = matches!(options.transport, Transport::WraithMovers);
            let (client, _endpoint) = wraith_echo::connect(address, with_pool).await?;
            measure(options, client).await
        }
        Transport::Quinn => {
            let (client, _endpoint) = quinn_echo::connect(address).await?;
            measure(options, client).await
        }
    }
}

async fn measure(options: &Options, client: impl Client) -> Result<Report> {
    // The buffers of both sides reach their sizes.
    run(options, &client, options.requests / 10 + 100).await?;
    let server_before = server_cpu(&client).await?;
    let (cpu_before, begin) = (cpu_time(), Instant::now());
    let mut times = run(options, &client, options.requests).await?;
    let (seconds, cpu) = (begin.elapsed().as_secs_f64(), cpu_time() - cpu_before);
    let server = server_cpu(&client).await? - server_before;
    times.sort_unstable();
    let at = |part: f64| {
        let i = (times.len() as f64 * part) as usize;
        times[i.min(times.len() - 1)].as_secs_f64() * 1e6
    };
    let each = |cpu: Duration| cpu.as_secs_f64() * 1e6 / times.len() as f64;
    Ok(Report {
        requests: options.requests,
        seconds,
        p50_us: at(0.5),
        p95_us: at(0.95),
        p99_us: at(0.99),
        requests_per_second: times.len() as f64 / seconds,
        client_cpu_us: each(cpu),
        server_cpu_us: each(server),
    })
}

/// Sends `requests` requests. Returns the time of each.
async fn run(options: &Options, client: &impl Client, requests: u64) -> Result<Vec<Duration>> {
    let next = Arc::new(AtomicU64::new(0));
    let content: Vec<u8> = (0..options.bytes).map(|i| (i * 7 % 251) as u8).collect();
    let workers: Vec<_> = (0..options.in_flight)
        .map(|_| {
            let (client, next, content) = (client.clone(), Arc::clone(&next), content.clone());
            tokio::spawn(async move {
                let mut times = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= requests {
                        return Ok::<_, anyhow::Error>(times);
                    }
                    let mut request = content.clone();
                    request[..NUMBER_BYTES].copy_from_slice(&(number + 1).to_be_bytes());
                    let request = Bytes::from(request);
                    let begin = Instant::now();
                    let answer = client.ask(request.clone()).await?;
                    times.push(begin.elapsed());
                    ensure!(answer == request, "a wrong answer to request {number}");
                }
            })
        })
        .collect();
    let mut times = Vec::new();
    for worker in workers {
        times.extend(worker.await.map_err(|error| anyhow!(error))??);
    }
    Ok(times)
}

/// Returns the server's CPU time so far. The request for it is empty.
async fn server_cpu(client: &impl Client) -> Result<Duration> {
    let answer = client.ask(Bytes::new()).await?;
    Ok(Duration::from_nanos(u64::from_be_bytes(answer[..].try_into()?)))
}

/// Returns the server's answer to a request.
fn answer(request: Vec<u8>) -> Bytes {
    if request.is_empty() {
        let nanos = cpu_time().as_nanos() as u64;
        return Bytes::copy_from_slice(&nanos.to_be_bytes());
    }
    request.into()
}
