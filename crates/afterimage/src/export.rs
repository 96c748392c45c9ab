//! Exports the calls of a run for other tools.

use std::str::FromStr;

use afterimage_ids::FuncId;
use afterimage_present::Content;
use afterimage_present::context_dot;
use afterimage_present::export::{
    Frames, TimelineHead, callgrind_calls, collapsed, firefox, perfetto, pprof_stacks, speedscope,
};
use afterimage_profile::{CodeFilter, Folded, Remarks};
use afterimage_replay::whole_path::{
    CallLengths, ContextLimits, ContextTree, Frame, InlinedFrames, Inlining, Timeline,
    TimelineLimits, Window,
};
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::Session;
use crate::named::with_names;
use crate::rows::Output;
use crate::source::check_code;
use crate::trace::Bounds;

/// Requests the calls in a stretch of a run, in the format of another tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportQuery {
    /// The format of the output.
    pub format: ExportFormat,
    /// The stretch of the run.
    pub bounds: Bounds,
    /// The number of levels of calls to show. Deeper calls are merged.
    pub depth: usize,
    /// The minimum size of calls or contexts to show separately. Smaller calls are merged. `None`
    /// chooses a limit that suits the tools.
    pub least: Option<Least>,
    /// The code whose functions are shown. The blocks of all other functions count for their
    /// callers.
    pub code: CodeFilter,
    /// Whether to show inlined functions like called functions. Timelines show only calls.
    #[serde(default = "shown")]
    pub inlined: bool,
}

fn shown() -> bool {
    true
}

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    /// Calls over time, for Perfetto.
    Perfetto,
    /// Calls over time, for Firefox Profiler.
    Firefox,
    /// Blocks by stack, for flame graphs.
    Collapsed,
    /// Blocks by stack, for speedscope.
    Speedscope,
    /// Blocks by stack, for pprof.
    Pprof,
    /// Blocks by function, and the inclusive cost of calls, for KCachegrind.
    Callgrind,
    /// The tree of calling contexts, for Graphviz.
    Dot,
}

/// The smallest size at which calls are not merged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Least {
    /// A number of executed blocks.
    Blocks(u64),
    /// A percentage of the stretch's blocks.
    Percent(f64),
}

/// The default maximum number of calls in a timeline. Tools can open a file of this size, which has
/// about 100 bytes per call.
const CALLS: u64 = 150_000;
/// The maximum number of calls in a timeline. Tools cannot open more calls, and some formats hold
/// all calls in memory.
const MOST_CALLS: u64 = 20_000_000;

impl FromStr for Least {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let least = match text.strip_suffix('%') {
            None => text.parse().ok().map(Self::Blocks),
            Some(share) => {
                let share = share.parse().ok();
                share
                    .filter(|share| (0.0..=100.0).contains(share))
                    .map(Self::Percent)
            }
        };
        least.ok_or("write a number of blocks, or a share from 0% to 100%")
    }
}

impl Least {
    fn of(self, blocks: u64) -> u64 {
        match self {
            Self::Blocks(blocks) => blocks,
            Self::Percent(share) => (blocks as f64 * share / 100.0).ceil() as u64,
        }
    }
}

impl ExportQuery {
    /// The default number of levels of calls. Tools show fewer levels, and only deep recursion has
    /// more.
    pub const DEPTH: usize = 256;

    /// Writes the calls. The path must exist.
    ///
    /// # Errors
    /// Returns an error if the run has no such stretch, the format cannot hold all the calls, or
    /// they cannot be written.
    pub fn write(&self, session: &Session, output: &dyn Output) -> Result<()> {
        let path = session.path()?;
        if path.length() == 0 {
            bail!("the run executed no block, so there is nothing to export");
        }
        let run = session.file().meta()?.program_name;
        with_names(session, |program| {
            let (names, source) = (program.names, program.source);
            let window = self.bounds.window(&program.positions()?)?;
            let program = session.program();
            check_code(source, &self.code)?;
            let folded = Folded::if_any(source, &self.code);
            let is_shown = |frames: &Frames<'_>, frame| {
                folded.shows_function(frames.name(frame), frames.place(frame))
            };
            if let ExportFormat::Perfetto | ExportFormat::Firefox = self.format {
                let frames = Frames {
                    program,
                    names,
                    source,
                    inlining: &Inlining::default(),
                };
                let is_shown = |function| is_shown(&frames, Frame::Function(function));
                let limits = self.timeline_limits(session, window, &is_shown)?;
                let head = TimelineHead {
                    program: &run,
                    names,
                    window,
                    limits,
                };
                let mut timeline = Timeline::new(path, window, limits, &is_shown);
                return output.write(Content::Text, &mut |out| match self.format {
                    ExportFormat::Firefox => Ok(firefox(out, &head, &mut timeline)?),
                    _ => Ok(perfetto(out, &head, &mut timeline)?),
                });
            }
            let default = match self.format {
                ExportFormat::Dot => 0.5,
                _ => 0.001,
            };
            let least = self.least.unwrap_or(Least::Percent(default));
            let limits = ContextLimits {
                depth: self.depth,
                min: least.of(window.last - window.first + 1),
            };
            let wanted = InlinedFrames {
                functions: self.inlined,
                lines: self.format == ExportFormat::Callgrind,
            };
            let inlining = if wanted.functions || wanted.lines {
                Inlining::new(path, program, session.bytes(), source, wanted)?
            } else {
                Inlining::default()
            };
            let tree = ContextTree::new(path, window, limits, &inlining)?;
            let frames = Frames {
                program,
                names,
                source,
                inlining: &inlining,
            };
            let tree = if folded.shows_all() {
                tree
            } else {
                tree.folding(|frame| !is_shown(&frames, frame))
            };
            let content = match self.format {
                ExportFormat::Pprof => Content::Binary,
                _ => Content::Text,
            };
            output.write(content, &mut |out| match self.format {
                ExportFormat::Speedscope => Ok(speedscope(out, &tree, &frames, &run)?),
                ExportFormat::Pprof => Ok(pprof_stacks(out, &tree, &frames)?),
                ExportFormat::Dot => Ok(context_dot(out, &tree, &frames)?),
                ExportFormat::Callgrind => Ok(callgrind_calls(out, &tree, &frames)?),
                _ => Ok(collapsed(out, &tree, &frames)?),
            })
        })
    }

    fn timeline_limits(
        &self,
        session: &Session,
        window: Window,
        is_shown: &dyn Fn(FuncId) -> bool,
    ) -> Result<TimelineLimits> {
        let lengths = CallLengths::new(session.path()?, window, is_shown)?;
        let min = match self.least {
            Some(least) => least.of(window.last - window.first + 1),
            None => {
                let min = lengths.resolution(CALLS);
                if min > 1 {
                    session.remark(format!(
                        "calls shorter than {min} blocks are merged; choose another limit with --min"
                    ));
                }
                min
            }
        };
        // The number of calls is known only for lengths that are powers of two.
        let calls = lengths.at_least(min.max(1).ilog2());
        if calls > MOST_CALLS {
            bail!(
                "up to {calls} calls have {min} blocks or more, which is too many for any tool \
                 to show; choose a larger --min, or a stretch with --from and --to"
            );
        }
        Ok(TimelineLimits {
            depth: self.depth,
            min,
        })
    }
}
