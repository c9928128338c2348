//! Section names of an ELF file (System V ABI, chapter 4), which show whether it was stripped.

/// Returns the names of sections that only a debugger reads, or `None` if the bytes are not a
/// little-endian 64-bit ELF file.
pub fn debug_sections(program: &[u8]) -> Option<Vec<String>> {
    if program.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let table = number(program, 0x28, 8)?;
    let (size, count, names) =
        (number(program, 0x3a, 2)?, number(program, 0x3c, 2)?, number(program, 0x3e, 2)?);
    let header = |index: usize| program.get(table + index * size..)?.get(..size);
    let strings = program.get(number(header(names)?, 0x18, 8)?..)?;
    let mut found = Vec::new();
    for index in 0..count {
        let name = strings.get(number(header(index)?, 0, 4)?..)?;
        let name = String::from_utf8_lossy(name.split(|byte| *byte == 0).next()?);
        if name.starts_with(".debug_") || name == ".symtab" {
            found.push(name.into_owned());
        }
    }
    Some(found)
}

fn number(bytes: &[u8], at: usize, length: usize) -> Option<usize> {
    let mut wide = [0; 8];
    wide[..length].copy_from_slice(bytes.get(at..)?.get(..length)?);
    usize::try_from(u64::from_le_bytes(wide)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_was_not_stripped() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let sections = debug_sections(&own).unwrap();
        assert!(sections.iter().any(|name| name == ".symtab"), "{sections:?}");
    }

    #[test]
    fn non_elf_and_truncated_files_have_no_sections() {
        assert_eq!(debug_sections(b"#!/bin/sh\n"), None);
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(debug_sections(&own[..own.len() / 2]), None);
    }
}
