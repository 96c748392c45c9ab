//! Defines the interface to the source positions of operators.

use std::fmt;
use std::ops::Range;

use afterimage_ids::OrigOffset;
use afterimage_program::{FileId, InlinedFrame, Location, NoDebug, SourceMap, demangle};

/// A line of a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Line {
    /// The file that contains the line.
    pub file: FileId,
    /// The number of the line, from 1.
    pub number: u32,
}

impl From<Location> for Line {
    fn from(location: Location) -> Self {
        Line {
            file: location.file,
            number: location.line,
        }
    }
}

/// A line of a source file, with the file's names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceLine {
    /// The file's full path, as in the debug information.
    pub path: String,
    /// The suffix of the path that is shown, long enough to identify the file.
    pub short: String,
    /// The number of the line, from 1.
    pub line: u32,
    /// The number of the column, from 1, or 0 if it is unknown.
    pub column: u32,
}

impl fmt::Display for SourceLine {
    /// Writes the line as commands accept it: for example, `file.c:42`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.short, self.line)
    }
}

/// A stretch of code of an inlined call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlinedCode {
    /// The number of inlined calls that enclose the call.
    pub depth: u32,
    /// The offsets of the stretch's operators.
    pub range: Range<OrigOffset>,
    /// The place of the call.
    pub call: Location,
}

/// The interface that a profile needs from a source map. This is a trait so that tests can provide
/// their own source maps.
pub trait Source {
    /// Returns the source position of the operator at this offset. Returns `None` if the debug
    /// information does not cover the operator or assigns it no line.
    fn locate(&self, offset: OrigOffset) -> Option<Location>;

    /// Whether the operator at this offset has its own line. If that line is not shown, the
    /// operator has the line of the code into which it was inlined instead. Returns `None` if no
    /// line is known.
    fn shows_own_line(&self, offset: OrigOffset) -> Option<bool> {
        self.locate(offset).map(|_| true)
    }

    /// Returns the distinct paths of the files, indexed by [`FileId`].
    fn files(&self) -> &[String];

    /// Returns the shortest suffix of a file's path that identifies the file.
    fn short_path(&self, file: FileId) -> &str {
        let path = self.files().get(file.0 as usize).map_or("", String::as_str);
        path.rsplit(['/', '\\']).next().unwrap_or(path)
    }

    /// Returns a place with the names of its file.
    fn line(&self, at: Location) -> SourceLine {
        SourceLine {
            path: self
                .files()
                .get(at.file.0 as usize)
                .cloned()
                .unwrap_or_default(),
            short: self.short_path(at.file).to_owned(),
            line: at.line,
            column: at.column,
        }
    }

    /// Returns the declaration of the function whose body contains this offset.
    fn declared(&self, offset: OrigOffset) -> Option<Location>;

    /// Returns the reason why the module has no debug information.
    fn missing(&self) -> NoDebug {
        NoDebug::Nowhere
    }

    /// Returns the lines without code of functions that the linker removed.
    fn removed_lines(&self) -> Vec<Line> {
        Vec::new()
    }

    /// Returns the functions that the linker removed because nothing called them, with their
    /// declarations.
    fn removed_functions(&self) -> Vec<(String, Location)> {
        Vec::new()
    }

    /// Returns the inlined calls that enclose the operator at this offset, the innermost first.
    fn around(&self, offset: OrigOffset) -> Vec<Location> {
        let _ = offset;
        Vec::new()
    }

    /// Returns the code of the calls that were inlined into the function at this offset and that
    /// have a known place, ascending by depth and then by start. Stretches of the same depth do not
    /// overlap.
    fn inlined_calls(&self, offset: OrigOffset) -> Vec<InlinedCode> {
        let _ = offset;
        Vec::new()
    }

    /// Returns the functions from which the operator at this offset was compiled. The innermost
    /// inlined function is first, and the function that the module defines is last.
    fn inlined_frames(&self, offset: OrigOffset) -> Vec<InlinedFrame> {
        let _ = offset;
        Vec::new()
    }

    /// Like [`inlined_frames`](Self::inlined_frames), but the names include the arguments of
    /// generic functions.
    fn written_frames(&self, offset: OrigOffset) -> Vec<InlinedFrame> {
        let _ = offset;
        Vec::new()
    }
}

/// Returns the names of the functions that were inlined at an operator, the innermost first.
pub fn inlined_names(source: &dyn Source, offset: OrigOffset) -> Vec<String> {
    let mut frames = source.inlined_frames(offset);
    // The last frame is the function that the module defines, which was not inlined.
    frames.pop();
    let names = frames.into_iter().filter_map(|frame| frame.function);
    names.map(|raw| demangle(&raw).unwrap_or(raw)).collect()
}

impl Source for SourceMap<'_> {
    fn locate(&self, offset: OrigOffset) -> Option<Location> {
        SourceMap::locate(self, offset)
    }

    fn files(&self) -> &[String] {
        SourceMap::files(self)
    }

    fn short_path(&self, file: FileId) -> &str {
        SourceMap::short_path(self, file)
    }

    fn declared(&self, offset: OrigOffset) -> Option<Location> {
        SourceMap::declared(self, offset)
    }

    fn missing(&self) -> NoDebug {
        SourceMap::missing(self)
    }

    fn removed_lines(&self) -> Vec<Line> {
        let lines = SourceMap::removed_lines(self).iter();
        let line = |&(file, number)| Line { file, number };
        lines.map(line).collect()
    }

    fn removed_functions(&self) -> Vec<(String, Location)> {
        SourceMap::removed_functions(self)
    }

    fn around(&self, offset: OrigOffset) -> Vec<Location> {
        let frames = self.inlined_frames(offset).into_iter().skip(1);
        frames.filter_map(|frame| frame.location).collect()
    }

    fn inlined_calls(&self, offset: OrigOffset) -> Vec<InlinedCode> {
        let calls = SourceMap::inlined_calls(self, offset);
        let of = |(depth, range, call)| {
            let call = call?;
            Some(InlinedCode { depth, range, call })
        };
        calls.filter_map(of).collect()
    }

    fn inlined_frames(&self, offset: OrigOffset) -> Vec<InlinedFrame> {
        SourceMap::inlined_frames(self, offset)
    }

    fn written_frames(&self, offset: OrigOffset) -> Vec<InlinedFrame> {
        SourceMap::written_frames(self, offset)
    }
}
