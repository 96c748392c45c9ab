//! Writes a program as WebAssembly.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::Version;
use super::program::{Expr, Function, Id, Index, Program, Stmt};

/// The optional changes to the optimised version. It always keeps variables in locals and tests
/// loops at their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transformations {
    /// Inlines functions that contain no calls.
    pub inline: bool,
    /// Writes loop bodies twice.
    pub unroll: bool,
    /// Omits computations on constants.
    pub propagate: bool,
    /// Replaces multiplications by powers of two with shifts.
    pub reduce: bool,
    /// Adds operators whose results are unused.
    pub dead: bool,
    /// Reorders independent statements, renumbers locals and permutes functions.
    pub reorder: bool,
}

impl Transformations {
    /// All transformations.
    pub const ALL: Self = Self {
        inline: true,
        unroll: true,
        propagate: true,
        reduce: true,
        dead: true,
        reorder: true,
    };
}

/// The address of the array, which has elements 0 to 63.
const ARRAY: u32 = 256;
const HEAD: &str = "(module\n  (import \"wasi_snapshot_preview1\" \"proc_exit\" (func $exit (param i32)))\n  (memory (export \"memory\") 1)\n  (global $sp (mut i32) (i32.const 8192))\n";

/// A function being written, with one operator per line.
#[derive(Default)]
struct Body {
    lines: Vec<(String, Option<Id>)>,
    locals: usize,
}

impl Body {
    fn put(&mut self, text: impl Into<String>) {
        self.lines.push((text.into(), None));
    }

    fn does(&mut self, id: Id, text: impl Into<String>) {
        self.lines.push((text.into(), Some(id)));
    }

    fn local(&mut self) -> usize {
        self.locals += 1;
        self.locals - 1
    }
}

/// Joins functions, in module order, into a module. Each function comes with its number in the
/// program and its number of parameters.
fn module(functions: Vec<(usize, usize, Body)>) -> Version {
    let mut version = Version {
        text: HEAD.to_owned(),
        operations: HashMap::new(),
    };
    // Function 0 is the import.
    for (place, (number, params, body)) in (1u32..).zip(functions) {
        let export = if number == 0 {
            " (export \"_start\")"
        } else {
            ""
        };
        let result = if number == 0 { "" } else { " (result i32)" };
        let text = &mut version.text;
        let _ = write!(text, "  (func $f{number}{export}");
        let _ = write!(text, "{}{result}", " (param i32)".repeat(params));
        let _ = writeln!(text, "{}", " (local i32)".repeat(body.locals - params));
        for (at, (line, id)) in (0u32..).zip(body.lines) {
            let _ = writeln!(text, "    {line}");
            if let Some(id) = id {
                version.operations.insert((place, at), id);
            }
        }
        text.push_str("  )\n");
    }
    version.text.push_str(")\n");
    version
}

/// Writes the version with every variable in memory.
pub(super) fn unoptimised(program: &Program) -> Version {
    let functions = program.functions.iter().enumerate();
    let functions = functions.map(|(number, function)| {
        let mut body = Body {
            locals: function.params + 1,
            ..Body::default()
        };
        let fp = function.params;
        body.put("global.get $sp");
        body.put(format!("i32.const {}", 4 * function.vars));
        body.put("i32.sub");
        body.put(format!("local.tee {fp}"));
        body.put("global.set $sp");
        for param in 0..function.params {
            body.put(format!("local.get {fp}"));
            body.put(format!("local.get {param}"));
            body.put(format!("i32.store offset={}", 4 * param));
        }
        let mut plain = Plain { body, fp };
        plain.block(&function.body);
        plain.read(function.result);
        let mut body = plain.body;
        body.put(format!("local.get {fp}"));
        body.put(format!("i32.const {}", 4 * function.vars));
        body.put("i32.add");
        body.put("global.set $sp");
        if number == 0 {
            body.put("i32.const 127");
            body.put("i32.and");
            body.put("call $exit");
        }
        (number, function.params, body)
    });
    module(functions.collect())
}

struct Plain {
    body: Body,
    fp: usize,
}

impl Plain {
    fn read(&mut self, var: usize) {
        self.body.put(format!("local.get {}", self.fp));
        self.body.put(format!("i32.load offset={}", 4 * var));
    }

