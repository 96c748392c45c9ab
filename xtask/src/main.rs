//! Runs the project's chores, which developers need in addition to the tool itself.
//!
//! - `cargo xtask demo` builds a real program and profiles it.
//! - `cargo xtask test` runs the tests with everything they need.
//! - `cargo xtask architecture` checks the promises in ARCHITECTURE.md.
//! - `cargo xtask corpus` builds the real programs on which the project is measured, and `cargo
//!   xtask planted` builds some of them with bugs.
//! - `cargo xtask verify` checks everything about these programs; `cargo xtask mutants` checks that
//!   a replaced operator is named.
//! - `cargo xtask guilty` plants bugs and checks whether agents' answers show them; `cargo xtask
//!   mcp` asks `afterimage mcp` with other clients.
//! - `cargo xtask dataset` asks the questions in docs/PARQUET.md with SQL engines.
//! - `cargo xtask suites` runs other people's test suites.
//! - `cargo xtask forge` forges recordings.
//! - `cargo xtask freeze` compares many answers with the kept answers.
//! - `cargo xtask screens` makes the pages of docs/screens.
//! - `cargo xtask explorer` clicks through the explorer's page in a browser.
//! - `cargo xtask formats` opens each export in its own tool.
//! - `cargo xtask guide` runs the commands of README.md and docs/guide, and compares their output.
//! - `cargo xtask prose` measures the sentences of documents and doc comments.
//! - `cargo xtask book` builds the manual.
//! - `cargo xtask papers` repeats the measurements in the papers.

mod architecture;
mod book;
mod build;
mod copy;
mod corpus;
mod dap;
mod dataset;
mod demo;
mod dist;
mod explorer;
mod forge;
mod formats;
mod freeze;
mod guide;
mod guilty;
mod inputs;
mod inspect;
mod manifest;
mod mcp;
mod mutants;
mod papers;
mod planted;
mod programs;
mod prose;
mod screens;
mod shipped;
mod suites;
mod test;
mod tool;
mod toolchain;
mod verify;

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Chores of the afterimage project
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build real programs to WebAssembly, with inputs and a manifest
    Corpus(CorpusArguments),
    /// Build one real program and show its exact profile
    Demo,
    /// Build three programs of the corpus with a bug each, for docs/sessions
    Planted,
    /// Build the programs that the tests need, and run all tests
    Test {
        /// Arguments for cargo test
        #[arg(
            value_name = "ARGS",
            trailing_var_arg = true,
            allow_hyphen_values = true
        )]
        arguments: Vec<OsString>,
    },
    /// Check everything about the programs of the corpus (hours)
    Verify(VerifyArguments),
    /// Replace operators of programs, and check that `afterimage diff` names them (minutes)
    Mutants(MutantsArguments),
    /// Plant bugs in programs, and see whether agents' answers show the guilty lines (half an hour)
    Guilty(GuiltyArguments),
    /// Ask `afterimage mcp` with the protocol's own clients, and measure how soon it answers
    Mcp(McpArguments),
    /// Ask the questions of docs/PARQUET.md with DuckDB and DataFusion, and read all tables with
    /// PyArrow
    Dataset(DatasetArguments),
    /// Run the WebAssembly and WASI test suites through recording and replay (minutes)
    Suites {
        /// A folder with scripts, or with built programs of the WASI test suite [default: scripts
        /// from crates.io]
        #[arg(value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
    /// Forge recordings with correct checksums, and check that `afterimage verify` reports each
    /// forgery that changes an answer (minutes)
    Forge {
        /// The number of recordings to forge
        #[arg(long, value_name = "N", default_value_t = 10_000)]
        count: u64,
        /// The number of seeds, each for an equal share of the recordings
        #[arg(long, value_name = "N", default_value_t = 4)]
        seeds: u64,
        /// The first seed, which determines the forged files
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
    },
    /// Measure the papers' tables and figures again (hours; with --quick minutes)
    Papers(PapersArguments),
    /// Ask four thousand questions, and compare the answers with the kept answers (minutes)
    Freeze(FreezeArguments),
    /// Write docs/screens, which shows the terminal for twelve tasks in C, C++ and Rust (a minute)
    Screens(ScreensArguments),
    /// Run the commands of README.md and docs/guide, and write their output into these pages
    /// (seconds)
    Guide(GuideArguments),
    /// Build the manual as a book into target/book, if mdbook is installed
    Book,
    /// Write the archive of a release into target/dist: the stripped program, manual pages,
    /// completions
    Dist,
    /// Measure the sentences of documents and doc comments, and fail above the limits
    Prose {
        /// The number of longest sentences to list
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
        /// Print N random sentences of documents, doc comments, help and messages instead
        #[arg(long, value_name = "N")]
        draw: Option<usize>,
        /// The seed, which determines the sentences
        #[arg(long, value_name = "N", default_value_t = 1, requires = "draw")]
        seed: u64,
    },
    /// Debug three programs with a client of the Debug Adapter Protocol from npm, or measure how
    /// long it waits
    Dap(DapArguments),
    /// Click through the explorer's page in Chromium, and check the types of its scripts (two
    /// minutes)
    Explorer(explorer::Arguments),
    /// Open each export in its own tool, and compare what the tool shows (a minute)
    Formats {
        /// Run this program instead of the one that the checkout builds
        #[arg(long, value_name = "PROGRAM")]
        tool: Option<PathBuf>,
    },
    /// Check the rules between crates, and that documents cite only files that exist
    Architecture,
}

/// The options of `cargo xtask dap`.
#[derive(clap::Args)]
struct DapArguments {
    /// The afterimage program to test [default: build it]
    #[arg(long, value_name = "FILE")]
    tool: Option<PathBuf>,
    /// Measure, on a run of a billion statements
    #[arg(long)]
    measure: bool,
}

