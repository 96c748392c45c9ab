//! Solves the equations between functions.

use afterimage_graph::SpanningForest;
use afterimage_ids::{EdgeId, EntityRef, FuncId};
use afterimage_program::{BlockEnd, Callee, Program};

use crate::calls::call_blocks;
use crate::coupling::{Coupling, HostKnowledge, coupled_calls};
use crate::effect::Effects;
use crate::elimination::{Elimination, Limits, Verdict};
use crate::field::residue;
use crate::function_flow::FunctionFlow;
use crate::solve::derived_by_function;
use crate::{Counted, Plan, RunFacts, Site, SolveError};

/// The coupling equations of a run.
///
/// The chords without a counter are first taken to be zero. The residuals of the equations
/// determine these chords modulo a prime. With these values, every flow is solved again, and every
/// equation is checked in integers. A solution in integers is unique because the columns are
/// independent, so a solution that passes the check is exact.
pub(crate) struct Interprocedural<'a> {
    program: &'a Program,
    plan: &'a Plan,
    coupling: Coupling,
    /// For each function, imports included, the number of activations that the host started.
    host_entries: Vec<i128>,
    /// For each function, imports included, the number of direct calls and entries by the host that
    /// did not reach the function.
    failed_direct: Vec<i128>,
    /// For each equation, the number of host entries and calls to imports, minus the number of
    /// calls that did not reach their callee. The solution must satisfy `Σ entries − Σ calls` =
    /// this number.
    right: Vec<i128>,
}

impl<'a> Interprocedural<'a> {
    pub(crate) fn new(
        program: &'a Program,
        plan: &'a Plan,
        facts: &RunFacts,
    ) -> Result<Self, SolveError> {
        let host = HostKnowledge {
            counts_import_calls: plan.needs_import_calls,
            uses_references: plan.host_uses_references,
        };
        let coupling = Coupling::new(program, host);
        let functions = program.imports.len() + program.functions.len();
        let mut this = Self {
            program,
            plan,
            right: vec![0; coupling.len()],
            coupling,
            host_entries: vec![0; functions],
            failed_direct: vec![0; functions],
        };
        this.add_host_entries(facts)?;
        this.add_import_calls(facts)?;
        this.add_failed_calls(facts)?;
        this.add_not_entered(facts)?;
        Ok(this)
    }

    fn add_host_entries(&mut self, facts: &RunFacts) -> Result<(), SolveError> {
        for &(function, times) in &facts.host_entries {
            if self.program.function(function).is_none() {
                return Err(SolveError::BadHostEntry(function));
            }
            self.host_entries[function.index()] += i128::from(times);
            if let Some(row) = self.coupling.of_function(function) {
                self.right[row as usize] += i128::from(times);
            }
        }
        Ok(())
    }

    fn add_import_calls(&mut self, facts: &RunFacts) -> Result<(), SolveError> {
        let expected = self.program.imports.len();
        if !self.plan.needs_import_calls || expected == 0 {
            return Ok(());
        }
        let calls = facts
            .import_calls
            .as_ref()
            .filter(|calls| calls.len() == expected);
        let calls = calls.ok_or(SolveError::NoImportCalls { expected })?;
        for (i, &times) in calls.iter().enumerate() {
            if let Some(row) = self.coupling.of_function(FuncId::new(i)) {
                self.right[row as usize] -= i128::from(times);
            }
        }
        Ok(())
    }

    fn add_failed_calls(&mut self, facts: &RunFacts) -> Result<(), SolveError> {
        for frame in &facts.open {
            let block = self
                .program
                .function(frame.function)
                .map(|f| f.cfg.blocks.get(frame.block));
            let bad = SolveError::BadFrame {
                function: frame.function,
                block: frame.block,
            };
            let callee = match block.flatten().ok_or_else(|| bad.clone())?.end {
                // A frame that was replaced by its tail call is not on the stack.
                BlockEnd::TailCall(_) if frame.callee_entered => return Err(bad),
                BlockEnd::Call(callee) | BlockEnd::TailCall(callee) => callee,
                _ => continue,
            };
            if frame.callee_entered {
                continue;
            }
            if let Some(row) = self.coupling.of_callee(callee) {
                self.right[row as usize] -= 1;
            }
            if let Callee::Direct(function) = callee {
                self.failed_direct[function.index()] += 1;
            }
        }
        Ok(())
    }

    /// Adds functions that were not entered. The missing activation belongs to the equation of the
    /// called function, whoever called it.
    fn add_not_entered(&mut self, facts: &RunFacts) -> Result<(), SolveError> {
        for &function in &facts.not_entered {
            if self.program.function(function).is_none() {
                return Err(SolveError::BadHostEntry(function));
            }
            if let Some(row) = self.coupling.of_function(function) {
                self.right[row as usize] -= 1;
            }
            self.failed_direct[function.index()] += 1;
        }
        Ok(())
    }

