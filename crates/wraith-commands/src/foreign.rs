//! Options of other programs (croc, rsync, scp, magic-wormhole, sendme) and their replacements.

use wraith_command_text::foreign::{ForeignOption, LEFT_OUT, option};

use crate::args::crypto;
use crate::failure::{Exit, Failure};

const BOTH: &[&str] = &["send", "receive"];
const FILES: &[&str] = &["send", "receive", "listen"];

/// The first entry with the name and the command counts. The crate `wraith-crypto-commands` has the
/// entries of its commands.
const FOREIGN: &[ForeignOption] = &[
    option(
        &["--exclude", "--exclude-from", "--include", "--filter", "--ignore"],
        &["send"],
        "wraith send does not filter files by name",
        "tar c --exclude=PATTERN FOLDER | wraith send - --name FOLDER.tar",
    ),
    option(
        &["--git"],
        &["send"],
        "wraith send does not filter files by name",
        "git ls-files -z | tar c --null -T - | wraith send - --name FILES.tar",
    ),
    option(
        &["--files-from", "-T"],
        &["send"],
        "wraith send reads no list of names",
        "tar c -T LIST | wraith send - --name FILES.tar",
    ),
    option(
        &["-r", "-R", "--recursive", "-a", "--archive"],
        BOTH,
        "folders are always transferred with all their content",
        LEFT_OUT,
    ),
    option(
        &["--overwrite", "--replace"],
        FILES,
        "the receiver decides about existing files, with --on-conflict",
        "wraith receive CODE --on-conflict overwrite",
    ),
    option(
        &["--ignore-existing", "--skip-existing", "--no-clobber", "--no-overwrite"],
        FILES,
        "the receiver decides about existing files, with --on-conflict",
        "wraith receive CODE --on-conflict skip",
    ),
    option(
        &["-u", "--update", "--backup", "-b", "--rename"],
        FILES,
        "the receiver decides about existing files, with --on-conflict",
        "wraith receive CODE --on-conflict rename",
    ),
    option(
        &[
            "--delete",
            "--delete-after",
            "--delete-before",
            "--delete-during",
            "--remove-source-files",
        ],
        FILES,
        "wraith deletes no files",
        "delete them yourself once everything has arrived: wraith send FILE && rm FILE",
    ),
    option(
        &["--port", "-p", "--magic-port"],
        &["send", "listen", "rendezvous", "relay"],
        "the port is part of the address",
        "--listen PORT",
    ),
    option(
        &["--host", "--ip", "--bind", "--address"],
        &["send", "listen", "rendezvous", "relay"],
        "the address is part of --listen",
        "--listen IP:PORT",
    ),
    option(
        &["-4", "--ipv4"],
        &["send", "listen", "rendezvous", "relay"],
        "IPv4 and IPv6 are both used",
        "for IPv4 only: --listen 0.0.0.0:PORT",
    ),
    option(&["-4", "--ipv4"], &["receive"], "IPv4 and IPv6 are both used", LEFT_OUT),
    option(&["-6", "--ipv6"], FILES, "IPv4 and IPv6 are both used", LEFT_OUT),
    option(
        &[
            "-P",
            "--partial",
            "--partial-dir",
            "--append",
            "--append-verify",
            "--inplace",
            "--continue",
            "--resume",
        ],
        BOTH,
        "an interrupted transfer always continues, and a terminal shows the progress",
        "run the same command again to continue",
    ),
    option(
        &["--no-resume", "--restart"],
        BOTH,
        "an interrupted transfer always continues",
        "to start over: wraith send --new PATH",
    ),
    option(
        &["--progress", "--info", "--stats", "--human-readable", "--itemize-changes"],
        FILES,
        "a terminal always shows the progress",
        "leave the option out; --json reports the progress to programs",
    ),
    option(
        &["--no-progress", "--hide-progress", "--silent", "-s"],
        FILES,
        "--quiet turns the progress off",
        "-q",
    ),
    option(
        &[
            "--bwlimit",
            "--limit",
            "--limit-rate",
            "--max-rate",
            "--throttle",
            "--throttleUpload",
            "--throttle-upload",
        ],
        FILES,
        "--rate limits the bytes a second",
        "--rate 10M",
    ),
    option(
        &["-z", "--compress", "--compress-level", "--compression", "-C", "--zip"],
        BOTH,
        "wraith does not compress",
        "leave the option out; or: tar cz FOLDER | wraith send - --name FOLDER.tar.gz",
    ),
    option(&["--no-compress"], BOTH, "wraith does not compress", LEFT_OUT),
    option(
        &["--text", "-t", "--message", "--msg"],
        &["send"],
        "a text is sent from standard input",
        "printf '%s\\n' TEXT | wraith send -",
    ),
    option(
        &["--only-text", "--text", "-t", "--stdout", "-c"],
        &["receive"],
        "-o - writes to standard output",
        "wraith receive CODE -o -",
    ),
    option(
        &["--curve", "--pake", "--hash", "--cipher", "--cipher-spec", "--encrypt", "-e2e"],
        BOTH,
        "every transfer is encrypted, and the code is always checked in the same way",
        "leave the option out; --policy NAME limits the ciphers",
    ),
    option(
        &["--code-length", "--words", "--code-words"],
        BOTH,
        "a code always has two words, or three for several receivers; one wrong guess makes it invalid",
        "for a longer secret: wraith send --ticket PATH",
    ),
    option(
        &["--pass", "--password", "--passphrase", "--key", "-k"],
        BOTH,
        "the code is the secret of a transfer, and wraith makes it",
        "leave the option out; the password of a relay is --relay-token TOKEN",
    ),
    option(&["--pass", "--password"], &["relay"], "a relay has tokens", "--token TOKEN"),
    option(&["-c"], &["send"], "every byte is verified, and wraith makes the code", LEFT_OUT),
    option(
        &["--checksum", "--check", "--verify", "--size-only"],
        BOTH,
        "every byte is verified when it arrives",
        "leave the option out; wraith verify checks the files later",
    ),
    option(
        &["-c", "--check"],
        &["hash"],
        "wraith hash prints hashes, as b3sum does",
        "to check a list of them: b3sum -c LIST",
    ),
    option(
        &["-e", "--rsh", "-i", "-F", "-J", "--ssh"],
        BOTH,
        "wraith uses no ssh: it runs on both machines",
        LEFT_OUT,
    ),
    option(
        &["--relay6", "--relay-url", "--relay-server", "--transit-helper", "--server"],
        FILES,
        "--relay names a relay by its host name or its address",
        "--relay HOST",
    ),
    option(
        &["--appid", "--remember", "--classic", "--testing", "--ticket-type", "--magic-ipv4-addr"],
        BOTH,
        "wraith has nothing like it",
        LEFT_OUT,
    ),
    option(
        &["--tor"],
        FILES,
        "wraith reaches a relay through Tor's proxy",
        "--proxy socks5://127.0.0.1:9050 --relay HOST --relay-only",
    ),
    option(
        &["--socks5", "--socks", "--connect", "--http-proxy", "--https-proxy", "-x"],
        FILES,
        "--proxy names the proxy",
        "--proxy socks5://HOST:PORT, or --proxy http://HOST:PORT",
    ),
    option(
        &["--no-local", "--no-lan", "--no-multicast", "--no-listen"],
        FILES,
        "--lan decides about the local network",
        "--lan off",
    ),
    option(
        &["--local", "--only-local", "--lan-only"],
        FILES,
        "the local network is always tried; --dht decides about the internet",
        "--dht off --port-mapping off",
    ),
    option(
        &["--multicast", "--interface"],
        FILES,
        "--lan names the interface of the local network",
        "--lan NAME",
    ),
    option(
        &["--no-multi", "--multi", "--transfers", "--threads", "--parallel", "-j", "--streams"],
        BOTH,
        "--connections sets the number of parallel connections",
        "--connections N",
    ),
    option(
        &["--ask", "--interactive"],
        &["receive", "listen"],
        "the receiver is always asked, unless it has --yes",
        LEFT_OUT,
    ),
    option(
        &["--accept-file", "--accept", "--no-confirm", "-f"],
        &["receive"],
        "--yes accepts without asking",
        "--yes",
    ),
    option(
        &[
            "--output",
            "--dir",
            "-d",
            "--output-file",
            "--output-dir",
            "--dest",
            "--destination",
            "-O",
        ],
        &["receive", "listen"],
        "-o names the folder for received files",
        "-o DIR",
    ),
    option(
        &["--dry-run"],
        &["send"],
        "the receiver can look at the offer without receiving it",
        "wraith receive CODE --dry-run",
    ),
    option(
        &["--zeromode", "-0"],
        BOTH,
        "contacts need no code",
        "wraith send PATH --to NAME, while wraith listen runs there",
    ),
    option(
        &["--allocate"],
        &["receive"],
        "--code makes a code at the receiver",
        "wraith receive --code",
    ),
    option(
        &["--clipboard", "--copy", "--disable-clipboard", "--extended-clipboard"],
        BOTH,
        "wraith does not use the clipboard",
        LEFT_OUT,
    ),
    option(&["--no-qr"], BOTH, "a QR code is shown only with --qr", LEFT_OUT),
    option(&["--qrcode"], &["send"], "--qr shows the code as a QR code", "--qr"),
    option(&["--debug", "--trace"], FILES, "-v logs to standard error", "-vv"),
    option(
        &["--ignore-stdin"],
        BOTH,
        "standard input is read only for the path -, and for answers",
        LEFT_OUT,
    ),
    option(&["--stdin"], &["send"], "the path - is standard input", "wraith send -"),
    option(&["--format"], BOTH, "--json prints one event a line", "--json"),
    option(
        &["--max-downloads", "--downloads", "--count"],
        &["send"],
        "-n is the number of receivers",
        "-n 3, or --keep for any number",
    ),
    option(
        &["-l"],
        BOTH,
        "links are sent as links, and --rate limits the bytes a second",
        "leave the option out, or: --rate 10M",
    ),
    option(
        &["--links", "-L", "--copy-links", "--follow", "--dereference"],
        BOTH,
        "symbolic links in a folder are sent as links",
        LEFT_OUT,
    ),
    option(
        &["-p", "--perms", "--chmod", "--preserve"],
        &["receive"],
        "permissions arrive less the umask",
        "to keep all of them: wraith receive CODE --keep-modes",
    ),
    option(&["--perms", "--preserve"], &["send"], "permissions are always sent", LEFT_OUT),
    option(&["--times", "-S", "--sparse"], BOTH, "times and holes are always sent", LEFT_OUT),
    option(
        &["--owner", "-g", "--group", "-A", "--acls", "-X", "--xattrs", "-H", "--hard-links", "-D"],
        &["send", "receive"],
        "owners, access lists, attributes, hard links and devices are not transferred",
        "tar c --xattrs --acls FOLDER | wraith send - --name FOLDER.tar",
    ),
];

