//! How many packets a host has sent to others than the relay: what it spends on a way of its own.

use std::process::Stdio;

use anyhow::{Context, Result};
use serde_json::Value;

use super::lab::{Host, PUBLIC, PUBLIC_V6, load};

/// Counts UDP that is neither to the relay's addresses nor stays on the host, in a table of its own.
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

/// So many until now.
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
