//! Measures the cost of idle clients: the relay's memory per client, and the time to serve one more
//! client.
//!
//! ```text
//! cargo run --release -p wraith-relay --example idle                  # 10,000; each needs a file in both processes
//! … --example idle -- 1000
//! ```

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Instant;

use tokio::task::JoinSet;
use wraith_relay::{Options, RelayClient, RelayConfig, Relays, Server};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Concurrent connection attempts: within the relay's limit per address.
const AT_ONCE: usize = 32;

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["relay", folder] => runtime.block_on(relay(folder)),
        [count] => runtime.block_on(measure(count.parse()?)),
        _ => runtime.block_on(measure(10_000)),
    }
}

async fn relay(folder: &str) -> Result<()> {
    let mut options = Options::new("127.0.0.1:0".parse()?, folder);
    options.limits.clients_per_address = usize::MAX;
    let server = Server::bind(options).await?;
    println!("{}", server.local_addr()?);
    server.run_until(std::future::pending()).await?;
    Ok(())
}

async fn measure(count: usize) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("wraith-relay-idle-{}", std::process::id()));
    let mut child = Command::new(std::env::current_exe()?)
        .args(["relay", folder.to_str().ok_or("an odd folder")?])
        .stdout(Stdio::piped())
        .spawn()?;
    let result = fill(count, &mut child).await;
    let _ = child.kill();
    let _ = child.wait();
    let _ = std::fs::remove_dir_all(&folder);
    result
}

async fn fill(count: usize, child: &mut std::process::Child) -> Result<()> {
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it was piped")).read_line(&mut line)?;
    let relay: SocketAddr = line.trim().parse()?;
    let before = resident_kib(child.id())?;
    let begin = Instant::now();
    let relays = Relays::new()?;
    let (mut clients, mut tasks) = (Vec::new(), JoinSet::new());
    for i in 0..count {
        if tasks.len() >= AT_ONCE {
            clients.push(tasks.join_next().await.expect("there are some")??);
        }
        tasks.spawn(client(relays.clone(), relay, i as u64));
    }
    while let Some(done) = tasks.join_next().await {
        clients.push(done??);
    }
    let seconds = begin.elapsed().as_secs_f64();
    let after = resident_kib(child.id())?;
    let one_more = Instant::now();
    client(relays, relay, u64::MAX).await?;
    println!(
        "{} clients with a mailbox each in {seconds:.1} s: {:.1} MiB resident ({:.1} before), {:.1} KiB each; one more took {:?}",
        clients.len(),
        after as f64 / 1024.0,
        before as f64 / 1024.0,
        (after - before) as f64 / clients.len() as f64,
        one_more.elapsed(),
    );
    Ok(())
}

/// Connects a client with a registered mailbox.
async fn client(relays: Relays, relay: SocketAddr, number: u64) -> Result<RelayClient> {
    let client = relays.connect(RelayConfig::new(relay.ip().to_string(), relay.port())).await?;
    let mut secret = [0; 32];
    secret[..8].copy_from_slice(&number.to_be_bytes());
    client.register(secret).await?;
    Ok(client)
}

/// Returns the resident memory of a process.
fn resident_kib(pid: u32) -> Result<usize> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let line = line.ok_or("the system does not tell")?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse()?)
}
