//! Reports what executions of statements depend on, or what depends on them.

mod text;

use std::io::Write;

use afterimage_profile::SourceLine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::document::objects::{Function, MemoryRange, Position, TypedValue, digits, position};
use crate::document::{Document, NoRows, begin};
use crate::own::OwnPlace;
use crate::{PresentError, Render, Style};

/// The dependences or the dependents of executions of statements.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DepsReport {
    /// The place as named by the user.
    pub at: String,
    /// The direction in which dependences are followed.
    pub direction: DepsDirection,
    /// The dependences that are followed.
    pub along: DepsAlong,
    /// The executions.
    pub statements: Vec<DepsStatement>,
}

impl Document for DepsReport {
    const NAME: &'static str = "deps";
    const COMMAND: &'static str = "deps";
    type Row = NoRows;
}

/// The direction in which dependences are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DepsDirection {
    /// Toward the dependences of an execution.
    Backward,
    /// Toward its dependents.
    Forward,
}

/// The dependences that are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DepsAlong {
    /// Data dependences.
    Data,
    /// Control dependences.
    Control,
    /// Both data and control dependences.
    Both,
}

impl DepsAlong {
    /// Whether data dependences are included.
    pub fn data(self) -> bool {
        self != Self::Control
    }

    /// Whether control dependences are included.
    pub fn control(self) -> bool {
        self != Self::Data
    }
}

/// An execution of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DepsExecution {
    /// Its function.
    pub function: Function,
    /// Its text.
    pub operator: String,
    /// Its offset in the original module.
    pub offset: u32,
    /// Its line, if known.
    #[serde(serialize_with = "position")]
    #[schemars(with = "Option<Position>")]
    pub source: Option<SourceLine>,
    /// The time of its block.
    pub t: u64,
    /// For library code, the line that the text form shows instead.
    #[serde(skip)]
    pub own: Option<OwnPlace>,
}

/// An execution of a statement that the query names.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DepsStatement {
    /// The statement and its time.
    #[serde(flatten)]
    pub execution: DepsExecution,
    /// The number of the execution of the statement, from 1.
    pub number: u64,
    /// The values that the execution gave.
    pub values: Vec<TypedValue>,
    /// Why the execution trapped, if it ended the run. A trapped execution gave no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trapped: Option<String>,
    /// Its dependences, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependences: Option<Vec<Dependence>>,
    /// Its dependents, if requested.
    #[serde(flatten)]
    pub users: Option<DepsUsers>,
}

impl DepsStatement {
    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.dependences.as_ref().is_none_or(Vec::is_empty)
            && self.users.as_ref().is_none_or(DepsUsers::is_empty)
    }
}

/// A dependence of an execution.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Dependence {
    /// The part of the statement that depends on the origin. An operand has the name of its role. A
    /// read is `memory`, `global`, `element` (of a table) or `size` (of a table or memory).
    /// `control` is the decision that allowed the execution. `moved` is a decision because of which
    /// a value was moved to an operand.
    pub role: String,
    /// The operand's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<TypedValue>,
    /// The number of bytes read, if several statements wrote them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The number of table elements read, if elements of a table were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elements: Option<u64>,
    /// The bytes that the host read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<MemoryRange>,
    /// The first of the bytes read, in hexadecimal.
    #[serde(serialize_with = "contents", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<String>")]
    pub contents: Vec<u8>,
    /// Its origin.
    #[serde(flatten)]
    pub from: DependsOn,
    /// The dependences of the origin, if it was followed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependences: Vec<Dependence>,
}

impl Dependence {
    /// Creates a dependence without further details.
    pub fn new(role: &str, from: DependsOn) -> Self {
        Self {
            role: role.to_owned(),
            value: None,
            bytes: None,
            elements: None,
            read: None,
            contents: Vec::new(),
            from,
            dependences: Vec::new(),
        }
    }
}

fn contents<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&digits(bytes))
}

