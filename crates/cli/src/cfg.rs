//! `afterimage cfg`

use std::path::PathBuf;

use afterimage_placement::{Mode, PlanOptions, Probe, Site, plan};
use afterimage_program::{BlockKind, Function, dump};
use anyhow::{Context, Result, anyhow, bail};
use serde::Serialize;

use crate::exit::Exit;
use crate::input::{self, Kind};
use crate::output::{harmless, write};
use crate::record::counted;

/// Show the control-flow graph of a function
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage cfg app.wasm --function main
  afterimage cfg app.wasm --function 12 --format dot | dot -Tsvg > graph.svg")]
pub(crate) struct Arguments {
    /// The function, by index, name or demangled name
    #[arg(long, value_name = "F")]
    function: String,
    /// Also show where counters are placed: by quick mode, slow, or over the whole program
    #[arg(long)]
    counters: Option<CountersArgument>,
    /// The format of the graph
    #[arg(long, default_value = "text")]
    format: Format,
    /// A program, or a recording of one
    #[arg(value_name = "PROGRAM")]
    program: PathBuf,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    Text,
    Dot,
    Json,
}

/// A placement of counters that needs no earlier run.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum CountersArgument {
    Quick,
    Slow,
    Program,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    function: u32,
    name: &'a str,
    root: u32,
    exit: u32,
    blocks: Vec<BlockRow>,
    edges: Vec<EdgeRow>,
    /// Absent unless asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    counters: Option<Vec<CounterRow>>,
}

#[derive(Serialize)]
struct CounterRow {
    counter: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edge: Option<u32>,
}

impl CounterRow {
    fn of(probe: &Probe) -> Self {
        let (block, edge) = match probe.site {
            Site::Block(block) => (Some(block.as_u32()), None),
            Site::Edge(edge) => (None, Some(edge.as_u32())),
        };
        Self {
            counter: probe.counter.as_u32(),
            block,
            edge,
        }
    }
}

#[derive(Serialize)]
struct BlockRow {
    block: u32,
    kind: &'static str,
    first_op: u32,
    end_op: u32,
    offset: u32,
    end: String,
}

#[derive(Serialize)]
struct EdgeRow {
    edge: u32,
    from: u32,
    to: u32,
    kind: String,
    back: bool,
    op: Option<u32>,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let loaded = match input::kind(&arguments.program)? {
        Kind::Program => input::program(&arguments.program)?,
        Kind::Recording => {
            let file = input::recording(&arguments.program)?;
            input::recorded_program(&arguments.program, &file)?
        }
    };
    let source = loaded.source_map();
    let names = loaded.names(&source);
    let id = names
        .find(&arguments.function)
        .with_context(|| arguments.program.display().to_string())?;
    let function = loaded.program.function(id).ok_or_else(|| {
        anyhow!(
            "{}: {} is imported, so it has no graph",
            arguments.program.display(),
            names.function(id)
        )
    })?;
    let name = names.function(id);
    let placed = match arguments.counters {
        None => None,
        Some(mode) => Some(plan(
            &loaded.program,
            &PlanOptions::new(match mode {
                CountersArgument::Quick => Mode::Quick,
                CountersArgument::Slow => Mode::Slow,
                CountersArgument::Program => Mode::Program,
            }),
        )?),
    };
    let first = loaded.program.imports.len();
    let probes = placed.as_ref().map(|plan| {
        plan.functions[id.as_u32() as usize - first]
            .probes
            .as_slice()
    });
    write(None, false, |out| {
        match arguments.format {
            Format::Text => {
                let (blocks, edges) = (
                    function.cfg.blocks.len() as u64,
                    function.cfg.edges.len() as u64,
                );
                writeln!(
                    out,
                    "{id} {}: {}, {}",
                    harmless(name),
                    counted(blocks, "block"),
                    counted(edges, "edge")
                )?;
                write!(out, "{}", dump::text(&function.cfg))?;
                for probe in probes.unwrap_or_default() {
                    match probe.site {
                        Site::Block(block) => writeln!(out, "{}: {block}", probe.counter)?,
                        Site::Edge(edge) => writeln!(out, "{}: {edge}", probe.counter)?,
                    }
                }
            }
            Format::Dot if probes.is_some() => {
                bail!("--counters goes with the formats text and json")
            }
            Format::Dot => write!(out, "{}", dump::dot(&function.cfg, name))?,
            Format::Json => {
                serde_json::to_writer(&mut *out, &document(function, name, probes))?;
                writeln!(out)?;
            }
        }
        Ok(())
    })?;
    Ok(Exit::Success)
}

fn document<'a>(function: &Function, name: &'a str, probes: Option<&[Probe]>) -> Document<'a> {
    let cfg = &function.cfg;
    Document {
        schema: "afterimage/cfg/1",
        function: function.id.as_u32(),
        name,
        root: cfg.graph.root().as_u32(),
        exit: cfg.graph.exit().as_u32(),
        blocks: cfg
            .blocks
            .iter()
            .map(|(id, block)| BlockRow {
                block: id.as_u32(),
                kind: kind(block.kind),
                first_op: block.ops.start.as_u32(),
                end_op: block.ops.end.as_u32(),
                offset: block.offsets.start.0,
                end: block.end.to_string(),
            })
            .collect(),
        edges: cfg
            .edges
            .iter()
            .map(|(id, edge)| EdgeRow {
                edge: id.as_u32(),
                from: edge.from.as_u32(),
                to: edge.to.as_u32(),
                kind: edge.kind.to_string(),
                back: edge.back,
                op: edge.op.map(|op| op.as_u32()),
            })
            .collect(),
        counters: probes.map(|probes| probes.iter().map(CounterRow::of).collect()),
    }
}

fn kind(kind: BlockKind) -> &'static str {
    match kind {
        BlockKind::Code => "code",
        BlockKind::Dispatch(_) => "dispatch",
        BlockKind::Exit => "exit",
    }
}
