//! Writes the tables of a window, which list the events of the run in chronological order.

use std::path::Path;
use std::rc::Rc;

use afterimage::Session;
use afterimage_ids::FuncId;
use afterimage_machine::{GlobalBits, NodeCode, Observer, Range};
use afterimage_replay::steps::{Follower, Plans, Run};
use afterimage_replay::whole_path::{CallTree, FileSegments, Window};
use afterimage_trace::LogReader;
use afterimage_wpp::{CallEvent, Visit};
use anyhow::Result;
use parquet::data_type::ByteArray;

use crate::dependences::Dependences;
use crate::file::TableFile;
use crate::folder::file;
use crate::ids::Ids;
use crate::plan::{NodePlan, NodePlans, ValueType, bits_of, widened};
use crate::report::Written;
use crate::schema::{self, Table};
use crate::windows::Windows;

/// Follows a run from window to window.
pub(crate) struct Walk<'a> {
    session: &'a Session,
    ids: &'a Ids,
    windows: Windows,
    follower: Follower<'a, FileSegments>,
    plans: Plans<'a, FileSegments>,
    own: NodePlans,
    /// The first node after the last window. The follower has reached it, but not executed it.
    next: Option<Visit>,
    /// Whether the run is over.
    over: bool,
}

impl<'a> Walk<'a> {
    pub fn new(
        (session, ids): (&'a Session, &'a Ids),
        windows: Windows,
        run: Run<'a, FileSegments>,
        log: LogReader,
    ) -> Result<Self> {
        Ok(Self {
            session,
            ids,
            windows,
            follower: Follower::new(run, log)?,
            plans: Plans::new(run),
            own: NodePlans::new(run.path.nodes().len()),
            next: None,
            over: false,
        })
    }

    /// Writes the wanted tables of a window into a folder. Windows must come in order.
    pub fn write(
        &mut self,
        window: u64,
        folder: &Path,
        wanted: &[&'static Table],
        written: &mut Written,
    ) -> Result<()> {
        let (first, last) = self.windows.starts(window);
        let is_wanted = |table: &'static Table| wanted.iter().any(|one| one.name == table.name);
        if is_wanted(&schema::CALLS) {
            let rows = self.calls(Window { first, last }, folder)?;
            written.add(&schema::CALLS, rows);
        }
        let open = |table: &'static Table| -> Result<Option<TableFile>> {
            let file = is_wanted(table).then(|| TableFile::create(&file(folder, table), table));
            file.transpose()
        };
        let mut tables = Tables {
            steps: open(&schema::STEPS)?,
            values: open(&schema::VALUES)?,
            memory: open(&schema::MEMORY)?,
            names: Accesses::new(),
            plan: Rc::default(),
            start: 0,
            site: None,
            imports: self.session.program().imports.len() as u32,
            failed: None,
        };
        let mut dependences = match open(&schema::DEPENDENCES)? {
            Some(file) => Some(Dependences::new(self.session, self.ids, file)?),
            None => None,
        };
        self.follow((first, last), &mut tables, &mut dependences)?;
        for (table, file) in [
            (&schema::STEPS, tables.steps),
            (&schema::VALUES, tables.values),
            (&schema::MEMORY, tables.memory),
            (
                &schema::DEPENDENCES,
                dependences.map(Dependences::into_file),
            ),
        ] {
            if let Some(file) = file {
                written.add(table, file.finish()?);
            }
        }
        Ok(())
    }

    fn follow(
        &mut self,
        (first, last): (u64, u64),
        tables: &mut Tables,
        dependences: &mut Option<Dependences<'a>>,
    ) -> Result<()> {
        let path = self.session.path()?;
        let mut activations = Activations::before(self.session, first)?;
        let is_followed =
            tables.values.is_some() || tables.memory.is_some() || dependences.is_some();
        if is_followed && !self.over {
            let before = self.follower.machine.time();
            self.follower.skip_to(first)?;
            if self.follower.machine.time() > before {
                self.next = None;
            }
        }
        if !is_followed {
            let mut cursor = path.cursor();
            let mut next = cursor.seek(first)?;
            while let Some(visit) = next.filter(|visit| visit.start <= last) {
                if visit.start >= first {
                    let blocks = path.nodes()[visit.node].blocks.iter();
                    let function = path.nodes()[visit.node].function;
                    let blocks =
                        Vec::from_iter(blocks.map(|&block| self.ids.block(function, block)));
                    tables.steps(visit, &blocks, activations.at(visit.start)?)?;
                }
                next = cursor.next()?;
            }
            return Ok(());
        }
        while !self.over {
            let next = match self.next.take() {
                Some(next) => Some(next),
                None => self.follower.advance()?,
            };
            let Some(visit) = next else {
                self.over = true;
                break;
            };
            if visit.start > last {
                self.next = Some(visit);
                break;
            }
            if visit.start < first {
                self.follower.execute(visit, &mut ())?;
                continue;
            }
            let plan = self.plan(visit)?;
            tables.steps(visit, &plan.blocks, activations.at(visit.start)?)?;
            tables.begin(plan, visit.start)?;
            match dependences {
                Some(dependences) => {
                    let code = &self.follower.machine.codes()[visit.node];
                    dependences.begin(visit, activations.open.len(), code)?;
                    self.follower
                        .execute(visit, &mut (&mut *tables, &mut *dependences))?;
                    dependences.end()?;
                }
                None => self.follower.execute(visit, tables)?,
            }
            if let Some(error) = tables.failed.take() {
                return Err(error);
            }
        }
        Ok(())
    }

