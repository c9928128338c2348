//! A disk for one test: a file system in a file, mounted as a loop device.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{is_root, skipped, unchecked};

/// The file system of an image.
#[derive(Clone, Copy, Debug)]
pub enum FileSystem {
    Ext4,
    /// Ext4 with inodes of 128 bytes, as on ext3: no creation times, times in whole seconds.
    Ext4SmallInodes,
    Xfs,
    Btrfs,
}

impl FileSystem {
    /// Returns the size of an image in MiB, as small as mkfs allows.
    fn usual_size(self) -> u64 {
        match self {
            Self::Ext4 | Self::Ext4SmallInodes => 128,
            Self::Xfs => 320,
            Self::Btrfs => 256,
        }
    }

    /// Makes the file system in `image`.
    fn make(self, image: &Path, mib: u64) -> Result<(), &'static str> {
        let (program, options): (_, &[&str]) = match self {
            Self::Ext4 => ("mkfs.ext4", &["-q", "-F", "-m", "0", "-J", "size=16"]),
            Self::Ext4SmallInodes => {
                ("mkfs.ext4", &["-q", "-F", "-m", "0", "-J", "size=16", "-I", "128"])
            }
            Self::Xfs => ("mkfs.xfs", &["-q", "-f"]),
            Self::Btrfs => ("mkfs.btrfs", &["-q", "-f"]),
        };
        File::create(image).unwrap().set_len(mib << 20).unwrap();
        let missing = match self {
            Self::Ext4 | Self::Ext4SmallInodes => "there is no mkfs.ext4",
            Self::Xfs => "there is no mkfs.xfs",
            Self::Btrfs => "there is no mkfs.btrfs",
        };
        let made = succeeds(Command::new(program).args(options).arg(image));
        made.then_some(()).ok_or(missing)
    }

    /// Returns mount options that also allow a copy beside its original.
    fn mount_options(self) -> &'static str {
        match self {
            Self::Ext4 | Self::Ext4SmallInodes | Self::Btrfs => "loop",
            Self::Xfs => "loop,nouuid",
        }
    }
}

/// A mounted image. Drop unmounts it.
pub struct Disk {
    image: PathBuf,
    holds: FileSystem,
    pub at: PathBuf,
}

pub fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

impl Disk {
    /// Mounts `image` at the folder `at`, which it creates. Returns `None` without a loop device.
    fn mount(image: &Path, holds: FileSystem, at: &Path) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let options = ["-o", holds.mount_options()];
        let mounted = succeeds(Command::new("mount").args(options).arg(image).arg(at));
        mounted.then(|| Self { image: image.to_owned(), holds, at: at.to_owned() })
    }

    /// Copies the disk as after a power cut now, into `image`, beside this disk's own image on a
    /// [`Shelf`]. The copy is a snapshot of a single moment, even during writes.
    pub fn cut(&self, image: &Path) {
        let (now, copy) = (File::open(&self.image).unwrap(), File::create(image).unwrap());
        rustix::fs::ioctl_ficlone(&copy, &now).expect("a snapshot of the image");
    }

    /// Mounts a copy made by [`Self::cut`] at the folder `at`.
    pub fn mount_cut(&self, image: &Path, at: &Path) -> Self {
        Self::mount(image, self.holds, at).expect("the copy mounts")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

/// Makes a new file system at the folder `at`, with its image in the folder `images`. Reports the
/// reason if that is impossible.
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

/// Makes a folder for images: in memory if possible, so that the machine's own disk plays no part.
pub fn images() -> tempfile::TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// A folder for images that can be copied atomically, on XFS, which shares the blocks of a copy. A
/// copy read block by block would mix several moments while any process or the kernel writes.
pub struct Shelf {
    disk: Disk,
    _images: tempfile::TempDir,
}

impl Shelf {
    /// Maximum size; unused space costs nothing.
    const MIB: u64 = 4096;

    /// Makes the folder. Reports the reason if that is impossible.
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
