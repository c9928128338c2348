//! Command lines as users of other programs type them: they work, or the message has the words to
//! type instead.

use std::process::Stdio;

use crate::support::{Process, World, offering, tree};
use crate::usage::{assert_answers, said};

#[test]
fn options_may_precede_the_ticket() {
    let (world, film, sender, ticket) = offering(1000, &[]);
    let mut command = world.wraith("receiver");
    command.args(["-q", "--yes", "-o"]).arg(world.target()).args(["--timeout", "1m", &ticket]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "it is quiet");
    sender.succeed();
    tree::assert_same(&film, &world.target().join("film.mov"));
}

#[test]
fn options_before_a_code_have_the_effect_of_options_behind_it() {
    let world = World::new();
    let in_any_order = |before: &[&str], behind: &[&str]| {
        let code = ["7-crater-lemon"];
        let lines = [[before, &code, behind].concat(), [&code, before, behind].concat()];
        let long = [&["receive"], &lines[1][..]].concat();
        let answers = [&lines[0], &lines[1], &long].map(|words| said(&world, words, &[]));
        assert!(answers[0] == answers[1] && answers[1] == answers[2], "{answers:?}");
        answers.into_iter().next().unwrap()
    };
    let (no_place, code) = in_any_order(&["--yes"], &[]);
    assert_eq!(code, Some(2));
    assert!(no_place.contains("there is no place to look for the other side"), "{no_place}");
    let (no_folder, code) = in_any_order(&["-o", "/dev/null"], &["-y"]);
    assert_eq!(code, Some(7));
    assert!(no_folder.contains("/dev/null is not a folder"), "{no_folder}");
    let (conflict, _) = in_any_order(&["--dry-run", "-yqo", "x"], &[]);
    assert!(conflict.contains("cannot be used with"), "{conflict}");
    let help = world.wraith("one").arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains("wraith CODE"), "{help}");
}

#[test]
fn options_of_a_command_before_it_are_answered_with_the_right_order() {
    assert_answers(&[
        (&["--yes", "receive", "7-crater-lemon"], "wraith receive --yes 7-crater-lemon"),
        (&["-n", "2", "send", "film.mov"], "wraith send -n 2 film.mov"),
        (&["--yes", "recieve", "7-crater-lemon"], "did you mean receive?"),
        (&["-q", "recieve", "7-crater-lemon"], "did you mean receive?"),
        (&["--yes", "film.mov"], "to send it: wraith send film.mov"),
        (&["--yes"], "wraith receive CODE"),
        (&["-x", "send", "film.mov"], "there is no option -x: --proxy names the proxy"),
    ]);
}

#[test]
fn a_folder_behind_the_code_is_answered_with_the_command_that_names_it() {
    assert_answers(&[
        (&["receive", "7-crater-lemon", "in"], "        wraith receive 7-crater-lemon -o in\n"),
        (&["7-crater-lemon", "my dir", "-y"], "        wraith 7-crater-lemon -y -o 'my dir'\n"),
        (&["-q", "7-crater-lemon", "in"], "        wraith -q 7-crater-lemon -o in\n"),
        (&["rx", "7-crater-lemon", "in", "-o", "out"], "leave in out"),
        (&["7-crater-lemon", "8-crater-lemon"], "run it once for each code"),
        (&["7-crater-lemon", "a.txt", "b.txt"], "wraith receive CODE -o DIR"),
        (&["7", "crater", "lemom"], "the nearest are lemon"),
        (&["7", "crater", "lemon", "forset"], "the nearest are forest"),
        (&["7-crater-lemon", "-o.", "in"], "        wraith 7-crater-lemon -o in\n"),
        (&["7-crater-lemon", "-o", ".", "in"], "        wraith 7-crater-lemon -o in\n"),
        (&["7", "crater", "lemon", "my dir"], "        wraith 7 crater lemon -o 'my dir'\n"),
    ]);
}

