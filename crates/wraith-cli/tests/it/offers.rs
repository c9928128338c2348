//! The offer before anything is written: its text, its questions, and the effect of the answers.

use std::fs;
use std::path::Path;

use crate::support::journal::wait_until_verified;
use crate::support::pty::Terminal;
use crate::support::{Process, World, expect_arrival, lan, tree};

/// Starts `wraith receive` at a terminal, into the target folder.
fn at_terminal(world: &World, ticket: &str, more: &[&str], rows: u16) -> Terminal {
    let mut command = world.wraith("receiver");
    command.args(["receive", "-o"]).arg(world.target()).args(more).arg(ticket);
    Terminal::start(&mut command, rows, 120)
}

fn content(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Makes a folder with some of everything that an offer points out. Parts of it exist at the
/// target.
fn gift(world: &World) -> std::path::PathBuf {
    let gift = world.tree(
        "gift",
        &[
            (".ssh/authorized_keys", 10),
            ("README", 10),
            ("aux.txt", 10),
            ("bad\x1b[2Jname", 10),
            ("big", 2_000_000),
            ("readme", 10),
            ("run.sh", 10),
        ],
    );
    tree::set_mode(&gift.join("run.sh"), 0o755);
    let there = world.target().join("gift");
    tree::file(&there.join("README"), 99, 11);
    fs::copy(gift.join("aux.txt"), there.join("aux.txt")).unwrap();
    let time = fs::metadata(gift.join("aux.txt")).unwrap().modified().unwrap();
    fs::File::options()
        .write(true)
        .open(there.join("aux.txt"))
        .unwrap()
        .set_modified(time)
        .unwrap();
    gift
}

/// The usual port of the identity, which a listener has, would link the offer with the listener.
#[test]
fn an_offer_by_code_of_the_program_has_a_port_of_its_own() {
    let _network = lan::own_network();
    let world = World::new();
    let gift = gift(&world);
    let start = |first: &'static str, args: &[&str]| {
        let mut command = world.wraith("sender");
        command.args([first, "--json", "--lan", "lo"]).args(args);
        Process::start(first, &mut command)
    };
    let gift = gift.to_str().unwrap();
    let target = world.target();
    let mut listener = start("listen", &["--accept", "always", "-o", target.to_str().unwrap()]);
    listener.event("listening");
    let id = world.node_id("sender").parse().unwrap();
    let usual = wraith_discovery::contact::usual_port(id);
    assert!(udp_ports(listener.pid()).contains(&usual));
    drop(listener);
    for args in [&["--new", gift][..], &["--new", "--ticket", gift]] {
        let mut sender = start("send", args);
        sender.event("ready");
        let ports = udp_ports(sender.pid());
        assert!(!ports.is_empty() && !ports.contains(&usual), "{ports:?}");
    }
}

/// Returns the local ports of the UDP sockets of a process.
fn udp_ports(pid: u32) -> Vec<u16> {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let links = links.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    let sockets: Vec<_> = links
        .filter_map(|link| {
            let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            Some(inode.to_owned())
        })
        .collect();
    let mut ports = Vec::new();
    for table in ["udp", "udp6"] {
        let table = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap();
        for line in table.lines().skip(1) {
            let fields: Vec<_> = line.split_whitespace().collect();
            if sockets.iter().any(|inode| inode == fields[9]) {
                let (_, port) = fields[1].split_once(':').unwrap();
                ports.push(u16::from_str_radix(port, 16).unwrap());
            }
        }
    }
    ports
}

