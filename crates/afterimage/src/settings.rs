//! Reads the user's settings from the file `.afterimage.toml`, which is in the current folder or in
//! the nearest folder above it.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use afterimage_profile::CodeFilter;
use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;

use crate::sources::{Moved, SourcePaths};

const NAME: &str = ".afterimage.toml";

/// The user's settings.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The filter that selects the code to show.
    #[serde(deserialize_with = "code")]
    pub code: CodeFilter,
    /// The new places of sources that have moved from the place in the debug information:
    /// `source-path = ["OLD=NEW"]`. A relative NEW is relative to the folder of the settings file.
    #[serde(rename = "source-path", deserialize_with = "source_path")]
    pub source_path: Vec<Moved>,
}

impl Settings {
    /// Reads the settings. Without a file, returns the defaults.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or has unknown contents.
    pub fn read() -> Result<Self> {
        let here = env::current_dir().unwrap_or_default();
        for folder in here.ancestors() {
            let at = folder.join(NAME);
            match fs::read_to_string(&at) {
                Ok(text) => {
                    let read = toml::from_str::<Self>(&text).map_err(|error| {
                        let before = error.span().map_or("", |span| &text[..span.start]);
                        let line = before.matches('\n').count() + 1;
                        let message = error.message().trim().replace('\n', ", ");
                        anyhow!("{}:{line}: {message}", at.display())
                    })?;
                    return Ok(read.relative_to(folder));
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| at.display().to_string()),
            }
        }
        Ok(Self::default())
    }

    fn relative_to(self, folder: &Path) -> Self {
        let moved = self.source_path.into_iter();
        let source_path = moved.map(|moved| moved.relative_to(folder)).collect();
        Self {
            source_path,
            ..self
        }
    }

    /// Returns the places of sources: first the places that a command names, then the places in the
    /// settings.
    ///
    /// # Errors
    /// Returns an error if the command names a place that does not exist.
    pub fn source_paths(self, given: &[Moved]) -> Result<SourcePaths> {
        for moved in given {
            let place = moved.new_place();
            if let Err(error) = fs::metadata(place) {
                bail!("--source-path: {}: {error}", place.display());
            }
        }
        let moved = given.iter().cloned().chain(self.source_path);
        Ok(SourcePaths::new(moved.collect()))
    }
}

fn source_path<'d, D: serde::Deserializer<'d>>(from: D) -> Result<Vec<Moved>, D::Error> {
    let rules = Vec::<String>::deserialize(from)?;
    let read = |rule: &String| {
        let wrong = |error| serde::de::Error::custom(format!("source-path: {rule:?}: {error}"));
        rule.parse().map_err(wrong)
    };
    rules.iter().map(read).collect()
}

fn code<'d, D: serde::Deserializer<'d>>(from: D) -> Result<CodeFilter, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(|error| {
        let why = format!("code = {text:?}: {error}; write mine, all or a glob");
        serde::de::Error::custom(why)
    })
}
