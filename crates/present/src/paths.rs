//! Reports path traces, hot paths and found paths, for people and as JSON.

mod form;
mod json;
mod text;

use afterimage_ids::FuncId;
use afterimage_profile::{OwnFunctions, Source};
use afterimage_program::Names;

pub(crate) use self::form::series;
pub use self::form::{TraceForm, Whole};
pub(crate) use self::json::entries;
pub use self::json::{PathsDocument, PathsJson, outlines_document, paths_document, paths_json};
pub use self::text::{TraceListing, found_text, hot_text, trace_counts_text, traces_text};
pub(crate) use self::text::{path_blocks, path_lines};

/// The data needed to name places.
#[derive(Clone, Copy)]
pub struct PathNames<'a> {
    /// The functions' names.
    pub names: &'a Names,
    /// The source files.
    pub source: &'a dyn Source,
    /// The functions that the text form shows, if it leaves out others.
    pub own: Option<&'a OwnFunctions<'a>>,
    /// A description of the missing parts of the path; empty if it is complete.
    pub left_out: &'a str,
}

impl PathNames<'_> {
    fn name(&self, function: FuncId) -> String {
        crate::table::plain(self.names.function(function))
    }
}
