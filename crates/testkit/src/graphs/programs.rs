//! Generates random programs that consist of graphs, without WebAssembly bytes. Their functions
//! call each other, possibly recursively.

use afterimage_graph::FlowGraph;
use afterimage_ids::{
    BlockId, EdgeId, EntityRef, EntitySet, FuncId, OpId, OrigOffset, PrimaryMap, TypeId,
};
use afterimage_program::{
    Block, BlockEnd, BlockKind, Callee, Cfg, Edge, EdgeKind, Function, FunctionType, Import,
    Program,
};
use proptest::prelude::*;
use proptest::sample::Index;
use wasmparser::ValType;

use super::{Shape, edge_lists};

/// The shape of the graphs in a random program.
const FUNCTION: Shape = Shape {
    max_vertices: 8,
    max_extra_edges: 6,
    ..Shape::FUNCTION
};

/// The ingredients of a function, which are its graph, the end of each block, its type and its
/// role.
type Recipe = (
    (usize, Vec<(usize, usize)>),
    Vec<(u8, Index)>,
    (Index, bool),
);

/// Generates programs of up to six functions and two imports. Any function may call any function,
/// directly or indirectly. Two of the three function types are equal. Blocks have any end that the
/// graph allows.
pub fn programs() -> impl Strategy<Value = Program> {
    let recipe = (
        edge_lists(FUNCTION),
        proptest::collection::vec(any::<(u8, Index)>(), FUNCTION.max_vertices),
        any::<(Index, bool)>(),
    );
    let imports = proptest::collection::vec(any::<(Index, bool)>(), 0..=2);
    (imports, proptest::collection::vec(recipe, 1..=6)).prop_map(|(i, f)| program(&i, &f))
}

/// A graph, given as its number of vertices and its edges.
pub type Edges = (usize, Vec<(usize, usize)>);

/// The way in which a block of [`regular`] ends.
#[derive(Clone, Copy, Debug)]
pub enum Ending {
    /// A call to the function with this index. The only import has index 0.
    Call(usize),
    /// A tail call to the function with this index. The block must lead to EXIT.
    TailCall(usize),
    /// Any end without a call.
    Plain,
}

/// Builds a program with the single import `proc_exit` and defined functions 1, 2, … of one type.
/// No function has its address taken.
pub fn regular(
    functions: usize,
    graph: impl Fn(usize) -> Edges,
    ending: impl Fn(usize, usize) -> Ending,
) -> Program {
    let mut types = PrimaryMap::new();
    let ty = types.push(FunctionType {
        params: Box::new([]),
        results: Box::new([]),
    });
    let import = Import {
        module: "wasi_snapshot_preview1".into(),
        name: "proc_exit".into(),
        ty,
    };
    let function = |f: usize| {
        let (n, edges) = graph(f);
        let choice = |v| match ending(f, v) {
            Ending::Call(callee) => (0, Callee::Direct(FuncId::new(callee))),
            Ending::TailCall(callee) => (4, Callee::Direct(FuncId::new(callee))),
            Ending::Plain => (7, Callee::Direct(FuncId::new(0))),
        };
        Function {
            id: FuncId::new(f),
            ty,
            body: OrigOffset(0)..OrigOffset(0),
            operators: 0,
            may_throw: false,
            out_of_bounds: Box::default(),
            waits: Box::default(),
            cfg: cfg(n, &edges, choice),
        }
    };
    let functions = (1..=functions).map(function).collect();
    Program::assemble(types, vec![import], functions, EntitySet::new())
}

/// Builds a chain of functions, each of which calls the next. The last function calls the import.
/// Block 0 branches to block 1, which calls, or directly to block 2, which returns.
pub fn call_chain(functions: usize) -> Program {
    regular(
        functions,
        |_| (4, vec![(0, 1), (0, 2), (1, 2), (2, 3)]),
        |f, v| match v {
            1 if f == functions => Ending::Call(0),
            1 => Ending::Call(f + 1),
            _ => Ending::Plain,
        },
    )
}

/// Builds a function with a single block, which ends in a tail call to the function itself.
pub fn tail_call() -> Program {
    regular(1, |_| (2, vec![(0, 1)]), |_, _| Ending::TailCall(1))
}

/// Builds one function with this graph and no calls.
pub fn without_calls(n: usize, edges: &[(usize, usize)]) -> Program {
    regular(1, |_| (n, edges.to_vec()), |_, _| Ending::Plain)
}