    fn address(&mut self, index: &Index) {
        self.expr(&index.number);
        self.body.put("i32.const 63");
        self.body.does(index.mask, "i32.and");
        self.body.put("i32.const 2");
        self.body.does(index.scale, "i32.shl");
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Const(value) => self.body.put(format!("i32.const {value}")),
            Expr::Var(var) => self.read(*var),
            Expr::Binary(id, by, a, b) => {
                self.expr(a);
                self.expr(b);
                self.body.does(*id, format!("i32.{by}"));
            }
            Expr::Element(index) => {
                self.address(index);
                self.body
                    .does(index.access, format!("i32.load offset={ARRAY}"));
            }
        }
    }

    fn set(&mut self, var: usize, value: impl FnOnce(&mut Self)) {
        self.body.put(format!("local.get {}", self.fp));
        value(self);
        self.body.put(format!("i32.store offset={}", 4 * var));
    }

    /// Leaves a block unless a condition holds. The condition is first reduced to 0 or 1.
    fn unless(&mut self, branch: Id) {
        for line in ["i32.const 1", "i32.and", "i32.eqz"] {
            self.body.put(line);
        }
        self.body.does(branch, "br_if 0");
    }

    fn block(&mut self, statements: &[Stmt]) {
        for statement in statements {
            match statement {
                Stmt::Set(var, value) => self.set(*var, |this| this.expr(value)),
                Stmt::Store(index, value) => {
                    self.address(index);
                    self.expr(value);
                    self.body
                        .does(index.access, format!("i32.store offset={ARRAY}"));
                }
                Stmt::If {
                    test,
                    branch,
                    by,
                    of,
                    then,
                } => {
                    self.body.put("block");
                    of.iter().for_each(|of| self.expr(of));
                    self.body.does(*test, format!("i32.{by}"));
                    self.unless(*branch);
                    self.block(then);
                    self.body.put("end");
                }
                Stmt::For {
                    test,
                    branch,
                    step,
                    var,
                    times,
                    body,
                } => {
                    self.set(*var, |this| this.body.put("i32.const 0"));
                    self.body.put("loop");
                    self.body.put("block");
                    self.read(*var);
                    self.body.put(format!("i32.const {times}"));
                    self.body.does(*test, "i32.lt_s");
                    self.unless(*branch);
                    self.block(body);
                    self.set(*var, |this| {
                        this.read(*var);
                        this.body.put("i32.const 1");
                        this.body.does(*step, "i32.add");
                    });
                    self.body.put("br 1");
                    self.body.put("end");
                    self.body.put("end");
                }
                Stmt::Call(id, var, callee, arguments) => self.set(*var, |this| {
                    arguments.iter().for_each(|argument| this.expr(argument));
                    this.body.does(*id, format!("call $f{callee}"));
                }),
            }
        }
    }
}

/// Writes the version with variables in locals and the chosen transformations.
pub(super) fn optimised(program: &Program, how: Transformations) -> Version {
    let functions = program.functions.iter().enumerate();
    let functions = functions.map(|(number, function)| {
        let mut short = Short {
            program,
            how,
            body: Body {
                locals: function.params,
                ..Body::default()
            },
            vars: Vec::new(),
            known: HashMap::new(),
        };
        short.variables(function, (0..function.params).collect());
        short.block(&function.body);
        short.read(function.result);
        if number == 0 {
            short.body.put("i32.const 127");
            short.body.put("i32.and");
            short.body.put("call $exit");
        }
        (number, function.params, short.body)
    });
    let mut functions: Vec<_> = functions.collect();
    if how.reorder {
        functions.reverse();
    }
    module(functions)
}

struct Short<'p> {
    program: &'p Program,
    how: Transformations,
    body: Body,
    /// The local of each variable.
    vars: Vec<usize>,
    /// Variables that are constant at this point.
    known: HashMap<usize, i32>,
}