/// The options of `cargo xtask corpus`.
#[derive(clap::Args)]
struct CorpusArguments {
    /// Only these programs, names separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// List the programs and build nothing
    #[arg(long)]
    list: bool,
    /// The folder to fill [default: target/corpus in the workspace, with --versions
    /// target/corpus-versions]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Instead build programs at levels 0, 1, 2 and 3, with smaller inputs, for the matching of
    /// versions
    #[arg(long)]
    versions: bool,
    /// Succeed even if a program had to be left out because a tool is missing
    #[arg(long)]
    skip_missing: bool,
}

/// The options of `cargo xtask verify`.
#[derive(clap::Args)]
struct VerifyArguments {
    /// The folder with the corpus [default: target/corpus in the workspace]
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
    /// Only these programs, names separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Only compare runs on tiny inputs with slow, obvious references
    #[arg(long)]
    tiny_only: bool,
    /// Only record runs on full inputs with all lenses, and verify them
    #[arg(long, conflicts_with = "tiny_only")]
    full_only: bool,
}

/// The options of `cargo xtask mutants`.
#[derive(clap::Args)]
struct MutantsArguments {
    /// The folder with programs at several levels [default: target/corpus-versions in the
    /// workspace]
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
    /// Only these programs, names separated by commas
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "bzip2,lua,zstd"
    )]
    only: Vec<String>,
    /// The number of mutants of each kind
    #[arg(long, value_name = "N", default_value_t = 6)]
    count: usize,
    /// The seed, which determines the mutants
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// The options of `cargo xtask guilty`.
#[derive(clap::Args)]
struct GuiltyArguments {
    /// The seed, which determines the bugs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The number of bugs in each program
    #[arg(long, value_name = "N", default_value_t = 6)]
    count: usize,
    /// Only bugs in these programs, names separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Ask about the bugs drawn before with this seed, from their recordings
    #[arg(long)]
    again: bool,
    /// Ask this program instead of the one built from the checkout
    #[arg(long, value_name = "PROGRAM")]
    tool: Option<PathBuf>,
}

/// The program and recordings that the clients ask about.
#[derive(clap::Args)]
struct McpArguments {
    /// Ask this program instead of the one built from the checkout
    #[arg(long, value_name = "PROGRAM")]
    tool: Option<PathBuf>,
    /// Also measure how soon tools answer about these recordings
    #[arg(value_name = "FILE.aft")]
    files: Vec<PathBuf>,
}

/// The options of `cargo xtask dataset`.
#[derive(clap::Args)]
struct DatasetArguments {
    /// Write the answers into the page
    #[arg(long, conflicts_with = "scale")]
    bless: bool,
    /// Measure Spark with one executor and with two, on a run with N times as many orders
    #[arg(long, value_name = "N")]
    scale: Option<usize>,
    /// Run this program instead of the one that the checkout builds
    #[arg(long, value_name = "PROGRAM")]
    tool: Option<PathBuf>,
}

/// The options of `cargo xtask papers`.
#[derive(clap::Args)]
struct PapersArguments {
    /// Use tiny inputs, one run each, and only bzip2 from the corpus
    #[arg(long)]
    quick: bool,
    /// Only these programs, names separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
}

/// The options of `cargo xtask freeze`.
#[derive(clap::Args)]
struct FreezeArguments {
    /// Store the current answers
    #[arg(long)]
    bless: bool,
    /// Also fail if only words changed
    #[arg(long, conflicts_with = "bless")]
    words: bool,
    /// Only these recordings, names separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Ask this program instead of the one built from the checkout
    #[arg(long, value_name = "PROGRAM")]
    tool: Option<PathBuf>,
}

/// The options of `cargo xtask screens`.
#[derive(clap::Args)]
struct ScreensArguments {
    /// Compare with the stored pages, and write none
    #[arg(long)]
    check: bool,
    /// Run this program instead of the one built from the checkout
    #[arg(long, value_name = "PROGRAM")]
    tool: Option<PathBuf>,
}

/// The options of `cargo xtask guide`.
#[derive(clap::Args)]
struct GuideArguments {
    /// Compare with the pages, and write none
    #[arg(long)]
    check: bool,
    /// Run this program instead of the one built from the checkout
    #[arg(long, value_name = "PROGRAM")]
    tool: Option<PathBuf>,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Corpus(arguments) => corpus::run(&arguments),
        Task::Demo => demo::run(),
        Task::Planted => planted::run(),
        Task::Test { arguments } => test::run(&arguments),
        Task::Verify(arguments) => verify::run(&arguments),
        Task::Mutants(arguments) => mutants::run(&arguments),
        Task::Guilty(arguments) => guilty::run(&arguments),
        Task::Mcp(arguments) => mcp::run(&arguments),
        Task::Dataset(arguments) => dataset::run(&arguments),
        Task::Suites { folder } => suites::run(folder.as_deref()),
        Task::Forge { count, seeds, seed } => forge::run(count, seeds, seed),
        Task::Freeze(arguments) => freeze::run(&arguments),
        Task::Screens(arguments) => screens::run(&arguments),
        Task::Guide(arguments) => guide::run(&arguments),
        Task::Book => book::run(),
        Task::Dist => dist::run(),
        Task::Prose {
            draw: Some(count),
            seed,
            ..
        } => prose::draw(count, seed),
        Task::Prose { limit, .. } => prose::run(limit),
        Task::Dap(arguments) => dap::run(&arguments),
        Task::Explorer(arguments) => explorer::run(&arguments),
        Task::Formats { tool } => formats::run(tool.as_deref()),
        Task::Papers(arguments) => papers::run(&arguments),
        Task::Architecture => architecture::run(),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
