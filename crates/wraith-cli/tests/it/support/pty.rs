//! A program at a real pseudo-terminal. All three of its streams are a terminal, and the test types
//! and reads like a person.
//!
//! ```ignore
//! let mut terminal = Terminal::start(world.wraith("receiver").args(["receive", &ticket]), 24, 80);
//! terminal.expect("Accept?");
//! terminal.send("y\n");
//! let (status, screen) = terminal.finish();
//! ```
//!
//! All output of the program is kept. [`Terminal::expect`] continues where the last call ended, so
//! each answer is expected after its question. Ctrl-C is `send("\x03")`: the terminal turns it into
//! a signal.

use std::io::{Read, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use super::process::HANG;

/// A program at a terminal. Drop kills it.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keyboard: std::fs::File,
    output: Receiver<Vec<u8>>,
    seen: Vec<u8>,
    /// Offset at which the next [`Self::expect`] starts.
    read: usize,
}

impl Terminal {
    /// Starts the command as the leader of a session with a terminal of that size, in UTF-8 and
    /// without JSON.
    pub fn start(command: &mut Command, rows: u16, columns: u16) -> Self {
        let (master, slave) = open(rows, columns);
        let fd = slave.as_raw_fd();
        command.env("TERM", "xterm-256color");
        command.stdin(Stdio::from(slave.try_clone().unwrap()));
        command.stdout(Stdio::from(slave.try_clone().unwrap()));
        command.stderr(Stdio::from(slave.try_clone().unwrap()));
        // SAFETY: only two system calls are made between fork and exec. Neither allocates nor takes
        // a lock.
        unsafe {
            command.pre_exec(move || {
                if libc::setsid() < 0 || libc::ioctl(fd, libc::TIOCSCTTY, 0) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        drop(slave);
        // The command still holds the terminal. Its end is visible only when no handle is left.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut screen = std::fs::File::from(master.try_clone().unwrap());
        let (sender, output) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // EIO: the last process at the terminal has gone.
            while let Ok(n @ 1..) = screen.read(&mut buffer) {
                if sender.send(buffer[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, keyboard: std::fs::File::from(master), output, seen: Vec::new(), read: 0 }
    }

    /// Resizes the terminal, like dragging the window.
    pub fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.keyboard, size).unwrap();
    }

    /// Stops the program and continues it, like Ctrl-Z and `fg` in a shell. The shell turns the
    /// echo on meanwhile.
    pub fn stop_and_continue(&self) {
        let program = Pid::from_child(&self.child);
        kill_process(program, Signal::STOP).unwrap();
        let mut modes = tcgetattr(&self.keyboard).unwrap();
        modes.local_modes.insert(LocalModes::ECHO);
        tcsetattr(&self.keyboard, OptionalActions::Now, &modes).unwrap();
        kill_process(program, Signal::CONT).unwrap();
    }

    /// Types the text.
    pub fn send(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until the program has written `text`. Returns the output before it since the last
    /// call. Between two words of `text`, the program may have started a new line: how a line is
    /// wrapped depends on the length of temporary paths.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> String {
        let deadline = Instant::now() + HANG;
        loop {
            let unread = &self.seen[self.read..];
            if let Some(found) = find(unread, text) {
                let before = String::from_utf8_lossy(&unread[..found.start]).into_owned();
                self.read += found.end;
                return before;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.seen.extend(bytes),
                Err(error) => {
                    let why = match error {
                        RecvTimeoutError::Timeout => "in time",
                        RecvTimeoutError::Disconnected => "before it ended",
                    };
                    panic!("{text:?} was not written {why}:\n{}", self.screen());
                }
            }
        }
    }

    /// Declines the question after a transfer with an unknown peer.
    #[track_caller]
    pub fn keep_nobody(&mut self) {
        self.expect("as a contact? Type a name, Enter for no, or never: ");
        self.send("\n");
    }

    /// Returns the process, which is also the leader of a process group.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Answers each question whenever it appears, until the end. Calls `shows` with all output each
    /// time that there is more. Returns the exit status and all output.
    pub fn attend(
        mut self,
        answers: &[(&str, &str)],
        mut shows: impl FnMut(&str),
    ) -> (ExitStatus, String) {
        let deadline = Instant::now() + HANG;
        loop {
            let unread = &self.seen[self.read..];
            let asked = answers.iter().filter_map(|(question, answer)| {
                find(unread, question).map(|found| (found.end, *answer))
            });
            if let Some((end, answer)) = asked.min_by_key(|(end, _)| *end) {
                self.read += end;
                self.send(answer);
                continue;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => {
                    self.seen.extend(bytes);
                    shows(&self.screen());
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("it does not end; it wrote:\n{}", self.screen())
                }
            }
        }
        let status = self.child.wait().unwrap();
        (status, self.screen())
    }

    /// Returns all output so far, unchanged (with the terminal's `\r\n`).
    pub fn screen(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Waits for the end. Returns the exit status and all output.
    pub fn finish(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + HANG;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.seen.extend(bytes),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("it does not end; it wrote:\n{}", self.screen())
                }
            }
        }
        let status = self.child.wait().unwrap();
        (status, self.screen())
    }

    /// Waits for the end and asserts the exit code. Returns all output.
    #[track_caller]
    pub fn expect_exit(self, code: i32) -> String {
        let (status, screen) = self.finish();
        assert_eq!(status.code(), Some(code), "{screen}");
        screen
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the first position of `text` in the output.
fn find(output: &[u8], text: &str) -> Option<Range<usize>> {
    (0..output.len()).find_map(|start| {
        let mut rest = &output[start..];
        for byte in text.bytes() {
            let wrapped = rest.strip_prefix(b"\r\n").filter(|_| byte == b' ');
            rest = wrapped.or_else(|| rest.strip_prefix(&[byte]))?;
        }
        Some(start..output.len() - rest.len())
    })
}

fn open(rows: u16, columns: u16) -> (OwnedFd, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let slave = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty()).unwrap();
    (master, slave)
}
