//! The selection of kernels, in processes with other variables.

use std::process::Command;

use wraith_kernels::detect::{Backends, KernelState, Purpose};
use wraith_kernels::kernels;

/// A kernel as another process has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    name: String,
    features: String,
    is_bulk: bool,
    state: String,
    is_available: bool,
}

/// Prints the kernels of this process, for the other tests.
#[test]
fn no_kernel_fails() {
    for kernel in kernels() {
        let state = kernel.state();
        let is_bulk = kernel.purpose() == Purpose::Bulk;
        let (name, features, available) = (kernel.name(), kernel.features(), kernel.is_available());
        println!("kernel|{name}|{features}|{is_bulk}|{state:?}|{available}");
        let is_wrong = std::env::var_os("WRAITH_WRONG_CONSTANT").is_some();
        assert!(is_wrong || state != KernelState::Failed, "{name} ({features})");
    }
}

/// Returns the kernels of a process with these variables.
fn with(variables: &[(&str, &str)]) -> Vec<Seen> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "no_kernel_fails", "--nocapture"]);
    for name in ["WRAITH_BACKENDS", "WRAITH_KERNELS", "WRAITH_WRONG_CONSTANT"] {
        command.env_remove(name);
    }
    let output = command.envs(variables.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let rows = lines.lines().filter_map(|line| line.strip_prefix("kernel|"));
    let seen: Vec<_> = rows
        .map(|row| {
            let cells: Vec<_> = row.split('|').collect();
            Seen {
                name: cells[0].to_owned(),
                features: cells[1].to_owned(),
                is_bulk: cells[2] == "true",
                state: cells[3].to_owned(),
                is_available: cells[4] == "true",
            }
        })
        .collect();
    assert_eq!(seen.len(), kernels().len());
    seen
}

#[test]
fn kernels_for_keys_need_the_choice_of_fast_backends() {
    for each in with(&[]) {
        assert_eq!(each.is_available, each.state == "Ready" && each.is_bulk, "{each:?}");
    }
    for each in with(&[("WRAITH_BACKENDS", "fast")]) {
        assert_eq!(each.is_available, each.state == "Ready", "{each:?}");
    }
}

#[test]
fn conservative_backends_and_unknown_ones_use_no_kernel() {
    for name in ["conservative", "quick"] {
        for each in with(&[("WRAITH_BACKENDS", name)]) {
            assert!(!each.is_available, "{each:?}");
        }
    }
}

#[test]
fn each_level_hides_the_instructions_above_it() {
    let all = with(&[]);
    assert_eq!(with(&[("WRAITH_KERNELS", "avx512")]), all);
    assert_eq!(with(&[("WRAITH_KERNELS", "")]), all);
    for (level, hidden) in [
        ("avx2", &["AVX-512", "IFMA"][..]),
        ("aesni", &["AVX-512", "IFMA", "AVX2", "VAES", "GFNI", "BMI2", "ADX"]),
        ("off", &[""]),
        ("sse", &[""]),
    ] {
        for (each, whole) in with(&[("WRAITH_KERNELS", level)]).iter().zip(&all) {
            let is_hidden = hidden.iter().any(|feature| each.features.contains(feature));
            let state = if is_hidden { "Unsupported" } else { &whole.state };
            assert_eq!(each.state, state, "{level}: {each:?}");
        }
    }
}

#[test]
fn the_most_conservative_request_wins() {
    // The choice belongs to the process, so this has one of its own too.
    if std::env::var_os("ALONE").is_none() {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "the_most_conservative_request_wins"]);
        command.env_remove("WRAITH_BACKENDS").env("ALONE", "1");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        return;
    }
    assert_eq!(Backends::chosen(), None);
    for (request, then) in [
        (Backends::Fast, Backends::Fast),
        (Backends::Conservative, Backends::Conservative),
        (Backends::Fast, Backends::Conservative),
    ] {
        request.request();
        assert_eq!(Backends::chosen(), Some(then));
    }
}

#[cfg(all(feature = "wrong-constant", debug_assertions))]
#[test]
fn a_wrong_constant_switches_off_the_kernels_that_use_it_and_no_other() {
    let right = with(&[("WRAITH_BACKENDS", "fast")]);
    let wrong = with(&[("WRAITH_BACKENDS", "fast"), ("WRAITH_WRONG_CONSTANT", "1")]);
    for (right, wrong) in right.iter().zip(&wrong) {
        let uses_it = ["AES-GCM", "GHASH"].contains(&right.name.as_str());
        if uses_it && right.state == "Ready" {
            assert_eq!(wrong.state, "Failed", "{wrong:?}");
            assert!(!wrong.is_available, "{wrong:?}");
        } else {
            assert_eq!(wrong, right);
        }
    }
}
