//! Describes the contents of a recording that anyone who receives it can read.

use std::collections::BTreeSet;
use std::path::Path;

use afterimage_analyses::why::{Stream, Traffic, traffic};
use afterimage_present::info::{InfoDisclosed, InfoSource, InfoSources, InfoTraffic};
use afterimage_profile::is_library;
use afterimage_program::SourceMap;
use afterimage_replay::Recording;
use afterimage_replay::values::HostReads;
use afterimage_trace::{TraceError, TraceFile};
use anyhow::{Error, Result};

use super::read;
use crate::files::Loaded;

/// Describes the contents that a recording discloses. `listed` adds the list of embedded source
/// files.
pub(super) fn disclosed(
    file: &TraceFile,
    loaded: &Loaded,
    source: &SourceMap<'_>,
    listed: bool,
    problems: &mut Vec<String>,
) -> Result<InfoDisclosed> {
    let without_inputs = file.meta()?.is_without_inputs();
    let recording = Recording::of(&loaded.path, file.clone(), loaded.module.clone());
    let found = match file.log() {
        // A recording that was cut off or stripped may not contain the log.
        Err(TraceError::WithoutInputs | TraceError::Missing(_)) => Vec::new(),
        Err(error) => return Err(error.into()),
        Ok(_) => read(moved(&recording).map(Some), problems).unwrap_or_default(),
    };
    let sources = read(file.sources().map_err(Error::from), problems);
    let sources = sources.map(|sources| {
        let files = sources.files();
        let row = |(path, bytes): (&str, u64)| InfoSource {
            path: path.to_owned(),
            bytes,
        };
        InfoSources {
            files: files.len() as u64,
            bytes: sources.files().map(|file| file.1).sum(),
            list: listed.then(|| files.map(row).collect()),
        }
    });
    Ok(InfoDisclosed {
        without_inputs,
        traffic: found.into_iter().map(traffic_row).collect(),
        module_bytes: loaded.bytes.len() as u64,
        debug_bytes: source.debug_bytes(),
        debug_paths: source.files().len() as u64,
        debug_folders: folders(source.files()),
        sources,
    })
}

/// Counts the traffic between the run and the host. The paths of files are known only if the
/// recording has values.
fn moved(recording: &Recording) -> Result<Vec<Traffic>> {
    let (file, imports) = (recording.file(), &recording.program().imports);
    let named = || {
        let values = recording.values().ok()?;
        let run = recording.run_from_checkpoints().ok()?;
        let host = HostReads::new(&values, run, recording.newest());
        traffic(file, imports, Some(&host)).ok()
    };
    match named() {
        Some(named) => Ok(named),
        None => Ok(traffic(file, imports, None)?),
    }
}

fn traffic_row(row: Traffic) -> InfoTraffic {
    let (stream, path) = match row.stream {
        Some(Stream::Input) => ("stdin", None),
        Some(Stream::Output) => ("stdout", None),
        Some(Stream::Error) => ("stderr", None),
        Some(Stream::Folder(path)) => ("folder", Some(path)),
        Some(Stream::Path(path)) => ("file", Some(path)),
        Some(Stream::Unknown(_)) => ("unknown", None),
        None => ("file", None),
    };
    InfoTraffic {
        stream,
        path,
        read_bytes: row.read,
        written_bytes: row.written,
    }
}

/// Returns the folders that contain the paths, without folders inside others. Folders of library
/// sources come last.
fn folders(paths: &[String]) -> Vec<String> {
    let folder = |path: &String| {
        let end = path.rfind(['/', '\\'])?;
        Some(path[..end.max(1)].to_owned())
    };
    let here = || ".".to_owned();
    let all = BTreeSet::from_iter(paths.iter().map(|path| folder(path).unwrap_or_else(here)));
    let mut kept: Vec<String> = Vec::new();
    for folder in all {
        let is_inside = |other: &String| Path::new(&folder).starts_with(other);
        if !kept.iter().any(is_inside) {
            kept.push(folder);
        }
    }
    kept.sort_by_key(|folder| is_library(&format!("{folder}/")));
    kept
}