    /// Solves the flows of all functions together.
    pub(crate) fn solve(&self, flows: &mut [FunctionFlow<'_>]) -> Result<(), SolveError> {
        let derived = derived_by_function(self.program, &self.plan.derived)?;
        let elimination = self.eliminate(&derived)?;
        for (flow, derived) in flows.iter_mut().zip(&derived) {
            flow.solve(derived.iter().map(|&(_, e)| (e, 0)))?;
        }
        let residual = self.residual(flows);
        let factors = elimination
            .solve(residual.iter().map(|&r| residue(r)).collect())
            .map_err(|row| self.uncoupled(row))?;
        for (flow, derived) in flows.iter_mut().zip(&derived) {
            flow.solve(derived.iter().map(|&(i, e)| (e, i128::from(factors[i]))))?;
        }
        match self.residual(flows).iter().position(|&r| r != 0) {
            Some(row) => Err(self.uncoupled(row as u32)),
            None => self.check_indirect_entries(flows),
        }
    }

    /// Returns the columns of the derived chords, in the order of the plan.
    fn eliminate(&self, derived: &[Vec<(usize, EdgeId)>]) -> Result<Elimination, SolveError> {
        let mut columns = vec![Vec::new(); self.plan.derived.len()];
        for (i, function) in self.program.functions.iter().enumerate() {
            if derived[i].is_empty() {
                continue;
            }
            let graph = &function.cfg.graph;
            let mut is_chord = vec![false; graph.edge_count()];
            for probe in &self.plan.functions[i].probes {
                let edges = match probe.site {
                    Site::Edge(ref e) => std::slice::from_ref(e),
                    Site::Block(v) => graph.out_edges(v),
                };
                edges.iter().for_each(|e| is_chord[e.index()] = true);
            }
            for &(_, e) in &derived[i] {
                is_chord[e.index()] = true;
            }
            let forest =
                SpanningForest::maximum(
                    graph,
                    &[],
                    |e| {
                        if is_chord[e.index()] { 0.0 } else { 1.0 }
                    },
                );
            let calls = coupled_calls(self.program, &self.coupling, i);
            let entry = self.coupling.of_function(function.id);
            let effects = Effects::new(graph, &forest, entry, calls);
            for &(position, e) in &derived[i] {
                columns[position] = effects.column(e, usize::MAX).unwrap_or_default();
            }
        }
        let mut elimination = Elimination::new(self.coupling.call_sites().to_vec());
        for (column, &(function, edge)) in columns.iter().zip(&self.plan.derived) {
            if elimination.insert(column, Limits::NONE) != Verdict::Independent {
                return Err(SolveError::Undetermined {
                    function,
                    place: Counted::Edge(edge),
                });
            }
        }
        Ok(elimination)
    }

    /// Returns, for each equation, the right side minus the left side.
    fn residual(&self, flows: &[FunctionFlow<'_>]) -> Vec<i128> {
        let mut residual = self.right.clone();
        for (i, (function, flow)) in self.program.functions.iter().zip(flows).enumerate() {
            if let Some(row) = self.coupling.of_function(function.id) {
                residual[row as usize] -= flow.entries();
            }
            for (v, row) in coupled_calls(self.program, &self.coupling, i) {
                residual[row as usize] += flow.block(v);
            }
        }
        residual
    }

    /// Checks each function's entries against its known callers. Indirect calls can explain a
    /// surplus of entries, but never a shortage.
    fn check_indirect_entries(&self, flows: &[FunctionFlow<'_>]) -> Result<(), SolveError> {
        let mut known = self.host_entries.clone();
        for (function, flow) in self.program.functions.iter().zip(flows) {
            for (v, callee) in call_blocks(&function.cfg) {
                if let Callee::Direct(callee) = callee {
                    known[callee.index()] += flow.block(v);
                }
            }
        }
        for (function, flow) in self.program.functions.iter().zip(flows) {
            let f = function.id.index();
            if flow.entries() < known[f] - self.failed_direct[f] {
                return Err(SolveError::Uncoupled(function.id));
            }
        }
        Ok(())
    }

    /// Returns the error for an equation. It names the first function that the equation covers.
    fn uncoupled(&self, row: u32) -> SolveError {
        let functions = 0..self.program.imports.len() + self.program.functions.len();
        let mut functions = functions.map(FuncId::new);
        match functions.find(|&f| self.coupling.of_function(f) == Some(row)) {
            Some(function) => SolveError::Uncoupled(function),
            None => SolveError::UncalledType,
        }
    }
}
