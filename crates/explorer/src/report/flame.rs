//! Writes a flame graph of HTML elements. Each element is as wide as its share of the executed
//! blocks.

use std::collections::BTreeMap;
use std::io::Write;

use afterimage::present::grouped;
use afterimage::present::page::escaped;
use anyhow::Result;

/// The maximum number of levels to show.
const DEPTH: usize = 40;
/// The height of a level, in pixels.
const HEIGHT: usize = 20;
/// The minimum percentage to draw. Smaller elements would not be visible.
const SEEN: f64 = 0.1;

/// A function in its context.
#[derive(Default)]
struct Context<'t> {
    blocks: u64,
    callees: BTreeMap<&'t str, usize>,
}

/// Writes the graph of stacks, one per line: functions with `;` between them, and the number of
/// blocks.
pub(super) fn written(out: &mut dyn Write, stacks: &str) -> Result<()> {
    let mut all = vec![Context::default()];
    for line in stacks.lines() {
        let Some((stack, blocks)) = line.rsplit_once(' ') else {
            continue;
        };
        let blocks: u64 = blocks.parse()?;
        let mut at = 0;
        all[at].blocks += blocks;
        for name in stack.split(';').take(DEPTH) {
            let next = all.len();
            let known = *all[at].callees.entry(name).or_insert(next);
            if known == next {
                all.push(Context::default());
            }
            at = known;
            all[at].blocks += blocks;
        }
    }
    let total = all[0].blocks;
    if total == 0 {
        return Ok(());
    }
    let (mut drawn, mut levels) = (Vec::new(), 0);
    // The contexts to draw, each with its name, its level, and its start.
    let mut open = vec![(0, "all", 0, 0)];
    while let Some((at, name, level, from)) = open.pop() {
        let context = &all[at];
        let part = |blocks: u64| 100.0 * blocks as f64 / total as f64;
        if part(context.blocks) < SEEN {
            continue;
        }
        levels = levels.max(level + 1);
        drawn.push(format!(
            "<div style=\"left:{:.3}%;width:{:.3}%;top:{}px\" title=\"{name}: {blocks} blocks\">{name}</div>",
            part(from),
            part(context.blocks),
            level * HEIGHT,
            name = escaped(name),
            blocks = grouped(context.blocks)
        ));
        let mut callees = Vec::from_iter(&context.callees);
        callees.sort_by_key(|(_, at)| std::cmp::Reverse(all[**at].blocks));
        let mut from = from;
        for (name, &at) in callees {
            open.push((at, name, level + 1, from));
            from += all[at].blocks;
        }
    }
    writeln!(
        out,
        "<h2>Flame graph</h2><p class=\"soft\">Each width is a number of executed blocks; {} in all.</p>\n<div class=\"flame\" style=\"height:{}px\">{}</div>",
        grouped(total),
        levels * HEIGHT,
        drawn.concat()
    )?;
    Ok(())
}
