//! A disk of one's own: a file system in a file, mounted as a loop device.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{is_root, skipped, unchecked};

/// What an image holds.
#[derive(Clone, Copy, Debug)]
pub enum FileSystem {
    Ext4,
    Xfs,
    Btrfs,
}

impl FileSystem {
    /// MiB of an image; as few as the file system's own program allows.
    fn usual_size(self) -> u64 {
        match self {
            Self::Ext4 => 128,
            Self::Xfs => 320,
            Self::Btrfs => 256,
        }
    }

    /// Makes it in `image`.
    fn make(self, image: &Path, mib: u64) -> Result<(), &'static str> {
        let (program, options): (_, &[&str]) = match self {
            Self::Ext4 => ("mkfs.ext4", &["-q", "-F", "-m", "0", "-J", "size=16"]),
            Self::Xfs => ("mkfs.xfs", &["-q", "-f"]),
            Self::Btrfs => ("mkfs.btrfs", &["-q", "-f"]),
        };
        File::create(image).unwrap().set_len(mib << 20).unwrap();
        let missing = match self {
            Self::Ext4 => "there is no mkfs.ext4",
            Self::Xfs => "there is no mkfs.xfs",
            Self::Btrfs => "there is no mkfs.btrfs",
        };
        let made = succeeds(Command::new(program).args(options).arg(image));
        made.then_some(()).ok_or(missing)
    }

    /// How an image of it is mounted, also beside the one that it is a copy of.
    fn mount_options(self) -> &'static str {
        match self {
            Self::Ext4 | Self::Btrfs => "loop",
            Self::Xfs => "loop,nouuid",
        }
    }
}

/// A mounted image; unmounted in the end.
pub struct Disk {
    image: PathBuf,
    holds: FileSystem,
    pub at: PathBuf,
}

pub fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

impl Disk {
    /// Mounts `image` at the folder `at`, which is made. `None` where no loop device can be had.
    fn mount(image: &Path, holds: FileSystem, at: &Path) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let options = ["-o", holds.mount_options()];
        let mounted = succeeds(Command::new("mount").args(options).arg(image).arg(at));
        mounted.then(|| Self { image: image.to_owned(), holds, at: at.to_owned() })
    }

    /// What would be there after a power cut now, in `image`, beside this disk's own image on a [`Shelf`]: all of one moment,
    /// whatever is being written.
    pub fn cut(&self, image: &Path) {
        let (now, copy) = (File::open(&self.image).unwrap(), File::create(image).unwrap());
        rustix::fs::ioctl_ficlone(&copy, &now).expect("a snapshot of the image");
    }

    /// Mounts what [`Self::cut`] left in `image`, at the folder `at`.
    pub fn mount_cut(&self, image: &Path, at: &Path) -> Self {
        Self::mount(image, self.holds, at).expect("the copy mounts")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

/// A new file system at the folder `at`, its image in the folder `images`. Says why if there can be none.
pub fn disk(holds: FileSystem, at: &Path, images: &Path) -> Option<Disk> {
    disk_of(holds, holds.usual_size(), at, images)
}

fn disk_of(holds: FileSystem, mib: u64, at: &Path, images: &Path) -> Option<Disk> {
    if !is_root() {
        skipped("mounting an image needs root");
        return None;
    }
    let image = images.join("disk.img");
    if let Err(missing) = holds.make(&image, mib) {
        skipped(missing);
        return None;
    }
    let disk = Disk::mount(&image, holds, at);
    if disk.is_none() {
        unchecked("this kernel does not mount such an image");
    }
    disk
}

/// A folder for images: in memory where that is possible, so that the machine's own disk has no part in it.
pub fn images() -> tempfile::TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// A folder for images that can be copied in one moment: on XFS, which shares the blocks of a copy. A copy that is read block by
/// block is of many moments while anybody writes, the kernel itself included, and so of none that ever was.
pub struct Shelf {
    disk: Disk,
    _images: tempfile::TempDir,
}

impl Shelf {
    /// Of this size at most; what is not used costs nothing.
    const MIB: u64 = 4096;

    /// Says why if there can be none.
    pub fn new() -> Option<Self> {
        let images = images();
        let at = images.path().join("shelf");
        let disk = disk_of(FileSystem::Xfs, Self::MIB, &at, images.path())?;
        Some(Self { disk, _images: images })
    }

    pub fn path(&self) -> &Path {
        &self.disk.at
    }
}
