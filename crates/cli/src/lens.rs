//! What commands that look at the path of a run have in common.

use std::path::Path;

use afterimage_ids::FuncId;
use afterimage_program::{Names, OperatorIndex, SourceMap};
use afterimage_query::paths::{FileSegments, Positions, RecordedPath};
use afterimage_query::{Stop, stops};
use afterimage_trace::TraceFile;
use anyhow::{Context, Result, bail};

use crate::build;
use crate::input::{self, Loaded};

/// A recording with its path.
pub(crate) struct Traced {
    pub file: TraceFile,
    pub loaded: Loaded,
    pub path: RecordedPath,
    /// Where the run ended.
    pub stops: Vec<Stop>,
}

/// Opens a recording, and builds its path if that is not there yet.
pub(crate) fn traced(at: &Path) -> Result<Traced> {
    let name = || at.display().to_string();
    let file = input::recording(at)?;
    let loaded = input::recorded_program(at, &file)?;
    let path = build::path(at, &file, &loaded)?;
    let stops = match file.end().with_context(name)? {
        Some(end) => {
            let index = OperatorIndex::new(&loaded.program, &loaded.bytes);
            stops(&loaded.program, &index, &end).with_context(name)?
        }
        None => Vec::new(),
    };
    Ok(Traced {
        file,
        loaded,
        path,
        stops,
    })
}

impl Traced {
    /// Finds positions in the run.
    pub(crate) fn positions<'a>(
        &'a self,
        names: &'a Names,
        source: &'a SourceMap<'a>,
    ) -> Positions<'a, FileSegments> {
        let Loaded { program, bytes, .. } = &self.loaded;
        Positions::new(&self.path, program, bytes, names, source, &self.stops)
    }

    /// A function that the module defines, by what a user calls it.
    pub(crate) fn function(&self, names: &Names, text: &str) -> Result<FuncId> {
        let function = names.find(text)?;
        if self.loaded.program.function(function).is_none() {
            bail!(
                "{} is imported, so the path has nothing of it; see its callers",
                names.function(function)
            );
        }
        Ok(function)
    }
}
