//! Patches: the requested bytes of a file with a local old copy (SPEC §10.11). [`super::delta`]
//! requests them. A patched chunk is claimed like every other chunk ([`Incoming::claim`]).

use std::ops::Range;
use std::sync::Arc;

use wraith_files::{Error, PartFile, Tree, chunk_len};

use super::assembly::Assembly;
use super::incoming::{Carrier, Incoming, PeerId};
use crate::error::TransferError;

/// Handles the requested bytes of one chunk. Returns true if the file is resolved.
pub(super) fn receive_patch(
    assembly: &Assembly<'_>,
    peer: PeerId,
    file: &Arc<Incoming>,
    index: u64,
    body: &[&[u8]],
) -> Result<bool, TransferError> {
    let part = file.claim(assembly, peer, index..index + 1, Carrier::Patch)?;
    let Some((missing, cv)) = assembly.deltas.take(file.entry(), index) else {
        return Err(file.violation("bytes that were not asked for"));
    };
    let len: usize = body.iter().map(|slice| slice.len()).sum();
    if len != missing.iter().map(|range| range.len()).sum() {
        return Err(file.violation("more or fewer bytes than were asked for"));
    }
    let disk = |error: Error| assembly.disk(&error);
    let chunk_bytes = chunk_len(file.bytes(), index);
    if len == chunk_bytes {
        if Tree::Blake3.chunk_cv(index, body) != cv {
            return Err(file.refuse(assembly, peer, index));
        }
        part.write_chunk(index, body, cv).map_err(disk)?;
    } else {
        let chunk = patched(&part, index, chunk_bytes, &missing, body).map_err(disk)?;
        if Tree::Blake3.chunk_cv(index, &[&chunk]) != cv {
            return Err(file.refuse(assembly, peer, index));
        }
        part.write_chunk(index, &[&chunk], cv).map_err(disk)?;
    }
    drop(part);
    assembly.books.bytes_moved(len as u64);
    file.add_bytes(assembly, chunk_bytes as u64);
    file.written(assembly, peer, 1)
}

/// Returns the chunk with its known bytes from the part file and the others from `body`.
fn patched(
    part: &PartFile,
    index: u64,
    chunk_bytes: usize,
    missing: &[Range<usize>],
    body: &[&[u8]],
) -> Result<Vec<u8>, Error> {
    let mut chunk = vec![0; chunk_bytes];
    part.read_unverified(index, &mut chunk)?;
    fill_in(&mut chunk, missing, body);
    Ok(chunk)
}

/// Copies `body` into the `missing` ranges of `chunk`. Both have the same total length.
fn fill_in(chunk: &mut [u8], missing: &[Range<usize>], body: &[&[u8]]) {
    let mut slices = body.iter().copied().filter(|slice| !slice.is_empty());
    let mut rest: &[u8] = &[];
    for range in missing {
        let mut gap = &mut chunk[range.clone()];
        while !gap.is_empty() {
            if rest.is_empty() {
                rest = slices.next().expect("there are as many bytes as are missing");
            }
            let len = gap.len().min(rest.len());
            let (now, later) = gap.split_at_mut(len);
            now.copy_from_slice(&rest[..len]);
            (gap, rest) = (later, &rest[len..]);
        }
    }
}
