//! Suggests where to find the debug information of a module without DWARF.

use thiserror::Error;

/// The reason why a module has no debug information, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoDebug {
    /// The module has no debug information, and names no other place for it.
    #[error("the module has no debug information; compile it with -g")]
    Nowhere,
    /// The debug information is in another file.
    #[error(
        "the module's debug information is in another file, {file}, which is not read; keep the debug information in the module (without a separate file for DWARF)"
    )]
    Separate {
        /// The file, as the module names it.
        file: String,
    },
    /// The module has a source map. The source map is not read, because it has lines but no
    /// variables.
    #[error(
        "the module has a source map, {url}, which is not read, and no DWARF; compile it with -g"
    )]
    SourceMap {
        /// The source map's location, as the module names it.
        url: String,
    },
}

impl NoDebug {
    /// Returns advice for a program in which only some parts lack debug information.
    pub fn hint(&self) -> String {
        match self {
            Self::Nowhere => "; compile it with -g".to_owned(),
            Self::Separate { file } => format!(
                "; the module names another file with debug information, {file}, which is not read: keep the debug information in the module"
            ),
            Self::SourceMap { url } => format!(
                "; the module names a source map, {url}, which is not read: compile it with -g"
            ),
        }
    }

    /// Finds the reason from the contents of custom sections. `section` returns empty contents for
    /// a missing section.
    pub fn of<'a>(section: impl Fn(&str) -> &'a [u8]) -> Self {
        if let Some(file) = written(section("external_debug_info")) {
            return Self::Separate { file };
        }
        match written(section("sourceMappingURL")) {
            Some(url) => Self::SourceMap { url },
            None => Self::Nowhere,
        }
    }
}

/// The maximum number of characters of a name in a message.
const LONGEST: usize = 200;

/// Returns the text that fills a section after the text's length.
fn written(section: &[u8]) -> Option<String> {
    let mut reader = wasmparser::BinaryReader::new(section, 0);
    let text = reader.read_unlimited_string().ok()?;
    // The module's author chose this text, so it is escaped for the message.
    let shown = text.chars().take(LONGEST).flat_map(char::escape_debug);
    let more = match text.chars().nth(LONGEST) {
        Some(_) => "…",
        None => "",
    };
    Some(format!("{}{more}", shown.collect::<String>()))
}