/// The origin of a dependence of an execution.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum DependsOn {
    /// A statement produced the value.
    Operator(DepsExecution),
    /// A branch led to the execution.
    Branch(DepsExecution),
    /// A call led to the execution.
    Call(DepsExecution),
    /// A throw led to the execution, through a handler.
    Throw(DepsExecution),
    /// A block without operators led to the execution.
    Block {
        /// Its time.
        t: u64,
    },
    /// The host supplied the data.
    Host(HostGave),
    /// The host called the function.
    HostCall,
    /// An argument that the host passed to the function.
    Argument {
        /// The number of the argument, from 1.
        argument: u32,
    },
    /// A constant of the code.
    Constant,
    /// A local that had not been written yet.
    Zero,
    /// The module defined the initial contents, which nothing had overwritten.
    Module,
    /// Further parts of the data, which are not listed.
    More {
        /// The number of further parts.
        parts: u64,
    },
    /// The origin is unknown, because no values are stored for its part of the run.
    Unknown {
        /// The reason, in words.
        why: String,
    },
}

impl DependsOn {
    /// Returns the execution of an operator at the origin, if there is one.
    pub fn execution_mut(&mut self) -> Option<&mut DepsExecution> {
        match self {
            Self::Operator(at) | Self::Branch(at) | Self::Call(at) | Self::Throw(at) => Some(at),
            Self::Host(host) => host.called.as_mut(),
            _ => None,
        }
    }
}

/// Data that the host supplied in a call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HostGave {
    /// The host function: `module.name`.
    pub import: String,
    /// The number of the host call, from 1.
    pub call: u64,
    /// The number of the result of the host call, from 1; absent for a write to memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<u32>,
    /// The place of the call; absent if the host acted on its own.
    #[serde(flatten)]
    pub called: Option<DepsExecution>,
}

/// The dependents of an execution, in order of time: first data dependences, then control
/// dependences.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct DepsUsers {
    /// The first dependents.
    pub uses: Vec<DepsUse>,
    /// The number of further dependents.
    pub more: u64,
    /// Descriptions of the parts of the run without stored values. Dependents in these parts are
    /// unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

impl DepsUsers {
    /// Whether there are certainly no dependents.
    pub fn is_empty(&self) -> bool {
        self.uses.is_empty() && self.more == 0 && self.unknown.is_empty()
    }
}

/// A dependent of an execution, and the part of the dependent that depends on the execution.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DepsUse {
    /// The part of the dependent that depends on the execution, named like the `role` of a
    /// dependence.
    pub role: String,
    /// The dependent.
    #[serde(flatten)]
    pub to: UsedBy,
    /// Its own dependents, if it was followed.
    #[serde(flatten)]
    pub further: Option<Box<DepsUsers>>,
}

/// A dependent of an execution.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "to", rename_all = "snake_case")]
pub enum UsedBy {
    /// A statement used the result of the execution.
    Operator(OperatorUse),
    /// A block ran because of the execution.
    Block(BlockRun),
}

/// A statement that used the result of an execution.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OperatorUse {
    /// The statement and its time.
    #[serde(flatten)]
    pub execution: DepsExecution,
    /// The values that the statement computed from the result.
    pub values: Vec<TypedValue>,
    /// The number of bytes of memory it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The number of table elements it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elements: Option<u64>,
    /// The bytes that the host read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<MemoryRange>,
    /// Why the statement trapped, if that ended the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trapped: Option<String>,
}

/// A block that ran because of a decision or call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BlockRun {
    /// Its time.
    pub t: u64,
    /// Its function.
    pub function: Function,
    /// The offset of its first operator in the original module, if it has operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u32>,
    /// The offset of its last operator in the original module, if it has operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_offset: Option<u32>,
    /// The first operator's line, if known.
    #[serde(serialize_with = "position")]
    #[schemars(with = "Option<Position>")]
    pub source: Option<SourceLine>,
    /// The number of its statements.
    pub statements: usize,
    /// For library code, the line that the text form shows instead.
    #[serde(skip)]
    pub own: Option<OwnPlace>,
}

impl Render for DepsReport {
    const NAME: &'static str = "dependences";

    fn text(&self, out: &mut dyn Write, _: Style) -> Result<(), PresentError> {
        text::report(out, self)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, self)
    }
}
