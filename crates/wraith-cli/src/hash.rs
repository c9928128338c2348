//! `wraith hash`: the BLAKE3 of files, in the format of b3sum. It is the content id that transfers
//! report, but for sparse files with a position-free tree.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use wraith_files::shown;

use crate::args::HashArgs;
use crate::failure::{Exit, Failure, plain};
use crate::output::{Event, Reporter};

/// Large enough that BLAKE3 uses its widest kernels and the system call costs nothing.
const BUFFER_BYTES: usize = 1 << 20;

/// Prints a line for each file; goes on after one that cannot be read, and fails in the end.
pub fn run(args: &HashArgs, reporter: &Reporter) -> Result<(), Failure> {
    let mut unreadable = 0;
    let stdin = [PathBuf::from("-")];
    let files = if args.files.is_empty() { &stdin[..] } else { &args.files[..] };
    for path in files {
        let hashed = match path.as_os_str() == "-" {
            true => hash_all(io::stdin().lock()),
            false => hash_file(path),
        };
        match hashed {
            Ok(root) => {
                let root = root.to_hex();
                reporter.event(&Event::Hash { path: &path.to_string_lossy(), root: &root });
                reporter.answer(b3sum_line(&root, path));
            }
            Err(error) => {
                let name = shown(path.as_os_str().as_bytes());
                let message = format!("cannot read {name}: {}", plain(&error));
                let path = &path.to_string_lossy();
                reporter.event(&Event::HashFailed { path, message: &message });
                reporter.warn(message);
                unreadable += 1;
            }
        }
    }
    if unreadable == 0 {
        return Ok(());
    }
    let total = crate::args::units::Files(files.len() as u64);
    Err(Failure::new(Exit::Disk, format!("{unreadable} of {total} could not be read")))
}

/// The BLAKE3 of a whole file. Holes are not read, only hashed.
pub fn hash_file(path: &Path) -> io::Result<blake3::Hash> {
    let file = File::open(path)?;
    match wraith_files::sparse_file_root(&file)? {
        Some(root) => Ok(root.into()),
        None => hash_all(file),
    }
}

fn hash_all(mut file: impl Read) -> io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finalize()),
            Ok(n) => hasher.update(&buffer[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
    }
}

/// `HASH  NAME`; a backslash in front marks a name in which backslashes and line breaks are escaped, as b3sum does.
fn b3sum_line(root: &str, path: &Path) -> String {
    let name = String::from_utf8_lossy(path.as_os_str().as_bytes());
    if name.contains(['\\', '\n', '\r']) {
        let name = name.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r");
        return format!("\\{root}  {name}");
    }
    format!("{root}  {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_line_breaks_stay_on_one_line() {
        assert_eq!(b3sum_line("ab", Path::new("x y")), "ab  x y");
        assert_eq!(b3sum_line("ab", Path::new("x\n\\")), "\\ab  x\\n\\\\");
    }
}
