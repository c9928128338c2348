//! Completions exist for every command, shells accept them, and they offer what a user means.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::pages::{commands, has, run};
use crate::support::World;

/// Returns a program's complaint about its standard input.
fn complaint(command: &mut Command, input: &str) -> Option<String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success() || !said.is_empty()).then_some(said)
}

#[test]
fn completions_know_every_command_and_shells_accept_them() {
    let world = World::new();
    for (shell, check) in [("bash", "bash"), ("zsh", "zsh"), ("fish", "fish")] {
        let script = run(&world, &["completions", shell]);
        for command in commands(&world) {
            assert!(script.contains(&command), "{shell} does not know {command}");
        }
        assert!(script.contains("on-conflict") && !script.contains("4711"), "{shell}");
        if has(check) {
            let complaint = complaint(Command::new(check).arg("-n"), &script);
            assert_eq!(complaint, None, "{shell}");
        }
    }
    for shell in ["elvish", "powershell"] {
        assert!(run(&world, &["completions", shell]).contains("receive"));
    }
}

/// Returns the completions of the last word in a real shell, after `script`.
fn completed(bash: &mut Command, script: &str, words: &[&str]) -> Vec<String> {
    let [.., previous, last] = words else { panic!("too few words") };
    let ask = format!(
        "COMP_WORDS=({}); COMP_CWORD={}; _wraith wraith {last} {previous}\necho \"${{COMPREPLY[@]}}\"\n",
        words.join(" "),
        words.len() - 1,
    );
    bash.args(["--noprofile", "--norc"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = bash.spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{script}\n{ask}").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_algorithms() {
    let world = World::new();
    if !has("bash") {
        return;
    }
    // The user's settings must not appear in any completion.
    run(&world, &["config", "set", "json", "true"]);
    let script = run(&world, &["completions", "bash"]);
    for (words, expected) in [
        (&["send", "--conge"][..], &["--congestion"][..]),
        (&["crypto", "hash", "sm"], &["sm3"]),
        (&["crypto", "hash", "SM"], &["sm3"]),
        // The next arguments are files, which the shell completes.
        (&["crypto", "hash", "sm3", "s"], &[]),
        (&["crypto", "mac", "cmac-sm"], &["cmac-sm4"]),
        (&["crypto", "genkey", "X-"], &["x-wing"]),
        (&["crypto", "enc", "-a", "SM4-G"], &["sm4-gcm"]),
        (&["crypto", "dec", "--raw", "-a", "sm4-e"], &["sm4-ecb"]),
        (
            &["crypto", "verify", "--algorithm", "rsa-pss"],
            &["rsa-pss-sha-256", "rsa-pss-sha-384", "rsa-pss-sha-512"],
        ),
        (&["config", "set", "receive.o"], &["receive.on-conflict", "receive.out"]),
        (&["config", "unset", "qu"], &["quiet"]),
        (&["contact", "re"], &["rename", "remove"]),
        (&["receive", "-o", "my"], &[]),
        // The short form of `wraith receive`.
        (&["7-crater-lemon", "--on-conf"], &["--on-conflict"]),
        (&["7-crater-lemon", "--on-conflict", "re"], &["rename"]),
        (&["7-crater-lemon", "-o", "m"], &[]),
        // Files, not options.
        (&["send", "''"], &[]),
        (&["crypto", "sign", "-a", "Ed"], &[]),
    ] {
        let words = [&["wraith"], words].concat();
        assert_eq!(completed(&mut Command::new("bash"), &script, &words), expected, "{words:?}");
    }
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let knows = run(&world, &["completions", shell]).contains("sm4-gcm");
        // The generators for the last two handle only commands and options.
        assert_eq!(knows, ["zsh", "fish"].contains(&shell), "{shell}");
    }
    let first = completed(&mut Command::new("bash"), &script, &["wraith", "''"]);
    let commands = commands(&world);
    assert!(commands.iter().all(|command| first.contains(command)), "{first:?}");
    assert!(!first.iter().any(|word| word.starts_with('-')), "{first:?}");
    // Completion offers one spelling; the command accepts any.
    run(&world, &["crypto", "hash", "sm_3", "/dev/null"]);
}

/// A folder with the program in it, for a shell that finds it through PATH.
fn path_with_program(world: &World) -> String {
    let bin = world.path("bin");
    fs::create_dir(&bin).unwrap();
    let wraith = world.wraith("one");
    std::os::unix::fs::symlink(wraith.get_program(), bin.join("wraith")).unwrap();
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

/// A shell of a user whose settings change the program's output.
fn shell(world: &World, program: &str, path: &str) -> Command {
    let mut command = Command::new(program);
    command.env("WRAITH_JSON", "true").env("PATH", path).env("WRAITH_HOME", world.path("home-one"));
    command
}

#[test]
fn shells_complete_the_names_of_contacts() {
    let world = World::new();
    for name in ["anna", "anton", "bob"] {
        world.know("one", name, None);
    }
    let path = path_with_program(&world);
    let cases = [
        (&["send", "--to", "an"][..], &["anna", "anton"][..]),
        (&["verify", "--by", "b"], &["bob"]),
        (&["contact", "remove", "an"], &["anna", "anton"]),
        (&["contact", "rename", "b"], &["bob"]),
        // A new name, and a file with a key.
        (&["contact", "rename", "bob", "an"], &[]),
        (&["crypto", "enc", "--to", "an"], &[]),
    ];
    if has("bash") {
        let script = run(&world, &["completions", "bash"]);
        for (words, expected) in cases {
            let words = [&["wraith"], words].concat();
            let names = completed(&mut shell(&world, "bash", &path), &script, &words);
            assert_eq!(names, expected, "{words:?}");
        }
    }
    if has("fish") {
        let cases = cases
            .into_iter()
            .chain([(&["7-crater-lemon", "--on-conf"][..], &["--on-conflict"][..])]);
        let script = world.path("wraith.fish");
        fs::write(&script, run(&world, &["completions", "fish"])).unwrap();
        for (words, expected) in cases {
            let line =
                format!("source {}; complete -C 'wraith {}'", script.display(), words.join(" "));
            let output = shell(&world, "fish", &path).args(["--no-config", "-c", &line]).output();
            let names = String::from_utf8(output.unwrap().stdout).unwrap();
            // A description follows an option.
            let names = names.lines().filter_map(|line| line.split('\t').next());
            assert_eq!(names.collect::<Vec<_>>(), expected, "{words:?}");
        }
    }
}

/// Prints the line that zsh makes of each argument when the user presses Tab. A second key then
/// runs a widget, so each line is complete before it is printed.
const ZSH: &str = r#"
zmodload zsh/zpty
zpty shell zsh -f -i
line_with() { until [[ $text == *${~1}* ]]; do zpty -r shell text || exit 1; done }
zpty -w shell "PS1= RPS1= ; autoload -U compinit; compinit -u -D; source $SCRIPT; compdef _wraith wraith"
zpty -w shell 'report() { print -r -- "<$BUFFER>"; BUFFER=; }; zle -N report; bindkey "^X" report; print RE""ADY'
line_with READY
for typed in "$@"; do
    zpty -n -w shell "$typed"$'\t\x18'
    line_with '<wraith*>'
    text=${text##*<}
    print -r -- "${text%%>*}"
    text=
done
zpty -d shell
"#;

#[test]
fn zsh_completes_contacts_settings_and_options_behind_a_code() {
    let world = World::new();
    if !has("zsh") {
        return;
    }
    world.know("one", "anna", None);
    let script = world.path("wraith.zsh");
    fs::write(&script, run(&world, &["completions", "zsh"])).unwrap();
    let cases = [
        ("wraith send --to an", "wraith send --to anna "),
        ("wraith contact remove an", "wraith contact remove anna "),
        ("wraith config unset receive.ou", "wraith config unset receive.out "),
        ("wraith crypto hash sm", "wraith crypto hash sm3 "),
        ("wraith 7-crater-lemon --on-conflict ren", "wraith 7-crater-lemon --on-conflict rename "),
        (
            "wraith receive 7-crater-lemon --on-conflict ren",
            "wraith receive 7-crater-lemon --on-conflict rename ",
        ),
    ];
    let mut zsh = shell(&world, "timeout", &path_with_program(&world));
    zsh.args(["60", "zsh", "-f", "-c", ZSH, "zsh"]).args(cases.map(|(typed, _)| typed));
    let output = zsh.env("SCRIPT", script).stdin(Stdio::null()).output().unwrap();
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let expected: Vec<_> = cases.iter().map(|(_, completed)| *completed).collect();
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected, "{output:?}");
}

#[test]
fn bash_completes_the_ids_of_received_lists() {
    let world = World::new();
    if !has("bash") {
        return;
    }
    let path = path_with_program(&world);
    let film = world.file("film.mov", 1, 1000);
    let mut sender = world.send(&[film]);
    world.receive(&sender.ticket()).succeed();
    sender.succeed();
    let listed = world.wraith("receiver").args(["verify", "--list"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let id = listed.split_whitespace().next().unwrap();
    let script = run(&world, &["completions", "bash"]);
    let mut bash = shell(&world, "bash", &path);
    bash.env("WRAITH_HOME", world.path("home-receiver"));
    assert_eq!(completed(&mut bash, &script, &["wraith", "verify", &id[..3]]), [id]);
    // A folder is as good.
    let mut bash = shell(&world, "bash", &path);
    bash.env("WRAITH_HOME", world.path("home-receiver")).current_dir(world.path(""));
    let offered = completed(&mut bash, &script, &["wraith", "verify", "''"]);
    let folder = world.target().file_name().unwrap().to_str().unwrap().to_owned();
    assert!(offered.contains(&id.to_owned()) && offered.contains(&folder), "{offered:?}");
}

#[test]
fn a_closed_pipe_causes_no_panic() {
    let world = World::new();
    let mut command = world.wraith("one");
    let mut child = command
        .args(["completions", "zsh"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
}
