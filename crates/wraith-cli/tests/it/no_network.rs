//! A machine without a network reports that at once, instead of a ticket that no receiver can use.

use std::process::{Command, Stdio};

use crate::support::cable::copy_environment;
use crate::support::{World, is_root, skipped};

/// Runs wraith with only the interfaces that `set_up` makes. Returns its output and exit code.
fn alone(world: &World, set_up: &str, words: &[&str]) -> (String, String, Option<i32>) {
    let wraith = world.wraith("one");
    let mut command = Command::new("unshare");
    let script = format!("{set_up} exec \"$0\" \"$@\"");
    command.args(["-n", "sh", "-c", &script]).arg(wraith.get_program()).args(words);
    copy_environment(&wraith, &mut command);
    command.env("WRAITH_LAN", "all");
    let output = command.current_dir(world.source()).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stderr), text(output.stdout), output.status.code())
}

const LOOPBACK: &str = "ip link set lo up;";

/// Returns a world with a file, or `None` if no machine without a network can be made.
fn unconnected() -> Option<World> {
    if !is_root() {
        skipped("a machine without a network is made with unshare, which needs root");
        return None;
    }
    Some(World::with_file("film.mov", 1, 1).0)
}

#[test]
fn without_any_address_nothing_is_offered() {
    let Some(world) = unconnected() else { return };
    let (said, printed, code) = alone(&world, "", &["send", "film.mov"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("no address at which a receiver could reach it"), "{said}");
    assert!(said.contains("connect this machine to a network"), "{said}");
    assert!(printed.is_empty(), "{printed}");
}

#[test]
fn a_ticket_with_loopback_only_is_marked_as_local() {
    let Some(world) = unconnected() else { return };
    let words = ["send", "--timeout", "1", "film.mov"];
    let (said, printed, code) = alone(&world, LOOPBACK, &words);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("works on this machine only"), "{said}");
    assert!(printed.starts_with("wraith receive wraith:"), "{printed}");
}

#[test]
fn the_doctor_calls_nothing_ok_that_is_not_there() {
    let Some(world) = unconnected() else { return };
    for (set_up, addresses, expected) in [("", "fail", 1), (LOOPBACK, "warn", 0)] {
        let (said, printed, code) = alone(&world, set_up, &["doctor"]);
        assert_eq!(code, Some(expected), "{printed}{said}");
        let status = |name: &str| {
            let line =
                printed.lines().find(|line| line.get(6..).is_some_and(|l| l.starts_with(name)));
            line.map(|line| line[..6].trim().to_owned()).unwrap_or_default()
        };
        assert_eq!(status("addresses"), addresses, "{printed}");
        assert_eq!(status("links (MTU)"), "none", "{printed}");
        assert_eq!(status("rendezvous"), "none", "{printed}");
        assert_eq!(status("local network"), "warn", "{printed}");
        assert_eq!(status("config file"), "none", "{printed}");
    }
}
