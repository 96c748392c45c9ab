//! Records a module and checks every claim about the recording.

use std::path::Path;
use std::sync::Arc;

use afterimage_ids::{BlockId, Counts, EntityRef, FuncId, NodeId};
use afterimage_paths::{ExecutedPath, Sink};
use afterimage_placement::{Mode, PlanOptions, block_counts, plan};
use afterimage_program::{BlockKind, OperatorIndex, Program};
use afterimage_record::{
    Cache, Command, Filter, Interrupt, Launch, PathFilter, Progress, RecordError, RecordOptions,
    Recorded, RecordedRun, check, check_blocks, count, record, trace_paths,
};
use afterimage_rewrite::{Large, Options, rewrite};
use afterimage_testkit::naive_trace::{Observation, Observed, Observer, Stop, instrument};
use afterimage_trace::{Ending, Event, Existing, Standing, TraceFile, TraceWriter};

use crate::play::play;
use crate::stored::Stored;

/// A sink that collects every block.
#[derive(Default)]
struct Expanded {
    nodes: Vec<Vec<BlockId>>,
    trace: Vec<Observed>,
}

impl Sink for Expanded {
    fn define(&mut self, path: ExecutedPath<'_>) -> NodeId {
        self.nodes.push(path.blocks.to_vec());
        NodeId::new(self.nodes.len() - 1)
    }

    fn path(&mut self, node: NodeId) {
        let blocks = self.nodes[node.index()].iter();
        self.trace
            .extend(blocks.map(|&block| Observed::Block(block)));
    }

    fn enter(&mut self, function: FuncId) {
        self.trace.push(Observed::Enter(function));
    }

    fn leave(&mut self) {
        self.trace.push(Observed::Leave);
    }
}

/// A finished recording.
pub struct Recording {
    pub bytes: Vec<u8>,
    pub program: Arc<Program>,
    pub file: TraceFile,
    /// The file's bytes.
    pub whole: Vec<u8>,
    pub recorded: Recorded,
}

/// Returns the usual options of these tests.
pub fn quiet() -> RecordOptions {
    RecordOptions {
        silent: true,
        ..RecordOptions::default()
    }
}

/// Returns a command that calls an export.
pub fn invoke(export: &str, args: &[&str]) -> Command {
    Command {
        name: "guest".to_owned(),
        invoke: Some(export.to_owned()),
        args: args.iter().map(ToString::to_string).collect(),
        ..Command::default()
    }
}

/// Returns a command that runs `_start`.
pub fn start() -> Command {
    Command {
        name: "guest".to_owned(),
        ..Command::default()
    }
}

/// Assembles a module.
pub fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"))
}

pub fn progress() -> Progress {
    Arc::new(|_| ())
}

/// Records a run.
pub fn try_record(
    bytes: &[u8],
    command: &Command,
    options: &RecordOptions,
    interrupt: &Interrupt,
) -> Result<Recording, RecordError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.aft");
    let program = Arc::new(Program::parse(bytes)?);
    let writer = TraceWriter::create(&path, Existing::Kept)?;
    let launch = Launch {
        bytes,
        program: &program,
        command,
        options,
        cache: &Cache::none(),
        interrupt,
    };
    let recorded = record(launch, &writer)?;
    drop(writer);
    let file = open(&path);
    let whole = std::fs::read(&path).expect("a recording");
    Ok(Recording {
        bytes: bytes.to_vec(),
        program,
        file,
        whole,
        recorded,
    })
}

/// Reads the whole file, so that its folder can be removed.
pub fn open(path: &Path) -> TraceFile {
    TraceFile::from_bytes(std::fs::read(path).expect("a recording")).expect("a sound recording")
}

/// Records a run and checks it.
pub fn exact(bytes: &[u8], command: &Command, options: &RecordOptions) -> Recording {
    let recording = try_record(bytes, command, options, &Interrupt::new())
        .unwrap_or_else(|error| panic!("{error}"));
    recording.check();
    recording
}

impl Recording {
    pub fn ending(&self) -> &Ending {
        &self.recorded.end.ending
    }

