//! Defines the errors of rewriting.

/// The reason why a module cannot be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// The bytes are not the module that the program was parsed from.
    #[error("the module does not parse at offset 0x{:x}: {}", .0.offset(), .0.message())]
    Parse(#[from] wasmparser::BinaryReaderError),
    /// The bytes turned out to be a different module when a function was read again.
    #[error(transparent)]
    Program(#[from] afterimage_program::ParseError),
    /// The plan requires a probe at a site that the function does not have.
    #[error("the plan places a probe on {site} of function {function}, which has no such site")]
    NoSuchSite {
        /// The index of the function.
        function: u32,
        /// The name of the site.
        site: String,
    },
    /// The module's own exports use a name that the probes need.
    #[error("the module exports {0:?}, a name that the probes need: rename that export")]
    NameTaken(String),
    /// The halves of the path's ring cannot have this size.
    #[error(
        "halves of {0} words: the size must be a power of two, from {min} to {max}",
        min = crate::path_probes::SMALLEST_HALF,
        max = crate::path_probes::LARGEST_HALF
    )]
    HalfSize(u32),
    /// A value type that the encoder does not know.
    #[error("blocks with values of type {0} cannot be written")]
    Type(wasmparser::ValType),
    /// A function exceeds a limit of engines once the probes are added.
    #[error(
        "function {function} would have {found} {what} with its probes, but engines accept at \
         most {most}"
    )]
    Limit {
        /// The index of the function.
        function: u32,
        /// What the function would have too many of, such as `locals`.
        what: &'static str,
        /// The number that the function would have.
        found: usize,
        /// The largest number that engines accept.
        most: usize,
    },
    /// The rewritten module exceeds a limit of the format.
    #[error("the rewritten module exceeds a limit of the binary format: {0}")]
    TooLarge(&'static str),
}
