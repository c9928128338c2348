//! Counts the packets that a host sends to destinations other than the relay: the cost of finding a
//! direct path.

use std::process::Stdio;

use anyhow::{Context, Result};
use serde_json::Value;

use super::lab::{Host, PUBLIC, PUBLIC_V6, load};

/// Starts counting UDP packets that leave the host for destinations other than the relay, in a
/// separate nftables table.
pub fn count(host: &Host) -> Result<()> {
    let (v4, v6) = (PUBLIC, PUBLIC_V6);
    load(
        |program| host.command(program),
        &format!(
            "table inet spent {{
                counter probes {{ }}
                chain out {{ type filter hook output priority 0;
                    oifname wan meta l4proto udp ip daddr != {{ {} }} counter name probes
                    oifname wan meta l4proto udp ip6 daddr != {{ {} }} counter name probes
                }}
            }}",
            v4.map(|ip| ip.to_string()).join(", "),
            v6.map(|ip| ip.to_string()).join(", "),
        ),
    )
}

/// Returns the count so far.
pub fn so_far(host: &Host) -> Result<u64> {
    let out = host
        .command("nft")
        .args(["-j", "list", "counter", "inet", "spent", "probes"])
        .stderr(Stdio::inherit())
        .output()?;
    let json: Value = serde_json::from_slice(&out.stdout).context("nft -j printed no JSON")?;
    let counters = json["nftables"].as_array().context("nft -j printed no list")?;
    let found = counters.iter().find_map(|entry| entry["counter"]["packets"].as_u64());
    found.context("nft does not know the counter")
}
