//! Detects changes of this machine's interfaces or addresses, such as a plugged cable or a joined
//! network.
//!
//! Linux reports changes over a netlink socket, so no polling is needed. If no such socket can be
//! opened, interfaces are checked periodically instead.

use std::io;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

/// Interval of the checks without kernel notifications: the delay after a cable was plugged in.
const RESCAN_INTERVAL: Duration = Duration::from_secs(5);
/// Least interval between reports. Changes come in bursts: the link, then its addresses one by one.
const CHANGE_INTERVAL: Duration = Duration::from_secs(1);

/// Watcher of interface changes.
#[derive(Debug)]
pub struct InterfaceWatch {
    events: Option<InterfaceEvents>,
    /// A change that is not reported yet because of the interval.
    is_due: bool,
    /// Earliest time of the next report.
    next: Instant,
}

impl InterfaceWatch {
    pub fn new() -> Self {
        Self { events: InterfaceEvents::subscribe().ok(), is_due: false, next: Instant::now() }
    }

    /// Waits for a change, or for the next check if there are no notifications. Cancel-safe.
    pub async fn changed(&mut self) {
        let Some(events) = &mut self.events else {
            sleep_until(self.next + RESCAN_INTERVAL).await;
            self.next = Instant::now();
            return;
        };
        if !self.is_due {
            if events.wait().await.is_err() {
                // Notifications have stopped.
                self.events = None;
                return sleep(CHANGE_INTERVAL).await;
            }
            self.is_due = true;
        }
        sleep_until(self.next).await;
        self.is_due = false;
        self.next = Instant::now() + CHANGE_INTERVAL;
    }
}

#[cfg(target_os = "linux")]
mod netlink {
    use rustix::io::Errno;
    use rustix::net::netlink::SocketAddrNetlink;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
    use tokio::net::UnixDatagram;

    use super::io;

    /// Groups of rtnetlink(7): links, IPv4 addresses, IPv6 addresses.
    const GROUPS: u32 = 0x1 | 0x10 | 0x100;
    /// The content is ignored, so it may be truncated.
    const BUFFER_LEN: usize = 64;

    /// A subscription to the kernel's interface notifications. It is a netlink socket; as a Unix
    /// datagram socket it uses only the common operations, readiness and receive.
    #[derive(Debug)]
    pub struct InterfaceEvents(UnixDatagram);

    impl InterfaceEvents {
        pub fn subscribe() -> io::Result<Self> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            // Protocol 0 is NETLINK_ROUTE.
            let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
            bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
            UnixDatagram::from_std(socket.into()).map(Self)
        }

        /// Waits for a notification and drains all queued ones. Cancel-safe.
        pub async fn wait(&mut self) -> io::Result<()> {
            let mut buffer = [0; BUFFER_LEN];
            match self.0.recv(&mut buffer).await {
                // The kernel dropped notifications, which is a change as well.
                Err(error) if error.raw_os_error() != Some(Errno::NOBUFS.raw_os_error()) => {
                    return Err(error);
                }
                _ => while self.0.try_recv(&mut buffer).is_ok() {},
            }
            Ok(())
        }
    }
}

#[cfg(target_os = "linux")]
use netlink::InterfaceEvents;

/// Placeholder for systems without notifications.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
struct InterfaceEvents;

#[cfg(not(target_os = "linux"))]
impl InterfaceEvents {
    fn subscribe() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn wait(&mut self) -> io::Result<()> {
        std::future::pending().await
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use tokio::time::timeout;

    use super::*;

    const IN_NAMESPACE: &str = "WRAITH_TEST_IN_NAMESPACE";
    const TEST: &str = "lan::interface_watch::tests::an_interface_that_comes_up_is_reported";

    /// Runs in its own network namespace with only a loopback interface, which is down at first.
    #[test]
    fn an_interface_that_comes_up_is_reported() {
        if std::env::var_os(IN_NAMESPACE).is_some() {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            return runtime.unwrap().block_on(loopback_comes_up());
        }
        let own = std::env::current_exe().unwrap();
        let mut apart = Command::new("unshare");
        apart.args(["--user", "--map-root-user", "--net"]);
        if !matches!(apart.arg("true").status(), Ok(status) if status.success()) {
            return eprintln!("skipped: no network namespaces here");
        }
        let mut apart = Command::new("unshare");
        apart.args(["--user", "--map-root-user", "--net"]).arg(own).args(["--exact", TEST]);
        assert!(apart.env(IN_NAMESPACE, "1").status().unwrap().success());
    }

    async fn loopback_comes_up() {
        let mut watch = InterfaceWatch::new();
        assert!(watch.events.is_some(), "this is no rescan");
        let nothing = timeout(Duration::from_millis(200), watch.changed()).await;
        assert!(nothing.is_err(), "nothing has changed yet");
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
        if !matches!(up, Ok(status) if status.success()) {
            return eprintln!("skipped: there is no ip command");
        }
        timeout(Duration::from_secs(5), watch.changed()).await.unwrap();
    }
}
