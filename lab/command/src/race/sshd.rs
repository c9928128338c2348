//! A separate sshd for scp and rsync, with keys and configuration in a temporary folder. It does
//! not touch the machine's own ssh, and ends with the race.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

const CIPHER: &str = "aes128-gcm@openssh.com";
const START_DEADLINE: Duration = Duration::from_secs(10);
/// Empty folder that sshd requires if root starts it.
const PRIVILEGE_SEPARATION: &str = "/run/sshd";

/// `sysconf(_SC_CLK_TCK)`: 100 on every current Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// A running sshd; stopped when dropped.
#[derive(Debug)]
pub struct Sshd {
    server: Child,
    client_config: PathBuf,
    made_folder: bool,
}

impl Sshd {
    /// Makes keys and configuration in `folder` and starts sshd on loopback.
    ///
    /// # Errors
    /// A program of OpenSSH is missing, or the server does not start.
    pub fn start(folder: &Path) -> Result<Self> {
        Self::start_at(folder, Ipv4Addr::LOCALHOST, |program| Command::new(program))
    }

    /// Starts sshd at another address, by the command that `command` returns for the program, such
    /// as one in another network namespace.
    pub fn start_at(
        folder: &Path,
        address: Ipv4Addr,
        command: impl FnOnce(&Path) -> Command,
    ) -> Result<Self> {
        let server = find_sshd()?;
        fs::create_dir_all(folder)?;
        for key in ["host_key", "user_key"] {
            keygen(&folder.join(key))?;
        }
        fs::copy(folder.join("user_key.pub"), folder.join("authorized_keys"))?;
        // The port stays free for a moment: no other process on a build machine takes ports at
        // random.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let client_config = write_configuration(folder, address, port)?;
        let made_folder =
            Path::new("/run").is_dir() && fs::create_dir(PRIVILEGE_SEPARATION).is_ok();
        let log = fs::File::create(folder.join("sshd.log"))?;
        let server = command(&server)
            .args(["-D", "-e", "-f"])
            .arg(folder.join("sshd_config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        let mut sshd = Self { server, client_config, made_folder };
        sshd.wait_until_it_listens(folder)?;
        Ok(sshd)
    }

    /// Options with which scp and ssh use this server as host `race`.
    pub fn client_options(&self) -> Vec<String> {
        vec!["-F".into(), self.client_config.display().to_string()]
    }

    /// Waits for the line in its log; its address may be unreachable from this namespace.
    fn wait_until_it_listens(&mut self, folder: &Path) -> Result<()> {
        let deadline = Instant::now() + START_DEADLINE;
        loop {
            let log = fs::read_to_string(folder.join("sshd.log")).unwrap_or_default();
            if log.contains("Server listening on") {
                return Ok(());
            }
            let ended = self.server.try_wait()?.is_some();
            if ended || Instant::now() > deadline {
                bail!("sshd did not start: {}", log.trim());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns the CPU time of all finished sessions and their processes. Waits until no session is
    /// left.
    ///
    /// # Errors
    /// The kernel does not report it, or a session does not end.
    pub fn sessions_cpu_seconds(&self) -> Result<f64> {
        let process = PathBuf::from(format!("/proc/{}", self.server.id()));
        let children = process.join(format!("task/{}/children", self.server.id()));
        let deadline = Instant::now() + START_DEADLINE;
        while !fs::read_to_string(&children)?.trim().is_empty() {
            ensure!(Instant::now() < deadline, "a session of sshd does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
        let stat = fs::read_to_string(process.join("stat"))?;
        // After the name in parentheses: state is field 3; cutime and cstime, in ticks, are 16 and
        // 17.
        let fields = stat.rsplit_once(')').context("no fields in stat")?.1;
        let ticks: f64 = fields
            .split_whitespace()
            .skip(16 - 3)
            .take(2)
            .filter_map(|field| field.parse::<f64>().ok())
            .sum();
        Ok(ticks / TICKS_PER_SECOND)
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        if self.made_folder {
            let _ = fs::remove_dir(PRIVILEGE_SEPARATION);
        }
    }
}

fn find_sshd() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders =
        std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let found = folders.map(|f| f.join("sshd")).find(|p| p.is_file());
    found.context("sshd is not installed (Debian: apt-get install openssh-server)")
}

fn keygen(path: &Path) -> Result<()> {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path)
        .status()
        .context("ssh-keygen is not installed")?;
    ensure!(made.success(), "ssh-keygen failed");
    Ok(())
}

fn write_configuration(folder: &Path, address: Ipv4Addr, port: u16) -> Result<PathBuf> {
    let at = |name: &str| folder.join(name).display().to_string();
    let server = format!(
        "ListenAddress {address}\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
         StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n\
         Ciphers {CIPHER}\nSubsystem sftp internal-sftp\n",
        at("host_key"),
        at("authorized_keys"),
    );
    fs::write(folder.join("sshd_config"), server)?;
    let client = format!(
        "Host race\nHostName {address}\nPort {port}\nIdentityFile {}\nIdentitiesOnly yes\n\
         UserKnownHostsFile /dev/null\nStrictHostKeyChecking no\nLogLevel ERROR\nCiphers {CIPHER}\n\
         Compression no\n",
        at("user_key"),
    );
    let path = folder.join("client_config");
    fs::write(&path, client)?;
    Ok(path)
}