    fn plan(&mut self, visit: Visit) -> Result<Rc<NodePlan>> {
        let (program, ids) = (self.session.program(), self.ids);
        let (plans, follower) = (&mut self.plans, &self.follower);
        let node = &self.session.path()?.nodes()[visit.node];
        self.own.of(visit.node, || -> Result<NodePlan> {
            let plan = plans.of(visit.node, follower)?;
            let code = &follower.machine.codes()[visit.node];
            Ok(NodePlan::new((program, ids), node, code, &plan))
        })
    }

    /// Writes the activations that begin in a window.
    fn calls(&self, window: Window, folder: &Path) -> Result<(u64, u64)> {
        let mut out = TableFile::create(&file(folder, &schema::CALLS), &schema::CALLS)?;
        let path = self.session.path()?;
        if window.first > window.last {
            return out.finish();
        }
        let mut calls = CallTree::new(path, window, false, usize::MAX)?;
        let around = calls.around().iter();
        let mut open = Vec::from_iter(around.map(|activation| activation.entered));
        while let Some(call) = calls.next_call()? {
            open.truncate(call.depth);
            let parent = open.last().copied();
            open.push(call.entered);
            let site = call
                .site
                .map(|(function, block)| self.ids.block(function, block));
            let [ts, dur, depth, id, parent_id, function, site_block, is_open] = out.row()?;
            ts.count(call.entered);
            dur.count(call.blocks(path.length()));
            depth.count(call.depth as u64);
            id.count(call.entered);
            parent_id.maybe(parent.map(|parent| parent as i64));
            function.put(call.function.as_u32());
            site_block.maybe(site);
            is_open.truth(call.left.is_none());
        }
        out.finish()
    }
}

/// Tracks the innermost activation from block to block.
struct Activations<'a> {
    events: afterimage_wpp::Calls<'a, FileSegments>,
    next: Option<CallEvent>,
    open: Vec<u64>,
}

impl<'a> Activations<'a> {
    /// Starts with the activations that are open before the block executed at a time.
    fn before(session: &'a Session, time: u64) -> Result<Self> {
        let path = session.path()?;
        let mut cursor = path.cursor();
        let open = match path.length() {
            0 => Vec::new(),
            _ => {
                cursor.seek(time)?;
                let stack = cursor.stack()?.into_iter();
                let before = stack.filter(|activation| activation.entered < time);
                before.map(|activation| activation.entered).collect()
            }
        };
        let mut events = path.calls(time, usize::MAX)?;
        let next = events.next()?;
        Ok(Self { events, next, open })
    }

    /// Returns the activation that executes the path that begins at a time. The time of an
    /// activation's first block identifies it. Successive calls must have ascending times.
    fn at(&mut self, time: u64) -> Result<u64> {
        while let Some(event) = self.next {
            match event {
                CallEvent::Enter {
                    depth, time: at, ..
                } if at <= time => {
                    self.open.truncate(depth);
                    self.open.push(at);
                }
                CallEvent::Leave {
                    depth, time: at, ..
                } if at < time => self.open.truncate(depth),
                _ => break,
            }
            self.next = self.events.next()?;
        }
        Ok(self.open.last().copied().unwrap_or(0))
    }
}

/// The names of the kinds of accesses, shared by all rows.
struct Accesses {
    load: ByteArray,
    store: ByteArray,
    fill: ByteArray,
    copy_from: ByteArray,
    copy_to: ByteArray,
    host_read: ByteArray,
    host_write: ByteArray,
}

impl Accesses {
    fn new() -> Self {
        Self {
            load: "load".into(),
            store: "store".into(),
            fill: "fill".into(),
            copy_from: "copy_from".into(),
            copy_to: "copy_to".into(),
            host_read: "host_read".into(),
            host_write: "host_write".into(),
        }
    }
}

/// The tables that are written while the run is followed.
struct Tables {
    steps: Option<TableFile>,
    values: Option<TableFile>,
    memory: Option<TableFile>,
    names: Accesses,
    /// The plan of the node that is being executed.
    plan: Rc<NodePlan>,
    start: u64,
    /// The time and the statement of the host call with which the node ends.
    site: Option<(u64, Option<i32>)>,
    imports: u32,
    /// The first error. It is kept here because an observer cannot return one.
    failed: Option<anyhow::Error>,
}

