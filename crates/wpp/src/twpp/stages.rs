//! Measures the size of a run after each transformation, as in the columns of the paper's Tables 1
//! to 3 (Zhang and Gupta 2001, section 3).

use super::compact::{FunctionTraces, Twpp};
use super::plain_calls::{self, WORDS_PER_CALL};

/// The size in bytes of a word, in which the paper stores a block id, a timestamp or a length.
const WORD: u64 = 4;

/// Counts, and sizes in bytes at every stage. Sizes are based on four-byte words, as in the paper.
/// For the size of a file with its variable-length numbers, see [`super::FileSizes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// The number of calls.
    pub calls: u64,
    /// The number of executed blocks.
    pub blocks: u64,
    /// The number of functions that were called.
    pub functions: u64,
    /// The number of unique path traces of all functions.
    pub paths: u64,
    /// The number of unique traces of dynamic basic blocks of all functions.
    pub traces: u64,
    /// The number of unique dictionaries of all functions.
    pub dictionaries: u64,
    /// The number of chains in these dictionaries.
    pub chains: u64,
    /// The number of blocks in these chains.
    pub chain_blocks: u64,

    /// The size of the dynamic call graph (Table 1), with four words per call for the function,
    /// path trace, number of calls and position.
    pub call_graph: u64,
    /// The size of the input of the call graph's compression, with variable-length numbers.
    pub call_graph_plain: u64,
    /// The size of the compressed dynamic call graph (Table 3).
    pub call_graph_compressed: u64,
    /// The size of the dynamic call graph in memory, where equal subtrees are shared. The paper has
    /// no such form.
    pub call_graph_shared: u64,
    /// The size of the original path traces (Table 1), with a word for each executed block.
    pub original: u64,
    /// The size of the traces after redundant path trace elimination (Table 2), with a word for
    /// each block of each unique path trace and a word for the trace's length.
    pub unique: u64,
    /// The size of the traces after dictionary creation (Table 2), with a word for each dynamic
    /// basic block of each unique trace and a word for the trace's length.
    pub compacted: u64,
    /// The size of the compacted timestamped traces (Tables 2 and 3); see
    /// [`super::TimestampedTrace::words`].
    pub timestamped: u64,
    /// The size of the dictionaries (Table 3); see [`super::Dictionary::words`].
    pub dictionary: u64,
}

impl Stages {
    /// Returns the ratio of the original path traces to the compacted timestamped traces (Table 2,
    /// OWPP / CTWPP).
    pub fn trace_factor(&self) -> f64 {
        self.original as f64 / self.timestamped as f64
    }

    /// Returns the original size of the call graph and the traces (Table 1).
    pub fn original_total(&self) -> u64 {
        self.call_graph + self.original
    }

    /// Returns the compacted size of the call graph, the timestamped traces and the dictionaries
    /// (Table 3).
    pub fn compacted_total(&self) -> u64 {
        self.call_graph_compressed + self.timestamped + self.dictionary
    }

    /// Returns the overall compaction ratio (Table 3).
    pub fn factor(&self) -> f64 {
        self.original_total() as f64 / self.compacted_total() as f64
    }

    fn add(&mut self, function: &FunctionTraces) {
        self.functions += 1;
        self.paths += function.paths.len() as u64;
        self.traces += function.traces.len() as u64;
        self.dictionaries += function.dictionaries.len() as u64;
        for (k, path) in function.paths.iter().enumerate() {
            let blocks = function.blocks(k);
            self.calls += path.calls;
            self.blocks += path.calls * blocks;
            self.original += path.calls * blocks * WORD;
            self.unique += (1 + blocks) * WORD;
        }
        for trace in &function.traces {
            self.compacted += (1 + trace.len()) * WORD;
            self.timestamped += trace.words() * WORD;
        }
        for dictionary in &function.dictionaries {
            self.dictionary += dictionary.words() * WORD;
            self.chains += dictionary.chains().len() as u64;
            self.chain_blocks += dictionary.chains().map(|c| c.len() as u64).sum::<u64>();
        }
    }
}

impl Twpp {
    /// Returns the sizes and counts at every stage, without expanding anything. Time: O(calls +
    /// bytes).
    pub fn stages(&self) -> Stages {
        let mut stages = Stages::default();
        self.functions.iter().for_each(|f| stages.add(f));
        stages.call_graph = stages.calls * WORDS_PER_CALL * WORD;
        let (compressed, plain) = plain_calls::compress(&self.calls);
        stages.call_graph_plain = plain;
        stages.call_graph_compressed = compressed.len() as u64;
        stages.call_graph_shared = self.calls.heap_bytes() as u64;
        stages
    }
}
