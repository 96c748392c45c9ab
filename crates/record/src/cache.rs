//! Compiled modules, kept between runs.
//!
//! Compiled code is loaded as it is, so it must come from nobody else: the cache is a folder of the
//! user's own that no other user can write, and nothing is ever loaded from a recording. A
//! file's name is a digest of the module's bytes (which embody the instrumentation) and of the
//! engine's version and settings.

use std::fs;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use sha2::{Digest, Sha256};
use wasmtime::{Engine, Module};

use crate::RecordError;

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

    /// A cache in this folder, which is made if need be; no cache if it is not private.
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            folder: Some(folder.to_owned()).filter(|folder| private_folder(folder)),
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
        Self {
            folder: folder.filter(|folder| folder.is_absolute() && private_folder(folder)),
        }
    }

    /// The module compiled, from the cache if it is there.
    pub(crate) fn compile(&self, engine: &Engine, bytes: &[u8]) -> Result<Module, RecordError> {
        let path = self
            .folder
            .as_ref()
            .map(|folder| folder.join(key(engine, bytes)));
        if let Some(path) = path.as_deref().filter(|path| private(path)) {
            // SAFETY: only this user can have written the file: folder and file
            // are owned by the user and writable by nobody else. A file that an
            // engine of another version or with other settings wrote is refused by the engine.
            #[allow(unsafe_code)]
            let loaded = unsafe { Module::deserialize_file(engine, path) };
            if let Ok(module) = loaded {
                return Ok(module);
            }
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
    name.push_str(".cwasm");
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

fn store(path: &Path, module: &Module) -> std::io::Result<()> {
    let bytes = module.serialize().map_err(std::io::Error::other)?;
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&temporary)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    let written = file
        .write_all(&bytes)
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written?;
    path.parent().map_or(Ok(()), trim)
}

fn trim(folder: &Path) -> std::io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let data = entry.metadata()?;
        if data.is_file() {
            files.push((data.modified()?, data.len(), entry.path()));
        }
    }
    files.sort();
    let mut total: u64 = files.iter().map(|f| f.1).sum();
    for (_, size, path) in files {
        if total <= LIMIT {
            break;
        }
        fs::remove_file(path)?;
        total -= size;
    }
    Ok(())
}
