//! Completions and man pages exist for every command, and their readers accept them.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{World, skipped};

fn run(world: &World, words: &[&str]) -> String {
    // The variable must not appear in the output.
    let mut command = world.wraith("one");
    let output = command.args(words).env("WRAITH_SEND_TIMEOUT", "4711").output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the names of all commands, as listed in the help.
fn commands(world: &World) -> Vec<String> {
    let help = run(world, &["--help"]);
    let lines = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let names = lines.map_while(|line| line.split_whitespace().next().map(str::to_owned));
    let names: Vec<_> = names.filter(|name| name != "help").collect();
    assert!(names.len() >= 6, "{names:?}");
    names
}

/// Returns whether a program is installed.
fn has(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let there = command.status().is_ok();
    if !there {
        skipped(&format!("{program} is not installed"));
    }
    there
}

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
        (&["crypto", "hash", "SM"], &["SM3"]),
        (&["crypto", "mac", "CMAC-SM"], &["CMAC-SM4"]),
        (&["crypto", "genkey", "X-"], &["X-Wing"]),
        (&["crypto", "enc", "-a", "SM4-G"], &["SM4-GCM"]),
        (&["crypto", "dec", "--raw", "-a", "SM4-E"], &["SM4-ECB"]),
        (
            &["crypto", "verify", "--algorithm", "RSA-PSS"],
            &["RSA-PSS-SHA-256", "RSA-PSS-SHA-384", "RSA-PSS-SHA-512"],
        ),
        (&["crypto", "sign", "-a", "Ed"], &[]),
    ] {
        let words = [&["wraith"], words].concat();
        assert_eq!(completed(&mut Command::new("bash"), &script, &words), expected, "{words:?}");
    }
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let knows = run(&world, &["completions", shell]).contains("SM4-GCM");
        // The generators for the last two handle only commands and options.
        assert_eq!(knows, ["zsh", "fish"].contains(&shell), "{shell}");
    }
    // Completion offers one spelling; the command accepts any.
    run(&world, &["crypto", "hash", "sm_3", "/dev/null"]);
}

#[test]
fn bash_completes_the_names_of_contacts() {
    let world = World::new();
    if !has("bash") {
        return;
    }
    for name in ["anna", "anton", "bob"] {
        world.know("one", name, None);
    }
    let script = run(&world, &["completions", "bash"]);
    // The shell finds the program through PATH.
    let bin = world.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let wraith = world.wraith("one");
    std::os::unix::fs::symlink(wraith.get_program(), bin.join("wraith")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command.env("WRAITH_JSON", "true").env("PATH", path).env("WRAITH_HOME", world.path("home-one"));
    let names = completed(&mut command, &script, &["wraith", "send", "--to", "an"]);
    assert_eq!(names, ["anna", "anton"]);
    let names = completed(&mut command, &script, &["wraith", "verify", "--by", "b"]);
    assert_eq!(names, ["bob"]);
    let to = ["wraith", "crypto", "enc", "--to", "an"];
    assert!(
        completed(&mut Command::new("bash"), &script, &to).is_empty(),
        "a key file is no contact"
    );
    let fish = run(&world, &["completions", "fish"]);
    let mut of_crypto =
        fish.lines().filter(|line| line.contains("crypto;") && line.contains("-l to"));
    assert!(of_crypto.next().unwrap().ends_with("-F") && of_crypto.next().is_none());
    for (shell, expected) in [("zsh", ":NAME:{compadd -- $(env -u"), ("fish", "-a \"(env -u")] {
        assert!(run(&world, &["completions", shell]).contains(expected), "{shell}");
    }
}

#[test]
fn every_command_has_a_man_page_that_man_accepts() {
    let world = World::new();
    let folder = world.path("man");
    let dir = folder.to_str().unwrap();
    assert_eq!(run(&world, &["man", dir]), "");
    assert_eq!(run(&world, &["man"]), fs::read_to_string(folder.join("wraith.1")).unwrap());
    for command in commands(&world) {
        let page = fs::read_to_string(folder.join(format!("wraith-{command}.1"))).unwrap();
        assert!(page.contains(&format!("wraith {command}")), "{page}");
        assert!(!page.contains("4711"));
    }
    assert!(folder.join("wraith-config-set.1").exists());
    let main = fs::read_to_string(folder.join("wraith.1")).unwrap();
    assert!(main.contains("EXIT STATUS") && main.contains("peer not found"), "{main}");
    for section in ["ENVIRONMENT", "FILES", "EXAMPLES"] {
        assert!(main.contains(&format!("\n.SH {section}\n")), "{main}");
    }
    let pages = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let pages: Vec<_> = pages.collect();
    if has("groff") {
        pages
            .iter()
            .for_each(|page| assert_accepted(page, "groff", &["-man", "-ww", "-z", "-Tutf8"]));
    }
    if has("mandoc") {
        pages.iter().for_each(|page| assert_accepted(page, "mandoc", &["-Tlint", "-Wwarning"]));
    }
}

#[track_caller]
fn assert_accepted(page: &Path, program: &str, words: &[&str]) {
    let output = Command::new(program).args(words).arg(page).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.trim().is_empty(), "{}: {said}", page.display());
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