    /// Returns the counts under a plan.
    pub fn count(&self, plan: PlanOptions<'_>) -> Result<Counts, RecordError> {
        let lens = count(&self.run(&Cache::none(), &progress()), &plan)?;
        Ok(lens.counts)
    }

    /// Checks the recording against every law.
    pub fn check(&self) {
        let report = self.file.verify();
        assert!(report.is_sound(), "{:?}", report.findings);
        assert_eq!(
            self.file.end().expect("an end").as_ref(),
            Some(&self.recorded.end)
        );

        let every_edge = self.counted(Mode::Edges, None);
        let observation = self.naive_trace(&every_edge);
        let truth = observation.counts;
        self.same(&every_edge, &truth, "a counter on every edge");
        for mode in [Mode::Quick, Mode::Program, Mode::Feedback] {
            let counts = self.counted(mode, Some(&truth));
            self.same(&counts, &truth, &mode.to_string());
        }
        if let Some(live) = &self.recorded.counts {
            self.same(&live.counts, &truth, "counted in the live run");
        }
        self.same_path(&observation.trace);
        self.same_stored_path(&observation.trace);
        let (cache, progress) = (Cache::none(), progress());
        let run = self.run(&cache, &progress);
        let compared = check_blocks(&run, &truth);
        let blocks = self
            .program
            .functions
            .iter()
            .flat_map(|f| f.cfg.blocks.values());
        let code = blocks.filter(|b| b.kind == BlockKind::Code).count() as u64;
        assert_eq!(
            compared.unwrap_or_else(|error| panic!("slow: {error}")),
            code
        );
        check(&run).unwrap_or_else(|error| panic!("re-execution: {error}"));
        if !self.asynchronous() {
            self.check_transparency();
        }
    }

    fn counted(&self, mode: Mode, feedback: Option<&Counts>) -> Counts {
        let plan = PlanOptions {
            feedback,
            ..PlanOptions::new(mode)
        };
        self.count(plan)
            .unwrap_or_else(|error| panic!("{mode}: {error}"))
    }

    /// Whether neither the guest nor the log states where the run ended.
    fn asynchronous(&self) -> bool {
        let last = self
            .file
            .log()
            .expect("a log")
            .last()
            .map(|event| event.expect("an event"));
        matches!(
            self.ending(),
            Ending::StackOverflow | Ending::Interrupted { .. }
        ) && !matches!(last, Some(Event::HostStop { .. }))
    }

    /// Returns the counts reported by the traced module. If something outside the guest ended the
    /// run, the traced run is stopped after the number of blocks that the counts under test give.
    /// If those counts are wrong, the two runs do not end in the same place with the same counts.
    fn naive_trace(&self, under_test: &Counts) -> Observation {
        let blocks = block_counts(&self.program, under_test).expect("counts");
        let functions = self.program.functions.iter().zip(&blocks);
        let code = functions.flat_map(|(f, counts)| f.cfg.blocks.values().zip(counts));
        let blocks = code
            .filter(|(b, _)| b.kind == BlockKind::Code)
            .map(|(_, count)| count)
            .sum();
        let stop = match self.ending() {
            _ if !self.asynchronous() => Stop::Never,
            // The last block calls a function that is no longer entered.
            Ending::StackOverflow => Stop::After(blocks),
            _ => Stop::In(blocks),
        };
        // The engine's store requires 'static data; leaking a test's program is fine.
        let program: &'static Program =
            Box::leak(Box::new(Program::parse(&self.bytes).expect("a program")));
        let traced = Box::leak(Box::new(instrument(&self.bytes, program)));
        let observer = Observer::new(program, traced, stop);
        let (played, observer) = play(&traced.module, &self.program, &self.file, Some(observer));
        assert_eq!(
            played.results,
            self.results(),
            "the traced module returns the same"
        );
        let observation = observer
            .expect("an observer")
            .finish(played.finish)
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(observation.frames, self.frames(), "the stack at the end");
        observation
    }

