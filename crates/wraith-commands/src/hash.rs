//! `wraith hash`: prints BLAKE3 hashes of files in the format of b3sum. They are the content ids
//! that transfers report, except for sparse files with a position-free tree.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use wraith_command_text::sum_line;
use wraith_command_text::units::Files;
use wraith_files::shown;

use crate::args::HashArgs;
use crate::failure::{Exit, Failure, plain};
use crate::output::{Event, Reporter};

/// Large enough for BLAKE3's widest kernels, and to make the system call negligible.
const BUFFER_BYTES: usize = 1 << 20;

/// Prints a line for each file. Continues after an unreadable file, and fails at the end.
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
                let name = path.to_string_lossy();
                reporter.event(&Event::Hash { path: &name, root: &root });
                // Bytes that are not UTF-8 are replaced, as in b3sum.
                reporter.print(sum_line(&root, name.as_bytes()));
            }
            Err(error) => {
                let name = shown(path.as_os_str().as_bytes());
                let message = format!("cannot read {name}: {}", plain(&error));
                reporter.unreadable(&path.to_string_lossy(), &message);
                unreadable += 1;
            }
        }
    }
    if unreadable == 0 {
        return Ok(());
    }
    let total = Files(files.len() as u64);
    Err(Failure::new(Exit::Disk, format!("{unreadable} of {total} could not be read")))
}

/// Returns the BLAKE3 hash of a whole file. Holes are hashed without reading them.
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