impl Short<'_> {
    /// Assigns locals to a function's variables. Parameters already have locals.
    fn variables(&mut self, function: &Function, params: Vec<usize>) {
        let mut locals: Vec<usize> = (function.params..function.vars)
            .map(|_| self.body.local())
            .collect();
        if self.how.reorder {
            locals.reverse();
        }
        self.vars = params.into_iter().chain(locals).collect();
        self.known.clear();
    }

    fn read(&mut self, var: usize) {
        self.body.put(format!("local.get {}", self.vars[var]));
    }

    /// Returns the value of an expression, if it is known.
    fn constant(&self, expr: &Expr) -> Option<i32> {
        match expr {
            Expr::Const(value) => Some(*value),
            Expr::Var(var) => self.known.get(var).copied(),
            Expr::Binary(_, by, a, b) if self.how.propagate => {
                let (a, b) = (self.constant(a)?, self.constant(b)?);
                Some(match *by {
                    "add" => a.wrapping_add(b),
                    "sub" => a.wrapping_sub(b),
                    "mul" => a.wrapping_mul(b),
                    "xor" => a ^ b,
                    "and" => a & b,
                    "or" => a | b,
                    "shr_u" => ((a as u32) >> (b & 31)) as i32,
                    "rotl" => a.rotate_left(b as u32 & 31),
                    _ => return None,
                })
            }
            _ => None,
        }
    }

    fn address(&mut self, index: &Index) {
        self.expr(&index.number);
        self.body.put("i32.const 63");
        self.body.does(index.mask, "i32.and");
        self.body.put("i32.const 2");
        self.body.does(index.scale, "i32.shl");
    }

    fn expr(&mut self, expr: &Expr) {
        if let Some(value) = self.constant(expr) {
            self.body.put(format!("i32.const {value}"));
            return;
        }
        match expr {
            Expr::Const(value) => self.body.put(format!("i32.const {value}")),
            Expr::Var(var) => self.read(*var),
            Expr::Binary(id, by, a, b) => {
                self.expr(a);
                match (self.constant(b), *by) {
                    (Some(power), "mul") if self.how.reduce && power.count_ones() == 1 => {
                        self.body
                            .put(format!("i32.const {}", power.trailing_zeros()));
                        self.body.does(*id, "i32.shl");
                    }
                    _ => {
                        self.expr(b);
                        self.body.does(*id, format!("i32.{by}"));
                    }
                }
            }
            Expr::Element(index) => {
                self.address(index);
                self.body
                    .does(index.access, format!("i32.load offset={ARRAY}"));
            }
        }
    }

    fn set(&mut self, var: usize) {
        self.known.remove(&var);
        self.body.put(format!("local.set {}", self.vars[var]));
    }

    /// Adds unused operators.
    fn dead(&mut self, var: usize) {
        if self.how.dead {
            self.read(var);
            self.body.put("i32.const 12345");
            self.body.put("i32.xor");
            self.body.put("drop");
        }
    }

    fn block(&mut self, statements: &[Stmt]) {
        let mut order: Vec<&Stmt> = statements.iter().collect();
        if self.how.reorder {
            let mut at = 0;
            while at + 1 < order.len() {
                if independent(order[at], order[at + 1]) {
                    order.swap(at, at + 1);
                    at += 1;
                }
                at += 1;
            }
        }
        for statement in order {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Set(var, value) => {
                let known = self.constant(value).filter(|_| self.how.propagate);
                self.expr(value);
                self.set(*var);
                self.known.extend(known.map(|known| (*var, known)));
                self.dead(*var);
            }
            Stmt::Store(index, value) => {
                self.address(index);
                self.expr(value);
                self.body
                    .does(index.access, format!("i32.store offset={ARRAY}"));
            }
            Stmt::If {
                test,
                branch,
                by,
                of,
                then,
            } => {
                self.body.put("block");
                of.iter().for_each(|of| self.expr(of));
                self.body.does(*test, format!("i32.{by}"));
                self.body.put("i32.eqz");
                self.body.does(*branch, "br_if 0");
                self.block(then);
                self.body.put("end");
                self.known.clear();
            }
            Stmt::For {
                test,
                branch,
                step,
                var,
                times,
                body,
            } => {
                self.known.clear();
                self.body.put("i32.const 0");
                self.set(*var);
                self.body.put("loop");
                for _ in 0..if self.how.unroll { 2 } else { 1 } {
                    self.block(body);
                    self.read(*var);
                    self.body.put("i32.const 1");
                    self.body.does(*step, "i32.add");
                    self.set(*var);
                    self.known.clear();
                }
                self.read(*var);
                self.body.put(format!("i32.const {times}"));
                self.body.does(*test, "i32.lt_s");
                self.body.does(*branch, "br_if 0");
                self.body.put("end");
            }
            Stmt::Call(id, var, callee, arguments) => {
                arguments.iter().for_each(|argument| self.expr(argument));
                let function = &self.program.functions[*callee];
                let calls = function
                    .body
                    .iter()
                    .any(|inner| matches!(inner, Stmt::Call(..)));
                if self.how.inline && !calls {
                    self.inlined(function);
                } else {
                    self.body.does(*id, format!("call $f{callee}"));
                }
                self.set(*var);
            }
        }
    }

    /// Writes a function's body in place of a call. The arguments are on the stack, and the result
    /// replaces them.
    fn inlined(&mut self, function: &Function) {
        let params: Vec<usize> = (0..function.params).map(|_| self.body.local()).collect();
        for param in params.iter().rev() {
            self.body.put(format!("local.set {param}"));
        }
        let (vars, known) = (
            std::mem::take(&mut self.vars),
            std::mem::take(&mut self.known),
        );
        self.variables(function, params);
        self.block(&function.body);
        self.read(function.result);
        self.vars = vars;
        self.known = known;
    }
}

/// Whether two statements may be swapped. Both must only set variables, and neither may use a
/// variable that the other sets.
fn independent(a: &Stmt, b: &Stmt) -> bool {
    fn uses(expr: &Expr, var: usize) -> bool {
        match expr {
            Expr::Const(_) => false,
            Expr::Var(used) => *used == var,
            Expr::Binary(_, _, a, b) => uses(a, var) || uses(b, var),
            Expr::Element(index) => uses(&index.number, var),
        }
    }
    match (a, b) {
        (Stmt::Set(x, of_x), Stmt::Set(y, of_y)) => x != y && !uses(of_x, *y) && !uses(of_y, *x),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::versions;
    use super::Transformations;

    #[test]
    fn both_versions_are_modules_and_share_operations() {
        for seed in 0..50 {
            let [a, b] = versions(seed, Transformations::ALL);
            for version in [&a, &b] {
                let bytes = wat::parse_str(&version.text).unwrap();
                wasmparser::validate(&bytes).unwrap();
            }
            assert!(
                b.operations
                    .values()
                    .all(|id| a.operations.values().any(|known| known == id))
            );
        }
    }
}
