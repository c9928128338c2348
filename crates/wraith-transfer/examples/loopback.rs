//! Sends paths into a folder between two processes on this machine and prints the duration:
//! `loopback TARGET PATH…`. The second process is this program again. With `WRAITH_SYNC=1`, the
//! receiver flushes the files to disk.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use wraith_crypto::SecretIdentity;
use wraith_transfer::{ReceiveOptions, SendOptions, receive, serve};
use wraith_transport::{AccessKey, Config, Endpoint, EndpointConfig, block_on};

const SECRET: [u8; 16] = [1; 16];

fn endpoint(n: u8, accept: bool) -> Endpoint {
    let open = if accept { EndpointConfig::open } else { EndpointConfig::new };
    let core = open(SecretIdentity::from_seed([n; 32]));
    Endpoint::bind(Config::new(core).bind(([127, 0, 0, 1], 0))).expect("a free port")
}

/// Returns the peak resident memory of this process, as reported by the kernel.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("unknown").to_owned()
}

fn main() {
    let mut args = std::env::args_os().skip(1);
    let first = args.next().expect("loopback TARGET PATH…");
    if first == "--send" {
        let options = SendOptions::new(args.map(PathBuf::from).collect(), SECRET);
        let endpoint = endpoint(1, true);
        println!("{}", endpoint.local_addr());
        let connection = block_on(endpoint.accept()).expect("a receiver");
        let report = serve(connection, &options);
        endpoint.close();
        eprintln!("sender: {}", peak_memory());
        if let Err(error) = report {
            eprintln!("sender: {error}");
        }
        return;
    }
    let program = std::env::current_exe().expect("a path of this program");
    let mut sender = Command::new(program)
        .arg("--send")
        .args(args)
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program runs");
    let mut line = String::new();
    let stdout = sender.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut line).expect("an address");
    let address: SocketAddr = line.trim().parse().expect("an address");
    let endpoint = endpoint(2, false);
    let peer = SecretIdentity::from_seed([1; 32]).node_id();
    let started = Instant::now();
    let connection = block_on(endpoint.connect(&[address], peer, &AccessKey::public(peer)))
        .expect("a connection");
    let identity = SecretIdentity::from_seed([2; 32]);
    let mut options = ReceiveOptions::new(first.into(), SECRET, identity);
    options.sync = std::env::var_os("WRAITH_SYNC").is_some();
    match receive(connection.clone(), options) {
        Ok(report) => {
            let seconds = started.elapsed().as_secs_f64();
            let rate = report.bytes_moved as f64 / seconds / 1e9;
            let mut out = std::io::stdout();
            let _ = writeln!(out, "{} files, {seconds:.3} s, {rate:.2} GB/s", report.files);
            let _ = writeln!(out, "receiver: {}", peak_memory());
            let _ = writeln!(out, "{:?}", connection.stats());
        }
        Err(error) => eprintln!("receiver: {error}"),
    }
    endpoint.close();
    let _ = sender.wait();
}