fn program(imports: &[(Index, bool)], recipes: &[Recipe]) -> Program {
    let mut types = PrimaryMap::new();
    for results in [vec![], vec![ValType::I32], vec![]] {
        types.push(FunctionType {
            params: Box::new([]),
            results: results.into(),
        });
    }
    let type_of = |index: &Index| TypeId::new(index.index(types.len()));
    let callables = imports.len() + recipes.len();
    let mut address_taken = EntitySet::new();
    let taken = imports.iter().chain(recipes.iter().map(|r| &r.2));
    for (f, _) in taken.enumerate().filter(|(_, (_, taken))| *taken) {
        address_taken.insert(FuncId::new(f));
    }
    let functions = recipes
        .iter()
        .enumerate()
        .map(|(i, ((n, edges), ends, (ty, _)))| Function {
            id: FuncId::new(imports.len() + i),
            ty: type_of(ty),
            body: OrigOffset(0)..OrigOffset(0),
            operators: 0,
            may_throw: false,
            out_of_bounds: Box::default(),
            waits: Box::default(),
            cfg: cfg(*n, edges, |v| {
                let (choice, callee) = ends[v];
                (
                    choice,
                    callee_at(callee.index(callables + types.len()), callables),
                )
            }),
        });
    let functions = functions.collect();
    let imports = imports.iter().map(|(ty, _)| Import {
        module: "env".into(),
        name: "f".into(),
        ty: type_of(ty),
    });
    let imports = imports.collect();
    Program::assemble(types, imports, functions, address_taken)
}

fn callee_at(position: usize, callables: usize) -> Callee {
    match position.checked_sub(callables) {
        None => Callee::Direct(FuncId::new(position)),
        Some(ty) => Callee::Indirect {
            table: 0,
            ty: TypeId::new(ty),
        },
    }
}

/// Chooses the ends of a digraph's blocks, and the matching kinds of edges.
fn cfg(n: usize, edges: &[(usize, usize)], choose: impl Fn(usize) -> (u8, Callee)) -> Cfg {
    let mut sorted = edges.to_vec();
    sorted.sort_by_key(|&(from, _)| from);
    let block = |v: usize| BlockId::new(v);
    let ends = sorted.iter().map(|&(a, b)| (block(a), block(b)));
    let graph = FlowGraph::new(n, block(0), block(n - 1), ends);
    let mut kinds: Vec<EdgeKind> = vec![EdgeKind::Fall; graph.edge_count()];
    let mut blocks = PrimaryMap::new();
    for v in graph.vertices() {
        let (choice, callee) = choose(v.index());
        let is_thrown_to = |e: &EdgeId| {
            graph.from(*e) < v && matches!(kinds[e.index()], EdgeKind::Throw | EdgeKind::CallThrow)
        };
        let into = graph.in_edges(v);
        let out = graph.out_edges(v);
        let is_dispatch = !into.is_empty() && !out.is_empty() && into.iter().all(is_thrown_to);
        let (kind, end, out_kinds) = if v == graph.exit() {
            (BlockKind::Exit, BlockEnd::Exit, vec![])
        } else if is_dispatch {
            let catches = (0..out.len() as u32).map(EdgeKind::Catch).collect();
            (BlockKind::Dispatch(None), BlockEnd::Dispatch, catches)
        } else {
            let to_exit = out.first().is_some_and(|&e| graph.to(e) == graph.exit());
            let (end, kinds) = end(out.len(), to_exit, choice, callee);
            (BlockKind::Code, end, kinds)
        };
        for (e, kind) in out.iter().zip(out_kinds) {
            kinds[e.index()] = kind;
        }
        blocks.push(Block {
            kind,
            ops: OpId::new(0)..OpId::new(0),
            offsets: OrigOffset(0)..OrigOffset(0),
            end,
        });
    }
    let edges = graph.edges().map(|e| Edge {
        from: graph.from(e),
        to: graph.to(e),
        kind: kinds[e.index()],
        back: false,
        op: None,
    });
    Cfg {
        blocks,
        edges: edges.collect(),
        graph,
    }
}

/// Chooses an end for a block with `out` outgoing edges.
fn end(out: usize, to_exit: bool, choice: u8, callee: Callee) -> (BlockEnd, Vec<EdgeKind>) {
    match (out, to_exit, choice % 8) {
        (0, _, _) => (BlockEnd::Unreachable, vec![]),
        (1, _, 0..=3) => (BlockEnd::Call(callee), vec![EdgeKind::CallReturn]),
        (1, true, 4 | 5) => (BlockEnd::TailCall(callee), vec![EdgeKind::Return]),
        (1, true, 6) => (BlockEnd::Return, vec![EdgeKind::Return]),
        (1, _, 6) => (BlockEnd::Throw, vec![EdgeKind::Throw]),
        (1, false, 4) => (BlockEnd::Jump, vec![EdgeKind::Jump]),
        (1, _, _) => (BlockEnd::Fall, vec![EdgeKind::Fall]),
        (2, _, 0..=3) => (
            BlockEnd::Call(callee),
            vec![EdgeKind::CallReturn, EdgeKind::CallThrow],
        ),
        (2, _, 4 | 5) => (BlockEnd::Branch, vec![EdgeKind::NotTaken, EdgeKind::Taken]),
        (2, _, _) => (BlockEnd::Branch, vec![EdgeKind::Then, EdgeKind::Else]),
        (n, _, _) => (
            BlockEnd::Table,
            (0..n as u32).map(EdgeKind::Table).collect(),
        ),
    }
}
