//! `cargo xtask mutants`: checks in real programs that `afterimage diff` names an operator that was
//! replaced by another (mutants: DeMillo, Lipton and Sayward 1978).
//!
//! A mutant is a program at level 2 in which one executed operator is replaced by another of the
//! same types, so that its output, or its end, differs. The mutant is compared with the correct
//! program at level 2, which is the same except for that operator. It is also compared with the
//! program at level 0, where statements must be matched.

use crate::manifest::{self, Entry};
use crate::{MutantsArguments, corpus, tool};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{ExitCode, Output, Stdio};

/// Binary operators of the same types, each encoded in one byte.
const OPERATORS: [&[(&str, u8)]; 2] = [
    &[
        ("i32.eq", 0x46),
        ("i32.ne", 0x47),
        ("i32.lt_s", 0x48),
        ("i32.lt_u", 0x49),
        ("i32.gt_s", 0x4a),
        ("i32.gt_u", 0x4b),
        ("i32.le_s", 0x4c),
        ("i32.le_u", 0x4d),
        ("i32.ge_s", 0x4e),
        ("i32.ge_u", 0x4f),
    ],
    &[
        ("i32.add", 0x6a),
        ("i32.sub", 0x6b),
        ("i32.mul", 0x6c),
        ("i32.and", 0x71),
        ("i32.or", 0x72),
        ("i32.xor", 0x73),
        ("i32.shl", 0x74),
        ("i32.shr_s", 0x75),
        ("i32.shr_u", 0x76),
    ],
];

/// The number of candidates to try for each requested mutant. A candidate without effect is not a
/// mutant.
const TRIED: usize = 20;

/// The number of rows of a list that the text form shows.
const SHOWN: usize = 10;

/// Describes a place in a list.
fn listed((rank, listed): (Option<usize>, usize)) -> String {
    match rank {
        Some(rank) => format!("number {} of {listed}", rank + 1),
        None => format!("not among {listed}"),
    }
}

/// An executed operator.
struct Site {
    offset: usize,
    name: String,
}

