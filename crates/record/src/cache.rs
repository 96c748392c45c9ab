//! Caches compiled modules, and the counts of earlier runs.
//!
//! The engine does not check the compiled code that it loads, so this code must be the user's own.
//! The cache is a folder that belongs to the user and that no other user can write to. Nothing is
//! ever loaded from a recording. The name of a file of compiled code is a digest of the module's
//! bytes, which include the instrumentation, and of the engine's version and settings. The name of
//! a file of counts is a digest of the program's module.
//!
//! Damaged code must not be loaded either. Each file of code begins with a label and a digest of
//! its name and code. We check the digest before the engine gets the code. A file that does not
//! match is removed and the module is compiled again. The code is read into memory first, so the
//! engine gets exactly the bytes that we checked.
//!
//! The folder that the user names may contain other files. Our files are in separate subfolders,
//! and we remove only files whose names and labels show that they are ours.

use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use afterimage_ids::Counts;
use afterimage_trace::{CountsLens, Existing, LABEL as TRACE_LABEL, TraceFile, TraceWriter};
use sha2::{Digest, Sha256};
use wasmtime::{Engine, Module};

use crate::RecordError;

/// A kind of cached file. File names begin with a digest.
struct Kind {
    /// The name of our subfolder in the user's folder.
    folder: &'static str,
    /// The file name extension.
    ending: &'static str,
    /// The first bytes of each file.
    label: &'static [u8],
    /// The limit on the total size in bytes. If the files exceed it, the oldest are removed.
    limit: u64,
}

/// Files of compiled code: the label, a SHA-256 of the file's name and code, and the code.
const CODE: Kind = Kind {
    folder: "code",
    ending: ".native",
    label: b"afterimage/code1",
    limit: 4 << 30,
};
const HEADER: usize = CODE.label.len() + 32;
/// Trace files that contain only the counts of a run.
const COUNTS: Kind = Kind {
    folder: "counts",
    ending: ".counts",
    label: &TRACE_LABEL,
    limit: 64 << 20,
};
/// Code is cached only if compiling it took at least this many milliseconds.
const WORTH_KEEPING_MS: u128 = 50;

/// A cache of compiled modules and of the counts of earlier runs.
#[derive(Clone, Debug)]
pub struct Cache {
    /// The user's cache folder, if there is one.
    folder: Option<PathBuf>,
}

impl Cache {
    /// Returns a cache that keeps nothing.
    pub fn none() -> Self {
        Self { folder: None }
    }