impl Tables {
    fn steps(&mut self, visit: Visit, blocks: &[i32], call: u64) -> Result<()> {
        let Some(file) = &mut self.steps else {
            return Ok(());
        };
        for (time, &block_id) in (visit.start..).zip(blocks) {
            let [ts, block, call_id, path] = file.row()?;
            ts.count(time);
            block.put(block_id);
            call_id.count(call);
            path.put(visit.node.as_u32());
        }
        Ok(())
    }

    fn begin(&mut self, plan: Rc<NodePlan>, start: u64) -> Result<()> {
        if let Some(values) = &mut self.values {
            values.rows_soon(plan.values.len())?;
        }
        self.plan = plan;
        self.start = start;
        self.site = None;
        Ok(())
    }

    #[inline]
    fn executed(&mut self, code: &NodeCode, executed: usize, (low, high): (&[u64], &[u64])) {
        let Some(file) = &mut self.values else {
            return;
        };
        let mut rows = 0;
        let Ok([ts, statement, value, number, high_half]) = file.cells() else {
            return;
        };
        for of in &self.plan.values {
            if of.inst as usize >= executed {
                break;
            }
            rows += 1;
            ts.count(self.start + u64::from(of.block));
            statement.put(of.statement);
            let bits = bits_of(of, code, low, high);
            match of.ty {
                ValueType::Int => value.put(bits.0 as i32),
                ValueType::Long | ValueType::Vector => value.put(bits.0 as i64),
                ValueType::Float | ValueType::Double => value.none(),
            }
            match of.ty {
                ValueType::Float => number.number(widened(bits.0 as u32)),
                ValueType::Double => number.number(f64::from_bits(bits.0)),
                _ => number.none(),
            }
            match of.ty {
                ValueType::Vector => high_half.put(bits.1 as i64),
                _ => high_half.none(),
            }
        }
        file.added(rows);
    }

    fn access(&mut self, (time, at): (u64, Option<i32>), kind: Kind, range: Range) {
        let Some(file) = &mut self.memory else {
            return;
        };
        let name = match kind {
            Kind::Load => &self.names.load,
            Kind::Store => &self.names.store,
            Kind::Fill => &self.names.fill,
            Kind::CopyFrom => &self.names.copy_from,
            Kind::CopyTo => &self.names.copy_to,
            Kind::HostRead => &self.names.host_read,
            Kind::HostWrite => &self.names.host_write,
        };
        match file.row() {
            Ok([ts, statement, access, memory, address, bytes]) => {
                ts.count(time);
                statement.maybe(at);
                access.shared(name);
                memory.put(range.memory);
                address.put(range.address as i64);
                bytes.count(range.length);
            }
            Err(error) => self.failed = Some(error),
        }
    }

    fn by_inst(&mut self, inst: usize, kind: Kind, range: Range) {
        if let Some(&(block, statement)) = self.plan.places.get(inst) {
            let place = (self.start + u64::from(block), Some(statement));
            self.access(place, kind, range);
        }
    }

    fn by_host(&mut self, kind: Kind, range: Range) {
        if let Some(site) = self.site {
            self.access(site, kind, range);
        }
    }
}

/// The kind of access.
#[derive(Clone, Copy)]
enum Kind {
    Load,
    Store,
    Fill,
    CopyFrom,
    CopyTo,
    HostRead,
    HostWrite,
}

impl Observer for Tables {
    fn read(&mut self, inst: usize, range: Range) {
        self.by_inst(inst, Kind::Load, range);
    }

    fn write(&mut self, inst: usize, range: Range) {
        self.by_inst(inst, Kind::Store, range);
    }

    fn fill(&mut self, inst: usize, range: Range) {
        self.by_inst(inst, Kind::Fill, range);
    }

    fn copy(&mut self, inst: usize, from: Range, to: Range) {
        self.by_inst(inst, Kind::CopyFrom, from);
        self.by_inst(inst, Kind::CopyTo, to);
    }

    fn done(&mut self, code: &NodeCode, low: &[u64], high: &[u64]) {
        self.executed(code, usize::MAX, (low, high));
    }

    fn stopped(&mut self, code: &NodeCode, executed: usize, low: &[u64], high: &[u64]) {
        self.executed(code, executed, (low, high));
    }

    fn called(&mut self, function: FuncId, _: &[GlobalBits]) {
        let last = self.start + (self.plan.blocks.len() as u64).saturating_sub(1);
        let is_import = function.as_u32() < self.imports;
        self.site = is_import.then_some((last, self.plan.last));
    }

    fn host_read(&mut self, range: Range) {
        self.by_host(Kind::HostRead, range);
    }

    fn host_write(&mut self, range: Range) {
        self.by_host(Kind::HostWrite, range);
    }
}
