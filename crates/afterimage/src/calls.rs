//! Reports how often functions called each other, or which calls led to one call.

use afterimage_ids::FuncId;
use afterimage_present::{CallGraphView, CallView, CallsDocument, Scene, Style};
use afterimage_profile::location::Occurrence;
use afterimage_replay::whole_path::{FileSegments, Places, kth_call};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::named::NamedProgram;
use crate::path::{numbering, which_call};

/// Asks who called whom, how often and for how long.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallsQuery {
    /// The only function to report, with its callers and callees: its index, name or demangled
    /// name. All functions if `None`.
    pub function: Option<String>,
}

impl CallsQuery {
    pub(crate) fn answer(&self, program: NamedProgram<'_>) -> Result<CallsDocument> {
        let function = self.function.as_deref();
        let function = function.map(|text| program.function(text)).transpose()?;
        show_calls(program, function, usize::MAX, |calls| Ok(calls.document()))
    }
}

/// Shows the first `top` calls between functions, or between `only` and other functions. Needs the
/// path.
///
/// # Errors
/// Returns an error if there is no path, it is damaged, or `show` fails.
pub fn show_calls<R>(
    program: NamedProgram<'_>,
    only: Option<FuncId>,
    top: usize,
    show: impl FnOnce(&CallGraphView<'_>) -> Result<R>,
) -> Result<R> {
    let path = program.session.path()?;
    let graph = path.call_graph()?;
    let totals = graph.totals();
    let totals = totals.context("there are more calls than can be counted")?;
    show(&CallGraphView {
        graph,
        totals: &totals,
        length: path.length(),
        names: program.names,
        own: program.own,
        inlined: program
            .source
            .has_inlined(|file| program.own.folded.shows(file)),
        left_out: &path.segments().directory().left_out,
        only,
        top,
    })
}

/// Shows one call to a function. Needs the path.
///
/// # Errors
/// Returns an error if there is no such call, there is no path, it is damaged, or `show` fails.
pub fn show_call<R>(
    program: NamedProgram<'_>,
    function: FuncId,
    which: Occurrence,
    style: Style,
    show: impl FnOnce(&CallView<'_, FileSegments>) -> Result<R>,
) -> Result<R> {
    let path = program.session.path()?;
    let name = program.names.short(function);
    let (kept, _) = which_call(path, function, &name, which)?;
    let (code, bytes) = (program.session.program(), program.session.bytes());
    show(&CallView {
        calls: kth_call(path, function, kept)?,
        number: numbering(path).of_kept(function, kept).unwrap_or(kept),
        scene: Scene {
            path,
            names: program.names,
            places: &Places::new(code, bytes, program.source),
            own: Some(program.own),
            sources: &**program.session.sources(),
            left_out: &path.segments().directory().left_out,
            style,
        },
    })
}
