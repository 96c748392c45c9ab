//! Writes the tables about the whole run.

use std::path::Path;

use afterimage::Session;
use afterimage::profile::{LineRow, Profile, Scope};
use afterimage_ids::{EntityRef, FuncId, NodeId, OpId, SecondaryMap};
use afterimage_machine::{GlobalBits, NodeCode, Observer, Range};
use afterimage_profile::OperatorCount;
use afterimage_program::{BlockEnd, BlockKind, EdgeKind};
use afterimage_replay::steps::{Follower, Operators};
use afterimage_wpp::Segments;
use anyhow::Result;
use wasmparser::ValType;

use crate::file::TableFile;
use crate::ids::Ids;
use crate::report::Written;
use crate::schema::{self, Table};
use crate::windows::Windows;

/// The data from which the tables about the whole run are written.
pub(crate) struct Whole<'a> {
    pub session: &'a Session,
    pub profile: &'a Profile<'a>,
    pub ids: &'a Ids,
    pub lines: &'a [LineRow],
    pub windows: Windows,
}

/// A function that writes the rows of a table.
type Writer<'a> = fn(&Whole<'a>, &mut TableFile) -> Result<()>;

impl<'a> Whole<'a> {
    /// Writes the tables about the whole run into a folder.
    pub fn write(&self, folder: &Path, written: &mut Written) -> Result<()> {
        let tables: [(&'static Table, Writer<'a>); 8] = [
            (&schema::FUNCTIONS, Self::functions),
            (&schema::LINES, Self::lines),
            (&schema::BLOCKS, Self::blocks),
            (&schema::EDGES, Self::edges),
            (&schema::STATEMENTS, Self::statements),
            (&schema::PATHS, Self::paths),
            (&schema::HOST_CALLS, Self::host_calls),
            (&schema::RUN, Self::run),
        ];
        for (table, write) in tables {
            let mut file = TableFile::create(&crate::folder::file(folder, table), table)?;
            write(self, &mut file)?;
            written.add(table, file.finish()?);
        }
        Ok(())
    }

    fn run(&self, file: &mut TableFile) -> Result<()> {
        let meta = self.session.file().meta()?;
        let end = self.session.file().end()?;
        let digest = Vec::from_iter(meta.module_sha256.iter().map(|byte| format!("{byte:02x}")));
        let host_calls = end
            .as_ref()
            .map_or(0, |end| end.host_call_counts.iter().sum());
        let totals = self.profile.totals();
        let [
            version,
            program,
            sha,
            ended,
            blocks,
            instructions,
            calls,
            windows,
            window,
        ] = file.row()?;
        version.put(schema::VERSION);
        program.text(&meta.program_name);
        sha.text(&digest.concat());
        ended.text(&end.map_or_else(|| "unknown".to_owned(), |end| end.ending.to_string()));
        blocks.count(self.session.path()?.length());
        instructions.count(totals.instructions);
        calls.count(host_calls);
        windows.count(self.windows.count());
        window.count(self.windows.blocks());
        Ok(())
    }

    fn functions(&self, file: &mut TableFile) -> Result<()> {
        let imports = self.session.program().imports.len();
        let end = self.session.file().end()?;
        for import in 0..imports {
            let called = end
                .as_ref()
                .and_then(|end| end.host_call_counts.get(import));
            let [function, name, is_import, line, calls, blocks, instructions] = file.row()?;
            function.put(import as i64);
            name.text(self.profile.names().function(FuncId::new(import)));
            is_import.truth(true);
            line.none();
            calls.count(called.copied().unwrap_or(0));
            blocks.put(0);
            instructions.put(0);
        }
        for row in self.profile.function_rows(&Scope::All)? {
            let [function, name, is_import, line, calls, blocks, instructions] = file.row()?;
            function.put(row.function.as_u32());
            name.text(self.profile.names().function(row.function));
            is_import.truth(false);
            line.maybe(self.ids.line(row.position));
            calls.count(row.entries);
            blocks.count(row.blocks);
            instructions.count(row.instructions);
        }
        Ok(())
    }

