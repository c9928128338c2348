//! The precedence of settings: command line, environment, config file, built-in default.

use std::fs;
use std::process::{Command, Output};

use crate::support::{Process, World, tree};

fn text(output: &Output) -> (String, String) {
    let of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (of(&output.stdout), of(&output.stderr))
}

struct Config {
    world: World,
}

impl Config {
    fn new(text: &str) -> Self {
        let config = Self { world: World::new() };
        fs::create_dir_all(config.world.path("home-one")).unwrap();
        fs::write(config.path(), text).unwrap();
        config
    }

    fn path(&self) -> std::path::PathBuf {
        self.world.path("home-one/config.toml")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.world.wraith("one");
        command.env_remove("WRAITH_LAN").args(words);
        command
    }

    fn run(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(words).output().unwrap();
        let (out, err) = text(&output);
        (output.status.code(), out, err)
    }

    /// Returns one key of `wraith config list`: its value and source.
    fn setting(&self, change: impl Fn(&mut Command), key: &str) -> (String, String) {
        let mut command = self.command(&["config", "list", "--json"]);
        change(&mut command);
        let outcome = Process::start("config", &mut command).succeed();
        let all = outcome.all("setting");
        let setting = all.filter(|setting| setting["key"] == key).last().expect("the key is there");
        let of = |field: &str| setting[field].as_str().unwrap_or("-").to_owned();
        (of("value"), of("source"))
    }

    /// Checks a setting that a variable sets for all commands, and a second one for `send`.
    fn check_variables(&self, setting: &str, [common, of_send]: [(&str, &str); 2]) {
        for (command, (_, expected)) in [("send", of_send), ("receive", common)] {
            let change = |command: &mut Command| {
                command.envs([common, of_send]);
            };
            let found = self.setting(change, &format!("{command}.{setting}"));
            assert_eq!(found, pair(expected, "env"));
        }
    }
}

fn pair(value: &str, source: &str) -> (String, String) {
    (value.to_owned(), source.to_owned())
}

#[test]
fn secrets_are_hidden_in_lists_and_shown_on_request() {
    let config = Config::new("relay-token = \"topsecret\"\n");
    for words in [&["config", "list"][..], &["config", "list", "--json"]] {
        let mut command = config.command(words);
        let output = command.env("WRAITH_PROXY", "socks5://me:hushhush@proxy.test").output();
        let (out, err) = text(&output.unwrap());
        assert!(out.contains("relay-token") && out.contains("(hidden)"), "{out}");
        assert!(![&out, &err].iter().any(|text| text.contains("topsecret")), "{out}{err}");
        assert!(![&out, &err].iter().any(|text| text.contains("hushhush")), "{out}{err}");
    }
    let (_, told, _) = config.run(&["config", "get", "send.relay-token"]);
    assert_eq!(told.trim(), "topsecret");
}

