//! Generates the inputs of the corpus by arithmetic alone, so that every machine has the same bytes
//! and the repository stores no text by others.
//!
//! The sizes are chosen so that each program runs for about a third of a second.

mod c_program;
mod c_text;
mod formula;
mod image;
mod markdown;
pub mod rng;
mod rust_text;
mod sql;
mod verilog;
mod words;

/// The input of one program.
#[derive(Default)]
pub struct Input {
    /// The arguments after the program's name. The guest finds files under [`GUEST_FOLDER`].
    pub args: Vec<String>,
    /// The files to write, each with its name and contents.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// The file for standard input. Without one, the folder of files is granted to the guest
    /// instead.
    pub stdin: Option<&'static str>,
}

/// The guest's path to the folder of its files.
pub const GUEST_FOLDER: &str = "/in";

impl Input {
    /// Makes an input that has `contents` as standard input.
    fn stdin(name: &'static str, contents: impl Into<Vec<u8>>, args: &[&str]) -> Self {
        Input {
            args: owned(args),
            files: vec![(name, contents.into())],
            stdin: Some(name),
        }
    }

    /// Makes an input of files that the arguments name.
    fn files(files: Vec<(&'static str, Vec<u8>)>, args: &[&str]) -> Self {
        Input {
            args: owned(args),
            files,
            stdin: None,
        }
    }
}

fn owned(args: &[&str]) -> Vec<String> {
    args.iter().map(|&arg| arg.to_owned()).collect()
}

/// Makes an unsatisfiable formula, so that the whole space must be searched. The time for a
/// satisfiable formula would depend on luck.
pub fn batsat() -> Input {
    Input::stdin("formula.cnf", formula::generate(11, 200, 880), &[])
}

pub fn boa() -> Input {
    script("bench.js", "const SCALE = 8;\n", include_str!("bench.js"))
}

pub fn bzip2() -> Input {
    c_file(4_000_000, &["9", "/in/text.c"])
}

/// Runs the compiler proper, without the driver, which would start a second process. Writing the
/// object to a file takes about a thousand small writes, while assembly took 31,000.
pub fn clang() -> Input {
    clang_of(32)
}

fn clang_of(functions: usize) -> Input {
    let program = c_program::generate(19, functions).into_bytes();
    let args = [
        "-cc1",
        "-w",
        "-triple",
        "wasm32",
        "-O2",
        "-emit-obj",
        "-o",
        "-",
        "/in/program.c",
    ];
    Input::files(vec![("program.c", program)], &args)
}

/// Requests ten files, a progressive file for each odd quality and a sequential file for each even
/// quality.
pub fn jpeg() -> Input {
    let args = [
        "1200", "900", "50", "75", "80", "85", "90", "92", "95", "96", "97", "98",
    ];
    Input::stdin("pixels.rgb", image::generate(12, 1200, 900), &args)
}

pub fn lua() -> Input {
    script(
        "bench.lua",
        "local SCALE <const> = 80\n",
        include_str!("bench.lua"),
    )
}

pub fn pulldown_cmark() -> Input {
    Input::stdin("text.md", markdown::generate(13, 400_000), &["100"])
}

pub fn quickjs() -> Input {
    script("bench.js", "const SCALE = 50;\n", include_str!("bench.js"))
}

pub fn regex() -> Input {
    regex_of(6_000_000)
}

fn regex_of(size: usize) -> Input {
    let mut input = c_file(size, &["/in/patterns.txt", "/in/text.c"]);
    input
        .files
        .push(("patterns.txt", include_bytes!("patterns.txt").to_vec()));
    input
}

pub fn sqlite() -> Input {
    Input::stdin("script.sql", sql::generate(14, 150_000), &[])
}

pub fn syn() -> Input {
    syn_of(1_500_000)
}

fn syn_of(size: usize) -> Input {
    let files = vec![
        ("first.rs", rust_text::generate(15, size).into_bytes()),
        ("second.rs", rust_text::generate(16, size).into_bytes()),
    ];
    Input::files(files, &["/in/first.rs", "/in/second.rs"])
}

/// Prints only the statistics. The log contains times, and mapping to gates by ABC would need a
/// writable folder.
pub fn yosys() -> Input {
    let commands = "tee -q read_verilog /in/design.v; tee -q synth -top top -flatten -noabc; stat";
    yosys_of(commands, 3)
}

fn yosys_of(commands: &str, cores: usize) -> Input {
    let design = verilog::generate(17, cores).into_bytes();
    Input::files(vec![("design.v", design)], &["-Q", "-T", "-p", commands])
}

pub fn zstd() -> Input {
    c_file(6_000_000, &["9", "/in/text.c"])
}

pub fn small_batsat() -> Input {
    Input::stdin("formula.cnf", formula::generate(11, 100, 440), &[])
}

pub fn small_brotli() -> Input {
    c_file(60_000, &["9", "/in/text.c"])
}

pub fn small_bzip2() -> Input {
    c_file(50_000, &["9", "/in/text.c"])
}

pub fn small_minijinja() -> Input {
    let files = vec![
        ("page.html", include_bytes!("page.html").to_vec()),
        ("text.md", markdown::generate(13, 20_000).into_bytes()),
    ];
    Input::files(files, &["/in/page.html", "3", "/in/text.md"])
}

pub fn small_lua() -> Input {
    script(
        "bench.lua",
        "local SCALE <const> = 1\n",
        include_str!("bench.lua"),
    )
}

pub fn small_jpeg() -> Input {
    let args = ["160", "120", "50", "75", "90", "95"];
    Input::stdin("pixels.rgb", image::generate(12, 160, 120), &args)
}

pub fn small_pulldown_cmark() -> Input {
    Input::stdin("text.md", markdown::generate(13, 60_000), &["2"])
}

pub fn small_quickjs() -> Input {
    script("bench.js", "const SCALE = 1;\n", include_str!("bench.js"))
}

pub fn small_regex() -> Input {
    regex_of(6_000)
}

pub fn small_rhai() -> Input {
    script("bench.rhai", "", include_str!("bench.rhai"))
}

pub fn small_sqlite() -> Input {
    Input::stdin("script.sql", sql::generate(14, 1_000), &[])
}

pub fn small_syn() -> Input {
    syn_of(15_000)
}

pub fn small_tree_sitter() -> Input {
    c_file(60_000, &["/in/text.c"])
}

pub fn small_webp() -> Input {
    let args = ["96", "72", "40", "75", "95"];
    Input::stdin("pixels.rgb", image::generate(12, 96, 72), &args)
}

pub fn small_zlib() -> Input {
    c_file(100_000, &["9", "/in/text.c"])
}

pub fn small_zstd() -> Input {
    c_file(30_000, &["9", "/in/text.c"])
}

/// The factor by which every count in the script is scaled. At this scale, some loops run once or
/// not at all.
const TINY_SCALE: &str = "0.02";

pub fn tiny_batsat() -> Input {
    Input::stdin("formula.cnf", formula::generate(11, 30, 160), &[])
}

pub fn tiny_boa() -> Input {
    tiny_javascript()
}

pub fn tiny_bzip2() -> Input {
    c_file(500, &["1", "/in/text.c"])
}

pub fn tiny_clang() -> Input {
    clang_of(1)
}

pub fn tiny_jpeg() -> Input {
    let args = ["32", "24", "80", "85"];
    Input::stdin("pixels.rgb", image::generate(12, 32, 24), &args)
}

pub fn tiny_lua() -> Input {
    let scale = format!("local SCALE <const> = {TINY_SCALE}\n");
    script("bench.lua", &scale, include_str!("bench.lua"))
}

pub fn tiny_pulldown_cmark() -> Input {
    Input::stdin("text.md", markdown::generate(13, 4_000), &["1"])
}

pub fn tiny_quickjs() -> Input {
    tiny_javascript()
}

/// Uses the two patterns that compile fastest, because compiling takes longer than searching.
pub fn tiny_regex() -> Input {
    let mut input = c_file(2_000, &["/in/patterns.txt", "/in/text.c"]);
    let patterns = include_str!("patterns.txt").lines().skip(3).take(2);
    let patterns = Vec::from_iter(patterns).join("\n");
    input.files.push(("patterns.txt", patterns.into_bytes()));
    input
}

pub fn tiny_sqlite() -> Input {
    Input::stdin("script.sql", sql::generate(14, 50), &[])
}

pub fn tiny_syn() -> Input {
    syn_of(1_000)
}

pub fn tiny_yosys() -> Input {
    yosys_of("read_verilog /in/design.v; stat", 1)
}

pub fn tiny_zstd() -> Input {
    c_file(1_000, &["9", "/in/text.c"])
}

/// Makes an input for programs that print everything they compute from it, so that each wrong byte
/// can be asked about.
pub fn short_c() -> Input {
    Input::stdin("text.c", c_text::generate(18, 1_500), &[])
}

pub fn short_markdown() -> Input {
    Input::stdin("text.md", markdown::generate(13, 4_000), &[])
}

pub fn short_page() -> Input {
    let files = vec![
        ("page.html", include_bytes!("page.html").to_vec()),
        ("text.md", markdown::generate(13, 600).into_bytes()),
    ];
    Input::files(files, &["/in/page.html", "/in/text.md"])
}

/// Makes the input with smaller loop counts. Every loop that runs at least once runs fewer times.
fn tiny_javascript() -> Input {
    let scale = format!("const SCALE = {TINY_SCALE};\n");
    let text = include_str!("bench.js").replace("fibonacci(17)", "fibonacci(7)");
    let text = text.replace("queens(6 + (i % 2))", "queens(4)");
    script("bench.js", &scale, &text)
}

fn c_file(size: usize, args: &[&str]) -> Input {
    Input::files(
        vec![("text.c", c_text::generate(18, size).into_bytes())],
        args,
    )
}

fn script(name: &'static str, scale: &str, text: &str) -> Input {
    let files = vec![(name, format!("{scale}{text}").into_bytes())];
    Input::files(files, &[&format!("{GUEST_FOLDER}/{name}")])
}
