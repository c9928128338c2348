//! One-line description of the machine on which figures are taken.

use std::fs;
use std::process::Command;

/// Cores, processor, kernel.
pub fn hardware() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("?");
    let model = model.trim_start_matches([' ', '\t', ':']);
    let cores = info.lines().filter(|line| line.starts_with("processor")).count();
    format!("{cores} cores ({model}), {}", says("uname", &["-sr"]))
}

/// Average number of processes that wanted a core during the last minute. If it is much higher than
/// the number of cores, the machine was busy.
pub fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or("?").to_owned()
}

/// The current date in UTC.
pub fn today() -> String {
    says("date", &["-u", "+%Y-%m-%d"])
}

fn says(program: &str, words: &[&str]) -> String {
    let out = Command::new(program).args(words).output();
    out.map_or_else(|_| "?".into(), |out| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}
