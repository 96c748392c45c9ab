//! Collects the unique path traces of a function (Zhang and Gupta 2001, section 2, "Eliminating
//! redundant path traces").

use afterimage_ids::FuncId;
use hashbrown::HashTable;

use super::event::EventError;
use super::path_builder::PathBuilder;
use super::wpp::{FunctionPaths, UniquePath};

/// The distinct path traces of a function so far.
#[derive(Clone, Debug)]
pub(super) struct PathTable {
    paths: FunctionPaths,
    table: HashTable<u32>,
}

impl PathTable {
    pub(super) fn new(function: FuncId) -> Self {
        let paths = FunctionPaths {
            function,
            paths: Vec::new(),
        };
        Self {
            paths,
            table: HashTable::new(),
        }
    }

    pub(super) fn function(&self) -> FuncId {
        self.paths.function
    }

    /// Finds or adds the unique trace of a call. The builder is empty afterwards. Time: O(blocks).
    /// Does not allocate if the trace is short and known.
    pub(super) fn add(&mut self, builder: &mut PathBuilder) -> Result<u32, EventError> {
        let paths = &mut self.paths.paths;
        let completed = builder.complete();
        let hash = completed.hash();
        let same = |&k: &u32| completed.is(&paths[k as usize].trace);
        let k = match self.table.find(hash, same) {
            Some(&k) => k,
            None => {
                let k = u32::try_from(paths.len()).map_err(|_| EventError::TooMany)?;
                paths.push(UniquePath::new(completed.into_trace()));
                let rehash = |&k: &u32| paths[k as usize].trace.hash();
                self.table.insert_unique(hash, k, rehash);
                k
            }
        };
        builder.clear();
        Ok(k)
    }

    /// Returns a trace that [`Self::add`] found.
    pub(super) fn path(&mut self, path: u32) -> &mut UniquePath {
        &mut self.paths.paths[path as usize]
    }

    /// Returns the traces in the order in which they were found.
    pub(super) fn finish(self) -> FunctionPaths {
        self.paths
    }
}