/// Makes the requested mutants and checks them.
///
/// # Errors
/// Returns an error if there is no corpus of versions, or nothing can be built or recorded.
pub fn run(arguments: &MutantsArguments) -> Result<ExitCode> {
    let folder = match &arguments.corpus {
        Some(folder) => folder.clone(),
        None => corpus::workspace().join("target/corpus-versions"),
    };
    let folder = std::path::absolute(&folder)
        .with_context(|| format!("cannot resolve {}", folder.display()))?;
    let entries = manifest::read(&folder)?;
    let tool = tool::build()?;
    let out = corpus::workspace().join("target/mutants");
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    println!(
        "| program | place | operator | replacement | against level 2 | against level 0: divergences | against level 0: wrong from the first execution |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut sums = [0; 4];
    for name in &arguments.only {
        let of_level = |level: u32| {
            let wanted = format!("{name}-O{level}");
            let found = entries.iter().find(|entry| entry.name == wanted);
            found.with_context(|| {
                format!(
                    "there is no {wanted} in {}: build it with `cargo xtask corpus --versions`",
                    folder.display()
                )
            })
        };
        let mutants = Mutants {
            tool: &tool,
            folder: &folder,
            out: &out,
            entry: of_level(2)?,
        };
        let unoptimised = out.join("unoptimised.aft");
        mutants.record(of_level(0)?, None, &unoptimised)?;
        let counts = mutants.named(arguments, &unoptimised)?;
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    let [all, alike, matched, shown] = sums;
    println!(
        "\nOf {all} mutants, {alike} are named against level 2. Against level 0, {matched} are in one of the lists, {shown} of them among its first {SHOWN} rows."
    );
    Ok(ExitCode::SUCCESS)
}

/// The mutants of a program.
struct Mutants<'a> {
    tool: &'a Path,
    folder: &'a Path,
    out: &'a Path,
    entry: &'a Entry,
}

impl Mutants<'_> {
    /// Creates mutants and asks about them. Returns four counts: all mutants, those named against
    /// level 2, those named against level 0, and those that the text form names against level 0.
    fn named(&self, arguments: &MutantsArguments, unoptimised: &Path) -> Result<[usize; 4]> {
        let right = self.out.join("right.aft");
        let expected = self.record(self.entry, None, &right)?;
        let sites = self.sites(&right)?;
        let module = self.folder.join(&self.entry.wasm);
        let module =
            fs::read(&module).with_context(|| format!("cannot read {}", module.display()))?;
        // The program may read its own name.
        let own = Path::new(&self.entry.wasm)
            .file_name()
            .context("the path of the program has no file name")?;
        let (wasm, aft) = (self.out.join(own), self.out.join("mutant.aft"));
        let mut random = Random(arguments.seed);
        let (mut all, mut alike, mut matched, mut shown) = (0, 0, 0, 0);
        for _ in 0..arguments.count * TRIED {
            if all == arguments.count {
                break;
            }
            let site = &sites[random.below(sites.len())];
            let family = OPERATORS
                .into_iter()
                .find(|family| family.iter().any(|(name, _)| *name == site.name));
            let family = family.context("an operator of no family")?;
            let (other, opcode) = family[random.below(family.len())];
            if other == site.name {
                continue;
            }
            let mut bytes = module.clone();
            *bytes.get_mut(site.offset).context("no such place")? = opcode;
            fs::write(&wasm, &bytes).with_context(|| format!("cannot write {}", wasm.display()))?;
            let ran = self.record(self.entry, Some(&wasm), &aft)?;
            // Exit code 124 means that the program may run forever.
            if ran.status.code() == Some(124)
                || (ran.status, &ran.stdout) == (expected.status, &expected.stdout)
            {
                continue;
            }
            all += 1;
            let of_alike = self.diff(&right, &aft)?;
            let place = Value::from(format!("@0x{:x}", site.offset));
            let by_alike = of_alike["alike"]["replaced"][0]["b"]["at"] == place
                && !of_alike["alike"]["replaced"][0]["first"].is_null();
            let of_matched = self.diff(unoptimised, &aft)?;
            let rank = |list: &str| -> Result<(Option<usize>, usize)> {
                let listed = of_matched[list]
                    .as_array()
                    .context("the answer lacks a list")?;
                let mut each = listed.iter();
                let rank = each.position(|one| one["b"]["offset"] == site.offset);
                Ok((rank, listed.len()))
            };
            let ranks = [rank("divergences")?, rank("suspects")?];
            alike += usize::from(by_alike);
            matched += usize::from(ranks.iter().any(|(rank, _)| rank.is_some()));
            shown += usize::from(
                ranks
                    .iter()
                    .any(|(rank, _)| rank.is_some_and(|r| r < SHOWN)),
            );
            println!(
                "| {} | @0x{:x} | {} | {other} | {} | {} | {} |",
                self.entry.name,
                site.offset,
                site.name,
                if by_alike { "named" } else { "not named" },
                listed(ranks[0]),
                listed(ranks[1]),
            );
        }
        Ok([all, alike, matched, shown])
    }

    /// Records a program, or a mutant of it.
    fn record(&self, entry: &Entry, mutant: Option<&Path>, at: &Path) -> Result<Output> {
        let mut entry = entry.clone();
        if let Some(path) = mutant {
            entry.wasm = path.display().to_string();
        }
        let mut command = tool::start(self.tool);
        command.args(["record", "--quiet", "--force", "--timeout", "60", "-o"]);
        command.arg(at).args(tool::command(&entry, self.folder));
        let ran = command.stdin(Stdio::null()).output();
        ran.with_context(|| format!("cannot run {}", self.tool.display()))
    }

    /// Returns the executed operators that can be replaced.
    fn sites(&self, right: &Path) -> Result<Vec<Site>> {
        let words = ["profile", "--by", "instruction", "--format", "json"];
        let profile = self.answer(&words, &[right])?;
        let rows = profile["rows"]
            .as_array()
            .context("a profile has no rows")?;
        let sites = rows.iter().filter_map(|row| {
            let name = row["text"].as_str()?;
            let known = OPERATORS.concat().iter().any(|(known, _)| *known == name);
            let executed = row["count"].as_u64()? > 0;
            (known && executed).then_some(Site {
                offset: row["offset"].as_u64()? as usize,
                name: name.to_owned(),
            })
        });
        let sites = Vec::from_iter(sites);
        if sites.is_empty() {
            bail!(
                "{} executed no operator that can be replaced",
                self.entry.name
            );
        }
        Ok(sites)
    }

    fn diff(&self, other: &Path, mutant: &Path) -> Result<Value> {
        self.answer(
            &["diff", "--no-lines", "--format", "json"],
            &[other, mutant],
        )
    }

    fn answer(&self, words: &[&str], files: &[&Path]) -> Result<Value> {
        let mut command = tool::start(self.tool);
        command.args(words).args(files).stdin(Stdio::null());
        let ran = command
            .output()
            .with_context(|| format!("cannot run {}", self.tool.display()))?;
        if !ran.status.success() {
            bail!(
                "afterimage {} ended with {}: {}",
                words[0],
                ran.status,
                String::from_utf8_lossy(&ran.stderr)
            );
        }
        serde_json::from_slice(&ran.stdout)
            .with_context(|| format!("cannot parse the output of afterimage {}", words[0]))
    }
}

/// A generator of random numbers (Steele, Lea and Flood 2014), so that the same seed makes the same
/// mutants.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound.max(1) as u64) as usize
    }
}
