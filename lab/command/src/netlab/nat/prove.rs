//! Proves that the NATs of the lab behave as their profiles say. A probe behind each NAT and
//! servers at two public addresses measure its mapping, filtering and port allocation. Then all
//! pairs of hosts try to reach each other.

use std::fmt::Write;
use std::net::IpAddr;
use std::path::Path;
use std::process::Stdio;
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::lab::{Host, Lab, PUBLIC, PUBLIC_V6};
use super::profile::{IPV6_FIREWALL, Profile};

/// Local port of the first punching pair; the others use the following ports.
const PUNCH_PORT: u16 = 6000;

/// Prints the measured behaviour of each profile. Fails if one is unexpected.
pub fn prove(program: &Path, profiles: &[&Profile]) -> Result<()> {
    let mut lab = Lab::new()?;
    let _servers = lab.serve_nat_probes(program)?;
    let hosts =
        profiles.iter().map(|profile| lab.host_behind(profile)).collect::<Result<Vec<_>>>()?;
    // All at once: each probe mostly waits.
    let found = thread::scope(|scope| {
        let probes: Vec<_> = profiles
            .iter()
            .zip(&hosts)
            .map(|(profile, host)| scope.spawn(move || measure(program, profile, host)))
            .collect();
        probes
            .into_iter()
            .map(|probe| probe.join().expect("a probe does not panic"))
            .collect::<Result<Vec<_>>>()
    })?;
    let mut table =
        "| access | mapping / filtering / ports / hairpin | as it should be |\n|---|---|---|\n"
            .to_owned();
    let mut wrong = Vec::new();
    for (name, found, expected) in found.into_iter().flatten() {
        let right = found == expected;
        let verdict = if right { "yes".to_owned() } else { format!("**no**: {expected}") };
        let _ = writeln!(table, "| {name} | {found} | {verdict} |");
        if !right {
            wrong.push(name);
        }
    }
    println!("{table}");
    let (pairs, mut unexpected) = prove_pairs(program, profiles, &hosts)?;
    println!("{pairs}");
    wrong.append(&mut unexpected);
    if wrong.is_empty() {
        return Ok(());
    }
    bail!("unexpected results: {}", wrong.join(", "))
}

/// Lets all pairs of hosts try to reach each other at once. Returns a table of the results, and the
/// pairs with unexpected ones.
fn prove_pairs(
    program: &Path,
    profiles: &[&Profile],
    hosts: &[Host],
) -> Result<(String, Vec<String>)> {
    let count = profiles.len();
    let pairs: Vec<_> = (0..count).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
    let direct = thread::scope(|scope| {
        let punches: Vec<_> = (PUNCH_PORT..)
            .zip(&pairs)
            .map(|(port, &(a, b))| scope.spawn(move || punch(program, &hosts[a], &hosts[b], port)))
            .collect();
        punches
            .into_iter()
            .map(|punch| punch.join().expect("a punch does not panic"))
            .collect::<Result<Vec<_>>>()
    })?;
    let names: Vec<_> = profiles.iter().map(|profile| profile.name).collect();
    let mut table = format!("| reaches | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(count));
    let mut wrong = Vec::new();
    for (a, name) in names.iter().enumerate() {
        let mut row = vec![""; count];
        for (&(_, b), &direct) in pairs.iter().zip(&direct).filter(|((of, _), _)| *of == a) {
            row[b] = if direct { "yes" } else { "no" };
            if direct != profiles[a].direct_with(profiles[b]) {
                wrong.push(format!("{name} with {}", names[b]));
            }
        }
        let _ = writeln!(table, "| {name} | {} |", row.join(" | "));
    }
    Ok((table, wrong))
}

/// Returns whether two hosts that try at once reach each other, both from this port.
fn punch(program: &Path, a: &Host, b: &Host, port: u16) -> Result<bool> {
    let start = |host: &Host, other: &Host| {
        let to = format!("{}:{port}", other.public());
        let mut command = host.command(program);
        command.args(["nat-punch", "--port", &port.to_string(), "--to", &to]);
        command.stdout(Stdio::piped()).spawn()
    };
    let sides = [start(a, b)?, start(b, a)?];
    let mut both = true;
    for side in sides {
        let out = side.wait_with_output()?;
        let report: Value =
            serde_json::from_slice(&out.stdout).context("nat-punch printed nothing")?;
        both &= report["answered_by"].is_string();
    }
    Ok(both)
}

/// Name, measured and expected behaviour, for each address family of the profile.
type Row = (String, String, &'static str);

fn measure(program: &Path, profile: &Profile, host: &Host) -> Result<Vec<Row>> {
    let name = profile.name;
    let probe = |servers: [IpAddr; 2]| {
        let servers = servers.map(|ip| ip.to_string());
        let out = host.command(program).arg("nat-probe").arg("--servers").args(servers).output()?;
        let error = String::from_utf8_lossy(&out.stderr);
        ensure!(out.status.success(), "{name}: nat-probe: {}", error.trim());
        let report: Value = serde_json::from_slice(&out.stdout).context("no JSON")?;
        describe(&report).with_context(|| format!("{name}: {report}"))
    };
    let mut rows = vec![(name.to_owned(), probe(PUBLIC.map(IpAddr::from))?, profile.expected)];
    if profile.ipv6 {
        let row = (format!("{name}, IPv6"), probe(PUBLIC_V6.map(IpAddr::from))?, IPV6_FIREWALL);
        rows.push(row);
    }
    Ok(rows)
}

/// Formats a report of `nat-probe` in the words of a profile.
fn describe(report: &Value) -> Result<String> {
    let reaches = |key: &str| report[key].as_bool().context("no verdict on TCP");
    let tcp = match (reaches("tcp_443")?, reaches("tcp_other")?) {
        (true, true) => "",
        (true, false) => ", TCP 443 only",
        (false, _) => ", no TCP to port 443",
    };
    let udp = &report["udp"];
    if udp.is_null() {
        return Ok(format!("no UDP{tcp}"));
    }
    let word = |key: &str| udp[key].as_str().with_context(|| format!("no {key}"));
    let hairpin = if udp["hairpin"] == true { "hairpin" } else { "no hairpin" };
    let (mapping, filtering) = (word("mapping")?, word("filtering")?);
    Ok(format!("{mapping} / {filtering} / {} / {hairpin}{tcp}", word("allocation")?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_reads_as_a_profile() {
        let udp = json!({ "mapping": "none", "filtering": "address-dependent", "allocation": "random", "hairpin": true });
        let report = json!({ "udp": udp, "tcp_443": true, "tcp_other": true });
        assert_eq!(describe(&report).unwrap(), "none / address-dependent / random / hairpin");
        let report = json!({ "udp": null, "tcp_443": true, "tcp_other": false });
        assert_eq!(describe(&report).unwrap(), "no UDP, TCP 443 only");
        assert!(describe(&json!({})).is_err());
    }
}
