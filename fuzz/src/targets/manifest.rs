//! Manifest entries in sequence. Invariant: paths stay inside the target folder, and each entry
//! encodes to the same bytes.

use wraith_files::{
    COMPONENT_BYTES_MAX, DEPTH_MAX, ENTRY_BYTES_MAX, Entry, FILE_BYTES_MAX, PATH_BYTES_MAX,
    RelPath, shown,
};

pub(crate) fn run(mut input: &[u8]) {
    while let Ok((entry, len)) = Entry::decode(input) {
        assert!(len <= ENTRY_BYTES_MAX);
        check_path(&entry.path);
        assert!(entry.size() <= FILE_BYTES_MAX && entry.mtime.ns < 1_000_000_000);
        let mut again = Vec::new();
        entry.encode(&mut again);
        assert_eq!(again, input[..len]);
        let _ = entry.leads_out(|top| top == b"a");
        input = &input[len..];
    }
    // Refused names are shown to people, without characters that would control their terminal.
    assert!(shown(input).chars().all(|c| !c.is_control()));
}

fn check_path(path: &RelPath) {
    assert!((1..=PATH_BYTES_MAX).contains(&path.as_bytes().len()));
    assert!(path.depth() <= DEPTH_MAX);
    for component in path.components() {
        assert!(!matches!(component, b"" | b"." | b".."));
        assert!(component.len() <= COMPONENT_BYTES_MAX);
        assert!(!component.contains(&0) && !component.contains(&b'/'));
    }
    assert!(path.display().to_string().chars().all(|c| !c.is_control()));
    if let Some(parent) = path.parent() {
        check_path(&parent);
        assert_eq!(parent.join(path.file_name()).as_ref(), Ok(path));
    }
}
