//! Tests the answers of `diff` for programs that are alike. Operators of random programs are
//! replaced. The first execution with a different result must be the first difference of the two
//! runs.

use std::collections::HashMap;

use afterimage_analyses::diff::{Replaced, Side, alike, effects, first_difference};
use afterimage_ids::{FuncId, OpId};
use afterimage_program::Program;
use afterimage_replay::steps::{Steps, Wanted};
use afterimage_testkit::modules::{ModuleConfig, SplitMix64, module_from_seed};
use afterimage_testkit::versions::{Transformations, versions};

use crate::common::Sandbox;
use crate::common::recorded::Recorded;

/// Operators with the same types of operands and results.
const ALIKE: [&str; 7] = [
    "i32.add i32.sub i32.mul i32.div_s i32.div_u i32.rem_s i32.rem_u i32.and i32.or i32.xor i32.shl i32.shr_s i32.shr_u i32.rotl i32.rotr i32.eq i32.ne i32.lt_s i32.lt_u i32.gt_s i32.gt_u i32.le_s i32.le_u i32.ge_s i32.ge_u",
    "i32.eqz i32.clz i32.ctz i32.popcnt i32.extend8_s i32.extend16_s",
    "i64.add i64.sub i64.mul i64.div_s i64.div_u i64.rem_u i64.and i64.or i64.xor i64.shl i64.rotl",
    "f64.add f64.sub f64.mul f64.div f64.min f64.max f64.copysign",
    "f32.abs f32.neg f32.ceil f32.floor f32.trunc f32.nearest f32.sqrt",
    "i32.trunc_f64_s i32.trunc_f64_u i32.trunc_sat_f64_s i32.trunc_sat_f64_u",
    "i32x4.add i32x4.sub i8x16.add v128.and v128.xor f32x4.mul",
];

fn alike_to(line: &str) -> Option<Vec<&'static str>> {
    let mut families = ALIKE.iter().map(|family| Vec::from_iter(family.split(' ')));
    families.find(|family| family.contains(&line.trim()))
}

/// Returns a module, a copy of it, and the number of replacements in the copy. A replacement is an
/// operator of the same types or a different constant.
fn planted(module: &[u8], random: &mut SplitMix64) -> Option<([Vec<u8>; 2], usize)> {
    let text = wasmprinter::print_bytes(module).ok()?;
    let module = wat::parse_str(&text).ok()?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let fits = |line: &String| alike_to(line).is_some() || line.trim().starts_with("i32.const");
    let places: Vec<usize> = (0..lines.len()).filter(|&at| fits(&lines[at])).collect();
    let mut planted = HashMap::new();
    for _ in 0..1 + random.below(4) {
        let at = *places.get(random.below(places.len().max(1)))?;
        let new = match alike_to(&lines[at]) {
            // A longer constant moves the following code.
            None => format!(
                "i32.const {}",
                random.next() as u32 as i32 >> random.below(32)
            ),
            Some(family) => family[random.below(family.len())].to_owned(),
        };
        if lines[at].trim() != new {
            planted.insert(at, new);
        }
    }
    let count = planted.len();
    for (at, new) in planted {
        lines[at] = new;
    }
    Some(([module, wat::parse_str(lines.join("\n")).ok()?], count))
}

#[derive(Debug, Default)]
struct Tried {
    runs: usize,
    different: usize,
    same: usize,
    executions: u64,
}

