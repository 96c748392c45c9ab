//! The reasons for refusing a module.

use std::borrow::Cow;

use afterimage_ids::OrigOffset;
use thiserror::Error;
use wasmparser::WasmFeatures;

/// The reason why bytes could not be parsed as a [`Program`](crate::Program).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// The input is empty.
    #[error("the file is empty")]
    Empty,
    /// The bytes do not begin with `\0asm`.
    #[error("not a WebAssembly module: the file does not begin with \"\\0asm\"")]
    NotWasm,
    /// The module is a component. Only core modules can be recorded.
    #[error("this is a WebAssembly component; only core modules are supported")]
    Component,
    /// The module has more bytes than a 32-bit offset can address.
    #[error("the module has {bytes} bytes; at most 4 GiB are supported")]
    TooLarge {
        /// The size of the module.
        bytes: u64,
    },
    /// The bytes are not a valid module.
    #[error("malformed module: {message} (at offset {offset})")]
    Malformed {
        /// A description of the fault.
        message: String,
        /// The place of the fault.
        offset: OrigOffset,
    },
    /// The module may be valid, but it uses an unsupported feature.
    #[error("afterimage does not support {feature} (first used at offset {offset})")]
    Unsupported {
        /// The name of the feature.
        feature: Cow<'static, str>,
        /// The place of the feature's first use.
        offset: OrigOffset,
    },
}

impl From<wasmparser::Error> for ParseError {
    fn from(error: wasmparser::Error) -> Self {
        let offset = offset(error.offset());
        match error.missing_wasm_feature() {
            Some(missing) => Self::Unsupported {
                feature: feature_name(missing).into(),
                offset,
            },
            None => Self::Malformed {
                message: error.message().to_string(),
                offset,
            },
        }
    }
}

/// Converts an offset from wasmparser. Modules of more than 4 GiB have already been refused, so the
/// conversion is exact.
pub(crate) fn offset(offset: usize) -> OrigOffset {
    OrigOffset(u32::try_from(offset).unwrap_or(u32::MAX))
}

/// The features that a module may use.
pub(crate) const SUPPORTED: WasmFeatures = WasmFeatures::WASM2
    .union(WasmFeatures::TAIL_CALL)
    .union(WasmFeatures::EXCEPTIONS)
    .union(WasmFeatures::MULTI_MEMORY)
    .union(WasmFeatures::MEMORY64)
    .union(WasmFeatures::EXTENDED_CONST)
    .union(WasmFeatures::RELAXED_SIMD)
    // Only the atomics of this feature are supported, because shared memories are refused.
    .union(WasmFeatures::THREADS);

/// Returns the usual name of a feature that is not in [`SUPPORTED`].
fn feature_name(missing: WasmFeatures) -> &'static str {
    const NAMES: [(WasmFeatures, &str); 10] = [
        (WasmFeatures::GC, "garbage collection"),
        (
            WasmFeatures::SHARED_EVERYTHING_THREADS,
            "shared-everything threads",
        ),
        (
            WasmFeatures::FUNCTION_REFERENCES,
            "typed function references",
        ),
        (
            WasmFeatures::LEGACY_EXCEPTIONS,
            "the legacy encoding of exception handling",
        ),
        (WasmFeatures::STACK_SWITCHING, "stack switching"),
        (WasmFeatures::MEMORY_CONTROL, "memory control"),
        (WasmFeatures::CUSTOM_PAGE_SIZES, "custom page sizes"),
        (WasmFeatures::WIDE_ARITHMETIC, "wide arithmetic"),
        (WasmFeatures::CUSTOM_DESCRIPTORS, "custom descriptors"),
        (WasmFeatures::COMPACT_IMPORTS, "compact imports"),
    ];
    NAMES
        .iter()
        .find(|(feature, _)| missing.intersects(*feature))
        .map_or(
            "a WebAssembly proposal that is newer than this version",
            |(_, name)| name,
        )
}
