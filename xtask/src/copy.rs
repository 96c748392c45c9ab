//! Copies folders so that Cargo does not consider repeated copies changed.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Copies a folder with its contents, for packages that are a few levels deep. `change` receives
/// each file's path in the folder and its contents, and returns the contents of the copy. An
/// existing copy with the same contents is not written again, and keeps its time.
///
/// # Errors
/// Returns an error if something cannot be read or written, or `change` fails.
pub fn folder(
    from: &Path,
    to: &Path,
    change: impl Fn(&Path, Vec<u8>) -> Result<Vec<u8>>,
) -> Result<()> {
    let mut waiting = vec![from.to_owned()];
    while let Some(folder) = waiting.pop() {
        let target = to.join(folder.strip_prefix(from)?);
        fs::create_dir_all(&target).with_context(|| format!("cannot make {}", target.display()))?;
        for entry in
            fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?
        {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                waiting.push(path);
                continue;
            }
            let bytes =
                fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let name = path.strip_prefix(from)?;
            file(&to.join(name), &change(name, bytes)?)?;
        }
    }
    Ok(())
}

/// Returns the contents unchanged.
///
/// # Errors
/// Never returns an error.
pub fn as_it_is(_: &Path, bytes: Vec<u8>) -> Result<Vec<u8>> {
    Ok(bytes)
}

/// Writes a file, unless it already contains `bytes`.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn file(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