    fn lines(&self, file: &mut TableFile) -> Result<()> {
        for (number, row) in (0i64..).zip(self.lines) {
            let [id, path, line, arrivals, instructions] = file.row()?;
            id.put(number);
            path.text(self.profile.file(row.line.file));
            line.put(row.line.number);
            arrivals.count(row.count);
            instructions.count(row.instructions);
        }
        Ok(())
    }

    fn blocks(&self, file: &mut TableFile) -> Result<()> {
        for row in self.profile.block_rows(&Scope::All)? {
            let [
                id,
                function,
                block,
                ends,
                offset,
                line,
                executions,
                instructions,
            ] = file.row()?;
            id.put(self.ids.block(row.function, row.block));
            function.put(row.function.as_u32());
            block.put(row.block.as_u32());
            ends.text(block_end(row.end));
            offset.put(row.offset.0);
            line.maybe(self.ids.line(row.position));
            executions.count(row.count);
            instructions.count(row.instructions);
        }
        Ok(())
    }

    fn edges(&self, file: &mut TableFile) -> Result<()> {
        for row in self.profile.edge_rows(&Scope::All)? {
            let function = self.session.program().function(row.function);
            let code = |block| {
                let kind = function?.cfg.blocks.get(block)?.kind;
                (kind == BlockKind::Code).then(|| self.ids.block(row.function, block))
            };
            let [id, of, from, to, kind, is_back, executions] = file.row()?;
            id.put(self.ids.edge(row.function, row.edge));
            of.put(row.function.as_u32());
            from.maybe(code(row.from));
            to.maybe(code(row.to));
            kind.text(edge_kind(row.kind));
            is_back.truth(row.back);
            executions.count(row.count);
        }
        Ok(())
    }

    fn statements(&self, file: &mut TableFile) -> Result<()> {
        let mut operators: Vec<OperatorCount> = Vec::new();
        let names = Operators::new(
            self.session.program(),
            self.session.bytes(),
            self.profile.source(),
        );
        for (function, _, profile) in self.profile.functions() {
            self.profile.operators(function, profile, &mut operators)?;
            let named = names.of(function.id)?;
            for (operator, place) in operators.iter().zip(named.iter()) {
                if !operator.instruction {
                    continue;
                }
                let block = operator
                    .block
                    .map(|block| self.ids.block(function.id, block));
                let [id, of, block_id, offset, name, line, executions] = file.row()?;
                id.put(self.ids.statement(function.id, operator.op));
                of.put(function.id.as_u32());
                block_id.maybe(block);
                offset.put(operator.offset.0);
                name.text(&place.name);
                line.maybe(self.ids.line(operator.position));
                executions.count(operator.count);
            }
        }
        Ok(())
    }

    fn paths(&self, file: &mut TableFile) -> Result<()> {
        let path = self.session.path()?;
        let mut counts: SecondaryMap<NodeId, u64> = SecondaryMap::new();
        for summary in path.segments().summaries() {
            for &(node, count) in &summary.node_counts {
                counts[node] = counts[node].saturating_add(count);
            }
        }
        for (id, node) in path.nodes().iter() {
            let blocks = node.blocks.iter();
            let blocks = blocks.map(|&block| self.ids.block(node.function, block).into());
            let [path, function, block_ids, executions] = file.row()?;
            path.put(id.as_u32());
            function.put(node.function.as_u32());
            block_ids.list(blocks);
            executions.count(counts[id]);
        }
        Ok(())
    }

    /// Writes the table of host calls. Follows the whole run.
    fn host_calls(&self, file: &mut TableFile) -> Result<()> {
        let program = self.session.program();
        let nodes = self.session.path()?.nodes();
        let mut number = 0;
        afterimage::steps::follow_for(self.session, "following the host's calls", |run, log| {
            let mut follower = Follower::new(run, log)?;
            let mut host = Host::new(program.imports.len());
            while let Some(visit) = follower.advance()? {
                host.call = None;
                host.begun = false;
                follower.execute(visit, &mut host)?;
                let Some(call) = host.call.take() else {
                    continue;
                };
                let node = &nodes[visit.node];
                number += 1;
                let [
                    id,
                    ts,
                    statement,
                    function,
                    arguments,
                    results,
                    read,
                    written,
                ] = file.row()?;
                id.count(number);
                ts.count(visit.last());
                let op = last_op(program, node);
                statement.maybe(op.map(|op| self.ids.statement(node.function, op)));
                function.put(call.import.as_u32());
                let ty = program.type_of(call.import);
                let (params, given) = ty.map_or((&[][..], &[][..]), |ty| (&ty.params, &ty.results));
                arguments.list(integers(params, &call.arguments));
                results.list(integers(given, &call.results));
                read.count(call.read);
                written.count(call.written);
            }
            Ok(())
        })
    }
}

