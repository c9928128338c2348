//! A TUN device: a network interface whose packets a program reads and writes, one whole IP packet
//! per call.
//!
//! Invariant: the device exists as long as this value. Nothing remains, in whatever way the program
//! ends.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use anyhow::{Context, Result, ensure};
use rustix::fs::{Mode, OFlags};

const CLONE_DEVICE: &str = "/dev/net/tun";
/// `IFNAMSIZ` of linux/if.h, the final zero included.
const NAME_BYTES: usize = 16;

/// One end of a link, seen from the link.
#[derive(Debug)]
pub struct Tun(OwnedFd);

impl Tun {
    /// Creates the interface `name` in this thread's network namespace; it can be moved to another.
    pub fn create(name: &str) -> Result<Self> {
        ensure!(name.len() < NAME_BYTES, "{name} is too long for an interface");
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open(CLONE_DEVICE, flags, Mode::empty())
            .with_context(|| format!("cannot open {CLONE_DEVICE}"))?;
        attach::attach(&fd, name).with_context(|| format!("cannot make the interface {name}"))?;
        Ok(Self(fd))
    }

    /// Reads the next packet that the kernel sends; `None` if there is none yet.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.0, buffer) {
            Ok(len) => Ok(Some(len)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a packet for the kernel to receive.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        rustix::io::write(&self.0, packet)?;
        Ok(())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The only call for which our dependencies have no safe wrapper.
#[allow(unsafe_code)]
mod attach {
    use std::ffi::c_int;
    use std::os::fd::OwnedFd;

    use rustix::ioctl::{Setter, ioctl, opcode};

    /// `_IOW('T', 202, int)` of linux/if_tun.h; its argument is a `struct ifreq` all the same.
    const TUNSETIFF: rustix::ioctl::Opcode = opcode::write::<c_int>(b'T', 202);
    /// Whole IP packets, no Ethernet header.
    const IFF_TUN: u16 = 0x0001;
    /// No header of four bytes in front of each packet.
    const IFF_NO_PI: u16 = 0x1000;

    /// `struct ifreq`: the name, then a union of 24 bytes whose first two are the flags for this
    /// call.
    #[repr(C)]
    struct InterfaceRequest {
        name: [u8; super::NAME_BYTES],
        flags: u16,
        rest: [u8; 22],
    }

    /// Makes the interface `name`, which is shorter than [`super::NAME_BYTES`], and attaches it to
    /// `fd`.
    pub(super) fn attach(fd: &OwnedFd, name: &str) -> rustix::io::Result<()> {
        let mut request = InterfaceRequest {
            name: [0; super::NAME_BYTES],
            flags: IFF_TUN | IFF_NO_PI,
            rest: [0; 22],
        };
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        // SAFETY: TUNSETIFF reads and writes one `struct ifreq`. `InterfaceRequest` has its layout,
        // size and alignment (40 bytes on all 64-bit systems). The setter owns it until the call
        // returns, and `fd` is open.
        unsafe { ioctl(fd, Setter::<TUNSETIFF, InterfaceRequest>::new(request)) }
    }
}
