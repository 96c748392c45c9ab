//! What executions of statements depend on, or what depends on them, as text and as JSON.

mod text;

use std::io::Write;

use afterimage_profile::SourceLine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::document::objects::{Function, MemoryRange, Position, TypedValue, digits, position};
use crate::document::{Document, NoRows, begin};
use crate::{PresentError, Render, Style};

/// What executions of statements depend on, or what depends on them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DepsReport {
    /// The place, as it was asked for.
    pub at: String,
    /// Which way dependences are followed.
    pub direction: DepsDirection,
    /// Which dependences.
    pub along: DepsAlong,
    /// The executions.
    pub statements: Vec<DepsStatement>,
}

impl Document for DepsReport {
    const NAME: &'static str = "deps";
    const COMMAND: &'static str = "deps";
    type Row = NoRows;
}

/// Which way dependences are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DepsDirection {
    /// To what an execution depends on.
    Backward,
    /// To what depends on it.
    Forward,
}

/// Which dependences are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DepsAlong {
    /// On data.
    Data,
    /// On control.
    Control,
    /// On both.
    Both,
}

impl DepsAlong {
    /// Whether these are dependences on data, too.
    pub fn data(self) -> bool {
        self != Self::Control
    }

    /// Whether these are dependences on control, too.
    pub fn control(self) -> bool {
        self != Self::Data
    }
}

/// An operator of an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DepsExecution {
    /// Its function.
    pub function: Function,
    /// Its text.
    pub operator: String,
    /// Where it is in the original module.
    pub offset: u32,
    /// Its line, if that is known.
    #[serde(serialize_with = "position")]
    #[schemars(with = "Option<Position>")]
    pub source: Option<SourceLine>,
    /// The time of its block.
    pub t: u64,
}

/// An execution of a statement that was asked about.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DepsStatement {
    /// Which statement, and when.
    #[serde(flatten)]
    pub execution: DepsExecution,
    /// Which execution of the statement, from 1.
    pub number: u64,
    /// What it gave.
    pub values: Vec<TypedValue>,
    /// Why it trapped, if the run ended with that. Then it gave nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trapped: Option<String>,
    /// What it depends on, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependences: Option<Vec<Dependence>>,
    /// What depends on it, if that was asked for.
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

/// What an execution depends on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Dependence {
    /// What of the execution depends on it: an operand, by what it is for the statement; `memory`, `global`, `element` of a table or `size` of a table or a
    /// memory, which it reads; `control`, for what let it run; or `moved`, for what decided that values which it takes were moved to there.
    pub role: String,
    /// The operand's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<TypedValue>,
    /// How many bytes of what it reads, if these have several writers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// How many elements of a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elements: Option<u64>,
    /// Which bytes the host read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<MemoryRange>,
    /// The first of these, as hexadecimal digits.
    #[serde(serialize_with = "contents", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<String>")]
    pub contents: Vec<u8>,
    /// Where it comes from.
    #[serde(flatten)]
    pub from: DependsOn,
    /// What that depends on, if it was gone into.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependences: Vec<Dependence>,
}

impl Dependence {
    /// A dependence of which only this is known.
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

/// Where something comes from that an execution depends on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum DependsOn {
    /// A statement made it.
    Operator(DepsExecution),
    /// A branch let it run.
    Branch(DepsExecution),
    /// A call let it run.
    Call(DepsExecution),
    /// It was handled after a throw.
    Throw(DepsExecution),
    /// Something that has no operator let it run.
    Block {
        /// When.
        t: u64,
    },
    /// The host gave it.
    Host(HostGave),
    /// The host called the function.
    HostCall,
    /// An argument of the host's call of the function.
    Argument {
        /// Which, from 1.
        argument: u32,
    },
    /// A constant of the code.
    Constant,
    /// A local that nothing wrote.
    Zero,
    /// The module, which says what is there at first: nothing wrote it before.
    Module,
    /// There are more parts than are listed.
    More {
        /// How many.
        parts: u64,
    },
    /// It is not known, because values were not kept there.
    Unknown {
        /// Why, in words.
        why: String,
    },
}

impl DependsOn {
    /// The operator that it comes from, if there is one.
    pub fn execution_mut(&mut self) -> Option<&mut DepsExecution> {
        match self {
            Self::Operator(at) | Self::Branch(at) | Self::Call(at) | Self::Throw(at) => Some(at),
            Self::Host(host) => host.called.as_mut(),
            _ => None,
        }
    }
}

/// What the host gave in a call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HostGave {
    /// Which function of it: `module.name`.
    pub import: String,
    /// Which of the host's calls, from 1.
    pub call: u64,
    /// Which of its results, from 1; absent for what it wrote to memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<u32>,
    /// Where it was called. Nobody called it if the host did something by itself.
    #[serde(flatten)]
    pub called: Option<DepsExecution>,
}

/// What depends on an execution, in the order of time: first on data, then on control.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct DepsUsers {
    /// The first of them.
    pub uses: Vec<DepsUse>,
    /// How many more there are.
    pub more: u64,
    /// Of which parts of the run nothing is known, in words: values were not kept there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

impl DepsUsers {
    /// Whether there are none, as far as is known.
    pub fn is_empty(&self) -> bool {
        self.uses.is_empty() && self.more == 0 && self.unknown.is_empty()
    }
}

/// Something that depends on an execution.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DepsUse {
    /// What of it depends on the execution, as for a dependence.
    pub role: String,
    /// What depends on it.
    #[serde(flatten)]
    pub to: UsedBy,
    /// What depends on that, if it was gone into.
    #[serde(flatten)]
    pub further: Option<Box<DepsUsers>>,
}

/// What depends on an execution.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "to", rename_all = "snake_case")]
pub enum UsedBy {
    /// A statement used what it made.
    Operator(OperatorUse),
    /// A block was let run.
    Block(BlockRun),
}

/// A statement that used something.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OperatorUse {
    /// Which statement, and when.
    #[serde(flatten)]
    pub execution: DepsExecution,
    /// What it made of it.
    pub values: Vec<TypedValue>,
    /// How many bytes of memory it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// How many elements of a table it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elements: Option<u64>,
    /// Where the host read them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<MemoryRange>,
    /// Why it trapped, if the run ended with that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trapped: Option<String>,
}

/// A block that was let run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BlockRun {
    /// When.
    pub t: u64,
    /// Its function.
    pub function: Function,
    /// Its first operator's offset in the original module, if it has operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u32>,
    /// Its last operator's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_offset: Option<u32>,
    /// The first operator's line, if that is known.
    #[serde(serialize_with = "position")]
    #[schemars(with = "Option<Position>")]
    pub source: Option<SourceLine>,
    /// How many statements it has.
    pub statements: usize,
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
