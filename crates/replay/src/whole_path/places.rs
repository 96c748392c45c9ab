//! Finds the source places of blocks.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use afterimage_ids::{BlockId, EntityRef, FuncId, OrigOffset};
use afterimage_program::{Location, Program};

use afterimage_profile::body::decode;
use afterimage_profile::walk::{code_blocks, positions};
use afterimage_profile::{ProfileError, Source, inlined_names};

/// The place of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPlace {
    /// The offset of the block's first operator in the original module.
    pub offset: OrigOffset,
    /// The source position of the block's first instruction with a position.
    pub position: Option<Location>,
    /// The source position of the block's last instruction, which is the call if the block ends
    /// with a call.
    pub end: Option<Location>,
    /// The offset of the block's last instruction in the original module.
    pub last: OrigOffset,
}

/// Finds the source places of blocks. The first question about a function takes time linear in its
/// body. Later questions take O(1).
pub struct Places<'a> {
    program: &'a Program,
    module: &'a [u8],
    source: &'a dyn Source,
    known: RefCell<HashMap<FuncId, Rc<[BlockPlace]>>>,
}

impl<'a> Places<'a> {
    /// Creates an index of the places of a program's blocks. `module` contains the bytes from which
    /// the program was parsed.
    pub fn new(program: &'a Program, module: &'a [u8], source: &'a dyn Source) -> Self {
        Self {
            program,
            module,
            source,
            known: RefCell::default(),
        }
    }

    /// Whether any source lines are known.
    pub fn has_files(&self) -> bool {
        !self.source.files().is_empty()
    }

    /// Returns the path of a source file.
    pub fn file(&self, location: Location) -> &str {
        let files = self.source.files();
        let path = files.get(location.file.0 as usize);
        path.map_or("", String::as_str)
    }

    /// Returns the path of a source file as displayed.
    pub fn shown(&self, location: Location) -> &str {
        self.source.short_path(location.file)
    }

    /// Returns the source map that finds the places.
    pub fn source(&self) -> &'a dyn Source {
        self.source
    }

    /// Returns the names of the functions inlined at an operator, the innermost first.
    pub fn inlined(&self, offset: OrigOffset) -> Vec<String> {
        inlined_names(self.source, offset)
    }

    /// Returns the place of a basic block, or `None` if there is no such block.
    ///
    /// # Errors
    /// Returns an error if the module's bytes do not match the program.
    pub fn block(
        &self,
        function: FuncId,
        block: BlockId,
    ) -> Result<Option<BlockPlace>, ProfileError> {
        let known = self.known.borrow().get(&function).map(Rc::clone);
        let blocks = match known {
            Some(blocks) => blocks,
            None => {
                let blocks = self.of(function)?;
                self.known.borrow_mut().insert(function, Rc::clone(&blocks));
                blocks
            }
        };
        Ok(blocks.get(block.index()).copied())
    }

    fn of(&self, function: FuncId) -> Result<Rc<[BlockPlace]>, ProfileError> {
        let Some(function) = self.program.function(function) else {
            return Ok(Rc::default());
        };
        let (mut body, mut operators) = (Vec::new(), Vec::new());
        decode(self.program, self.module, function, &mut body)?;
        positions(function, &body, self.source, &mut operators);
        let places = code_blocks(function).map(|(_, block)| {
            let own = &operators[block.ops.start.index()..block.ops.end.index()];
            let last = own.iter().rfind(|operator| operator.instruction);
            BlockPlace {
                offset: block.offsets.start,
                position: own.iter().find_map(|operator| operator.position),
                end: last.and_then(|last| last.position),
                last: last.map_or(block.offsets.start, |last| last.offset),
            }
        });
        Ok(places.collect())
    }
}
