//! Asks questions about paths in files with invented runs, which are walks through the graphs of
//! programs.
//!
//! `verify_path` finds no fault in the path of a run, and each of its rules can fire.

mod arrivals;
mod contexts;
mod damage;
mod gaps;
mod messages;
mod mutations;
mod walk;

use afterimage_program::{BlockEnd, EdgeKind, Program};
use afterimage_replay::whole_path::verify_path;
use afterimage_testkit::modules::{HANDWRITTEN, ModuleConfig, module_from_seed};

use walk::{Options, Parts, walk};

/// Exceptions that are caught, passed on, and leave functions, through calls of all kinds.
pub const EXCEPTIONS: &str = r#"(module
  (type $none (func))
  (table 2 funcref)
  (elem (i32.const 0) $thrower $catcher)
  (tag $a)
  (tag $b)
  (func $thrower
    (if (i32.const 0) (then (throw $a)))
    (if (i32.const 1) (then (throw $b))))
  (func $passer
    (call $thrower)
    (call_indirect (type $none) (i32.const 0)))
  (func $tail (return_call $passer))
  (func $leaver (try_table (catch_all 0) (call $thrower)))
  (func $catcher
    (block $outer
      (try_table (catch $a $outer)
        (call $tail)
        (block $inner (try_table (catch $b $inner) (call $passer) (throw $b)))))
    (loop $again (call $leaver) (br_if $again (i32.const 1)))
    (return_call_indirect (type $none) (i32.const 0)))
  (func (export "main")
    (block $handler (try_table (catch_all $handler) (call $catcher) (call $tail)))
    (call $catcher)))"#;

/// The kinds of events that occurred in some walk.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    segments: bool,
    throws: bool,
    returns: bool,
    tail_calls: bool,
    passed: bool,
    caught: bool,
    open: bool,
}

impl Seen {
    fn note(&mut self, program: &Program, parts: &Parts) {
        self.segments |= parts.segments.len() > 1;
        self.open |= parts.frames.len() > 1;
        for (function, counts) in program.functions.iter().zip(&parts.counts.functions) {
            for (edge, &count) in function.cfg.edges.values().zip(&counts.edges) {
                let taken = count > 0;
                let end = function.cfg.blocks[edge.from].end;
                self.tail_calls |= taken && matches!(end, BlockEnd::TailCall(_));
                match edge.kind {
                    EdgeKind::CallReturn => self.returns |= taken,
                    EdgeKind::CallThrow => self.throws |= taken,
                    EdgeKind::Catch(_) => self.caught |= taken,
                    EdgeKind::Unwind => self.passed |= taken,
                    _ => {}
                }
            }
        }
    }

    fn all() -> Self {
        Self {
            segments: true,
            throws: true,
            returns: true,
            tail_calls: true,
            passed: true,
            caught: true,
            open: true,
        }
    }
}

/// Checks that a run with any path through a program has no findings, and that all data was
/// compared.
fn assert_sound(module: &[u8], seed: u64, seen: &mut Seen) {
    let program = Program::parse(module).unwrap();
    for (blocks, depth, segment) in [(300, 20, 1 << 20), (3000, 100, 16), (20, 3, 2)] {
        let options = Options {
            blocks,
            depth,
            segment,
            regular: false,
        };
        let parts = walk(&program, seed, options);
        let Some(report) = verify_path(&parts.file(), &program, module) else {
            panic!("no path");
        };
        assert_eq!(report.findings, [], "seed {seed}, {blocks} blocks");
        assert!(report.counts && report.end);
        assert_eq!(report.segments, parts.segments.len() as u64);
        assert_eq!(report.blocks, *parts.places.last().unwrap());
        seen.note(&program, &parts);
    }
}

#[test]
fn walks_through_generated_programs_are_sound() {
    let mut seen = Seen::default();
    for seed in 0..60 {
        let config = ModuleConfig {
            imports: seed % 2 == 0,
            ..ModuleConfig::default()
        };
        assert_sound(&module_from_seed(seed, &config), seed, &mut seen);
    }
    assert!(seen.tail_calls && seen.segments && seen.open, "{seen:?}");
}

#[test]
fn walks_through_handwritten_programs_are_sound() {
    for (name, text) in HANDWRITTEN {
        println!("{name}");
        let module = wat::parse_str(text).unwrap();
        for seed in 0..20 {
            assert_sound(&module, seed, &mut Seen::default());
        }
    }
}

#[test]
fn walks_with_exceptions_are_sound() {
    let module = wat::parse_str(EXCEPTIONS).unwrap();
    let mut seen = Seen::default();
    for seed in 0..100 {
        assert_sound(&module, seed, &mut seen);
    }
    assert_eq!(seen, Seen::all(), "the walks do not cover everything");
}