#[test]
fn an_offer_shows_sender_size_target_and_risky_entries() {
    let world = World::new();
    let mut sender = world.send(&[gift(&world)]);
    let ready = sender.event("ready");
    let node_id = ready["node_id"].as_str().unwrap().to_owned();
    let mut terminal = at_terminal(&world, ready["ticket"].as_str().unwrap(), &[], 40);
    let offer = terminal.expect("Accept? [y/N/l = list]");
    for part in [
        &format!("Connected to {} at 127.0.0.1:", &node_id[..8]),
        &format!("{} offers gift …", &node_id[..16]),
        "7 files, 2.00 MB, the largest 2.00 MB, 2 folders",
        "at most 25 entries, 3.17 MB if it grows meanwhile",
        "free",
        "1 file already here with the same size and time, to be compared",
        "1 taken by another entry: gift/README",
        "1 hidden: gift/.ssh/authorized_keys",
        "1 executable: gift/run.sh",
        "1 that differ from another only in upper and lower case",
        "gift/readme",
        "2 that Windows cannot store (kept unchanged): gift/aux.txt, gift/bad\\x1b[2Jname",
    ] {
        assert!(offer.contains(part), "{part} is missing:\n{offer}");
    }
    terminal.send("l\n");
    let list = terminal.expect("Accept?");
    assert!(list.contains("bad\\x1b[2Jname"), "{list}");
    assert!(list.contains("rename         10 B  gift/README"), "{list}");
    assert!(list.contains("same           10 B  gift/aux.txt"), "{list}");
    assert!(list.contains("new         2.00 MB  gift/big"), "{list}");
    terminal.send("n\n");
    terminal.expect_exit(4);
    sender.finish().expect_exit(4);
    assert!(!world.target().join("gift/big").exists());
}

#[test]
fn a_refused_offer_makes_no_folder() {
    let (world, film) = World::with_file("film.mov", 1, 1000);
    let mut sender = world.send(&[film]);
    let mut command = world.wraith("receiver");
    command.args(["receive", "-o"]).arg(world.path("new/folder")).arg(sender.ticket());
    let mut terminal = Terminal::start(&mut command, 24, 80);
    terminal.expect("free");
    terminal.expect("Accept?");
    terminal.send("\n");
    terminal.expect("you declined");
    terminal.expect_exit(4);
    sender.finish().expect_exit(4);
    assert!(!world.path("new").exists());
}

#[test]
fn a_long_list_is_shown_page_by_page() {
    let world = World::new();
    tree::files(&world.source().join("many"), 30, 10, |n| format!("{n:02}"));
    let mut sender = world.send(&[world.source().join("many")]);
    let mut terminal = at_terminal(&world, &sender.ticket(), &[], 12);
    terminal.expect("Accept?");
    terminal.send("l\n");
    let page = terminal.expect("-- 10 of 31; Enter for more, q to stop --");
    assert!(page.contains("many/08") && !page.contains("many/09"), "{page}");
    terminal.send("\n");
    let page = terminal.expect("-- 20 of 31;");
    assert!(page.contains("many/09") && !page.contains("many/08"), "{page}");
    terminal.send("q\n");
    terminal.expect("Accept?");
    // One Enter too many is no answer to the offer.
    terminal.send("\n");
    terminal.expect("Accept?");
    terminal.send("y\n");
    terminal.keep_nobody();
    terminal.expect_exit(0);
    sender.succeed();
}

/// Makes three files `a`, `b` and `c` with the content "new!", which exist at the target as "old".
fn taken(world: &World) -> Vec<std::path::PathBuf> {
    let names = ["a", "b", "c"];
    for name in names {
        fs::write(world.source().join(name), "new!").unwrap();
        fs::write(world.target().join(name), "old").unwrap();
    }
    names.map(|name| world.source().join(name)).to_vec()
}

/// Offers those files to a receiver that accepts them at a terminal.
fn taken_and_accepted() -> (World, Process, Terminal) {
    let world = World::new();
    let mut sender = world.send(&taken(&world));
    let mut terminal = at_terminal(&world, &sender.ticket(), &[], 24);
    terminal.expect("3 taken by another entry: a, b, c");
    terminal.expect("Accept?");
    terminal.send("y\n");
    (world, sender, terminal)
}

#[test]
fn one_answer_settles_all_names_that_are_taken() {
    for (answer, a, copy) in [("o", "new!", false), ("s", "old", false), ("", "old", true)] {
        let (world, sender, mut terminal) = taken_and_accepted();
        terminal.expect("3 names are taken by another entry:");
        terminal.expect("[r] ");
        terminal.send("what\n");
        terminal.expect("please answer o, r, s or e");
        terminal.expect("[r] ");
        terminal.send(&format!("{answer}\n"));
        terminal.keep_nobody();
        terminal.expect_exit(0);
        sender.succeed();
        for name in ["a", "b", "c"] {
            assert_eq!(content(&world.target().join(name)), a, "{answer}");
            assert_eq!(world.target().join(format!("{name} (1)")).exists(), copy, "{answer}");
        }
    }
}