#[test]
fn options_of_other_programs_are_answered_with_ours() {
    assert_answers(&[
        (&["send", "--text", "hello"], "printf '%s\\n' TEXT | wraith send -"),
        (&["send", "--bwlimit=1000", "film.mov"], "--rate 10M"),
        (&["send", "--progress", "film.mov"], "--json reports the progress to programs"),
        (&["send", "-avzP", "film.mov"], "folders are always transferred with all their content"),
        (&["send", "-P", "film.mov"], "run the same command again to continue"),
        (&["send", "-z", "film.mov"], "tar cz FOLDER | wraith send - --name FOLDER.tar.gz"),
        (&["send", "--exclude", "x", "film.mov"], "tar c --exclude=PATTERN FOLDER"),
        (&["send", "--code", "my-secret", "film.mov"], "without --code, wraith send makes one"),
        (&["receive", "--code", "7-crater-lemon"], "wraith receive CODE"),
        (&["receive", "--code=7-crater-lemon"], "wraith receive CODE"),
        (&["receive", "--yes=true", "7-crater-lemon"], "--yes alone turns it on"),
        (&["receive", "--yes=false", "7-crater-lemon"], "leave --yes out"),
        (&["film.mov", "host:/tmp"], "here: wraith send film.mov"),
        (&["host:/tmp/film.mov", "."], "ssh host wraith send /tmp/film.mov"),
        (&["host:my film.mov"], r"ssh host 'wraith send '\''my film.mov'\'''"),
        (&["-avzP", "film.mov", "bob@host:/tmp"], "wraith receive CODE -o /tmp"),
        (&["film.mov", "film.mov"], "wraith send film.mov film.mov"),
        (&["version"], "wraith --version"),
        (&["hash", "-c", "SUMS"], "b3sum -c LIST"),
        (&["crypto", "hash", "sha-256", "--check", "SUMS"], "sha256sum -c LIST"),
        (&["push", "film.mov"], "wraith send PATH"),
        (&["localhost:8080"], "wraith help lists the commands"),
        (&["--curve", "p256", "7-crater-lemon"], "the code is always checked in the same way"),
        (&["--overwrite", "7-crater-lemon"], "wraith receive CODE --on-conflict overwrite"),
        (&["send", "--delete", "film.mov"], "wraith send FILE && rm FILE"),
        (&["receive", "--output-file", "x", "7-crater-lemon"], "-o DIR"),
        (&["receive", "--stdout", "7-crater-lemon"], "wraith receive CODE -o -"),
        (&["send", "--socks5", "127.0.0.1:9050", "film.mov"], "--proxy socks5://HOST:PORT"),
        (&["relay", "--port", "5555"], "--listen PORT"),
        (&["relay", "--pass", "x"], "--token TOKEN"),
        (&["crypto", "enc", "-in", "film.mov"], "the input is an argument without an option"),
        (&["crypto", "enc", "-r", "key", "film.mov"], "--to FILE"),
        (&["crypto", "dec", "-i", "key", "film.mov"], "-k FILE"),
        (&["send", "--yes", "film.mov"], "it belongs to wraith receive"),
        (&["receive", "-n", "2"], "it belongs to wraith send"),
    ]);
}

#[test]
fn a_missing_value_is_answered_with_an_example() {
    assert_answers(&[
        (&["send", "film.mov", "-n", "2", "--expires"], "add it, as in --expires 1h"),
        (&["send", "film.mov", "--rate"], "add it, as in --rate 10M"),
        (&["7-crater-lemon", "-o"], "add it, as in --out Downloads"),
        (&["relay", "--listen"], "add it, as in --listen 5555"),
    ]);
}

