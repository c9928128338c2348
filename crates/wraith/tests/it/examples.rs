//! The examples run as programs against each other, and stay within their promised length.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use wraith::{Code, Ticket};

use crate::support::{PATIENCE, file, noise, own_network};

/// A running example, killed at the end of its test.
struct Example(Child);

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Example {
    fn start(name: &str, args: &[&str]) -> Self {
        Self::start_in(Path::new("."), name, args)
    }

    /// Starts it in `folder`.
    fn start_in(folder: &Path, name: &str, args: &[&str]) -> Self {
        // This test is target/debug/deps/it-…; the examples are beside that folder.
        let deps = std::env::current_exe().unwrap();
        let path = deps.parent().unwrap().parent().unwrap().join("examples").join(name);
        let built = std::fs::metadata(&path).and_then(|there| there.modified());
        let is_new =
            built.is_ok_and(|built| built >= source(name).metadata().unwrap().modified().unwrap());
        // A test run by its name alone builds no examples.
        assert!(is_new, "{} is missing or old: cargo build --examples", path.display());
        let mut command = Command::new(&path);
        command.args(args).current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        match command.spawn() {
            Ok(child) => Self(child),
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }

    /// Writes `bytes` to its standard input and closes it.
    fn feed(&mut self, bytes: Vec<u8>) {
        let mut stdin = self.0.stdin.take().unwrap();
        thread::spawn(move || drop(stdin.write_all(&bytes)));
    }

    /// Returns its first line: a code if there is a local network, otherwise a ticket.
    fn road(&mut self) -> (String, impl Read + use<>) {
        let mut stdout = BufReader::new(self.0.stdout.take().unwrap());
        in_time(move || {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            let road = line.trim_end().to_owned();
            assert!(road.parse::<Ticket>().is_ok() || Code::looks_like(&road), "{road:?}");
            (road, stdout)
        })
    }

    /// Returns its output up to the end, which must be successful.
    fn output(mut self) -> Vec<u8> {
        let stdout = self.0.stdout.take().unwrap();
        self.rest(stdout)
    }

    fn rest(mut self, mut stdout: impl Read + Send + 'static) -> Vec<u8> {
        let bytes = in_time(move || {
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes).unwrap();
            bytes
        });
        assert!(self.0.wait().unwrap().success());
        bytes
    }
}

fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, done) = mpsc::channel();
    thread::spawn(move || drop(tell.send(work())));
    done.recv_timeout(PATIENCE).expect("an example did not say anything in time")
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{name}.rs"))
}

#[test]
fn sending_and_receiving_take_less_than_thirty_lines_each() {
    for name in ["send", "receive"] {
        let lines = std::fs::read_to_string(source(name)).unwrap().lines().count();
        assert!(lines < 30, "{name} has {lines} lines");
    }
}

#[tokio::test]
async fn the_send_and_receive_examples_transfer_files() {
    let _network = own_network();
    let folder = tempfile::tempdir().unwrap();
    let film = folder.path().join("film");
    let bytes = file(&film, 1, 4_000_000);
    let mut sending = Example::start("send", &[film.to_str().unwrap()]);
    let (road, rest) = sending.road();
    let to: PathBuf = folder.path().join("to");
    let receiving = Example::start("receive", &[&road, to.to_str().unwrap()]);
    let said = String::from_utf8(receiving.output()).unwrap();
    assert!(said.starts_with("1 files from "), "{said}");
    sending.rest(rest);
    assert!(std::fs::read(to.join("film")).unwrap() == bytes, "other bytes");
}

#[test]
fn the_example_of_the_readme_is_a_program() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let (_, rest) = readme.split_once("```rust\n").unwrap();
    let (block, _) = rest.split_once("```\n").unwrap();
    let indented: Vec<String> = block.lines().map(|line| format!("    {line}\n")).collect();
    let program = std::fs::read_to_string(source("readme")).unwrap();
    assert!(program.contains(&indented.concat()), "examples/readme.rs has not the lines\n{block}");
}

#[tokio::test]
async fn the_example_of_the_readme_sends_a_film() {
    let _network = own_network();
    // The library finds no local network on loopback alone.
    for words in [
        "link add cable type veth peer name far",
        "address add 192.0.2.1/24 dev cable",
        "link set cable up",
        "link set far up",
    ] {
        let made = Command::new("ip").args(words.split(' ')).status();
        if !made.is_ok_and(|made| made.success()) {
            eprintln!("skipped: examples::the_example_of_the_readme_sends_a_film: no network");
            return;
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let bytes = file(&folder.path().join("film.mov"), 1, 1_000_000);
    let mut sending = Example::start_in(folder.path(), "readme", &[]);
    let (code, rest) = sending.road();
    let to = folder.path().join("to");
    Example::start("receive", &[&code, to.to_str().unwrap()]).output();
    sending.rest(rest);
    assert!(std::fs::read(to.join("film.mov")).unwrap() == bytes, "other bytes");
}

#[tokio::test]
async fn a_pipe_goes_on_in_the_other_one() {
    let _network = own_network();
    let bytes = noise(2, 3_000_000);
    let mut sending = Example::start("pipe", &[]);
    sending.feed(bytes.clone());
    let (road, rest) = sending.road();
    let receiving = Example::start("pipe", &[&road]);
    assert!(receiving.output() == bytes, "other bytes");
    sending.rest(rest);
}

#[tokio::test]
async fn two_chats_hear_each_other() {
    let mut waiting = Example::start("chat", &[]);
    let (road, rest) = waiting.road();
    let mut calling = Example::start("chat", &[&road]);
    calling.feed(b"is anybody there?\n".to_vec());
    waiting.feed(b"yes\n".to_vec());
    assert_eq!(String::from_utf8(calling.output()).unwrap(), "yes\n");
    let said = String::from_utf8(waiting.rest(rest)).unwrap();
    // The code is another way to the same program, if there is a local network.
    let said = match said.split_once('\n') {
        Some((code, said)) if Code::looks_like(code) => said,
        _ => &said,
    };
    assert_eq!(said, "[connected]\nis anybody there?\n");
}
