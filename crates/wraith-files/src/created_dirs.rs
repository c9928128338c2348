//! Folders created by a transfer, kept in creation order until they get their final modes and
//! times.
//!
//! Parents are created before their contents. The reverse order is therefore valid for finishing: a
//! folder's time is set after everything in it, and permissions are removed after they were needed.

use crate::entry::Mtime;
use crate::path::RelPath;

/// Maximum buffer size in bytes: about half a million folders. Further folders keep their initial
/// mode and the time of receiving; they stay usable.
const BYTES_MAX: usize = 32 * 1024 * 1024;

/// Length of the fixed fields after the path: mode(4) ‖ seconds(8) ‖ nanoseconds(4) ‖ path
/// length(2).
const TAIL_BYTES: usize = 4 + 8 + 4 + 2;

/// Buffer of created folders; see the module documentation.
#[derive(Debug, Default)]
pub(crate) struct CreatedDirs {
    /// Records `path ‖ tail`, which can be read from the back.
    records: Vec<u8>,
    forgotten: u64,
}

impl CreatedDirs {
    pub(crate) fn push(&mut self, path: &RelPath, mode: u32, mtime: Mtime) {
        let path = path.as_bytes();
        if self.records.len() + path.len() + TAIL_BYTES > BYTES_MAX {
            self.forgotten += 1;
            return;
        }
        let len = u16::try_from(path.len()).expect("a path has at most 4096 bytes");
        self.records.extend_from_slice(path);
        self.records.extend_from_slice(&mode.to_be_bytes());
        self.records.extend_from_slice(&mtime.s.to_be_bytes());
        self.records.extend_from_slice(&mtime.ns.to_be_bytes());
        self.records.extend_from_slice(&len.to_be_bytes());
    }

    /// Returns the number of folders that did not fit.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Iterates over the folders, each after all folders in it.
    pub(crate) fn deepest_first(&self) -> impl Iterator<Item = (&[u8], u32, Mtime)> {
        let mut rest = self.records.as_slice();
        std::iter::from_fn(move || {
            let (front, len) = rest.split_last_chunk()?;
            let (front, ns) = front.split_last_chunk()?;
            let (front, s) = front.split_last_chunk()?;
            let (front, mode) = front.split_last_chunk()?;
            let (front, path) = front.split_at(front.len() - usize::from(u16::from_be_bytes(*len)));
            rest = front;
            let mtime = Mtime { s: i64::from_be_bytes(*s), ns: u32::from_be_bytes(*ns) };
            Some((path, u32::from_be_bytes(*mode), mtime))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_back_in_reverse_and_the_buffer_is_bounded() {
        let mut made = CreatedDirs::default();
        let paths = ["a", "a/b", "a/b/c", "d"].map(|path| RelPath::parse(path.as_bytes()).unwrap());
        for (n, path) in paths.iter().enumerate() {
            made.push(path, 0o750 + n as u32, Mtime { s: -(n as i64), ns: n as u32 });
        }
        let back: Vec<_> = made.deepest_first().collect();
        assert_eq!(back.len(), 4);
        assert_eq!(back[0], (b"d".as_slice(), 0o753, Mtime { s: -3, ns: 3 }));
        assert_eq!(back[3], (b"a".as_slice(), 0o750, Mtime::default()));
        let long = RelPath::parse(&[b'x'; 255]).unwrap();
        (0..200_000).for_each(|_| made.push(&long, 0, Mtime::default()));
        assert!(made.records.len() <= BYTES_MAX && made.forgotten() > 0);
    }
}