#[test]
fn the_usage_of_an_error_shows_only_what_is_required() {
    let world = World::new();
    let log = world.path("log");
    let variables = [
        ("WRAITH_RELAY", "127.0.0.1:1"),
        ("WRAITH_POLICY", "default"),
        ("WRAITH_SEND_RATE", "1M"),
        ("WRAITH_LOG_FILE", log.to_str().unwrap()),
    ];
    for (words, usage) in [
        (&["send"][..], "usage: wraith send [OPTIONS] <PATH>...; "),
        (&["receive", "-W", "--frob"], "usage: wraith receive [OPTIONS] [CODE|TICKET]...; "),
        (
            &["crypto", "mac"],
            "usage: wraith crypto mac [OPTIONS] --key <FILE> <ALGORITHM> [FILE]...; ",
        ),
        (&["listen", "x"], "usage: wraith listen [OPTIONS]; "),
    ] {
        let (said, code) = said(&world, words, &variables);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(usage), "{words:?}: {said}");
    }
}

#[test]
fn a_port_alone_means_all_addresses_in_every_command_that_listens() {
    let (world, film) = World::with_file("film.mov", 1, 1);
    for command in ["relay", "rendezvous", "listen"] {
        for port in ["0", ":0"] {
            let mut line = world.wraith("one");
            line.args([command, "--json", "--listen", port]).current_dir(world.target());
            if command == "listen" {
                line.args(["--accept", "contacts"]);
            }
            let mut server = Process::start("server", &mut line);
            let address = server.event("listening")["address"].as_str().unwrap().to_owned();
            let all = ["[::]:", "0.0.0.0:"].iter().any(|all| address.starts_with(all));
            assert!(all && !address.ends_with(":0"), "{command}: {address}");
            server.kill();
        }
        let (said, code) = said(&world, &[command, "--listen", "5555-6000"], &[]);
        assert_eq!(code, Some(2));
        assert!(said.contains("not a range") && said.contains("a port alone"), "{said}");
    }
    let mut sender = world.send_with(&[&film], &["--listen", "0"]);
    assert!(sender.ticket().starts_with("wraith:"));
}

#[test]
fn times_take_units() {
    let (world, film) = World::with_file("film.mov", 1, 1);
    let (_server, address) = world.rendezvous();
    for (time, seconds) in [("2h", 7200), ("90", 90), ("1h30m", 5400)] {
        let place = ["--rendezvous", &address, "--expires", time];
        let mut sender = world.send_by_code(&[&film], &place);
        assert_eq!(sender.event("ready")["code_expires_seconds"], seconds);
        sender.kill();
    }
    let set = ["config", "set", "send.timeout", "1ms"];
    let (said, code) = said(&world, &set, &[]);
    assert_eq!(code, Some(2), "{said}");
    for (value, exit) in [("0m", 0), ("5 minutes ago", 2)] {
        let set = world.wraith("sender").args(["config", "set", "send.timeout", value]).output();
        assert_eq!(set.unwrap().status.code(), Some(exit), "{value}");
    }
    world.send(&[&film]).finish().expect_exit(3);
}

#[test]
fn the_hint_about_a_code_that_nobody_waits_for_names_the_option_in_use() {
    let world = World::new();
    let mut command = world.wraith("server");
    let words = ["relay", "--json", "--drain", "0", "--listen", "127.0.0.1:0"];
    let mut relay = Process::start("relay", command.args(words));
    let address = relay.event("listening")["address"].as_str().unwrap().to_owned();
    for (option, other) in [("--relay", "--rendezvous"), ("--rendezvous", "--relay")] {
        let words = ["receive", "--yes", "--timeout", "1", "7-crater-lemon", option, &address];
        let (said, code) = said(&world, &words, &[]);
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains(option) && !said.contains(other), "{said}");
    }
}

#[test]
fn the_last_line_of_an_empty_file_has_no_rate() {
    let (world, empty) = World::with_file("empty", 1, 0);
    let mut sender = world.send(&[&empty]);
    let ticket = sender.ticket();
    let mut command = world.wraith("receiver");
    let output = command.args(["receive", "-y", "-o"]).arg(world.target()).arg(&ticket).output();
    let said = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(said.contains("Received 1 file, 0 B in ") && !said.contains("/s"), "{said}");
    sender.succeed();
}