#[test]
fn each_name_that_is_taken_can_have_its_own_answer() {
    let (world, sender, mut terminal) = taken_and_accepted();
    terminal.expect("decide for [e]ach?");
    terminal.send("e\n");
    terminal.expect("a (4 B): [o]verwrite");
    terminal.send("o\n");
    terminal.expect("b (4 B): [o]verwrite");
    terminal.send("s\n");
    terminal.expect("c (4 B): [o]verwrite");
    terminal.send("R\n");
    terminal.keep_nobody();
    terminal.expect_exit(0);
    sender.succeed();
    let at = |name: &str| world.target().join(name);
    assert_eq!((content(&at("a")), content(&at("b"))), ("new!".into(), "old".into()));
    assert_eq!((content(&at("c")), content(&at("c (1)"))), ("old".into(), "new!".into()));
    assert!(!at("a (1)").exists() && !at("b (1)").exists());
}

#[test]
fn without_a_terminal_nothing_is_asked_and_the_new_one_is_renamed() {
    for (more, a, copy) in [
        (&[][..], "old", true),
        (&["--on-conflict", "ask"], "old", true),
        (&["--on-conflict", "overwrite"], "new!", false),
        (&["--on-conflict", "skip"], "old", false),
    ] {
        let world = World::new();
        let mut sender = world.send(&taken(&world));
        world.receive_with(&sender.ticket(), more).succeed();
        sender.succeed();
        assert_eq!(content(&world.target().join("a")), a, "{more:?}");
        assert_eq!(world.target().join("a (1)").exists(), copy, "{more:?}");
    }
}

fn dry_run(world: &World, wanted: &str, more: &[&str]) -> Process {
    let mut command = world.wraith("receiver");
    command.args(["receive", "--json", "--dry-run", "-o"]).arg(world.target());
    Process::start("receive", command.args(more).arg(wanted))
}

#[test]
fn a_dry_run_reports_the_plan_writes_nothing_and_keeps_the_ticket_valid() {
    let world = World::new();
    let gift = gift(&world);
    let mut sender = world.send(&[&gift]);
    let ticket = sender.ticket();
    let before = tree::names(&world.target().join("gift"));
    let looked = dry_run(&world, &ticket, &["--on-conflict", "overwrite"]).succeed();
    let action = |path: &str| {
        let of = |e: &&serde_json::Value| e["path"] == path;
        looked.all("would_receive").find(of).unwrap()["action"].clone()
    };
    assert_eq!(action("gift/README"), "overwrite");
    assert_eq!(action("gift/aux.txt"), "same");
    assert_eq!(action("gift/big"), "new");
    assert_eq!(looked.all("would_receive").count(), 9);
    assert_eq!(tree::names(&world.target().join("gift")), before);
    assert!(tree::leftovers(&world.target()).is_empty());

    world.receive_with(&ticket, &["--on-conflict", "overwrite"]).succeed();
    sender.succeed();
    assert_eq!(
        fs::read(gift.join("big")).unwrap(),
        fs::read(world.target().join("gift/big")).unwrap()
    );
}

#[test]
fn after_a_dry_run_the_same_code_fetches() {
    let _network = lan::own_network();
    let (world, film) = World::with_file("film.mov", 1, 1_000_000);
    let mut sender = world.send_by_code(&[&film], &["--lan", "lo"]);
    let code = sender.code();
    dry_run(&world, &code, &["--lan", "lo"]).succeed();
    expect_arrival(world.receive_with(&code, &["--lan", "lo"]), sender, &film, &world.target());
}

#[test]
fn a_target_that_is_renamed_while_files_come_keeps_everything() {
    let (world, films) = World::with_tree("films", &[("one", 60_000_000), ("two", 1_000_000)]);
    let mut sender = world.send(&[&films]);
    let receiver = world.receive(&sender.ticket());
    wait_until_verified(&world.target().join("films"), "one", 10);
    sender.signal(libc::SIGSTOP);
    fs::rename(world.target(), world.path("moved")).unwrap();
    sender.signal(libc::SIGCONT);
    let received = receiver.succeed();
    sender.succeed();
    tree::assert_same(&films, &world.path("moved/films"));
    assert!(tree::leftovers(&world.path("moved")).is_empty());
    let note = received.last("note")["message"].as_str().unwrap().to_owned();
    assert!(note.contains("moved during the transfer") && note.contains("/moved"), "{note}");
}
