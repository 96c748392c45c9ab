//! Defines access to the text of source files, which the caller supplies.

use std::collections::HashMap;

/// A supplier of source text. Paths are as in the debug information.
pub trait Sources {
    /// Returns the text of a file, or `None` if it is not available.
    fn read(&self, path: &str) -> Option<String>;
}

/// A supplier without any source.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSources;

impl Sources for NoSources {
    fn read(&self, _: &str) -> Option<String> {
        None
    }
}

/// A cache that reads each file once.
pub(crate) struct Cache<'s> {
    sources: &'s dyn Sources,
    files: HashMap<String, Option<Vec<String>>>,
}

impl<'s> Cache<'s> {
    pub(crate) fn new(sources: &'s dyn Sources) -> Self {
        Self {
            sources,
            files: HashMap::new(),
        }
    }

    /// Returns the lines of a file.
    pub(crate) fn file(&mut self, path: &str) -> Option<&[String]> {
        if !self.files.contains_key(path) {
            let text = self.sources.read(path);
            let lines = text.map(|text| text.lines().map(str::to_owned).collect());
            self.files.insert(path.to_owned(), lines);
        }
        self.files[path].as_deref()
    }

    /// Returns a line of a file, by its number from 1.
    pub(crate) fn line(&mut self, path: &str, number: u32) -> Option<&str> {
        let index = (number as usize).checked_sub(1)?;
        self.file(path)?.get(index).map(String::as_str)
    }
}