/// Returns the last operator of a node. If the node ends with a call, this is the call.
pub(crate) fn last_op(
    program: &afterimage_program::Program,
    node: &afterimage_wpp::Node,
) -> Option<OpId> {
    let function = program.function(node.function)?;
    let block = function.cfg.blocks.get(*node.blocks.last()?)?;
    Some(OpId::from_u32(block.ops.end.as_u32().checked_sub(1)?))
}

/// Converts values to integers: an `i32` keeps its sign, and other values become their bits.
fn integers<'v>(types: &'v [ValType], values: &'v [GlobalBits]) -> impl Iterator<Item = i64> + 'v {
    let values = types.iter().zip(values);
    values.map(|(ty, bits)| match ty {
        ValType::I32 => i64::from(bits.0 as i32),
        _ => bits.0 as i64,
    })
}

/// Observes the host calls at the ends of nodes.
struct Host {
    imports: u32,
    call: Option<HostCall>,
    /// Whether the host call has not returned yet.
    open: bool,
    /// Whether the node has begun. Before that, the host itself makes the calls.
    begun: bool,
}

struct HostCall {
    import: FuncId,
    arguments: Vec<GlobalBits>,
    results: Vec<GlobalBits>,
    read: u64,
    written: u64,
}

impl Host {
    fn new(imports: usize) -> Self {
        Self {
            imports: imports as u32,
            call: None,
            open: false,
            begun: false,
        }
    }
}

impl Observer for Host {
    const REGISTERS: bool = false;

    fn node(&mut self, _: NodeId, _: &NodeCode) {
        self.begun = true;
    }

    fn called(&mut self, function: FuncId, arguments: &[GlobalBits]) {
        if self.begun && function.as_u32() < self.imports {
            self.open = true;
            self.call = Some(HostCall {
                import: function,
                arguments: arguments.to_vec(),
                results: Vec::new(),
                read: 0,
                written: 0,
            });
        }
    }

    fn returned(&mut self, values: &[GlobalBits]) {
        if std::mem::take(&mut self.open)
            && let Some(call) = &mut self.call
        {
            call.results = values.to_vec();
        }
    }

    fn host_read(&mut self, range: Range) {
        if let Some(call) = &mut self.call {
            call.read = call.read.saturating_add(range.length);
        }
    }

    fn host_write(&mut self, range: Range) {
        if let Some(call) = &mut self.call {
            call.written = call.written.saturating_add(range.length);
        }
    }
}

fn block_end(end: BlockEnd) -> &'static str {
    match end {
        BlockEnd::Fall => "fall",
        BlockEnd::Jump => "jump",
        BlockEnd::Branch => "branch",
        BlockEnd::Table => "table",
        BlockEnd::Call(_) => "call",
        BlockEnd::TailCall(_) => "tail_call",
        BlockEnd::Return => "return",
        BlockEnd::Throw => "throw",
        BlockEnd::Unreachable => "unreachable",
        BlockEnd::Dispatch => "dispatch",
        BlockEnd::Exit => "exit",
    }
}

fn edge_kind(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Fall => "fall",
        EdgeKind::Jump => "jump",
        EdgeKind::Taken => "taken",
        EdgeKind::NotTaken => "not_taken",
        EdgeKind::Then => "then",
        EdgeKind::Else => "else",
        EdgeKind::Table(_) => "table",
        EdgeKind::CallReturn => "call_return",
        EdgeKind::CallThrow => "call_throw",
        EdgeKind::Throw => "throw",
        EdgeKind::Catch(_) => "catch",
        EdgeKind::Unwind => "unwind",
        EdgeKind::Return => "return",
    }
}
