//! Defines the META section, a JSON object with the program and the settings of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The program and the settings of a run. Together with the module and the log, they suffice to
/// repeat the run exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The guest's name, `argv[0]`.
    pub program_name: String,
    /// The guest's arguments after `argv[0]`.
    pub args: Vec<String>,
    /// The environment variables given to the guest, in the order in which the guest reads them.
    pub env: Vec<(String, String)>,
    /// The guest paths of the granted folders, in order.
    pub dirs: Vec<String>,
    /// The export that was called instead of `_start`.
    pub invoke: Option<String>,
    /// The version of the tool that made the recording.
    pub tool_version: String,
    /// The engine's name and version, and the settings that matter for exact repetition.
    pub engine: String,
    /// The source of the guest's standard input. The log contains the bytes read.
    pub stdin: Stdin,
    /// The time at which the recording began, in seconds since 1970-01-01 UTC.
    pub created_unix: u64,
    /// The SHA-256 of the module's bytes. In the file, it is lower-case hexadecimal.
    #[serde(with = "hex")]
    pub module_sha256: [u8; 32],
    /// The engine's limit for the guest's stack, in bytes.
    pub stack_limit: u64,
    /// Further facts about the recording, by name. Later versions may add some.
    #[serde(default)]
    pub extra: BTreeMap<String, String>,
}

/// The key in [`Meta::extra`] for the stripped parts.
const STRIPPED: &str = "stripped";
const INPUTS: &str = "inputs";

impl Meta {
    /// Whether the program's inputs were removed from the recording, so that its run cannot be
    /// repeated.
    pub fn is_without_inputs(&self) -> bool {
        self.extra.get(STRIPPED).is_some_and(|what| what == INPUTS)
    }

    /// Returns a copy without the program's inputs.
    #[must_use]
    pub fn without_inputs(mut self) -> Self {
        let what = INPUTS.to_owned();
        self.extra.insert(STRIPPED.to_owned(), what);
        Self {
            args: Vec::new(),
            env: Vec::new(),
            dirs: Vec::new(),
            stdin: Stdin::Empty,
            ..self
        }
    }
}

/// The source of the guest's standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stdin {
    /// Nothing. The guest reached the end of the input at once.
    #[default]
    Empty,
    /// The recorder's own standard input.
    Inherited,
    /// A file.
    File,
}

/// A digest as hexadecimal text.
mod hex {
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub fn serialize<S: Serializer>(digest: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
        let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.as_bytes();
        let mut digest = [0; 32];
        if digits.len() != 2 * digest.len() {
            return Err(Error::custom("a digest has 64 hexadecimal digits"));
        }
        for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            match (digit(pair[0]), digit(pair[1])) {
                (Some(high), Some(low)) => *byte = (high * 16 + low) as u8,
                _ => return Err(Error::custom("a digest is hexadecimal")),
            }
        }
        Ok(digest)
    }
}
