//! Compiled modules, kept between runs.
//!
//! Compiled code is loaded as it is, so it must come from nobody else: the cache is a folder of the
//! user's own that no other user can write, and nothing is ever loaded from a recording. A
//! file's name is a digest of the module's bytes (which embody the instrumentation) and of the
//! engine's version and settings.
//!
//! Nor may it be damaged. A file begins with a label and a digest of its name and of all the code, which is compared
//! before the engine sees any of it; what does not agree is removed and compiled again. The code is read into memory first,
//! so that what was compared is what is loaded.
//!
//! The folder that the user named may hold anything. Our files are in a folder of ours inside it,
//! and only files with our kind of name and our label are ever removed.

use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use sha2::{Digest, Sha256};
use wasmtime::{Engine, Module};

use crate::RecordError;

/// Our own folder in the one that the user named.
const FOLDER: &str = "code";
/// What our files' names end with.
const ENDING: &str = ".native";
/// What our files begin with. A SHA-256 of name and code follows, then the code.
const LABEL: &[u8; 16] = b"afterimage/code1";
const HEADER: usize = LABEL.len() + 32;
/// Beyond this many bytes the oldest files go.
const LIMIT: u64 = 4 << 30;
/// Compilations shorter than this many milliseconds are not kept.
const WORTH_KEEPING_MS: u128 = 50;

/// Where compiled modules are kept, if anywhere.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: Option<PathBuf>,
}

impl Cache {
    /// No cache.
    pub fn none() -> Self {
        Self { folder: None }
    }

    /// A cache in a folder of its own in this one, which is made if need be; no cache if one of them is not private.
    pub fn in_folder(folder: &Path) -> Self {
        let own = folder.join(FOLDER);
        let usable = private_folder(folder) && private_folder(&own);
        Self {
            folder: usable.then_some(own),
        }
    }

    /// The user's cache: `$AFTERIMAGE_CACHE`, else `afterimage` in `$XDG_CACHE_HOME` or in
    /// `~/.cache`. Where that folder cannot be made or is not private, there is no cache.
    pub fn of_user() -> Self {
        let variable = |name: &str| {
            std::env::var_os(name)
                .filter(|v| !v.is_empty())
                .map(PathBuf::from)
        };
        let folder = variable("AFTERIMAGE_CACHE")
            .or_else(|| variable("XDG_CACHE_HOME").map(|p| p.join("afterimage")))
            .or_else(|| variable("HOME").map(|p| p.join(".cache").join("afterimage")));
        match folder.filter(|folder| folder.is_absolute()) {
            Some(folder) => Self::in_folder(&folder),
            None => Self::none(),
        }
    }

    /// The module compiled, from the cache if it is there.
    pub(crate) fn compile(&self, engine: &Engine, bytes: &[u8]) -> Result<Module, RecordError> {
        let path = self
            .folder
            .as_ref()
            .map(|folder| folder.join(key(engine, bytes)));
        if let Some(path) = path.as_deref().filter(|path| private(path)) {
            if let Some(module) = load(engine, path) {
                return Ok(module);
            }
            // Damaged, or cut short: it is compiled again.
            let _ = fs::remove_file(path);
        }
        let start = Instant::now();
        let module = Module::new(engine, bytes).map_err(RecordError::compile)?;
        if let Some(path) = path
            && start.elapsed().as_millis() >= WORTH_KEEPING_MS
        {
            // A cache that cannot be written costs time, and nothing else.
            let _ = store(&path, &module);
        }
        Ok(module)
    }
}

fn key(engine: &Engine, bytes: &[u8]) -> String {
    struct Into256(Sha256);
    impl Hasher for Into256 {
        fn finish(&self) -> u64 {
            0
        }
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
    }
    let mut hasher = Into256(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.0.update(bytes);
    let mut name: String = hasher
        .0
        .finalize()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    name.push_str(ENDING);
    name
}

/// Whether only the user can have written this.
fn private(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|m| {
        !m.file_type().is_symlink()
            && m.uid() == rustix::process::geteuid().as_raw()
            && m.permissions().mode() & 0o022 == 0
    })
}

fn private_folder(folder: &Path) -> bool {
    if !folder.exists()
        && fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .is_err()
    {
        return false;
    }
    private(folder) && folder.is_dir()
}

/// The digest that belongs to code of this name.
fn digest(path: &Path, code: &[u8]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(path.file_name().unwrap_or_default().as_bytes());
    hasher.update(code);
    hasher.finalize().into()
}

/// The code in one of our files, if not a bit of it is other than it was written.
fn checked(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(LIMIT).read_to_end(&mut bytes).ok()?;
    let (label, rest) = bytes.split_at_checked(LABEL.len())?;
    let (written, code) = rest.split_at_checked(32)?;
    (label == LABEL && written == digest(path, code)).then_some(bytes)
}

fn load(engine: &Engine, path: &Path) -> Option<Module> {
    let bytes = checked(path)?;
    // SAFETY: only this user can have written the file: folder and file are owned by the user and writable by nobody
    // else. It is to the bit what `store` wrote under this name, and that came from this engine: one of
    // another version or with other settings has other names.
    #[allow(unsafe_code)]
    let loaded = unsafe { Module::deserialize(engine, &bytes[HEADER..]) };
    loaded.ok()
}

fn store(path: &Path, module: &Module) -> std::io::Result<()> {
    let code = module.serialize().map_err(std::io::Error::other)?;
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)?;
    let written = file
        .write_all(LABEL)
        .and_then(|()| file.write_all(&digest(path, &code)))
        .and_then(|()| file.write_all(&code))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written?;
    path.parent().map_or(Ok(()), |folder| trim(folder, LIMIT))
}

/// Whether a file is one of ours, by name and label: compiled code, or what somebody left who was killed while writing it.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some((key, ending)) = name.and_then(|name| name.split_at_checked(64)) else {
        return false;
    };
    let is_temporary = || {
        let process = ending.strip_prefix('.')?.strip_suffix(".tmp")?;
        process.bytes().all(|b| b.is_ascii_digit()).then_some(())
    };
    let is_key = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if !key.bytes().all(is_key) || ending != ENDING && is_temporary().is_none() {
        return false;
    }
    let mut label = [0; LABEL.len()];
    let read = |mut file: fs::File| file.read_exact(&mut label);
    private(path) && fs::File::open(path).and_then(read).is_ok() && label == *LABEL
}

/// Removes the oldest of our files while they have more than `limit` bytes.
fn trim(folder: &Path, limit: u64) -> std::io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let data = entry.metadata()?;
        if data.is_file() && is_ours(&entry.path()) {
            files.push((data.modified()?, data.len(), entry.path()));
        }
    }
    files.sort();
    let mut total: u64 = files.iter().map(|f| f.1).sum();
    for (_, size, path) in files {
        if total <= limit {
            break;
        }
        fs::remove_file(path)?;
        total -= size;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
