//! Provides test modules, most of them generated and a few handwritten.

use arbitrary::Unstructured;
use wasm_smith::{Config, Module};

mod handwritten;

pub use handwritten::{HANDWRITTEN, WANDERER};

/// The features that [`module_from_seed`] may generate.
///
/// Modules always have several functions, all of them exported. They may always use `br_table`,
/// multi-value blocks, bulk memory, 64-bit and multiple memories, tables and references. They never
/// use garbage collection, threads, or imports other than functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleConfig {
    /// The number of random bytes from which a module is generated, which roughly determines its
    /// size.
    pub entropy: usize,
    /// The largest number of functions. The smallest number is half of it.
    pub max_functions: usize,
    /// The maximum number of instructions in a function, not counting those for `fuel`.
    pub max_instructions: usize,
    /// Whether to use tags, `try_table`, `throw` and `throw_ref`.
    pub exceptions: bool,
    /// Whether to use `return_call` and `return_call_indirect`.
    pub tail_calls: bool,
    /// Whether to use SIMD and relaxed SIMD.
    pub simd: bool,
    /// Whether code may trap for reasons other than lack of fuel. If not, accesses are kept in
    /// bounds, so executions get further.
    pub traps: bool,
    /// Whether to import the functions in [`IMPORTS`].
    pub imports: bool,
    /// The number of loop iterations and calls after which the module traps. With `None`, it may
    /// run forever.
    pub fuel: Option<u32>,
}

impl Default for ModuleConfig {
    fn default() -> Self {
        Self {
            entropy: 4096,
            max_functions: 12,
            max_instructions: 200,
            exceptions: true,
            tail_calls: true,
            simd: true,
            traps: true,
            imports: false,
            fuel: Some(1000),
        }
    }
}

/// The functions that a generated module may import.
pub const IMPORTS: &str = r#"(module
  (import "env" "nothing" (func))
  (import "env" "take" (func (param i32)))
  (import "env" "give" (func (result i32)))
  (import "env" "twist" (func (param i64 i32) (result i32 i64))))"#;

/// Generates a valid module. The same seed and configuration give the same module.
///
/// # Panics
/// Panics if the generator fails for many seeds in a row, which would be a bug in it.
pub fn module_from_seed(seed: u64, config: &ModuleConfig) -> Vec<u8> {
    let mut random = SplitMix64(seed);
    for _ in 0..100 {
        let bytes: Vec<u8> = (0..config.entropy.div_ceil(8))
            .flat_map(|_| random.next().to_le_bytes())
            .collect();
        if let Ok(mut module) = Module::new(smith(config), &mut Unstructured::new(&bytes)) {
            if let Some(fuel) = config.fuel {
                module
                    .ensure_termination(fuel)
                    .expect("all functions were generated as valid");
            }
            return module.to_bytes();
        }
    }
    panic!("no module could be generated from seed {seed}")
}

fn smith(config: &ModuleConfig) -> Config {
    const KIB: u64 = 1024;
    Config {
        available_imports: config
            .imports
            .then(|| wat::parse_str(IMPORTS).expect("valid text")),
        max_imports: if config.imports { 4 } else { 0 },
        export_everything: true,
        allow_start_export: false,
        min_funcs: config.max_functions.div_ceil(2),
        max_funcs: config.max_functions,
        max_instructions: config.max_instructions,
        min_types: 4,
        max_types: 20,
        min_memories: 1,
        max_memories: 2,
        max_memory32_bytes: 1024 * KIB,
        max_memory64_bytes: u128::from(1024 * KIB),
        memory_max_size_required: true,
        min_tables: 1,
        max_tables: 2,
        max_table_elements: 100,
        table_max_size_required: true,
        min_element_segments: 1,
        max_element_segments: 4,
        max_elements: 8,
        max_globals: 6,
        max_data_segments: 3,
        min_tags: usize::from(config.exceptions),
        max_tags: 4,
        exceptions_enabled: config.exceptions,
        tail_call_enabled: config.tail_calls,
        simd_enabled: config.simd,
        relaxed_simd_enabled: config.simd,
        disallow_traps: !config.traps,
        gc_enabled: false,
        threads_enabled: false,
        shared_everything_threads_enabled: false,
        custom_page_sizes_enabled: false,
        custom_descriptors_enabled: false,
        wide_arithmetic_enabled: false,
        generate_custom_sections: false,
        ..Config::default()
    }
}

/// A small random number generator (Steele, Lea and Flood 2014, "Fast splittable pseudorandom
/// number generators", figure 14).
#[derive(Clone, Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// Returns the next number.
    #[expect(
        clippy::should_implement_trait,
        reason = "it never ends, so that an Option would be noise"
    )]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afterimage_program::{BlockEnd, EdgeKind, Program};

    #[test]
    fn generated_modules_are_accepted_and_have_what_is_promised() {
        let mut found = [false; 6];
        for seed in 0..100 {
            let bytes = module_from_seed(seed, &ModuleConfig::default());
            assert_eq!(bytes, module_from_seed(seed, &ModuleConfig::default()));
            let program = Program::parse(&bytes).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            assert!(program.functions.len() >= 2 && program.exports.len() >= 2);
            for function in &program.functions {
                let cfg = &function.cfg;
                let edge = |kind: fn(EdgeKind) -> bool| cfg.edges.values().any(|e| kind(e.kind));
                found[0] |= edge(|kind| matches!(kind, EdgeKind::Table(_)));
                found[1] |= edge(|kind| matches!(kind, EdgeKind::Catch(_)));
                found[2] |= cfg.edges.values().any(|edge| edge.back);
                found[3] |= cfg
                    .blocks
                    .values()
                    .any(|b| matches!(b.end, BlockEnd::TailCall(_)));
                found[4] |= cfg.blocks.values().any(|b| b.end == BlockEnd::Throw);
                found[5] |= edge(|kind| kind == EdgeKind::CallThrow);
            }
        }
        assert_eq!(
            found, [true; 6],
            "table, catch, back edge, tail call, throw, throwing call"
        );
    }

    #[test]
    fn imports_are_among_those_listed() {
        let config = ModuleConfig {
            imports: true,
            ..ModuleConfig::default()
        };
        let mut imports = 0;
        for seed in 0..30 {
            let program = Program::parse(&module_from_seed(seed, &config)).unwrap();
            imports += program.imports.len();
        }
        assert!(imports > 30, "{imports}");
    }

    #[test]
    fn handwritten_modules_are_accepted() {
        for (name, text) in HANDWRITTEN {
            let bytes = wat::parse_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            Program::parse(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}