    /// Returns the run to re-execute.
    pub fn run<'a>(&'a self, cache: &'a Cache, progress: &'a Progress) -> RecordedRun<'a> {
        RecordedRun {
            file: &self.file,
            bytes: &self.bytes,
            program: &self.program,
            cache,
            progress,
            cancel: None,
        }
    }

    /// Checks that the path written by the probes is the observed path.
    fn same_path(&self, truth: &[Observed]) {
        let (cache, progress) = (Cache::none(), progress());
        let run = self.run(&cache, &progress);
        let traced = trace_paths(&run, None, Expanded::default())
            .unwrap_or_else(|error| panic!("paths: {error}, {}", self.recorded.end.ending));
        let first = (0..truth.len().max(traced.sink.trace.len()))
            .find(|&i| traced.sink.trace.get(i) != truth.get(i));
        if let Some(i) = first {
            let from = i.saturating_sub(5);
            let around = |list: &[Observed]| {
                format!("{:?}", &list[from.min(list.len())..(i + 5).min(list.len())])
            };
            panic!(
                "the path differs at {i}: {} instead of {}, {}",
                around(&traced.sink.trace),
                around(truth),
                self.recorded.end.ending
            );
        }
        let blocks = truth.iter().filter(|o| matches!(o, Observed::Block(_)));
        assert_eq!(traced.time, blocks.count() as u64);
    }

    /// Checks that a filter keeps exactly the observed blocks that it should.
    fn same_filtered_path(&self, truth: &[(FuncId, BlockId)]) {
        let third = truth.len() as u64 / 3;
        let function = truth.get(truth.len() / 2).map(|at| at.0);
        let keep = Filter {
            exclude: Vec::from_iter(function),
            window: Some((third + 1, 2 * third + 1)),
            ..Filter::default()
        };
        let filter = PathFilter {
            keep: keep.clone(),
            left_out: "some of it".to_owned(),
        };
        let path = Stored::filtered(self, &filter).path;
        assert_eq!(path.length(), truth.len() as u64, "times stay");
        let mut cursor = path.cursor();
        let mut visit = cursor.seek(1).expect("a position");
        let mut kept = vec![false; truth.len()];
        while let Some(at) = visit {
            let node = &path.nodes()[at.node];
            for (i, &block) in (at.start as usize - 1..).zip(&node.blocks) {
                assert_eq!((node.function, block), truth[i], "t={}", i + 1);
                assert_ne!(Some(node.function), function);
                kept[i] = true;
            }
            visit = cursor.next().expect("a step");
        }
        for (i, at) in truth.iter().enumerate() {
            let time = i as u64 + 1;
            let inside = time > third && time <= 2 * third + 1 && Some(at.0) != function;
            assert!(kept[i] || !inside, "t={time} is left out");
        }
    }

    /// Checks that the path in the file is the observed path, in both directions. It is compacted
    /// from the words of the live run, if there are any.
    fn same_stored_path(&self, truth: &[Observed]) {
        let path = Stored::of(self).path;
        let mut functions = Vec::new();
        let mut blocks = Vec::new();
        let mut entries = std::collections::BTreeMap::new();
        for observed in truth {
            match *observed {
                Observed::Enter(function) => {
                    functions.push(function);
                    *entries.entry(function).or_insert(0u64) += 1;
                }
                Observed::Block(block) => blocks.push((functions[functions.len() - 1], block)),
                Observed::Leave => drop(functions.pop()),
            }
        }
        let mut cursor = path.cursor();
        let mut forward = Vec::new();
        let mut visit = cursor.seek(1).expect("a position");
        while let Some(at) = visit {
            assert_eq!(at.start, forward.len() as u64 + 1);
            let node = &path.nodes()[at.node];
            forward.extend(node.blocks.iter().map(|&block| (node.function, block)));
            visit = cursor.next().expect("a step");
        }
        assert!(forward == blocks, "stored path, {}", self.ending());
        let mut visit = cursor.seek(path.length()).expect("a position");
        let mut backward = Vec::new();
        while let Some(at) = visit {
            let node = &path.nodes()[at.node];
            backward.extend(
                node.blocks
                    .iter()
                    .rev()
                    .map(|&block| (node.function, block)),
            );
            visit = cursor.previous().expect("a step");
        }
        backward.reverse();
        assert!(backward == blocks, "stored path backwards");
        self.same_filtered_path(&blocks);
        crate::exact::words::check(self, &blocks);
        for function in &self.program.functions {
            let calls = path
                .activations(function.id)
                .map_or(0, |calls| calls.count());
            let truth = entries.get(&function.id).copied().unwrap_or(0);
            assert_eq!(calls, truth, "calls to {}", function.id);
        }
    }

    /// Returns the results of every call by the host, from the log.
    fn results(&self) -> Vec<Vec<afterimage_trace::RawValue>> {
        let events = self
            .file
            .log()
            .expect("a log")
            .map(|event| event.expect("an event"));
        let start = usize::from(self.program.start.is_some());
        let leaves = events.filter_map(|event| match event {
            Event::Leave { results } => Some(results),
            _ => None,
        });
        leaves.skip(start).collect()
    }

    /// Returns the recorded stack as blocks.
    fn frames(&self) -> Vec<(FuncId, BlockId)> {
        let index = OperatorIndex::new(&self.program, &self.bytes);
        let entered = self
            .recorded
            .end
            .frames
            .iter()
            .filter(|frame| frame.standing != Standing::NotEntered);
        entered
            .map(|frame| {
                let function = self
                    .program
                    .function(frame.function)
                    .expect("a defined function");
                let found = index
                    .find(frame.offset)
                    .and_then(|(_, op)| function.block_of(op));
                (frame.function, found.unwrap_or(function.cfg.graph.root()))
            })
            .collect()
    }

    /// Checks that no host can distinguish the plain module's behaviour from the instrumented
    /// module's.
    fn check_transparency(&self) {
        let (plain, _) = play(&self.bytes, &self.program, &self.file, None);
        assert_eq!(
            plain.results,
            self.results(),
            "the plain module returns the same"
        );
        // Treat all functions as large, so that they get every measure for large functions.
        let large = Large {
            hinged: self.program.functions.iter().map(|f| f.id).collect(),
            interval: 1,
            carried: 0,
        };
        for (mode, large) in [
            (Mode::Edges, large.clone()),
            (Mode::Edges, Large::default()),
            (Mode::Quick, Large::default()),
            (Mode::Program, large),
        ] {
            let the_plan = plan(&self.program, &PlanOptions::new(mode)).expect("a plan");
            let options = Options {
                clock: true,
                large,
                ..Options::default()
            };
            let rewritten =
                rewrite(&self.bytes, &self.program, Some(&the_plan), &options).expect("a module");
            let (instrumented, _) = play(&rewritten.module, &self.program, &self.file, None);
            assert_eq!(instrumented.results, plain.results, "{mode}");
            assert_eq!(instrumented.finish, plain.finish, "{mode}");
            assert_eq!(instrumented.error, plain.error, "{mode}");
            assert_eq!(instrumented.state, plain.state, "{mode}");
        }
    }

    fn same(&self, found: &Counts, truth: &Counts, what: &str) {
        for ((function, found), truth) in self
            .program
            .functions
            .iter()
            .zip(&found.functions)
            .zip(&truth.functions)
        {
            let id = function.id;
            assert_eq!(
                found.entries, truth.entries,
                "{what}: entries of {id}, {}",
                self.recorded.end.ending
            );
            assert_eq!(
                found.open, truth.open,
                "{what}: open activations of {id}, {}",
                self.recorded.end.ending
            );
            let edges = function
                .cfg
                .edges
                .iter()
                .zip(found.edges.iter().zip(&truth.edges));
            for ((edge, data), (found, truth)) in edges {
                assert_eq!(
                    found, truth,
                    "{what}: {edge} of {id}, {data:?}, {}",
                    self.recorded.end.ending
                );
            }
        }
        assert_eq!(found, truth, "{what}");
    }
}
