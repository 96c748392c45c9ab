//! Converts unique path traces to the compacted, timestamped form.

use std::hash::Hash;

use afterimage_ids::{BlockId, FuncId};
use rustc_hash::FxHashMap;

use super::call_graph::CallGraph;
use super::dictionary::Dictionary;
use super::dynamic_blocks::DynamicBlocks;
use super::path_trace::PathTrace;
use super::timestamped::{BadTrace, PackedEntries, TimestampedTrace};
use super::wpp::{FunctionPaths, UniquePath, Wpp};

/// The maximum number of calls and executed blocks of a run. Reaching it would take a thousand
/// years at 36 million blocks a second. Below it, sizes in words fit in 64 bits.
pub(super) const MOST_BLOCKS: u64 = 1 << 60;
/// The message for a run with more blocks than [`MOST_BLOCKS`].
const TOO_MANY: &str = "it has more blocks than a run can execute";

/// A timestamped whole program path (Zhang and Gupta 2001, Figure 7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Twpp {
    /// The functions that were called, ascending.
    pub functions: Vec<FunctionTraces>,
    /// The dynamic call graph, with the path trace of each call and the calls that it makes.
    pub calls: CallGraph,
}

/// All path traces of a function, compacted. `B` contains the bytes of a timestamped trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionTraces<B = Box<[u8]>> {
    /// The function whose calls took the path traces.
    pub function: FuncId,
    /// The distinct timestamped sequences of dynamic basic blocks.
    pub traces: Vec<TimestampedTrace<B>>,
    /// The distinct dictionaries, which expand dynamic basic blocks.
    pub dictionaries: Vec<Dictionary>,
    /// The unique path traces, numbered as in [`super::Call::path`].
    pub paths: Vec<CompactPath>,
}

/// A unique path trace, which is the paper's tuple (t, d) of a trace and a dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CompactPath {
    /// The index of its trace in [`FunctionTraces::traces`].
    pub trace: u32,
    /// The index of its dictionary in [`FunctionTraces::dictionaries`].
    pub dictionary: u32,
    /// The number of calls that took this path trace.
    pub calls: u64,
    /// The number of these calls that never returned.
    pub unfinished: u64,
}

impl Twpp {
    /// Compacts the path traces of a run. Time: O(blocks of unique traces).
    pub fn compact(wpp: Wpp) -> Self {
        let mut dynamic_blocks = DynamicBlocks::default();
        let functions = wpp.functions.into_iter();
        Self {
            functions: functions
                .map(|paths| FunctionTraces::compact(paths, &mut dynamic_blocks))
                .collect(),
            calls: wpp.calls,
        }
    }

    /// Recovers the unique path traces. Time: linear in the total number of their blocks.
    /// [`FunctionTraces::blocks`] returns that number for each trace.
    ///
    /// # Errors
    /// Returns an error if a trace from a damaged file is invalid.
    pub fn expand(&self) -> Result<Wpp, BadTrace> {
        let functions = self.functions.iter().map(|f| {
            let paths = (0..f.paths.len()).map(|k| {
                let CompactPath {
                    calls, unfinished, ..
                } = f.paths[k];
                let trace = f.expand(k)?;
                Ok(UniquePath {
                    trace,
                    calls,
                    unfinished,
                })
            });
            Ok(FunctionPaths {
                function: f.function,
                paths: paths.collect::<Result<_, _>>()?,
            })
        });
        Ok(Wpp {
            functions: functions.collect::<Result<_, _>>()?,
            calls: self.calls.clone(),
        })
    }

    /// Returns the path traces of a function, if it was called. Time: O(log functions).
    pub fn function(&self, function: FuncId) -> Option<&FunctionTraces> {
        let k = self
            .functions
            .binary_search_by_key(&function, |f| f.function);
        k.ok().map(|k| &self.functions[k])
    }
}

impl FunctionTraces {
    /// Compacts the path traces of one function. Time: O(blocks of unique traces).
    pub fn of(paths: FunctionPaths) -> Self {
        Self::compact(paths, &mut DynamicBlocks::default())
    }

    fn compact(paths: FunctionPaths, dynamic_blocks: &mut DynamicBlocks) -> Self {
        let mut traces = Unique::default();
        let mut dictionaries = Unique::default();
        let paths_of = paths.paths.into_iter().map(|path| {
            let (trace, dictionary) = dynamic_blocks.compact(path.trace.blocks());
            CompactPath {
                trace: traces.add(trace),
                dictionary: dictionaries.add(dictionary),
                calls: path.calls,
                unfinished: path.unfinished,
            }
        });
        Self {
            function: paths.function,
            paths: paths_of.collect(),
            traces: traces.finish(),
            dictionaries: dictionaries.finish(),
        }
    }
}

