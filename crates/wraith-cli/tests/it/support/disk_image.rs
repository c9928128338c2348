//! A disk of one's own: ext4 in a file, mounted as a loop device.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{is_root, skipped, unchecked};

/// A mounted image; unmounted in the end.
pub struct Disk {
    image: PathBuf,
    pub at: PathBuf,
}

pub fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

impl Disk {
    /// Mounts `image` at the folder `at`, which is made. `None` where no loop device can be had.
    pub fn mount(image: &Path, at: &Path) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let mounted = succeeds(Command::new("mount").args(["-o", "loop"]).arg(image).arg(at));
        mounted.then(|| Self { image: image.to_owned(), at: at.to_owned() })
    }

    /// What would be there after a power cut now, in `image`.
    pub fn cut(&self, image: &Path) {
        fs::copy(&self.image, image).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

/// A new file system of 128 MiB at the folder `at`, its image in the folder `images`. Says why if there can be none.
pub fn disk(at: &Path, images: &Path) -> Option<Disk> {
    if !is_root() {
        skipped("mounting an image needs root");
        return None;
    }
    let image = images.join("disk.img");
    File::create(&image).unwrap().set_len(128 << 20).unwrap();
    let options = ["-q", "-F", "-m", "0", "-J", "size=16"];
    if !succeeds(Command::new("mkfs.ext4").args(options).arg(&image)) {
        skipped("there is no mkfs.ext4");
        return None;
    }
    let disk = Disk::mount(&image, at);
    if disk.is_none() {
        unchecked("this kernel mounts no loop device");
    }
    disk
}

/// A folder for images: in memory where that is possible, so that the machine's own disk has no part in it.
pub fn images() -> tempfile::TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.unwrap_or_else(|_| tempfile::tempdir().unwrap())
}
