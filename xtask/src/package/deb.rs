//! A Debian package (deb(5)): an `ar` archive of `debian-binary`, `control.tar.gz` and
//! `data.tar.gz`. The format takes one page to describe, so packaging needs only Rust.

use anyhow::Result;

use super::layout::{File, Layout, debian_architecture, tar_gz};

pub fn archive(layout: &Layout) -> Result<Vec<u8>> {
    let control = File { path: "control".into(), mode: 0o644, bytes: control(layout).into_bytes() };
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", tar_gz(".", &[control], layout.time)?),
        ("data.tar.gz", layout.tar_gz(".")?),
    ];
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        let (time, size) = (layout.time, bytes.len());
        // name(16) time(12) owner(6) group(6) mode(8) size(10), and a terminator of two bytes.
        let header = format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, "100644");
        archive.extend_from_slice(header.as_bytes());
        archive.extend_from_slice(&bytes);
        if size % 2 == 1 {
            archive.push(b'\n');
        }
    }
    Ok(archive)
}

fn control(layout: &Layout) -> String {
    let depends = match &layout.glibc {
        Some(version) => format!("Depends: libc6 (>= {version}), libgcc-s1\n"),
        None => String::new(),
    };
    format!(
        "Package: wraith\nVersion: {version}\nArchitecture: {architecture}\n\
         Maintainer: the wraith developers <wraith@localhost>\nInstalled-Size: {kilobytes}\n{depends}\
         Section: net\nPriority: optional\n\
         Description: move files privately and directly between machines\n \
         Encrypted, verified and resumable, without account or server: one side sends, says\n \
         a code of a number and two words, and the other side receives.\n",
        version = layout.version,
        architecture = debian_architecture(),
        kilobytes = layout.bytes().div_ceil(1024),
    )
}