#[test]
fn a_key_that_is_a_table_too_takes_nothing_away() {
    let config = Config::new("");
    config.run(&["config", "set", "relay.listen", "127.0.0.1:7711"]);
    let (code, _, err) = config.run(&["config", "set", "relay", "127.0.0.1:7800"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("send.KEY"), "{err}");
    assert!(fs::read_to_string(config.path()).unwrap().contains("127.0.0.1:7711"));
    let (code, _, err) = config.run(&["config", "set", "send.relay", "127.0.0.1:7800"]);
    assert_eq!(code, Some(0), "{err}");
}

#[test]
fn config_sources_override_in_order() {
    let config = Config::new("");
    let nothing = |_: &mut Command| ();
    assert_eq!(config.setting(nothing, "send.lan"), pair("all", "default"));
    assert_eq!(config.setting(nothing, "send.timeout"), pair("-", "default"));
    fs::write(config.path(), "lan = 'off'\n[send]\ntimeout = 7\n").unwrap();
    assert_eq!(config.setting(nothing, "send.lan"), pair("off", "file"));
    assert_eq!(config.setting(nothing, "receive.lan"), pair("off", "file"));
    assert_eq!(config.setting(nothing, "send.timeout"), pair("7", "file"));
    let env = |command: &mut Command| {
        command.env("WRAITH_LAN", "lo").env("WRAITH_SEND_TIMEOUT", "8").env("WRAITH_QUIET", "");
    };
    assert_eq!(config.setting(env, "send.lan"), pair("lo", "env"));
    assert_eq!(config.setting(env, "send.timeout"), pair("8", "env"));
    assert_eq!(config.setting(env, "quiet"), pair("false", "default"));
    assert_eq!(config.setting(env, "json"), pair("true", "flag"));
}

/// The timeout of a sender without a receiver reveals the effective value. With the value from the
/// file it gives up, otherwise it waits.
#[test]
fn arguments_override_the_config_file() {
    let (world, film) = World::with_file("film.mov", 1, 1000);
    let home = world.path("home-one");
    fs::create_dir_all(&home).unwrap();
    fs::write(
        home.join("config.toml"),
        "[send]\ntimeout = 0\nlisten = '127.0.0.1:0'\nticket = true\n",
    )
    .unwrap();
    let send = |more: &[&str], variable: Option<&str>| {
        let mut command = world.wraith("one");
        command.args(["send", "--json"]).arg(&film).args(more);
        command.envs(variable.map(|value| ("WRAITH_SEND_TIMEOUT", value)));
        Process::start("send", &mut command)
    };
    let mut from_file = send(&[], None);
    assert!(from_file.event("ready")["code"].is_null(), "ticket = true");
    from_file.finish().expect_error(3);
    // A sender that waits gets its receiver.
    for (more, variable) in [(&["--timeout", "60"][..], None), (&[][..], Some("60"))] {
        let mut sender = send(more, variable);
        let ticket = sender.ticket();
        world.receive(&ticket).succeed();
        sender.succeed();
    }
    // The command line overrides the environment. Without the file there is no timeout of 0.
    send(&["--timeout", "0"], Some("60")).finish().expect_error(3);
    let mut without = send(&["--no-config", "--ticket", "--listen", "127.0.0.1:0"], None);
    world.receive(&without.ticket()).succeed();
    without.succeed();
}

#[test]
fn settings_that_conflict_are_named() {
    let config = Config::new("relay-only = true\n[receive]\ndirect-only = true\n");
    let words = ["receive", "--dry-run", "7-crater-lemon"];
    let (code, _, err) = config.run(&words);
    assert_eq!(code, Some(2));
    assert!(err.contains("lines 1 and 3: "), "{err}");
    assert!(err.contains("relay-only and receive.direct-only exclude each other"), "{err}");
    let run = |more: &[&str], variables: &[(&str, &str)]| {
        let mut command = config.command(&[&words[..], more].concat());
        let output = command.envs(variables.iter().copied()).env("WRAITH_LAN", "off").output();
        text(&output.unwrap()).1
    };
    // Each stronger source decides.
    let resolved = |err: &str| assert!(err.contains("there is no place to look"), "{err}");
    resolved(&run(&["--direct-only"], &[]));
    resolved(&run(&[], &[("WRAITH_DIRECT_ONLY", "1")]));
    resolved(&run(&["--no-config"], &[]));
    let both = [("WRAITH_DIRECT_ONLY", "1"), ("WRAITH_RECEIVE_RELAY_ONLY", "yes")];
    let err = run(&[], &both);
    assert!(both.iter().all(|(variable, _)| err.contains(variable)), "{err}");
    resolved(&run(&["--relay-only"], &both));
    // A switch that is off conflicts with nothing, and a setting needs no other option.
    let off = [("WRAITH_DIRECT_ONLY", "1"), ("WRAITH_RELAY_ONLY", "0"), ("WRAITH_EXPIRES", "2h")];
    resolved(&run(&[], &off));
}

#[test]
fn half_of_a_certificate_is_refused_whichever_source_it_has() {
    let config = Config::new("[relay]\nkey = '/none.pem'\n");
    let (code, _, err) = config.run(&["relay", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("--key needs --certificate too"), "{err}");
    let mut whole = config.command(&["relay", "--listen", "127.0.0.1:0", "--certificate", "/none"]);
    let (_, err) = text(&whole.output().unwrap());
    assert!(err.contains("cannot use the certificate in /none"), "{err}");
}

#[test]
fn a_secret_of_the_file_is_not_in_the_help() {
    let config = Config::new("relay-token = 'topsecret'\nrelay = 'one.example,two.example'\n");
    let mut command = config.command(&["send", "--help"]);
    let output = command.env("WRAITH_PROXY", "socks5://me:hushhush@proxy.test").output().unwrap();
    let (out, _) = text(&output);
    assert!(out.contains("one.example"), "{out}");
    assert!(!out.contains("topsecret") && !out.contains("hushhush"), "{out}");
}

#[test]
fn switches_are_on_and_off_in_file_and_environment() {
    let config = Config::new("quiet = true\n");
    let film = config.world.source().join("film.mov");
    tree::file(&film, 1, 1000);
    let nobody = ["send", "--ticket", "--timeout", "0", "--listen", "127.0.0.1:0"];
    let stderr = |value: Option<&str>| {
        let mut command = config.command(&nobody);
        command.arg(&film).env("WRAITH_LAN", "off");
        command.envs(value.map(|value| ("WRAITH_QUIET", value)));
        text(&command.output().unwrap()).1
    };
    assert!(!stderr(None).contains("On the other machine"));
    assert!(stderr(Some("no")).contains("On the other machine"), "the environment goes before");
    assert!(!stderr(Some("1")).contains("On the other machine"));
}

#[test]
fn a_mistake_names_file_line_key_and_the_nearest_one() {
    let config = Config::new("# liked\n[send]\ntiemout = 5\n");
    let (code, out, err) = config.run(&["send", "/etc/hostname"]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    let path = config.path().display().to_string();
    assert!(err.contains(&format!("{path}, line 3: unknown key send.tiemout")), "{err}");
    assert!(err.contains("did you mean send.timeout?"), "{err}");

    fs::write(config.path(), "[send]\n\ncongestion = 'reno'\n").unwrap();
    let (code, _, err) = config.run(&["send", "/etc/hostname"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("line 3: key send.congestion:") && err.contains("cubic"), "{err}");

    fs::write(config.path(), "send = {\n").unwrap();
    let (code, _, err) = config.run(&["--json", "id"]);
    assert_eq!(code, Some(2), "{err}");
    // Commands that show or repair the file still work.
    for words in [&["--help"][..], &["config", "path"], &["completions", "bash"], &["--version"]] {
        assert_eq!(config.run(words).0, Some(0), "{words:?}");
    }
    assert_eq!(config.run(&["--no-config", "id"]).0, Some(0));
    assert_eq!(config.run(&["config", "list"]).0, Some(2));
    assert_eq!(config.run(&["config", "set", "json", "true"]).0, Some(2));
    assert_eq!(fs::read_to_string(config.path()).unwrap(), "send = {\n", "it is left alone");
}

#[test]
fn set_and_unset_change_one_line_and_keep_the_rest() {
    let before = "# mine\nlan = 'off' # at home\n\n[send]\nexpires = 60\n";
    let config = Config::new(before);
    assert_eq!(config.run(&["config", "set", "lan", "all"]).0, Some(0));
    assert_eq!(config.run(&["config", "set", "receive.out", "/tmp/in"]).0, Some(0));
    assert_eq!(config.run(&["config", "set", "receive.yes", "on"]).0, Some(0));
    assert_eq!(config.run(&["config", "set", "send.timeout", "9"]).0, Some(0));
    let text = fs::read_to_string(config.path()).unwrap();
    let wanted = "# mine\nlan = \"all\" # at home\n\n[send]\nexpires = 60\ntimeout = 9\n\n[receive]\n\
                  out = \"/tmp/in\"\nyes = true\n";
    assert_eq!(text, wanted);
    let get = |key: &str| config.run(&["config", "get", key]);
    assert_eq!(get("send.timeout").1, "9\n");
    assert_eq!(get("receive.yes").1, "true\n");
    assert_eq!(get("lan").1, "all\n");
    let (code, _, err) = get("timeout");
    assert!(code == Some(2) && err.contains("send.timeout"), "{err}");
    for key in ["receive.out", "receive.yes", "send.timeout"] {
        assert_eq!(config.run(&["config", "unset", key]).0, Some(0));
    }
    assert_eq!(config.run(&["config", "unset", "send.timeout"]).0, Some(2));
    assert_eq!(config.run(&["config", "set", "send.tiemout", "9"]).0, Some(2));
    assert_eq!(config.run(&["config", "set", "send.timeout", "soon"]).0, Some(2));
    let text = fs::read_to_string(config.path()).unwrap();
    assert!(!text.contains("timeout") && text.contains("# at home"), "{text}");
}

#[test]
fn an_unknown_key_can_be_taken_out() {
    let config = Config::new("frobnicate = 1\n");
    assert_eq!(config.run(&["id"]).0, Some(2));
    assert_eq!(config.run(&["config", "unset", "frobnicate"]).0, Some(0));
    assert_eq!(config.run(&["id"]).0, Some(0));
}

#[test]
fn the_file_is_in_the_home_folder() {
    let config = Config::new("");
    let (_, out, _) = config.run(&["config", "path"]);
    assert_eq!(out.trim(), config.path().display().to_string());
    let mut command = config.command(&["config", "path"]);
    command.env_remove("WRAITH_HOME").env("XDG_CONFIG_HOME", "/x/config");
    assert_eq!(text(&command.output().unwrap()).0.trim(), "/x/config/wraith/config.toml");
}

/// As a setting, it would silently redirect every `wraith send` to that contact.
#[test]
fn options_about_one_transfer_are_no_settings() {
    let config = Config::new("");
    let film = config.world.source().join("film.mov");
    tree::file(&film, 1, 1000);
    let film = film.to_str().unwrap();
    for (text, key) in [
        ("[send]\nto = 'bob'\n", "send.to"),
        ("to = 'bob'\n", "to"),
        ("[receive]\nsave-as = 'bob'\n", "receive.save-as"),
        ("[receive]\ncode = true\n", "receive.code"),
    ] {
        fs::write(config.path(), text).unwrap();
        let (code, _, err) = config.run(&["send", film, "--timeout", "0"]);
        assert_eq!(code, Some(2), "{err}");
        let line = text.lines().count();
        assert!(err.contains(&format!("line {line}: {key} belongs to a single run")), "{err}");
        assert!(err.contains("wraith send --to") || key.contains("receive"), "{err}");
    }
    fs::write(config.path(), "").unwrap();
    let (code, _, err) = config.run(&["config", "set", "send.to", "bob"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("belongs to a single run"), "{err}");
    let (_, listed, _) = config.run(&["config", "list"]);
    assert!(listed.contains("send.timeout") && !listed.contains("send.to "), "{listed}");

    // The same holds for an environment variable.
    let mut command = config.command(&["send", film, "--timeout", "0", "--ticket", "--json"]);
    command.args(["--listen", "127.0.0.1:0"]).env("WRAITH_SEND_TO", "bob");
    let outcome = Process::start("send", &mut command).finish();
    outcome.expect_error(3);
    assert_eq!(outcome.all("ready").count(), 1);
}

#[test]
fn a_variable_without_a_command_is_for_all_that_have_the_option() {
    let config = Config::new("rate = '3M'\n");
    config.check_variables("rate", [("WRAITH_RATE", "1M"), ("WRAITH_SEND_RATE", "2M")]);
    let mut command = config.command(&["send", "/nonexistent"]);
    let output = command.env("WRAITH_RATE", "soon").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).1.contains("--rate"), "{output:?}");
}

#[test]
fn a_variable_of_one_command_overrides_the_common_one() {
    let config = Config::new("");
    config.check_variables("lan", [("WRAITH_LAN", "lo"), ("WRAITH_SEND_LAN", "off")]);
    let mut command = config.command(&["send", "--json", "--timeout", "1", "Cargo.toml"]);
    let output = command.env("WRAITH_SEND_LAN", "off").output().unwrap();
    let (out, err) = text(&output);
    assert!(!err.contains("sets nothing") && !out.contains("sets nothing"), "{out}{err}");
    assert!(out.contains("no local network is allowed") || out.contains("--lan is off"), "{out}");
}

#[test]
fn a_path_in_the_file_may_begin_at_the_users_home() {
    let config = Config::new("[receive]\nout = '~/in'\n");
    let mut command = config.command(&["receive", "--dry-run", "7-crater-lemon", "--lan", "off"]);
    let home = config.path().parent().unwrap().to_owned();
    fs::write(home.join("in"), "a file").unwrap();
    let output = command.env("HOME", &home).output().unwrap();
    let (_, err) = text(&output);
    assert!(err.contains(&format!("{}/in is not a folder", home.display())), "{err}");
}

#[test]
fn a_wrong_variable_is_reported_by_list_and_doctor() {
    let config = Config::new("");
    for words in [&["config", "list"][..], &["doctor", "--lan", "off"]] {
        let output = config.command(words).env("WRAITH_SEND_RATE", "fast").output().unwrap();
        let (out, err) = text(&output);
        assert!(!output.status.success(), "{words:?}");
        let said = format!("{out}{err}");
        assert!(said.contains("WRAITH_SEND_RATE in the environment"), "{said}");
    }
}

#[test]
fn a_variable_that_sets_nothing_is_warned_about() {
    let config = Config::new("");
    let mut command = config.command(&["id"]);
    command.env("WRAITH_RECEIVE_OUTT", "x").env("WRAITH_SEND_OUT", "x").env("WRAITH_TEST_X", "x");
    let output = command.output().unwrap();
    let (out, err) = text(&output);
    assert!(output.status.success() && !out.is_empty());
    assert!(
        err.contains(
            "WRAITH_RECEIVE_OUTT in the environment sets nothing; did you mean WRAITH_RECEIVE_OUT?"
        ),
        "{err}"
    );
    assert!(err.contains("WRAITH_SEND_OUT in the environment"), "{err}");
    assert!(!err.contains("WRAITH_TEST_X") && !err.contains("WRAITH_HOME"), "{err}");
    let mut command = config.command(&["id"]);
    let (_, err) = text(&command.env("WRAITH_KERNELS", "OFF").output().unwrap());
    assert!(err.contains("WRAITH_KERNELS has the unknown value 'OFF'"), "{err}");
    // Scripts get the warning too.
    let mut command = config.command(&["id", "--json"]);
    let (out, _) = text(&command.env("WRAITH_SEND_OUT", "x").output().unwrap());
    assert!(
        out.lines().any(|line| line.contains("\"note\"") && line.contains("SEND_OUT")),
        "{out}"
    );
}

#[test]
fn a_config_file_that_is_a_pipe_is_not_waited_for() {
    let config = Config::new("");
    fs::remove_file(config.path()).unwrap();
    assert!(Command::new("mkfifo").arg(config.path()).status().unwrap().success());
    let (code, _, err) = config.run(&["id"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("is not a regular file"), "{err}");
}
