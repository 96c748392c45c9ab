//! Measures the cost of exact profiles. These are the analogues of Tables 1 and 2 of Ball and Larus
//! 1992.

use std::path::Path;
use std::sync::Arc;

use afterimage_ids::Counts;
use afterimage_placement::{Mode, PlanOptions, block_counts, plan};
use afterimage_program::{BlockKind, EdgeKind, Program};
use afterimage_record::measure::{Compiled, Setting, compile};
use afterimage_record::{
    Cache, Command, Interrupt, Launch, RecordOptions, RecordedRun, check_blocks, count, record,
};
use afterimage_rewrite::{Options, rewrite};
use afterimage_trace::{Existing, TraceFile, TraceWriter};
use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::Arguments;
use crate::corpus::{Entry, entries};
use crate::machine::Machine;
use crate::publish::publish;
use crate::statistics::{Sample, geometric};
use crate::table::Table;

/// The timed variants, in the order of a round.
const VARIANTS: [&str; 10] = [
    "plain", "nan", "epochs", "slow", "quick", "feedback", "program", "both", "record", "clock",
];
const PLAIN: usize = 0;
/// The duration, in seconds, above which a compilation is not repeated.
const LONG_COMPILATION: f64 = 5.0;

/// The measurements of one program.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    functions: usize,
    /// The number of static blocks and edges in all functions.
    blocks: u64,
    edges: u64,
    /// The number of executed blocks. Calls end blocks.
    executed_blocks: u64,
    /// The number of blocks that would have been executed if calls did not end blocks.
    executed_native_blocks: u64,
    seconds: Vec<(&'static str, Sample)>,
    ratios: Vec<(&'static str, Sample)>,
    compile_seconds: Vec<(&'static str, f64)>,
    counters: Vec<(&'static str, u64)>,
    increments: Vec<(&'static str, u64)>,
}

impl Row {
    fn ratio(&self, variant: &str) -> f64 {
        self.ratios
            .iter()
            .find(|r| r.0 == variant)
            .map_or(f64::NAN, |r| r.1.median)
    }

    fn of(list: &[(&'static str, u64)], variant: &str) -> f64 {
        list.iter()
            .find(|r| r.0 == variant)
            .map_or(f64::NAN, |r| r.1 as f64)
    }

    fn compile_ratio(&self, variant: &str) -> f64 {
        let of = |v: &str| {
            self.compile_seconds
                .iter()
                .find(|r| r.0 == v)
                .map_or(f64::NAN, |r| r.1)
        };
        of(variant) / of("plain")
    }

    fn per_block(&self, variant: &str) -> f64 {
        Self::of(&self.increments, variant) / self.executed_blocks as f64
    }
}

#[derive(Serialize)]
struct Results {
    machine: Machine,
    runs: usize,
    rows: Vec<Row>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut rows = Vec::new();
    for entry in entries(arguments)? {
        eprintln!("{} …", entry.name);
        rows.push(measure(&entry, arguments).with_context(|| entry.name.clone())?);
    }
    let results = Results {
        machine: Machine::this(),
        runs: arguments.runs,
        rows,
    };
    let text = report(&results);
    publish(
        arguments.out.as_deref(),
        &results.machine.date,
        "profile",
        &text,
        &results,
    )
}

/// The exact counts of a run, and for each mode the numbers of counters and of increments.
struct Truth {
    counts: Counts,
    counters: Vec<(&'static str, u64)>,
    increments: Vec<(&'static str, u64)>,
}

fn truth(bytes: &[u8], program: &Program, command: &Command, folder: &Path) -> Result<Truth> {
    let path = folder.join("run.aft");
    let out = TraceWriter::create(&path, Existing::Replaced)?;
    let options = RecordOptions {
        silent: true,
        clock: false,
        ..RecordOptions::default()
    };
    let cache = Cache::none();
    let launch = Launch {
        bytes,
        program,
        command,
        options: &options,
        cache: &cache,
        interrupt: &Interrupt::new(),
    };
    record(launch, &out)?;
    drop(out);
    let file = TraceFile::open(&path)?;
    let quiet: afterimage_record::Progress = Arc::new(|_| ());
    let run = RecordedRun {
        file: &file,
        bytes,
        program,
        cache: &cache,
        progress: &quiet,
        cancel: None,
    };
    let make = |mode: Mode, feedback: Option<&Counts>| {
        let options = PlanOptions {
            feedback,
            ..PlanOptions::new(mode)
        };
        count(&run, &options)
    };
    let quick = make(Mode::Quick, None)?;
    let counts = quick.counts.clone();
    let blocks = check_blocks(&run, &counts)?;
    let others = [
        ("feedback", make(Mode::Feedback, Some(&counts))?),
        ("program", make(Mode::Program, None)?),
        ("both", make(Mode::Program, Some(&counts))?),
    ];
    let executed: u64 = executed_blocks(program, &counts)?;
    let mut counters = vec![("slow", blocks), ("quick", quick.counters)];
    let mut increments = vec![("slow", executed), ("quick", quick.increments)];
    for (name, lens) in &others {
        ensure!(
            lens.counts == counts,
            "modes {name} and quick give different counts"
        );
        counters.push((name, lens.counters));
        increments.push((name, lens.increments));
    }
    Ok(Truth {
        counts,
        counters,
        increments,
    })
}

/// Returns the number of blocks that a run with these counts executed.
pub(crate) fn executed_blocks(program: &Program, counts: &Counts) -> Result<u64> {
    let per_function = block_counts(program, counts)?;
    let sums = program
        .functions
        .iter()
        .zip(&per_function)
        .map(|(f, blocks)| {
            let code = f
                .cfg
                .blocks
                .values()
                .zip(blocks)
                .filter(|(b, _)| b.kind == BlockKind::Code);
            code.map(|(_, n)| n).sum::<u64>()
        });
    Ok(sums.sum())
}

/// Returns the number of blocks that begin only because a call ended the previous block.
fn continuations(program: &Program, counts: &Counts) -> u64 {
    let mut sum = 0;
    for (f, counts) in program.functions.iter().zip(&counts.functions) {
        for (id, edge) in &f.cfg.edges {
            let only = f.cfg.graph.in_edges(edge.to).len() == 1
                && f.cfg.blocks[edge.to].kind == BlockKind::Code;
            if edge.kind == EdgeKind::CallReturn && only {
                sum += counts.edges[id.as_u32() as usize];
            }
        }
    }
    sum
}

fn measure(entry: &Entry, arguments: &Arguments) -> Result<Row> {
    let bytes = entry.module(&arguments.corpus)?;
    let program = Program::parse(&bytes)?;
    let command = entry.command(&arguments.corpus);
    let folder = tempfile::tempdir()?;
    let truth = truth(&bytes, &program, &command, folder.path())?;

    let instrumented = |mode: Mode, feedback: Option<&Counts>| -> Result<Vec<u8>> {
        let plan = plan(
            &program,
            &PlanOptions {
                feedback,
                ..PlanOptions::new(mode)
            },
        )?;
        Ok(rewrite(&bytes, &program, Some(&plan), &Options::default())?.module)
    };
    let plain = Setting::default();
    let mut compiled: Vec<(&'static str, Compiled)> = Vec::new();
    let mut compile_seconds = Vec::new();
    let modules = [
        ("plain", plain, bytes.clone()),
        (
            "nan",
            Setting {
                deterministic: true,
                ..plain
            },
            bytes.clone(),
        ),
        (
            "epochs",
            Setting {
                epochs: true,
                ..plain
            },
            bytes.clone(),
        ),
        ("slow", plain, instrumented(Mode::Slow, None)?),
        ("quick", plain, instrumented(Mode::Quick, None)?),
        (
            "feedback",
            plain,
            instrumented(Mode::Feedback, Some(&truth.counts))?,
        ),
        ("program", plain, instrumented(Mode::Program, None)?),
        (
            "both",
            plain,
            instrumented(Mode::Program, Some(&truth.counts))?,
        ),
    ];
    for (name, setting, module) in &modules {
        compiled.push((name, compile(*setting, module)?));
    }
    // The first compilations warm up the machine. Each second compilation counts, unless it was
    // omitted because the first took a long time.
    for ((name, setting, module), (_, first)) in modules.iter().zip(&compiled) {
        let seconds = match first.compile_seconds {
            long if long > LONG_COMPILATION => long,
            _ => compile(*setting, module)?.compile_seconds,
        };
        compile_seconds.push((*name, seconds));
    }

    let mut seconds: Vec<Vec<f64>> = vec![Vec::new(); VARIANTS.len()];
    for round in 0..=arguments.runs {
        for (v, times) in seconds.iter_mut().enumerate() {
            let time = match compiled.get(v) {
                Some((_, module)) => module.run(&command)?.cpu_seconds,
                None => recorded(
                    &bytes,
                    &program,
                    &command,
                    folder.path(),
                    VARIANTS[v] == "clock",
                )?,
            };
            // The first round only fills the caches.
            if round > 0 {
                times.push(time);
            }
        }
    }
    let ratios = VARIANTS
        .iter()
        .zip(&seconds)
        .map(|(n, s)| (*n, Sample::ratios(s, &seconds[PLAIN])))
        .collect();
    let executed = executed_blocks(&program, &truth.counts)?;
    let vertices = program
        .functions
        .iter()
        .map(|f| f.cfg.blocks.len() as u64)
        .sum();
    let edges = program
        .functions
        .iter()
        .map(|f| f.cfg.edges.len() as u64)
        .sum();
    Ok(Row {
        name: entry.name.clone(),
        functions: program.functions.len(),
        blocks: vertices,
        edges,
        executed_blocks: executed,
        executed_native_blocks: executed - continuations(&program, &truth.counts),
        seconds: VARIANTS
            .iter()
            .zip(seconds)
            .map(|(n, s)| (*n, Sample::of(s)))
            .collect(),
        ratios,
        compile_seconds,
        counters: truth.counters,
        increments: truth.increments,
    })
}

/// Returns the guest's time while it is recorded, without the settings that are measured
/// separately.
fn recorded(
    bytes: &[u8],
    program: &Program,
    command: &Command,
    folder: &Path,
    clock: bool,
) -> Result<f64> {
    let out = TraceWriter::create(&folder.join("timed.aft"), Existing::Replaced)?;
    let options = RecordOptions {
        silent: true,
        clock,
        deterministic: false,
        ..RecordOptions::default()
    };
    let cache = Cache::in_folder(&folder.join("cache"));
    let launch = Launch {
        bytes,
        program,
        command,
        options: &options,
        cache: &cache,
        interrupt: &Interrupt::new(),
    };
    Ok(record(launch, &out)?.cpu_seconds)
}

fn report(results: &Results) -> String {
    let mut out = format!(
        "{}, {} cores, {} GiB, {}, {}; {} runs of each, in turn; thread processor time, medians.\n\n",
        results.machine.processor,
        results.machine.cores,
        results.machine.memory_gib,
        results.machine.engine,
        results.machine.date,
        results.runs,
    );
    let rows = &results.rows;
    out.push_str(
        "nan: NaN canonicalisation; epochs: the engine's own interruption; both: program mode with feedback; record: the boundary log; clock: with the stop clock.\n\nTime as a ratio to the plain module\n\n",
    );
    let mut header = vec!["program", "plain s"];
    header.extend(&VARIANTS[1..]);
    let mut table = Table::new(&header);
    for row in rows {
        let plain = row.seconds[PLAIN].1;
        let mut cells = vec![row.name.clone(), format!("{:.3}", plain.median)];
        cells.extend(
            row.ratios[1..]
                .iter()
                .map(|r| format!("{:.3} ({:.2}–{:.2})", r.1.median, r.1.min, r.1.max)),
        );
        table.row(cells);
    }
    let worst = |values: &[f64]| values.iter().copied().fold(f64::NAN, f64::max);
    let mean_of = |values: &[f64]| geometric(values.iter().copied());
    for (label, of) in [
        ("geometric mean", &mean_of as &dyn Fn(&[f64]) -> f64),
        ("worst", &worst),
    ] {
        let mut cells = vec![label.to_owned(), String::new()];
        for variant in &VARIANTS[1..] {
            let values: Vec<f64> = rows.iter().map(|r| r.ratio(variant)).collect();
            cells.push(format!("{:.3}", of(&values)));
        }
        table.row(cells);
    }
    out.push_str(&table.markdown());

    out.push_str("\nOverhead in seconds (1992, Table 1)\n\n");
    let mut table = Table::new(&[
        "program", "plain", "slow", "quick", "feedback", "program", "both",
    ]);
    for row in rows {
        let of = |v: &str| {
            row.seconds
                .iter()
                .find(|s| s.0 == v)
                .map_or(f64::NAN, |s| s.1.median)
        };
        let mut cells = vec![row.name.clone(), format!("{:.3}", of("plain"))];
        for v in ["slow", "quick", "feedback", "program", "both"] {
            cells.push(format!("{:+.3}", of(v) - of("plain")));
        }
        table.row(cells);
    }
    out.push_str(&table.markdown());

    out.push_str("\nIncrements (1992, Table 2), and increments per executed block\n\n");
    let mut table = Table::new(&[
        "program",
        "blocks executed",
        "quick",
        "slow/quick",
        "slow/feedback",
        "slow/program",
        "quick per block",
        "feedback per block",
        "program per block",
        "both per block",
        "program per native block",
    ]);
    for row in rows {
        let slow = Row::of(&row.increments, "slow");
        let over = |v: &str| format!("{:.1}", slow / Row::of(&row.increments, v));
        table.row(vec![
            row.name.clone(),
            row.executed_blocks.to_string(),
            format!("{:.0}", Row::of(&row.increments, "quick")),
            over("quick"),
            over("feedback"),
            over("program"),
            format!("{:.3}", row.per_block("quick")),
            format!("{:.3}", row.per_block("feedback")),
            format!("{:.3}", row.per_block("program")),
            format!("{:.3}", row.per_block("both")),
            format!(
                "{:.3}",
                Row::of(&row.increments, "program") / row.executed_native_blocks as f64
            ),
        ]);
    }
    let mean = |f: &dyn Fn(&Row) -> f64| geometric(rows.iter().map(f));
    let slow_over = |v: &'static str| {
        mean(&|r: &Row| Row::of(&r.increments, "slow") / Row::of(&r.increments, v))
    };
    table.row(vec![
        "geometric mean".to_owned(),
        String::new(),
        String::new(),
        format!("{:.1}", slow_over("quick")),
        format!("{:.1}", slow_over("feedback")),
        format!("{:.1}", slow_over("program")),
        format!("{:.3}", mean(&|r| r.per_block("quick"))),
        format!("{:.3}", mean(&|r| r.per_block("feedback"))),
        format!("{:.3}", mean(&|r| r.per_block("program"))),
        format!("{:.3}", mean(&|r| r.per_block("both"))),
        format!(
            "{:.3}",
            mean(&|r| Row::of(&r.increments, "program") / r.executed_native_blocks as f64)
        ),
    ]);
    out.push_str(&table.markdown());

    out.push_str("\nCounters placed, and compile time as a ratio to the plain module (processor time of all threads)\n\n");
    let mut table = Table::new(&[
        "program",
        "functions",
        "blocks",
        "edges",
        "slow",
        "quick",
        "program",
        "compile s",
        "slow",
        "quick",
        "program",
        "both",
    ]);
    for row in rows {
        let mut cells = vec![
            row.name.clone(),
            row.functions.to_string(),
            row.blocks.to_string(),
            row.edges.to_string(),
        ];
        cells.extend(
            ["slow", "quick", "program"].map(|v| format!("{:.0}", Row::of(&row.counters, v))),
        );
        cells.push(format!("{:.2}", row.compile_seconds[0].1));
        cells.extend(
            ["slow", "quick", "program", "both"].map(|v| format!("{:.2}", row.compile_ratio(v))),
        );
        table.row(cells);
    }
    let mut cells = vec!["geometric mean".to_owned()];
    cells.extend(std::iter::repeat_n(String::new(), 7));
    cells.extend(
        ["slow", "quick", "program", "both"]
            .map(|v| format!("{:.2}", mean(&|r| r.compile_ratio(v)))),
    );
    table.row(cells);
    out.push_str(&table.markdown());
    out.push_str(&format!(
        "\nOn all {} programs, quick, feedback and program modes gave the same count on every edge, and a counter in every block agreed with them: otherwise there would be no table.\n",
        rows.len()
    ));
    out
}
