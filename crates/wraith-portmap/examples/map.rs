//! Requests a UDP port from this machine's router, shows the status, and gives the port back after
//! a line of input.
//!
//! ```console
//! $ cargo run -p wraith-portmap --example map -- 4433
//! ```

use std::num::NonZeroU16;

use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use wraith_portmap::{Gateway, PortMapping, Status};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let port = std::env::args().nth(1).and_then(|port| port.parse::<NonZeroU16>().ok());
    let Some(port) = port else { return eprintln!("which local UDP port? (1 to 65535)") };
    println!("gateway: {:?}", Gateway::of_default_route());
    let mapping = PortMapping::request(port);
    let mut status = mapping.status();
    let mut lines = BufReader::new(stdin()).lines();
    let mut told = Status::Requesting;
    println!("{told}");
    loop {
        tokio::select! {
            _ = lines.next_line() => break,
            changed = status.changed() => {
                if changed.is_err() {
                    break;
                }
                told = status.borrow_and_update().clone();
                println!("{told}");
            }
        }
    }
    mapping.release().await;
    println!("given back (it was: {told})");
}
