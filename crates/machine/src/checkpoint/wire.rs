//! Encodes and decodes checkpoints.
//!
//! Numbers are LEB128, and lists begin with their length. A run of changed table elements is stored
//! by its distance from the end of the previous run.

use afterimage_ids::EntityRef;

use super::{BlockId, ChangedTable, Checkpoint, Exception, FuncId, GlobalBits, LogPlace, Next};

impl<C: EntityRef> Checkpoint<C> {
    /// Encodes the checkpoint.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Out(Vec::new());
        let LogPlace { chunks, at, events } = self.log;
        for number in [self.time, chunks, at, events] {
            out.put(number);
        }
        match self.next {
            Next::Enter { function, tail } => {
                out.put(1 + u64::from(tail));
                out.put(function.as_u32().into());
            }
            Next::Block(block) => {
                out.put(3);
                out.put(block.as_u32().into());
            }
            Next::Host => out.put(0),
        }
        out.pairs(&self.arguments);
        out.put(self.frames.len() as u64);
        for &(function, call) in &self.frames {
            out.put(function.as_u32().into());
            out.put(call.map_or(0, |call| call.index() as u64 + 1));
        }
        out.numbers(&self.registers);
        out.numbers(&self.high);
        out.pairs(&self.globals);
        out.numbers(&self.pages);
        out.put(self.tables.len() as u64);
        for table in &self.tables {
            out.put(table.length);
            out.put(table.elements.len() as u64);
            let mut next = 0;
            for &(position, count, element) in &table.elements {
                out.put(position - next);
                out.put(count);
                out.put(element);
                next = position + count;
            }
        }
        for segments in [&self.data, &self.elements] {
            out.put(segments.len() as u64);
            segments.iter().for_each(|&segment| out.put(segment.into()));
        }
        out.put(self.exceptions.len() as u64);
        for (reference, exception) in &self.exceptions {
            out.put(*reference);
            out.put(exception.tag.into());
            out.pairs(&exception.values);
        }
        out.put(self.made);
        out.put(self.room);
        out.0
    }

    /// Decodes a checkpoint. Returns `None` if the bytes are not a checkpoint. The result takes at
    /// most a small multiple of the number of bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = In(bytes);
        let time = input.take()?;
        let log = LogPlace {
            chunks: input.take()?,
            at: input.take()?,
            events: input.take()?,
        };
        let next = match input.take()? {
            0 => Next::Host,
            kind @ (1 | 2) => Next::Enter {
                function: FuncId::from_u32(input.entity()?),
                tail: kind == 2,
            },
            3 => Next::Block(BlockId::from_u32(input.entity()?)),
            _ => return None,
        };
        let arguments = input.pairs()?;
        let frames = input.list(2, |input| {
            let function = FuncId::from_u32(input.entity()?);
            let call = match input.take()? {
                0 => None,
                call => Some(C::new(below(call - 1)? as usize)),
            };
            Some((function, call))
        })?;
        let registers = input.numbers()?;
        let high = input.numbers()?;
        let globals = input.pairs()?;
        let pages = input.numbers()?;
        let tables = input.list(2, |input| {
            let length = input.take()?;
            let mut next = 0u64;
            let elements = input.list(3, |input| {
                let position = next.checked_add(input.take()?)?;
                let count = input.take()?;
                next = position.checked_add(count)?;
                Some((position, count, input.take()?))
            })?;
            Some(ChangedTable { length, elements })
        })?;
        let data = input.list(1, In::entity)?;
        let elements = input.list(1, In::entity)?;
        let exceptions = input.list(3, |input| {
            let reference = input.take()?;
            let tag = input.entity()?;
            let values = input.pairs()?;
            Some((reference, Exception { tag, values }))
        })?;
        let (made, room) = (input.take()?, input.take()?);
        input.0.is_empty().then_some(Self {
            time,
            log,
            next,
            arguments,
            frames,
            registers,
            high,
            globals,
            pages,
            tables,
            data,
            elements,
            exceptions,
            made,
            room,
        })
    }
}

/// Converts a number to an entity's number. Returns `None` if the number is too large.
fn below(number: u64) -> Option<u32> {
    u32::try_from(number).ok().filter(|&n| n < u32::MAX)
}

struct Out(Vec<u8>);

impl Out {
    fn put(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn numbers(&mut self, numbers: &[u64]) {
        self.put(numbers.len() as u64);
        numbers.iter().for_each(|&number| self.put(number));
    }

    fn pairs(&mut self, pairs: &[GlobalBits]) {
        self.put(pairs.len() as u64);
        for &(low, high) in pairs {
            self.put(low);
            self.put(high);
        }
    }
}

struct In<'a>(&'a [u8]);

impl In<'_> {
    fn take(&mut self) -> Option<u64> {
        crate::snapshots::take(&mut self.0)
    }

    fn entity(&mut self) -> Option<u32> {
        below(self.take()?)
    }

    /// Reads a list of items that each take at least `least` bytes.
    fn list<T>(
        &mut self,
        least: u64,
        mut one: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let count = self.take()?;
        if count > self.0.len() as u64 / least {
            return None;
        }
        (0..count).map(|_| one(self)).collect()
    }

    fn numbers(&mut self) -> Option<Vec<u64>> {
        self.list(1, Self::take)
    }

    fn pairs(&mut self) -> Option<Vec<GlobalBits>> {
        self.list(2, |input| Some((input.take()?, input.take()?)))
    }
}