impl<B: AsRef<[u8]>> FunctionTraces<B> {
    /// Returns the sequence of dynamic basic blocks of a unique path trace, and the dictionary that
    /// expands them.
    ///
    /// # Panics
    /// Panics if there is no such path.
    pub fn parts(&self, path: usize) -> (&TimestampedTrace<B>, &Dictionary) {
        let path = &self.paths[path];
        (
            &self.traces[path.trace as usize],
            &self.dictionaries[path.dictionary as usize],
        )
    }

    /// Returns the blocks of a unique path trace.
    ///
    /// # Errors
    /// Returns an error if the trace comes from a damaged file and is invalid.
    ///
    /// # Panics
    /// Panics if there is no such path.
    pub fn expand(&self, path: usize) -> Result<PathTrace, BadTrace> {
        let (trace, dictionary) = self.parts(path);
        let mut steps = 0;
        let blocks = trace.steps().inspect(|_| steps += 1);
        let expanded = expand(blocks, dictionary);
        if steps != trace.len() {
            return Err(BadTrace("two blocks share a timestamp"));
        }
        Ok(expanded)
    }

    /// Returns the number of blocks of a unique path trace, without expanding it.
    ///
    /// # Panics
    /// Panics if there is no such path.
    pub fn blocks(&self, path: usize) -> u64 {
        let (trace, dictionary) = self.parts(path);
        let of = |(block, entries): (BlockId, PackedEntries<'_>)| {
            let count: u64 = entries.map(|e| e.count()).sum();
            count * dictionary.expand(&block).len() as u64
        };
        trace.packed().map(of).sum()
    }

    /// Returns the number of blocks that all calls executed, plus one for each call. Fails if no
    /// run can execute this many blocks, which happens only in a damaged file. On success, no path
    /// trace has more blocks than the result, and no sum over path traces overflows.
    pub(super) fn executed(&self) -> Result<u64, &'static str> {
        let mut sum = 0u64;
        for (k, path) in self.paths.iter().enumerate() {
            // If this sum does not overflow, no other product or sum does.
            self.most_blocks(k)
                .filter(|&n| n <= MOST_BLOCKS)
                .ok_or(TOO_MANY)?;
            let executed = (self.blocks(k) + 1).checked_mul(path.calls);
            let next = executed.and_then(|n| sum.checked_add(n));
            sum = next.filter(|&n| n <= MOST_BLOCKS).ok_or(TOO_MANY)?;
        }
        Ok(sum)
    }

    /// Fails if [`Self::executed`] fails. Examines the series only if the lengths of the traces
    /// cannot rule out that failure.
    pub(super) fn check_executed(&self) -> Result<(), &'static str> {
        let most = self
            .paths
            .iter()
            .enumerate()
            .try_fold(0u64, |sum, (k, path)| {
                let most = self.most_blocks(k)?.checked_add(1)?;
                sum.checked_add(most.checked_mul(path.calls)?)
            });
        match most {
            Some(most) if most <= MOST_BLOCKS => Ok(()),
            _ => self.executed().map(drop),
        }
    }

    /// Returns an upper bound on the number of blocks of a path trace, computed from its steps and
    /// the longest chain.
    fn most_blocks(&self, path: usize) -> Option<u64> {
        let (trace, dictionary) = self.parts(path);
        let longest = dictionary.chains().map(<[_]>::len).max().unwrap_or(1);
        trace.len().checked_mul(longest as u64)
    }

    /// Returns the same traces, which now own their bytes.
    pub fn into_owned(self) -> FunctionTraces
    where
        B: Into<Box<[u8]>>,
    {
        let traces = self.traces.into_iter();
        FunctionTraces {
            function: self.function,
            traces: traces.map(TimestampedTrace::into_owned).collect(),
            dictionaries: self.dictionaries,
            paths: self.paths,
        }
    }

    /// Returns the number of calls.
    pub fn calls(&self) -> u64 {
        self.paths.iter().map(|path| path.calls).sum()
    }
}

fn expand(steps: impl Iterator<Item = BlockId>, dictionary: &Dictionary) -> PathTrace {
    let mut builder = super::path_builder::PathBuilder::default();
    for step in steps {
        builder.extend(dictionary.expand(&step));
    }
    builder.complete().into_trace()
}

/// Distinct items, in the order of first occurrence.
struct Unique<T> {
    numbers: FxHashMap<T, u32>,
}

impl<T> Default for Unique<T> {
    fn default() -> Self {
        Self {
            numbers: FxHashMap::default(),
        }
    }
}

impl<T: Eq + Hash> Unique<T> {
    fn add(&mut self, thing: T) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(thing).or_insert(next)
    }

    fn finish(self) -> Vec<T> {
        let mut things: Vec<_> = self.numbers.into_iter().collect();
        things.sort_unstable_by_key(|&(_, number)| number);
        things.into_iter().map(|(thing, _)| thing).collect()
    }
}
