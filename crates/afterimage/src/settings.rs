//! The user's settings: a file `.afterimage.toml` in the current folder, or in the nearest one around it that has one.

use std::env;
use std::fs;
use std::io::ErrorKind;

use afterimage_profile::CodeFilter;
use anyhow::{Context, Result, anyhow};
use serde::Deserialize;

const NAME: &str = ".afterimage.toml";

/// What a user has set.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Whose code is shown.
    #[serde(deserialize_with = "code")]
    pub code: CodeFilter,
}

impl Settings {
    /// Reads them. Without a file they are the defaults.
    ///
    /// # Errors
    /// If the file cannot be read, or does not say what it may.
    pub fn read() -> Result<Self> {
        let here = env::current_dir().unwrap_or_default();
        for folder in here.ancestors() {
            let at = folder.join(NAME);
            match fs::read_to_string(&at) {
                Ok(text) => {
                    return toml::from_str(&text).map_err(|error| {
                        let before = error.span().map_or("", |span| &text[..span.start]);
                        let line = before.matches('\n').count() + 1;
                        let message = error.message().trim().replace('\n', ", ");
                        anyhow!("{}:{line}: {message}", at.display())
                    });
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| at.display().to_string()),
            }
        }
        Ok(Self::default())
    }
}

fn code<'d, D: serde::Deserializer<'d>>(from: D) -> Result<CodeFilter, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(|error| {
        let why = format!("code = {text:?}: {error}; write mine, all or a glob");
        serde::de::Error::custom(why)
    })
}
