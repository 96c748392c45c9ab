//! Measures recording, counting and answering questions on real programs.
//!
//! Costs at run time are ratios to the plain module, which has no epochs, no fuel and no NaN
//! canonicalisation. The variants of a module run in turn in the same process, and the benchmark
//! measures the processor time of the guest's thread.

mod calibrate;
mod corpus;
mod first;
mod fitting;
mod histories;
mod machine;
mod matching;
mod moments;
mod parquet;
mod paths;
mod profile;
mod publish;
mod recorded;
mod redundancy;
mod slices;
mod statistics;
mod table;
mod values;
mod why;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The allocator that the program `afterimage` uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure recording and counting on the corpus (build it first: cargo xtask corpus)
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure exact profiles: run-time and compile-time ratios, counters, increments
    Profile(Arguments),
    /// Measure control-flow traces
    Paths(Arguments),
    /// Measure only the cost of writing control-flow traces while the program runs
    Live(Arguments),
    /// Measure whole execution traces
    Values(values::Options),
    /// Measure only the building of whole execution traces, and how much faster it could be
    Building(values::Options),
    /// Measure the time and size of dynamic slices
    Slices(slices::Options),
    /// Measure the accuracy and time of matching versions
    Matching(matching::Options),
    /// Fit the weights by which versions are matched
    Fitting(fitting::Options),
    /// Measure redundant loads and expressions of recordings, and the cost of queries
    Redundancy(redundancy::Options),
    /// Measure the time and size of histories of branch predictors and caches
    Histories(histories::Options),
    /// Measure the time of the first answer about a bare recording, and of a later answer
    First(Arguments),
    /// Measure the time of `why` to its first line
    Why(why::Options),
    /// Measure the time of conditions, steps by line and states
    Moments(moments::Options),
    /// Measure the export of values as Parquet files: rows per second, bytes per row
    Parquet(parquet::Options),
    /// Measure the cost of splitting an edge on this engine, by run time under several charges
    Calibrate(Arguments),
    /// Run a part of the benchmark of paths as its own process
    #[command(hide = true)]
    Memory(paths::memory::Arguments),
    /// Run a part of the benchmark of values as its own process
    #[command(hide = true)]
    ValuesMemory(values::memory::MemoryOptions),
}

/// The options of the measurement.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The folder with the corpus
    #[arg(long, default_value = "target/corpus")]
    corpus: PathBuf,
    /// Only these programs
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Leave these programs out
    #[arg(long, value_delimiter = ',', default_value = "clang")]
    skip: Vec<String>,
    /// The number of runs of each variant
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// The folder for the results; without it, no results are kept
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Profile(arguments) => profile::run(&arguments),
        Command::Paths(arguments) => paths::run(&arguments),
        Command::Live(arguments) => paths::live::run(&arguments),
        Command::Slices(arguments) => slices::run(&arguments),
        Command::Matching(options) => matching::run(&options),
        Command::Fitting(options) => fitting::run(&options),
        Command::Redundancy(options) => redundancy::run(&options),
        Command::Histories(options) => histories::run(&options),
        Command::First(arguments) => first::run(&arguments),
        Command::Why(options) => why::run(&options),
        Command::Moments(options) => moments::run(&options),
        Command::Parquet(options) => parquet::run(&options),
        Command::Calibrate(arguments) => calibrate::run(&arguments),
        Command::Memory(arguments) => paths::memory::run(&arguments),
        Command::Values(arguments) => values::run(&arguments),
        Command::Building(arguments) => values::building::run(&arguments),
        Command::ValuesMemory(arguments) => values::memory::run(&arguments),
    }
}