    /// Returns a cache in subfolders of `folder`. Creates the folders if needed. If a folder is not
    /// private, the cache keeps nothing.
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            folder: private_folder(folder).then(|| folder.to_owned()),
        }
    }

    /// Returns our folder for files of this kind.
    fn own(&self, kind: &Kind) -> Option<PathBuf> {
        let own = self.folder.as_ref()?.join(kind.folder);
        private_folder(&own).then_some(own)
    }

    /// Returns the counts of an earlier run of a module.
    pub(crate) fn counts(&self, module: &[u8]) -> Option<Counts> {
        let path = self.own(&COUNTS)?.join(counts_key(module));
        let file = private(&path).then(|| TraceFile::open(&path))?;
        let found = file.and_then(|file| file.counts());
        let found = found.ok().flatten();
        if found.is_none() && is_ours(&path, &COUNTS) {
            // The file is damaged or truncated. The next run replaces it.
            let _ = fs::remove_file(&path);
        }
        Some(found?.counts)
    }

    /// Keeps the counts of a run of a module, unless counts of an earlier run exist. Because later
    /// runs do not replace the counts, the placement of counters stays the same, and compiled code
    /// can be reused.
    pub(crate) fn keep_counts(&self, module: &[u8], counts: &CountsLens) {
        let keep = || {
            let path = self.own(&COUNTS)?.join(counts_key(module));
            if path.exists() {
                return None;
            }
            let written = written(&path, |temporary| {
                let out = TraceWriter::create(temporary, Existing::Kept);
                let done = out.and_then(|out| out.counts(counts).and_then(|()| out.commit()));
                done.map_err(std::io::Error::other)
            });
            written.ok().map(|()| trim(&path, &COUNTS))
        };
        // An unwritable cache only costs time.
        let _ = keep();
    }

    /// Returns the user's cache: `$AFTERIMAGE_CACHE`, or else `afterimage` in `$XDG_CACHE_HOME` or
    /// in `~/.cache`. It keeps nothing if that folder is not an absolute path, cannot be made, or
    /// is not private.
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

    /// Compiles the module, or loads it from the cache.
    pub(crate) fn compile(&self, engine: &Engine, bytes: &[u8]) -> Result<Module, RecordError> {
        let path = self
            .own(&CODE)
            .map(|folder| folder.join(key(engine, bytes)));
        if let Some(path) = path.as_deref().filter(|path| private(path)) {
            if let Some(module) = load(engine, path) {
                return Ok(module);
            }
            // The file is damaged or truncated, so compile again.
            let _ = fs::remove_file(path);
        }
        let start = Instant::now();
        let module = Module::new(engine, bytes).map_err(RecordError::compile)?;
        if let Some(path) = path
            && start.elapsed().as_millis() >= WORTH_KEEPING_MS
        {
            // An unwritable cache only costs time.
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
    named(hasher.0, &CODE)
}

fn counts_key(module: &[u8]) -> String {
    named(Sha256::new().chain_update(module), &COUNTS)
}

fn named(digest: Sha256, kind: &Kind) -> String {
    let digest = digest.finalize();
    let digits = digest.iter().map(|b| format!("{b:02x}"));
    digits.chain([kind.ending.to_owned()]).collect()
}

/// Whether only the user can have written this file or folder.
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

/// Computes the digest for code under this file name.
fn digest(path: &Path, code: &[u8]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(path.file_name().unwrap_or_default().as_bytes());
    hasher.update(code);
    hasher.finalize().into()
}

/// Returns the bytes of one of our files of code, with the header. Returns `None` if the file
/// cannot be read or any bit of it has changed.
fn checked(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(CODE.limit).read_to_end(&mut bytes).ok()?;
    let (label, rest) = bytes.split_at_checked(CODE.label.len())?;
    let (written, code) = rest.split_at_checked(32)?;
    (label == CODE.label && written == digest(path, code)).then_some(bytes)
}

fn load(engine: &Engine, path: &Path) -> Option<Module> {
    let bytes = checked(path)?;
    // SAFETY: only this user can have written the file, because the folder and the file are owned
    // by the user and writable by nobody else. The file contains, bit for bit, the bytes that
    // `store` wrote under this name. The code came from this engine, because other versions and
    // settings have other names.
    #[allow(unsafe_code)]
    let loaded = unsafe { Module::deserialize(engine, &bytes[HEADER..]) };
    loaded.ok()
}

fn store(path: &Path, module: &Module) -> std::io::Result<()> {
    let code = module.serialize().map_err(std::io::Error::other)?;
    written(path, |temporary| {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(temporary)?;
        file.write_all(CODE.label)?;
        file.write_all(&digest(path, &code))?;
        file.write_all(&code)?;
        file.sync_all()
    })?;
    trim(path, &CODE)
}

/// Writes a file under a temporary name and renames it when it is complete.
fn written(path: &Path, write: impl FnOnce(&Path) -> std::io::Result<()>) -> std::io::Result<()> {
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let done = write(&temporary)
        .and_then(|()| fs::set_permissions(&temporary, fs::Permissions::from_mode(0o600)))
        .and_then(|()| fs::rename(&temporary, path));
    if done.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    done
}

/// Whether a file is ours by name, label and owner. This includes a temporary file left over from a
/// process killed while writing it.
fn is_ours(path: &Path, kind: &Kind) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some((key, ending)) = name.and_then(|name| name.split_at_checked(64)) else {
        return false;
    };
    let is_temporary = || {
        let process = ending.strip_prefix('.')?.strip_suffix(".tmp")?;
        process.bytes().all(|b| b.is_ascii_digit()).then_some(())
    };
    let is_key = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if !key.bytes().all(is_key) || ending != kind.ending && is_temporary().is_none() {
        return false;
    }
    let mut label = vec![0; kind.label.len()];
    let read = |mut file: fs::File| file.read_exact(&mut label);
    private(path) && fs::File::open(path).and_then(read).is_ok() && label == kind.label
}

/// Removes the oldest of our files in this folder while their total size exceeds the limit.
fn trim(path: &Path, kind: &Kind) -> std::io::Result<()> {
    let Some(folder) = path.parent() else {
        return Ok(());
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let data = entry.metadata()?;
        if data.is_file() && is_ours(&entry.path(), kind) {
            files.push((data.modified()?, data.len(), entry.path()));
        }
    }
    files.sort();
    let mut total: u64 = files.iter().map(|f| f.1).sum();
    for (_, size, path) in files {
        if total <= kind.limit {
            break;
        }
        fs::remove_file(path)?;
        total -= size;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