fn compare(modules: &[Vec<u8>; 2], count: usize, words: &str, tried: &mut Tried) {
    let sides = modules.each_ref().map(|module| {
        let sandbox = Sandbox::new();
        sandbox.write("a.wasm", module);
        // A replaced operator may make a loop infinite.
        let ran = sandbox.run(&format!("record --timeout 1 -o run.aft {words}"));
        if ran.code == Some(124) {
            return None;
        }
        sandbox.run("build --lens paths run.aft");
        sandbox
            .path("run.aft")
            .exists()
            .then(|| Recorded::open(&sandbox))
    });
    let [Some(a), Some(b)] = &sides else {
        return;
    };
    let modules = [(a.program(), a.bytes()), (b.program(), b.bytes())];
    let found = alike(modules[0], modules[1]).expect("they are alike");
    assert_eq!(found.replaced.len(), count);
    assert_eq!(found.data, []);
    let logs = (|| a.file().log(), || b.file().log());
    let sides = (
        Side {
            run: a.run_from(None),
            log: &logs.0,
        },
        Side {
            run: b.run_from(None),
            log: &logs.1,
        },
    );
    let first = first_difference(sides.0, sides.1, &found.replaced).unwrap();
    let of_a = effects(sides.0, modules[1], &found.replaced).unwrap();
    let of_b = effects(sides.1, modules[0], &found.replaced).unwrap();
    for (side, effects) in [(sides.0, &of_a), (sides.1, &of_b)] {
        let counts = counted(side, &found.replaced);
        for ((effect, count), at) in effects.iter().zip(counts).zip(&found.replaced) {
            // Constants are not statements.
            if !is_constant(a.program(), a.bytes(), at) {
                assert_eq!(effect.executed, count);
            }
            tried.executions += effect.executed;
        }
    }
    // No other operator gives a different result from the same operands before the first
    // difference.
    for effects in [&of_a, &of_b] {
        let pairs = found.replaced.iter().zip(effects);
        let firsts = pairs.filter_map(|(at, effect)| Some((effect.first.as_ref()?.time, at)));
        let guilty = firsts.min_by_key(|(time, at)| (*time, at.op));
        let constant = |at: &Replaced| is_constant(a.program(), a.bytes(), at);
        match (&first, guilty) {
            (None, None) => tried.same += 1,
            (Some(found), Some((time, at))) => {
                let step = found.a.as_ref().or(found.b.as_ref()).expect("a step");
                // If any statement differs, the first one to differ uses the constant.
                if constant(at) {
                    assert!(step.time >= time)
                } else {
                    assert_eq!(
                        (step.time, step.function, step.op),
                        (time, at.function, Some(at.op))
                    )
                }
                tried.different += 1;
            }
            (None, Some((_, at))) if constant(at) => tried.same += 1,
            other => panic!("{other:?}"),
        }
    }
    tried.runs += 1;
}

fn is_constant(program: &Program, module: &[u8], at: &Replaced) -> bool {
    let function = program.function(at.function).expect("a function");
    let found = program
        .operators(module, function)
        .nth(at.op.as_u32() as usize);
    let (_, _, operator) = found.expect("an operator");
    matches!(operator, wasmparser::Operator::I32Const { .. })
}

/// Returns the number of occurrences of each replaced statement in the trace of a run.
fn counted<S: afterimage_wpp::Segments>(side: Side<'_, S>, replaced: &[Replaced]) -> Vec<u64>
where
    S::Error: std::error::Error + 'static,
{
    let mut counts: HashMap<(FuncId, OpId), u64> = HashMap::new();
    let mut steps = Steps::new(side.run, (side.log)().unwrap(), Wanted::ALL).unwrap();
    while let Some(step) = steps.next().unwrap() {
        if let Some(op) = step.op {
            *counts.entry((step.function, op)).or_default() += 1;
        }
    }
    let count = |at: &Replaced| counts.get(&(at.function, at.op)).copied();
    replaced.iter().map(|at| count(at).unwrap_or(0)).collect()
}

#[test]
fn the_first_operator_that_gave_something_else_is_where_the_runs_part() {
    let mut tried = Tried::default();
    let mut random = SplitMix64(7);
    for seed in 0..12 {
        for version in versions(seed, Transformations::default()) {
            let module = wat::parse_str(&version.text).unwrap();
            let Some((modules, count)) = planted(&module, &mut random) else {
                continue;
            };
            compare(&modules, count, "a.wasm", &mut tried);
        }
        let module = module_from_seed(seed, &ModuleConfig::default());
        let program = Program::parse(&module).unwrap();
        let named = program.exports.iter();
        let simple = named.filter(|(name, _)| name.chars().all(|c| c.is_ascii_alphanumeric()));
        for (name, function) in simple.take(3) {
            let Some(defined) = program.function(*function) else {
                continue;
            };
            let params = &program.types[defined.ty].params;
            let vector = |ty: &wasmparser::ValType| {
                matches!(ty, wasmparser::ValType::V128 | wasmparser::ValType::Ref(_))
            };
            let Some((modules, count)) = planted(&module, &mut random) else {
                continue;
            };
            if !params.iter().any(vector) {
                let arguments = " 3".repeat(params.len());
                let words = format!("--invoke {name} a.wasm{arguments}");
                compare(&modules, count, &words, &mut tried);
            }
        }
    }
    println!("{tried:?}");
    assert!(
        tried.runs > 30 && tried.different > 20 && tried.same > 20,
        "{tried:?}"
    );
}