fn all() -> impl Iterator<Item = &'static ForeignOption> {
    FOREIGN.iter().chain(crypto::FOREIGN_OPTIONS)
}

/// Explains an option that `command` does not have. Before a command, the options of `wraith send`
/// and `wraith receive` count.
pub fn explain(name: &str, command: &str) -> Option<Failure> {
    let name = name.split('=').next().unwrap_or(name);
    let is_meant = |option: &&ForeignOption| {
        let at = option.at.contains(&command) || command.is_empty() && option.at.contains(&"send");
        option.names.contains(&name) && at
    };
    let ForeignOption { why, instead, .. } = all().find(is_meant)?;
    let message = format!("there is no option {name}: {why}");
    Some(Failure::new(Exit::Usage, message).hint(*instead))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_entry_hides_an_option_of_its_command() {
        let mut definition = crate::args::definition();
        definition.build();
        let mut hidden = Vec::new();
        for entry in all() {
            for at in entry.at {
                let command = at.split(' ').fold(&definition, |command, name| {
                    command.find_subcommand(name).expect("the command exists")
                });
                for name in entry.names {
                    let is_same = |arg: &clap::Arg| match name.strip_prefix("--") {
                        Some(long) => arg.get_long() == Some(long),
                        None => arg.get_short().is_some_and(|short| *name == format!("-{short}")),
                    };
                    if command.get_arguments().any(is_same) {
                        hidden.push(format!("{at} {name}"));
                    }
                }
            }
        }
        assert!(hidden.is_empty(), "{hidden:?}");
    }

    #[test]
    fn no_entry_hides_another() {
        let mut seen = std::collections::BTreeSet::new();
        for entry in all() {
            for pair in
                entry.at.iter().flat_map(|at| entry.names.iter().map(move |name| (at, name)))
            {
                assert!(seen.insert(pair), "{pair:?} is in two entries");
            }
        }
    }

    #[test]
    fn every_replacement_that_begins_with_an_option_is_valid_for_its_command() {
        for entry in all().filter(|entry| entry.instead.starts_with('-')) {
            let option = entry.instead.split([',', ';']).next().unwrap();
            let option = option.replace("IP:PORT", "127.0.0.1:5555").replace("PORT", "5555");
            let option = option.replace("HOST", "192.0.2.1").replace("DIR", "Downloads");
            let option = option.replace("NAME", "lo").replace("FILE", "x").replace("TOKEN", "x");
            let option = option.replace(" N", " 2");
            for at in entry.at {
                let form: &[&str] = match *at {
                    "send" => &["film.mov"],
                    "receive" => &["7-crater-lemon"],
                    _ => &[],
                };
                let words = ["wraith"].into_iter().chain(at.split(' ')).chain(form.iter().copied());
                let words: Vec<_> = words.chain(option.split(' ')).collect();
                let parsed = crate::args::definition().try_get_matches_from(&words);
                // Other options may be needed beside it, such as the key.
                let is_wrong = |error: &clap::Error| {
                    error.kind() != clap::error::ErrorKind::MissingRequiredArgument
                };
                assert!(!parsed.as_ref().is_err_and(is_wrong), "{words:?}: {parsed:?}");
            }
        }
    }

    #[test]
    fn every_replacement_that_is_a_command_line_parses() {
        let filled = |text: &str| {
            let text = text.replace("CODE", "7-crater-lemon").replace("TOKEN", "t");
            text.replace('N', "2")
        };
        for entry in all() {
            let commands = entry.instead.split(['|', ',', '&', ';']).map(str::trim);
            let commands = commands.map(|part| part.split_once(": ").map_or(part, |(_, c)| c));
            for command in commands.filter(|part| part.starts_with("wraith ")) {
                let command = command.split(" while ").next().unwrap();
                let words: Vec<_> = filled(command).split(' ').map(str::to_owned).collect();
                let parsed = crate::args::definition().try_get_matches_from(&words);
                let is_for_the_line = |error: &clap::Error| {
                    // `wraith crypto dec` stands for the command with the words that were typed.
                    error.kind() != clap::error::ErrorKind::MissingRequiredArgument
                };
                assert!(parsed.err().is_none_or(|error| !is_for_the_line(&error)), "{words:?}");
            }
        }
    }
}
