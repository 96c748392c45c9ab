//! Finds the functions that can return.

use afterimage_ids::{BlockId, EntityRef, FuncId};
use afterimage_program::{BlockEnd, Callee, EdgeKind, Program};

/// Returns, for each function by index, imports included, whether it may return, normally or
/// through an exception.
///
/// `proc_exit` of WASI does not return. A defined function may return if some path from its root to
/// EXIT passes only calls that may return. The result is the least solution, so a recursion without
/// an exit does not return. Compilers themselves mark only some functions that do not return. Time:
/// O(program).
pub(crate) fn returning_functions(program: &Program) -> Vec<bool> {
    let imports = program.imports.len();
    let mut state = Search {
        program,
        returns: program
            .imports
            .iter()
            .map(|i| !(i.name == "proc_exit" && i.module.starts_with("wasi_")))
            .collect(),
        reached: program
            .functions
            .iter()
            .map(|f| vec![false; f.cfg.blocks.len()])
            .collect(),
        waiting: vec![Vec::new(); imports + program.functions.len()],
        work: Vec::new(),
    };
    state
        .returns
        .resize(imports + program.functions.len(), false);
    for (f, function) in program.functions.iter().enumerate() {
        state.reach(f, function.cfg.graph.root());
    }
    while let Some((f, v)) = state.work.pop() {
        state.visit(f, v);
    }
    state.returns
}

struct Search<'a> {
    program: &'a Program,
    returns: Vec<bool>,
    reached: Vec<Vec<bool>>,
    /// For each function, the blocks that wait for it to return.
    waiting: Vec<Vec<(usize, BlockId)>>,
    work: Vec<(usize, BlockId)>,
}

impl Search<'_> {
    fn reach(&mut self, f: usize, v: BlockId) {
        if !std::mem::replace(&mut self.reached[f][v.index()], true) {
            self.work.push((f, v));
        }
    }

    fn visit(&mut self, f: usize, v: BlockId) {
        let cfg = &self.program.functions[f].cfg;
        if v == cfg.graph.exit() {
            let id = self.program.imports.len() + f;
            self.returns[id] = true;
            for (caller, block) in std::mem::take(&mut self.waiting[id]) {
                self.leave(caller, block, |_| true);
            }
            return;
        }
        match cfg.blocks[v].end {
            BlockEnd::Call(Callee::Direct(callee)) | BlockEnd::TailCall(Callee::Direct(callee))
                if !self.may_return(callee) =>
            {
                self.waiting[callee.index()].push((f, v));
                self.leave(f, v, |kind| kind == EdgeKind::CallThrow);
            }
            _ => self.leave(f, v, |_| true),
        }
    }

    fn may_return(&self, callee: FuncId) -> bool {
        self.returns[callee.index()]
    }

    fn leave(&mut self, f: usize, v: BlockId, allowed: impl Fn(EdgeKind) -> bool) {
        let cfg = &self.program.functions[f].cfg;
        for &e in cfg.graph.out_edges(v) {
            if allowed(cfg.edges[e].kind) {
                self.reach(f, cfg.graph.to(e));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afterimage_testkit::graphs::programs::{Ending, call_chain, regular};

    /// Builds a chain of functions each of which only calls the next function.
    fn straight(functions: usize, callee: impl Fn(usize) -> usize) -> Program {
        let ending = |f, v| {
            if v == 0 {
                Ending::Call(callee(f))
            } else {
                Ending::Plain
            }
        };
        regular(functions, |_| (3, vec![(0, 1), (1, 2)]), ending)
    }

    #[test]
    fn what_always_exits_does_not_return() {
        let program = straight(3, |f| if f == 3 { 0 } else { f + 1 });
        assert_eq!(returning_functions(&program), [false; 4]);
    }

    #[test]
    fn recursion_without_a_way_out_does_not_return() {
        let program = straight(2, |f| 3 - f);
        assert_eq!(returning_functions(&program), [false; 3]);
    }

    #[test]
    fn what_can_go_past_the_exit_returns() {
        assert_eq!(
            returning_functions(&call_chain(3)),
            [false, true, true, true]
        );
    }
}
