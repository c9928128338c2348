//! A separate Mainline DHT: nodes at consecutive addresses, each with the node ID that belongs to
//! its address (BEP 42), as nodes with public addresses have.
//!
//! Every address of the network must be one of this machine's: `ip route add local 11.2.0.0/24 dev lo`.

use std::io::{self, Read, Write};
use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};
use mainline::Dht;

/// Port of all nodes.
const PORT: u16 = 6881;
/// Maximum number of nodes: the last byte of an address, without .0 and .255.
const NODES_MAX: u8 = 254;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Address before that of the first node, such as 11.2.0.0
    #[arg(long)]
    network: Ipv4Addr,
    #[arg(long, default_value_t = 60)]
    nodes: u8,
}

/// Prints `ready` when all nodes have joined, and serves until standard input is closed.
pub fn run(args: &Args) -> Result<()> {
    ensure!((2..=NODES_MAX).contains(&args.nodes), "a network has 2 to {NODES_MAX} nodes");
    let [a, b, c, _] = args.network.octets();
    let address = |n: u8| Ipv4Addr::new(a, b, c, n);
    let first = [format!("{}:{PORT}", address(1))];
    let mut nodes = vec![start(address(1), &[])?];
    for n in 2..=args.nodes {
        nodes.push(start(address(n), &first)?);
    }
    for node in nodes.iter().skip(1) {
        #[allow(
            deprecated,
            reason = "the other form wants an executor, and this is a program that waits"
        )]
        let found = node.bootstrapped();
        ensure!(found, "a node does not find the others");
    }
    println!("ready");
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn start(address: Ipv4Addr, bootstrap: &[String]) -> Result<Dht> {
    let mut builder = Dht::builder();
    builder.server_mode().bind_address(address).public_ip(address).port(PORT).bootstrap(bootstrap);
    builder.build().with_context(|| format!("no node at {address}"))
}
