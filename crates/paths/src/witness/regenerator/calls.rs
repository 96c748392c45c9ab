//! Begins and ends activations.

use afterimage_ids::{EntityRef, FuncId};

use super::{
    Activation, DEEPEST, PathSink, Phase, Progress, Regenerator, Step, Table, Target, Token,
    TokenReader, WitnessError, number,
};

impl Regenerator<'_> {
    /// Continues after a call has returned, or thrown an exception.
    pub(super) fn go_on<R: TokenReader, S: PathSink>(
        &mut self,
        thrown: bool,
        reader: &mut R,
        sink: &mut S,
    ) -> Result<Progress, WitnessError> {
        let Some((top, table, _)) = self.top() else {
            return Err(WitnessError::Late);
        };
        let edge = match table.step(top.at) {
            Step::Call { throws, .. } if thrown => throws,
            Step::Call { returns, .. } => returns,
            _ => None,
        };
        match edge {
            Some(edge) => self.cross(edge, reader, sink),
            None => Err(WitnessError::NoSuchReturn {
                block: top.at,
                function: self.innermost(),
            }),
        }
    }

    pub(super) fn call<R: TokenReader, S: PathSink>(
        &mut self,
        target: Target,
        reader: &mut R,
        sink: &mut S,
    ) -> Result<Progress, WitnessError> {
        let caller = self.innermost();
        let (callee, progress) = self.callee(target, caller, reader)?;
        match callee {
            Some(callee) => self.enter(callee, progress, reader, sink),
            None => {
                self.phase = Phase::Returned { thrown: false };
                Ok(progress)
            }
        }
    }

    /// Continues with the callee of a tail call, after the caller has left.
    pub(super) fn follow_tail_call<R: TokenReader, S: PathSink>(
        &mut self,
        target: Target,
        caller: FuncId,
        reader: &mut R,
        sink: &mut S,
    ) -> Result<Progress, WitnessError> {
        let (callee, progress) = self.callee(target, caller, reader)?;
        match callee {
            Some(callee) => self.enter(callee, progress, reader, sink),
            // `leave` has already reported the return of the call.
            None => Ok(progress),
        }
    }

    /// Returns the callee, or `None` for an import, which returns. The progress is
    /// [`Progress::Read`] if the token that the callee writes at its entry has been read.
    fn callee<R: TokenReader>(
        &mut self,
        target: Target,
        caller: FuncId,
        reader: &mut R,
    ) -> Result<(Option<u32>, Progress), WitnessError> {
        let imports = self.program.imports.len();
        match target {
            Target::Defined(position) => Ok((Some(position), Progress::Silent)),
            Target::Import(import) => {
                let token = number(self.plan.entry_ids(), import);
                Ok((None, self.expect(import, token, reader)?))
            }
            Target::Table(ty) => {
                let ids = self.plan.entry_ids();
                let width = ids.width(ty);
                let (value, progress) = match width {
                    0 => (0, Progress::Silent),
                    _ => (
                        read(reader, width).ok_or(WitnessError::Early(caller))?,
                        Progress::Read,
                    ),
                };
                let callee = ids.function(ty, value);
                let callee = callee.ok_or(WitnessError::NoSuchCallee(caller))?;
                let position = callee.index().checked_sub(imports);
                Ok((position.map(|p| p as u32), progress))
            }
        }
    }

    pub(super) fn call_by_host<R: TokenReader, S: PathSink>(
        &mut self,
        function: FuncId,
        reader: &mut R,
        sink: &mut S,
    ) -> Result<Progress, WitnessError> {
        let position = function.index().checked_sub(self.program.imports.len());
        match position.filter(|&p| p < self.tables.len()) {
            Some(position) => self.enter(position as u32, Progress::Silent, reader, sink),
            // The function is an exported import, so the host called its own function.
            None => Ok(Progress::Silent),
        }
    }

    /// Reads the number that a function writes at its entry.
    fn expect<R: TokenReader>(
        &self,
        function: FuncId,
        token: Option<Token>,
        reader: &mut R,
    ) -> Result<Progress, WitnessError> {
        let Some(token) = token else {
            return Ok(Progress::Silent);
        };
        match read(reader, token.width) {
            Some(value) if value == token.value => Ok(Progress::Read),
            Some(_) => Err(WitnessError::OtherCallee { called: function }),
            None => Err(WitnessError::Early(function)),
        }
    }

    /// Enters a function. `number` says whether its number has been read.
    #[inline]
    pub(super) fn enter<R: TokenReader, S: PathSink>(
        &mut self,
        position: u32,
        number: Progress,
        reader: &mut R,
        sink: &mut S,
    ) -> Result<Progress, WitnessError> {
        let function = &self.program.functions[position as usize];
        let witnesses = &self.plan.functions()[position as usize];
        let progress = match number {
            Progress::Read => Progress::Read,
            Progress::Silent => self.expect(function.id, witnesses.entry(), reader)?,
        };
        if self.stack.len() >= DEEPEST {
            return Err(WitnessError::TooDeep(DEEPEST));
        }
        self.tables[position as usize]
            .get_or_insert_with(|| Box::new(Table::new(self.program, &function.cfg, witnesses)));
        sink.enter(function.id);
        self.stack.push(Activation {
            function: position,
            at: function.cfg.graph.root(),
            pending: None,
        });
        self.phase = Phase::Arrives;
        // If there are more nested silent activations than functions, two of them belong to the
        // same function, which calls itself forever.
        if !reader.is_empty() && self.stack.len() > self.depth_at_token + self.tables.len() {
            return Err(WitnessError::Late);
        }
        Ok(progress)
    }

    /// Ends the innermost activation.
    #[inline]
    pub(super) fn leave<S: PathSink>(&mut self, thrown: bool, sink: &mut S) {
        self.stack.pop();
        sink.leave();
        self.phase = Phase::Returned { thrown };
        self.depth_at_token = self.depth_at_token.min(self.stack.len());
    }
}

/// Reads the next number of `width` bits.
fn read<R: TokenReader>(reader: &mut R, width: u8) -> Option<u32> {
    let number = reader.peek(width);
    reader.take(width).then_some(number)
}
