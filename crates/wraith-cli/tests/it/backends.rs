//! The selection of implementations: `--backends`, its variable and setting, and a kernel that
//! computes wrongly.

use serde_json::Value;

use crate::support::{Outcome, Process, World, tree, unchecked};

/// Sends a file with a variable on one side. Returns the outcomes of both sides.
fn transfer(with: (&str, &str, &str), more: &[&str]) -> (Outcome, Outcome) {
    let (world, film) = World::with_file("film.mov", 1, 3_000_000);
    let command = |side: &str| {
        let mut command = world.wraith(side);
        if with.0 == side {
            command.env(with.1, with.2);
        }
        command
    };
    let mut sender = command("sender");
    sender.args(["send", "--json", "--ticket", "--listen", "127.0.0.1:0"]).args(more).arg(&film);
    let mut sender = Process::start("send", &mut sender);
    let ticket = sender.ticket();
    let mut receiver = command("receiver");
    receiver.args(["receive", "--json", "--yes", "-o"]).arg(world.target()).arg(ticket);
    let received = Process::start("receive", &mut receiver).succeed();
    let sent = sender.succeed();
    tree::assert_same(&film, &world.target().join("film.mov"));
    (sent, received)
}

fn backend(outcome: &Outcome) -> String {
    outcome.last("connected")["backend"].as_str().unwrap().to_owned()
}

/// Returns the check of the kernels by `wraith doctor`, and the output of `wraith --version`.
fn reports(world: &World, variable: Option<(&str, &str)>) -> (Value, String) {
    let mut doctor = world.wraith("one");
    let mut version = world.wraith("one");
    for command in [&mut doctor, &mut version] {
        command.envs(variable);
    }
    let outcome = Process::start("doctor", doctor.args(["doctor", "--json"])).finish();
    let check = outcome.all("check").find(|check| check["name"] == "kernels").unwrap().clone();
    let output = version.arg("--version").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    (check, String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_kernel_with_a_wrong_constant_is_switched_off_and_the_transfer_completes() {
    let kernels = wraith_crypto::kernels().into_iter();
    let has_gcm = kernels.filter(|kernel| kernel.name() == "AES-GCM").any(|k| k.is_available());
    if !has_gcm {
        return unchecked("this processor has no kernel for AES-GCM");
    }
    let wrong = ("WRAITH_WRONG_CONSTANT", "1");
    let sides = transfer(("sender", wrong.0, wrong.1), &[]);
    assert!(backend(&sides.0).starts_with("AWS-LC"), "{}", backend(&sides.0));
    assert!(backend(&sides.1).starts_with("own ("), "{}", backend(&sides.1));
    let sides = transfer(("receiver", wrong.0, wrong.1), &[]);
    assert!(backend(&sides.0).starts_with("own ("), "{}", backend(&sides.0));
    assert!(backend(&sides.1).starts_with("AWS-LC"), "{}", backend(&sides.1));

    let (check, version) = reports(&World::new(), Some(wrong));
    assert_eq!(check["status"], "warn", "{check}");
    let found = check["found"].as_str().unwrap();
    assert!(found.contains("off after a wrong result: AES-GCM ("), "{check}");
    assert!(version.contains("off after a wrong result: AES-GCM ("), "{version}");
}

#[test]
fn conservative_backends_carry_a_transfer_with_no_kernel() {
    let (sent, received) =
        transfer(("receiver", "WRAITH_BACKENDS", "conservative"), &["--backends", "conservative"]);
    for side in [sent, received] {
        assert!(backend(&side).starts_with("AWS-LC"), "{}", backend(&side));
    }
}

#[test]
fn option_variable_and_setting_choose_and_the_option_comes_first() {
    let world = World::new();
    let none = "none, by the choice of conservative backends";
    let (check, version) = reports(&world, None);
    assert!(!version.contains(none) && !check["found"].as_str().unwrap().contains(none));
    let (check, version) = reports(&world, Some(("WRAITH_BACKENDS", "conservative")));
    assert!(version.contains(none) && check["found"] == none, "{check} {version}");

    let mut set = world.wraith("one");
    let set = set.args(["config", "set", "backends", "conservative"]).output().unwrap();
    assert!(set.status.success(), "{set:?}");
    let (check, version) = reports(&world, None);
    assert!(version.contains(none) && check["found"] == none, "{check} {version}");
    for (words, expected) in
        [(&["--no-config"][..], "for packets"), (&["--backends", "fast"], "for everything")]
    {
        let version = world.wraith("one").args(words).arg("--version").output().unwrap();
        let version = String::from_utf8(version.stdout).unwrap();
        assert!(
            version.contains(expected) || version.contains("none: this processor"),
            "{version}"
        );
    }
    let (check, version) = reports(&world, Some(("WRAITH_KERNELS", "off")));
    assert!(version.contains(none) && check["found"] == none, "{check} {version}");
    let (check, _) = reports(&world, Some(("WRAITH_BACKENDS", "fast")));
    assert!(check["found"].as_str().unwrap().starts_with("for everything"), "{check}");
    let mut doctor = world.wraith("one");
    doctor.args(["doctor", "--json", "--backends", "conservative"]).env("WRAITH_BACKENDS", "fast");
    let outcome = Process::start("doctor", &mut doctor).finish();
    assert!(outcome.all("check").any(|check| check["found"] == none));

    let mut wrong = world.wraith("one");
    let refused = wrong.args(["doctor", "--backends", "quick"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("conservative, fast"), "{said}");
}
