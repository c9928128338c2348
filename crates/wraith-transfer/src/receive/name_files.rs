//! The thread that flushes complete files in batches, and gives them their names.

use wraith_files::Error;

use super::assembly::Assembly;
use super::naming::{Batch, Complete, FreeAll};
use crate::error::TransferError;

/// Flushes and names batches until the end. Calls `moved` after each flush.
pub(super) fn name_files(assembly: &Assembly<'_>, moved: impl Fn()) -> Result<(), TransferError> {
    let _freed = FreeAll(&assembly.naming);
    while let Some(batch) = assembly.naming.next() {
        let synced = assembly.books.progress.at_disk(|| sync(assembly, &batch));
        moved();
        if let Err(error) = synced {
            return Err(assembly.disk(&error));
        }
        for Complete { file, mut content, root } in batch.files {
            file.name(assembly, &mut content, root)?;
        }
    }
    Ok(())
}

fn sync(assembly: &Assembly<'_>, batch: &Batch) -> Result<(), Error> {
    for part in &batch.write_back {
        part.write_back()?;
    }
    let contents = batch.files.iter().map(|complete| &complete.content);
    assembly.target.sync_contents(contents)
}
