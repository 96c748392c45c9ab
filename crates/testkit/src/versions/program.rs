//! Generates random programs in a tiny language with 32-bit numbers, one array, and calls without
//! recursion.

/// The number of an operation.
pub(super) type Id = u32;

#[derive(Clone, Debug)]
pub(super) enum Expr {
    Const(i32),
    Var(usize),
    /// An operator with two operands, named without `i32.`.
    Binary(Id, &'static str, Box<Expr>, Box<Expr>),
    /// An element of the array.
    Element(Index),
}

/// An array access, with the number of the load or store, and the operations that turn any number
/// into an address.
#[derive(Clone, Debug)]
pub(super) struct Index {
    pub access: Id,
    pub mask: Id,
    pub scale: Id,
    pub number: Box<Expr>,
}

#[derive(Clone, Debug)]
pub(super) enum Stmt {
    Set(usize, Expr),
    Store(Index, Expr),
    If {
        test: Id,
        branch: Id,
        /// The comparison operator.
        by: &'static str,
        of: [Expr; 2],
        then: Vec<Stmt>,
    },
    /// A loop that counts a variable up from 0.
    For {
        test: Id,
        branch: Id,
        step: Id,
        var: usize,
        times: i32,
        body: Vec<Stmt>,
    },
    /// Sets a variable to the result of a call.
    Call(Id, usize, usize, Vec<Expr>),
}

#[derive(Clone, Debug)]
pub(super) struct Function {
    pub params: usize,
    /// The number of variables, parameters first.
    pub vars: usize,
    pub body: Vec<Stmt>,
    /// The variable that is returned.
    pub result: usize,
}

/// A random program. Functions call only later functions, and execution starts with the first.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub functions: Vec<Function>,
}

/// A linear congruential generator (Knuth's constants).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }
}

struct Generator {
    random: Random,
    ids: Id,
    /// Loop counters in use, which no other statement may set.
    counters: Vec<usize>,
}

const FUNCTIONS: usize = 5;
const VARS: usize = 9;
/// The number of variables used as loop counters, which are the last variables.
const COUNTERS: usize = 3;

pub(super) fn generate(seed: u64) -> Program {
    let mut generator = Generator {
        random: Random(seed.wrapping_mul(0x9e37_79b9).wrapping_add(7)),
        ids: 0,
        counters: Vec::new(),
    };
    let functions = (0..FUNCTIONS).map(|at| generator.function(at));
    Program {
        functions: functions.collect(),
    }
}

impl Generator {
    fn id(&mut self) -> Id {
        self.ids += 1;
        self.ids
    }

    fn function(&mut self, at: usize) -> Function {
        let params = if at == 0 { 0 } else { 2 };
        let mut body = Vec::new();
        // Every variable gets a value before it is used.
        for var in params..VARS - COUNTERS {
            let value = self.random.below(90) as i32 + 3;
            body.push(Stmt::Set(var, Expr::Const(value)));
        }
        if at == 0 {
            let inner = self.block(at, 5, 2);
            let (test, branch, step) = (self.id(), self.id(), self.id());
            let var = VARS - 1;
            body.push(Stmt::For {
                test,
                branch,
                step,
                var,
                times: 40,
                body: inner,
            });
        } else {
            let inner = self.block(at, 4, 1);
            body.extend(inner);
        }
        Function {
            params,
            vars: VARS,
            body,
            result: params,
        }
    }

    /// Generates some statements, with loops nested at most `depth` deep.
    fn block(&mut self, at: usize, length: usize, depth: usize) -> Vec<Stmt> {
        let count = length + self.random.below(4);
        let mut body: Vec<Stmt> = (0..count).map(|_| self.statement(at, depth)).collect();
        if at + 1 < FUNCTIONS && depth > 0 {
            let callee = at + 1 + self.random.below(FUNCTIONS - at - 1);
            let arguments = vec![self.expr(1), self.expr(1)];
            let var = self.variable();
            body.push(Stmt::Call(self.id(), var, callee, arguments));
        }
        body
    }

    fn variable(&mut self) -> usize {
        2 + self.random.below(VARS - COUNTERS - 2)
    }

    fn statement(&mut self, at: usize, depth: usize) -> Stmt {
        match self.random.below(10) {
            0 | 1 => {
                let index = self.index();
                Stmt::Store(index, self.expr(2))
            }
            2 => {
                let by = ["lt_s", "gt_u", "eq", "le_s"][self.random.below(4)];
                let of = [self.expr(1), Expr::Var(self.variable())];
                let then = (0..2)
                    .map(|_| Stmt::Set(self.variable(), self.expr(2)))
                    .collect();
                Stmt::If {
                    test: self.id(),
                    branch: self.id(),
                    by,
                    of,
                    then,
                }
            }
            3 if depth > 0 => {
                let var = VARS - 1 - depth.min(COUNTERS - 1) - usize::from(at == 0 && depth == 1);
                let var = var.max(VARS - COUNTERS);
                if self.counters.contains(&var) {
                    return Stmt::Set(self.variable(), self.expr(2));
                }
                self.counters.push(var);
                let body = self.block(FUNCTIONS, 2, 0);
                self.counters.pop();
                let times = 2 * (1 + self.random.below(5) as i32);
                Stmt::For {
                    test: self.id(),
                    branch: self.id(),
                    step: self.id(),
                    var,
                    times,
                    body,
                }
            }
            _ => Stmt::Set(self.variable(), self.expr(3)),
        }
    }

    fn index(&mut self) -> Index {
        Index {
            access: self.id(),
            mask: self.id(),
            scale: self.id(),
            number: Box::new(self.expr(1)),
        }
    }

    fn expr(&mut self, depth: usize) -> Expr {
        match self.random.below(if depth == 0 { 4 } else { 9 }) {
            0 => Expr::Const([2, 3, 4, 7, 8, 16, 31][self.random.below(7)]),
            1..=3 => Expr::Var(self.variable()),
            4 => Expr::Element(self.index()),
            _ => {
                let by = ["add", "sub", "mul", "xor", "and", "or", "shr_u", "rotl"]
                    [self.random.below(8)];
                Expr::Binary(
                    self.id(),
                    by,
                    Box::new(self.expr(depth - 1)),
                    Box::new(self.expr(depth - 1)),
                )
            }
        }
    }
}
