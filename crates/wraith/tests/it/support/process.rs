//! Resources shared by a whole process: its threads, and the port of the local network.

use std::process::Command;

/// Set in a process started for a single test.
const ALONE: &str = "WRAITH_TEST_ALONE";

/// Runs `test` alone in a process: the test of this name starts itself again there.
#[track_caller]
pub fn alone_in_a_process(name: &str, test: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some() {
        return test();
    }
    let own = std::env::current_exe().unwrap();
    let mut command = Command::new(own);
    let ran = command.args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}\n{err}");
    assert!(out.contains("1 passed"), "{name} is not the name of this test:\n{out}");
}

/// Returns the names of the library's threads in this process.
pub fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // A thread may end between the listing and the read.
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
    let names = tasks.flatten().filter_map(name).map(|name| name.trim().to_owned());
    names.filter(|name| name.starts_with("wraith-")).collect()
}
