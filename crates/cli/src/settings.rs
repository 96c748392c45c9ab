//! The user's settings: a file `.afterimage.toml` in the current folder, or in the nearest one around it that has one.

use std::env;
use std::fs;
use std::io::ErrorKind;

use afterimage_profile::CodeFilter;
use anyhow::{Context, Result};
use serde::Deserialize;

const NAME: &str = ".afterimage.toml";

/// What a user has set.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// Whose code is shown.
    #[serde(deserialize_with = "code")]
    pub(crate) code: CodeFilter,
}

impl Settings {
    /// Reads them. Without a file they are the defaults.
    pub(crate) fn read() -> Result<Self> {
        let here = env::current_dir().unwrap_or_default();
        for folder in here.ancestors() {
            let at = folder.join(NAME);
            match fs::read_to_string(&at) {
                Ok(text) => {
                    let settings = toml::from_str(&text);
                    return settings.with_context(|| at.display().to_string());
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
    text.parse().map_err(serde::de::Error::custom)
}
