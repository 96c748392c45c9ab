//! The inputs of the corpus: made here, by arithmetic alone, so that every machine has the same bytes and no text of
//! others is kept.
//!
//! The sizes are chosen so that each program runs for about a third of a second.

mod c_text;
mod formula;
mod image;
mod markdown;
mod rng;
mod rust_text;
mod sql;
mod verilog;
mod words;

/// What one program is given.
#[derive(Default)]
pub struct Input {
    /// The arguments after the program's name. Files are seen under [`GUEST_FOLDER`].
    pub args: Vec<String>,
    /// The files to write, each with its name and contents.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// Which of the files is standard input. Without one, the folder of files is granted to the guest instead.
    pub stdin: Option<&'static str>,
}

/// Where a guest sees the folder of its files.
pub const GUEST_FOLDER: &str = "/in";

impl Input {
    /// `contents` as standard input.
    fn stdin(name: &'static str, contents: impl Into<Vec<u8>>, args: &[&str]) -> Self {
        Input {
            args: owned(args),
            files: vec![(name, contents.into())],
            stdin: Some(name),
        }
    }

    /// Files that the arguments name.
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

pub fn batsat() -> Input {
    Input::stdin("formula.cnf", formula::generate(11, 200, 852), &[])
}

pub fn boa() -> Input {
    script("bench.js", "const SCALE = 2;\n", include_str!("bench.js"))
}

pub fn bzip2() -> Input {
    c_file(3_000_000, &["9", "/in/text.c"])
}

pub fn jpeg() -> Input {
    Input::stdin("pixels.rgb", image::generate(12, 800, 600), &["800", "600"])
}

pub fn lua() -> Input {
    script(
        "bench.lua",
        "local SCALE <const> = 10\n",
        include_str!("bench.lua"),
    )
}

/// Prose for the Markdown parser, 400 KB of it, and how often to render it.
pub fn pulldown_cmark() -> Input {
    Input::stdin("text.md", markdown::generate(13, 400_000), &["20"])
}

pub fn quickjs() -> Input {
    script("bench.js", "const SCALE = 10;\n", include_str!("bench.js"))
}

pub fn regex() -> Input {
    let mut input = c_file(3_000_000, &["/in/patterns.txt", "/in/text.c"]);
    input
        .files
        .push(("patterns.txt", include_bytes!("patterns.txt").to_vec()));
    input
}

pub fn sqlite() -> Input {
    Input::stdin("script.sql", sql::generate(14, 150_000), &[])
}

pub fn syn() -> Input {
    let files = vec![
        ("first.rs", rust_text::generate(15, 500_000).into_bytes()),
        ("second.rs", rust_text::generate(16, 500_000).into_bytes()),
    ];
    Input::files(files, &["/in/first.rs", "/in/second.rs"])
}

pub fn yosys() -> Input {
    let script = "read_verilog /in/design.v; synth -top top -flatten; stat; write_verilog -noattr /tmp/out.v";
    Input::files(
        vec![("design.v", verilog::generate(17, 4).into_bytes())],
        &["-q", "-p", script],
    )
}

pub fn zstd() -> Input {
    c_file(3_000_000, &["9", "/in/text.c"])
}

fn c_file(size: usize, args: &[&str]) -> Input {
    Input::files(
        vec![("text.c", c_text::generate(18, size).into_bytes())],
        args,
    )
}

fn script(name: &'static str, scale: &str, text: &str) -> Input {
    Input::files(
        vec![(name, format!("{scale}{text}").into_bytes())],
        &[&format!("{GUEST_FOLDER}/{name}")],
    )
}
