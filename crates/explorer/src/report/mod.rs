//! Writes a run as one page that opens from disk: `afterimage report`.
//!
//! Takes a recording and additional questions. The page has no script and loads nothing. It is made
//! from the same documents as the page that `explore` serves.

mod flame;
mod way;

use std::io::Write;

use afterimage::check;
use afterimage::present::page::{self, CountedBranch, CountedLine, LEGEND, escaped};
use afterimage::present::{NamesDocument, SliceLine, counted, grouped, shell_word};
use afterimage::slice::{Wanted, find};
use afterimage::why::WhyQuery;
use afterimage::{Session, text};
use anyhow::{Result, anyhow};
use serde_json::Value;

use crate::ask::{answer, as_command, json_lines};
use crate::notes;
use crate::parameters::Parameters;

/// The contents of a report in addition to the standard contents.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The values to explain: `trap`, `stdout:12`, `parser.c:42#7`, `fee at parser.c:42#7`.
    pub why: Vec<String>,
    /// The names of stored slices.
    pub slices: Vec<String>,
}

/// The styles that only this page needs.
const STYLE: &str = "
pre { font: 12.5px/1.6 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .6rem .8rem; overflow: auto; max-height: 28rem; white-space: pre-wrap; overflow-wrap: anywhere; margin: .4rem 0 }
.ended { border-left: 3px solid var(--good); padding: .1rem 0 .1rem .9rem; margin: 1rem 0 } .ended.ill { border-color: var(--bad) } .ended p { margin: .3rem 0 } .ended strong { font-size: 1.05rem }
.list td, .list th { padding: .22rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top } .list td:last-child { overflow-wrap: anywhere }
.flame { position: relative; overflow: hidden; border-radius: 4px } .flame div { position: absolute; height: 19px; font: 11px/19px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow: hidden; white-space: nowrap; padding: 0 4px; background: #f0c48a; color: #33240e; border-right: 1px solid var(--page) } .flame div:nth-child(3n) { background: #edd7a0 } .flame div:nth-child(3n+1) { background: #e9bd9f }
.way { list-style: none; padding: 0; margin: .6rem 0 } .way li { padding: .2rem 0 .2rem 1rem; border-left: 2px solid var(--line); overflow-wrap: anywhere } .way .where { color: var(--link) } .way .value { font-weight: 600 }
.code tr.in { background: var(--some-page) } .contents { columns: 3 14rem; padding: 0; list-style: none }
";

/// The maximum number of functions to list. The same limit applies to hot paths.
const LISTED: &str = "25";
/// The maximum number of bytes of output to show.
const OUTPUT: &str = "65536";

/// Writes the page. Builds the data that it needs if the recording lacks them.
///
/// # Errors
/// Returns an error if the recording is damaged, a requested part has no answer, or `out` fails.
pub fn written(out: &mut dyn Write, session: &Session, report: &Report) -> Result<()> {
    let info = json_lines(session, "info", &[])?.remove(0);
    let words = info["args"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let program = info["program"].as_str().unwrap_or_default();
    let title = Vec::from_iter(std::iter::once(program).chain(words)).join(" ");
    page::begin(out, &format!("Run of {title}"), STYLE)?;
    writeln!(out, "<h1>{}</h1>", escaped(&title))?;
    ended(out, session, &info)?;
    output(out, session)?;
    let names = session.names()?;
    functions(out, session, &names)?;
    let stacks = answer(
        session,
        "export",
        Parameters::of(&[("format", "collapsed"), ("code", "mine")]),
    )?;
    let stacks = String::from_utf8_lossy(&stacks.body);
    flame::written(out, &shorter(&stacks, &names))?;
    hot_paths(out, session, &names)?;
    for about in &report.why {
        let answered = why(session, about)?;
        way::written(out, about, &answered)?;
    }
    for name in &report.slices {
        slice(out, session, name)?;
    }
    sources(out, session)?;
    kept(out, session)?;
    writeln!(
        out,
        "<p class=\"soft\">Counts are exact: nothing is sampled. Made by afterimage {} from {}.</p>",
        env!("CARGO_PKG_VERSION"),
        escaped(&session.at().display().to_string())
    )?;
    Ok(page::end(out)?)
}

/// Writes how the run ended, and what led to the end.
fn ended(out: &mut dyn Write, session: &Session, info: &Value) -> Result<()> {
    let ending = info["ending"].as_str().unwrap_or("was cut off");
    let is_ill = !matches!(ending, "returned");
    let class = if is_ill { " ill" } else { "" };
    writeln!(
        out,
        "<div class=\"ended{class}\"><p><strong>The run {}</strong></p>",
        escaped(ending)
    )?;
    // A run contains no explanation of a stop from outside.
    if is_ill && let Ok((answered, command)) = why(session, "trap") {
        way::write(out, &answered)?;
        repeated_by(out, &command)?;
    }
    Ok(writeln!(out, "</div>")?)
}

/// Writes the output.
fn output(out: &mut dyn Write, session: &Session) -> Result<()> {
    // The output is found by following the run, which needs the program's inputs.
    if session.file().meta()?.is_without_inputs()
        && let Err(why) = session.file().log()
    {
        return Ok(writeln!(
            out,
            "<h2>Output</h2><p class=\"soft\">Not known: {}.</p>",
            escaped(&why.to_string())
        )?);
    }
    let found = json_lines(session, "output", &[("limit", OUTPUT)])?.remove(0);
    for (stream, name) in [("stdout", "Output"), ("stderr", "Errors")] {
        let writes = found["writes"].as_array().into_iter().flatten();
        let mut bytes = Vec::new();
        for write in writes.filter(|write| write["stream"] == stream) {
            let hex = write["bytes"].as_str().unwrap_or_default().as_bytes();
            let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
            bytes.extend(
                hex.chunks_exact(2)
                    .map(|pair| digit(pair[0]) * 16 + digit(pair[1])),
            );
        }
        if bytes.is_empty() {
            continue;
        }
        writeln!(out, "<h2>{name}</h2>\n<pre>")?;
        for line in String::from_utf8_lossy(&bytes).lines() {
            writeln!(out, "{}", escaped(line))?;
        }
        let all = found["totals"][stream].as_u64().unwrap_or(0);
        let more = all.saturating_sub(bytes.len() as u64);
        let more = if more > 0 {
            format!("<p class=\"soft\">and {} bytes more</p>", grouped(more))
        } else {
            String::new()
        };
        writeln!(out, "</pre>{more}")?;
    }
    Ok(())
}

/// Writes the command that gives the same answer.
fn repeated_by(out: &mut dyn Write, command: &str) -> Result<()> {
    Ok(writeln!(
        out,
        "<p class=\"soft\"><code>{}</code></p>",
        escaped(command)
    )?)
}

fn number(value: &Value) -> String {
    value.as_u64().map(grouped).unwrap_or_default()
}

/// Writes a table of the user's own code. If the table of all code differs, also writes that table,
/// collapsed.
fn mine_first(
    out: &mut dyn Write,
    session: &Session,
    (command, options): (&str, &[(&str, &str)]),
    table: impl Fn(&mut dyn Write, &Value) -> Result<()>,
) -> Result<()> {
    let found = |code| {
        let options = [options, &[("limit", LISTED), ("code", code)]].concat();
        Ok::<_, anyhow::Error>(json_lines(session, command, &options)?.remove(0))
    };
    let (mine, all) = (found("mine")?, found("all")?);
    table(out, &mine["rows"])?;
    if mine["rows"] != all["rows"] {
        writeln!(out, "<details><summary>With library code</summary>")?;
        table(out, &all["rows"])?;
        writeln!(out, "</details>")?;
    }
    let file = session.at().display().to_string();
    let options = [options, &[("limit", LISTED), ("code", "mine")]].concat();
    repeated_by(out, &as_command(command, &Parameters::of(&options), &file))
}

/// Returns the name of a function as people write it.
fn short<'n>(function: &'n Value, names: &'n NamesDocument) -> &'n str {
    let name = function["name"].as_str().unwrap_or_default();
    names.names.get(name).map_or(name, String::as_str)
}

/// Replaces the names of functions in stacks by the names that people write.
fn shorter(stacks: &str, names: &NamesDocument) -> String {
    let lines = stacks.lines().map(|line| {
        let (stack, blocks) = line.rsplit_once(' ').unwrap_or((line, ""));
        let frames = stack.split(';');
        let frames = frames.map(|name| names.names.get(name).map_or(name, String::as_str));
        format!("{} {blocks}\n", Vec::from_iter(frames).join(";"))
    });
    lines.collect()
}

/// Writes the hottest functions.
fn functions(out: &mut dyn Write, session: &Session, names: &NamesDocument) -> Result<()> {
    let totals = json_lines(session, "profile", &[("limit", "1")])?.remove(0);
    writeln!(
        out,
        "<h2>Hottest functions</h2><p class=\"soft\">{} instructions in {} blocks</p>",
        number(&totals["totals"]["instructions"]),
        number(&totals["totals"]["blocks"])
    )?;
    let question = ("profile", &[("sort", "instructions")][..]);
    mine_first(out, session, question, |out, rows| {
        writeln!(
            out,
            "<table class=\"list\"><tr><th class=\"n\">Calls</th><th class=\"n\">Instructions</th><th>Function</th></tr>"
        )?;
        let rows = rows.as_array().into_iter().flatten();
        for row in rows.filter(|row| row["instructions"].as_u64() > Some(0)) {
            writeln!(
                out,
                "<tr><td class=\"n\">{}</td><td class=\"n\">{}</td><td><code>{}</code></td></tr>",
                number(&row["entries"]),
                number(&row["instructions"]),
                escaped(short(&row["function"], names))
            )?;
        }
        Ok(writeln!(out, "</table>")?)
    })
}

/// Formats a line as the file's name and the line's number.
fn line(source: &Value) -> String {
    let file = source["file"].as_str().unwrap_or_default();
    let name = file.rsplit('/').next().unwrap_or(file);
    format!("{name}:{}", source["line"])
}

/// Writes the hottest acyclic paths.
fn hot_paths(out: &mut dyn Write, session: &Session, names: &NamesDocument) -> Result<()> {
    writeln!(out, "<h2>Hot paths</h2>")?;
    mine_first(out, session, ("paths", &[("hot", "")]), |out, rows| {
        writeln!(
            out,
            "<table class=\"list\"><tr><th class=\"n\">Executions</th><th class=\"n\">Instructions</th><th>Function</th><th>Lines</th></tr>"
        )?;
        for row in rows.as_array().into_iter().flatten() {
            let lines = row["lines"].as_array().into_iter().flatten().map(line);
            writeln!(
                out,
                "<tr><td class=\"n\">{}</td><td class=\"n\">{}</td><td><code>{}</code></td><td>{}</td></tr>",
                number(&row["count"]),
                number(&row["instructions"]),
                escaped(short(&row["function"], names)),
                escaped(&Vec::from_iter(lines).join(", "))
            )?;
        }
        Ok(writeln!(out, "</table>")?)
    })
}

/// Returns the answer to `trap`, `stdout:12`, `PLACE#K` or `NAME at PLACE#K`, and the command that
/// gives it.
fn why(session: &Session, about: &str) -> Result<(Vec<Value>, String)> {
    let steps = WhyQuery::STEPS.to_string();
    let mut options = vec![("steps", steps.as_str())];
    match (about, about.split_once(':'), about.split_once(" at ")) {
        ("trap", ..) => {
            check::killed(
                session,
                "explain its output instead, such as --why stdout:0",
            )?;
            options.push(("trap", ""));
        }
        (_, Some((stream @ ("stdout" | "stderr"), byte)), _) => options.push((stream, byte)),
        (_, _, Some((name, at))) => options.extend([("at", at), ("var", name)]),
        _ => options.push(("at", about)),
    }
    let file = session.at().display().to_string();
    let command = as_command("why", &Parameters::of(&options), &file);
    Ok((json_lines(session, "why", &options)?, command))
}

/// Writes a slice that is stored in the recording.
fn slice(out: &mut dyn Write, session: &Session, name: &str) -> Result<()> {
    session.ensure_whole_path()?;
    let wanted = Wanted::Kept(name.to_owned());
    let found = find(session, &wanted, None, |found| found.report());
    let found = found.map_err(|error| anyhow!("--slice {name}: {}", text::sentence(&error)))?;
    writeln!(
        out,
        "<h2>Slice {}</h2><p class=\"soft\">{}</p>",
        escaped(name),
        escaped(&found.title)
    )?;
    page::begin_source(out, &["times", "of", "line"])?;
    let is_library = |one: &&SliceLine| !session.code().shows(&one.source.file);
    let (mut library, mut own): (Vec<_>, Vec<_>) = found.lines.iter().partition(is_library);
    if own.is_empty() {
        std::mem::swap(&mut library, &mut own);
    }
    for one in own {
        let text = session
            .sources()
            .lines(&one.source.file)
            .and_then(|mut lines| lines.line(one.source.line));
        writeln!(
            out,
            "<tr class=\"in\"><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}:{}</td><td>{}</td></tr>",
            grouped(one.sliced),
            grouped(one.executed),
            escaped(one.source.file.rsplit('/').next().unwrap_or_default()),
            one.source.line,
            escaped(
                text.as_deref()
                    .unwrap_or_default()
                    .trim_end_matches(['\r', '\n'])
            )
        )?;
    }
    page::end_source(out)?;
    if !library.is_empty() {
        let lines = counted(library.len() as u64, "line");
        writeln!(out, "<p class=\"soft\">and {lines} of library code</p>")?;
    }
    let command = format!(
        "afterimage slice --saved {} {}",
        shell_word(name),
        shell_word(&session.at().display().to_string())
    );
    repeated_by(out, &command)
}

/// Converts a branch of a line.
fn branch(told: &Value) -> CountedBranch {
    let ways = told["ways"].as_array().into_iter().flatten();
    let ways = ways.map(|way| {
        let kind = way["kind"].as_str().unwrap_or_default().to_owned();
        (kind, way["count"].as_u64().unwrap_or(0))
    });
    CountedBranch {
        count: told["count"].as_u64().unwrap_or(0),
        ways: ways.collect(),
    }
}

/// Writes the user's own files with counts, as on the coverage page.
fn sources(out: &mut dyn Write, session: &Session) -> Result<()> {
    let files = json_lines(session, "files", &[])?.remove(0);
    let files = files["files"].as_array().into_iter().flatten();
    let own = files.filter(|file| file["library"] == false && file["executed"].as_u64() > Some(0));
    let own = Vec::from_iter(own);
    if !own.is_empty() {
        writeln!(out, "<h2>Source</h2>{LEGEND}")?;
    }
    for file in own {
        let path = file["file"].as_str().unwrap_or_default();
        let found = json_lines(session, "source", &[("file", path)])?.remove(0);
        writeln!(
            out,
            "<h2>{}</h2><p class=\"soft\">{} of {} lines executed{}</p>",
            escaped(path),
            number(&file["executed"]),
            number(&file["lines"]),
            match found["missing"].as_str() {
                Some(why) => format!("; {}", escaped(why)),
                None => String::new(),
            }
        )?;
        page::begin_counted(out, "line")?;
        for row in found["lines"].as_array().into_iter().flatten() {
            let line = CountedLine {
                id: None,
                number: row["line"].to_string(),
                count: row["count"].as_u64(),
                branches: row["branches"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(branch)
                    .collect(),
                text: row["text"].as_str().unwrap_or_default(),
            };
            line.write(out)?;
        }
        page::end_source(out)?;
    }
    Ok(())
}

/// Writes the notes next to the recording.
fn kept(out: &mut dyn Write, session: &Session) -> Result<()> {
    let notes = notes::load(session.at())?.notes;
    if notes.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>Notes</h2>")?;
    for note in notes {
        let at = note.at.map(|at| format!(" <code>{}</code>", escaped(&at)));
        writeln!(
            out,
            "<p><strong>{}</strong>{}</p>",
            escaped(&note.title),
            at.unwrap_or_default()
        )?;
        for line in note.text.lines() {
            writeln!(out, "<p>{}</p>", escaped(line))?;
        }
    }
    Ok(())
}
