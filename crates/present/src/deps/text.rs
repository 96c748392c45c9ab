//! Writes dependences as text: a tree that indents each step.

use std::io::Write;

use afterimage_ids::OrigOffset;
use afterimage_profile::SourceLine;

use super::{
    BlockRun, Dependence, DependsOn, DepsAlong, DepsDirection, DepsExecution, DepsReport,
    DepsStatement, DepsUse, DepsUsers, HostGave, OperatorUse, UsedBy,
};
use crate::document::objects::{Function, MemoryRange, TypedValue};
use crate::number::counted;
use crate::own::OwnPlace;
use crate::plain::plain;
use crate::{PresentError, grouped};

pub(super) fn report(out: &mut dyn Write, report: &DepsReport) -> Result<(), PresentError> {
    for (i, statement) in report.statements.iter().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        head(out, statement)?;
        if statement.is_empty() {
            writeln!(out, "  {}", nothing(report, Some(statement)))?;
        }
        if let Some(dependences) = &statement.dependences {
            tree(out, dependences, 1)?;
        }
        if let Some(users) = &statement.users {
            users_tree(out, users, 1)?;
        }
    }
    if report.statements.is_empty() {
        let (nothing, at) = (nothing(report, None), plain(&report.at));
        writeln!(
            out,
            "{at}: {nothing}: no statement decides or calls anything there"
        )?;
    }
    Ok(())
}

fn head(out: &mut dyn Write, statement: &DepsStatement) -> Result<(), PresentError> {
    let execution = &statement.execution;
    writeln!(
        out,
        "#{} t={}  {}{}",
        grouped(statement.number),
        grouped(execution.t),
        operator(execution),
        gave(&statement.values, statement.trapped.as_deref())
    )?;
    Ok(())
}

/// Returns the message for an empty result.
fn nothing(report: &DepsReport, statement: Option<&DepsStatement>) -> &'static str {
    let trapped = statement.is_some_and(|statement| statement.trapped.is_some());
    match (report.direction, report.along) {
        (DepsDirection::Forward, _) if trapped => {
            "nothing depends on it: it trapped and gave no value"
        }
        (DepsDirection::Forward, DepsAlong::Control) => "nothing depends on it by control",
        (DepsDirection::Forward, DepsAlong::Data) => "nothing uses its result",
        (DepsDirection::Forward, DepsAlong::Both) => "nothing in the program depends on it",
        (DepsDirection::Backward, DepsAlong::Data) => {
            "it depends on no data: it has no operands and reads nothing"
        }
        (DepsDirection::Backward, _) => "it depends on nothing",
    }
}

fn tree(out: &mut dyn Write, all: &[Dependence], depth: usize) -> Result<(), PresentError> {
    let rows = all.iter().map(|one| (role(one), value(one)));
    let rows = Vec::from_iter(rows);
    let roles = rows.iter().map(|row| row.0.len()).max().unwrap_or(0);
    let wide = rows.iter().map(|row| row.1.len()).max().unwrap_or(0);
    for (one, (role, value)) in all.iter().zip(rows) {
        writeln!(
            out,
            "{:indent$}{role:<roles$}  {value:<wide$}  ← {}",
            "",
            origin(&one.from),
            indent = 2 * depth
        )?;
        tree(out, &one.dependences, depth + 1)?;
    }
    Ok(())
}

fn users_tree(out: &mut dyn Write, users: &DepsUsers, depth: usize) -> Result<(), PresentError> {
    let indent = 2 * depth;
    let roles = Vec::from_iter(users.uses.iter().map(role_of_use));
    let width = roles.iter().map(String::len).max().unwrap_or(0);
    for (one, role) in users.uses.iter().zip(roles) {
        let to = match &one.to {
            UsedBy::Operator(by) => format!(
                "{}{}",
                at(&by.execution),
                gave(&by.values, by.trapped.as_deref())
            ),
            UsedBy::Block(block) => run(block),
        };
        writeln!(out, "{:indent$}{role:<width$}  → {to}", "")?;
        if let Some(further) = &one.further {
            users_tree(out, further, depth + 1)?;
        }
    }
    if users.more > 0 {
        let more = grouped(users.more);
        writeln!(out, "{:indent$}… {more} more: --limit N", "")?;
    }
    for unknown in &users.unknown {
        writeln!(out, "{:indent$}? {unknown}", "")?;
    }
    Ok(())
}

fn role(of: &Dependence) -> String {
    match &of.read {
        Some(range) => place(range),
        None => with_count(&of.role, of.bytes, of.elements),
    }
}

fn role_of_use(of: &DepsUse) -> String {
    match &of.to {
        UsedBy::Operator(OperatorUse {
            read: Some(range), ..
        }) => place(range),
        UsedBy::Operator(by) => with_count(&of.role, by.bytes, by.elements),
        UsedBy::Block(_) => of.role.clone(),
    }
}

fn with_count(role: &str, bytes: Option<u64>, elements: Option<u64>) -> String {
    match (bytes, elements) {
        (Some(bytes), _) => format!("{role} ({})", counted(bytes, "byte")),
        (None, Some(many @ 2..)) => format!("{role} ({many} elements)"),
        (None, _) => role.to_owned(),
    }
}

fn value(of: &Dependence) -> String {
    match (&of.value, &of.read) {
        (Some(value), _) => value.text.clone(),
        (None, Some(range)) => shown(&of.contents, range.bytes),
        (None, None) => String::new(),
    }
}

/// Describes the origin of a dependence.
fn origin(from: &DependsOn) -> String {
    match from {
        DependsOn::Operator(execution)
        | DependsOn::Branch(execution)
        | DependsOn::Call(execution)
        | DependsOn::Throw(execution) => at(execution),
        DependsOn::Block { t } => format!("t={}", grouped(*t)),
        DependsOn::Host(host) => host_gave(host),
        DependsOn::HostCall => "the host's call".to_owned(),
        DependsOn::Argument { argument } => format!("the host's call: argument {argument}"),
        DependsOn::Constant => "constant".to_owned(),
        DependsOn::Zero => "a local that nothing wrote".to_owned(),
        DependsOn::Module => "the module: nothing wrote it before".to_owned(),
        DependsOn::More { parts } => format!("… {} more parts: --limit N", grouped(*parts)),
        DependsOn::Unknown { why } => why.clone(),
    }
}

fn host_gave(host: &HostGave) -> String {
    let (name, call) = (plain(&host.import), grouped(host.call));
    let what = match host.result {
        None => format!("what the host's {name} wrote, call {call}"),
        Some(1) => format!("what the host's {name} returned, call {call}"),
        Some(result) => format!("result {result} of the host's {name}, call {call}"),
    };
    match &host.called {
        Some(called) => format!("{}: {what}", at(called)),
        None => what,
    }
}

/// Formats the time and the operator.
fn at(execution: &DepsExecution) -> String {
    format!("t={}  {}", grouped(execution.t), operator(execution))
}

fn operator(execution: &DepsExecution) -> String {
    format!(
        "@{} {}{}",
        OrigOffset(execution.offset),
        plain(&execution.operator),
        place_of(
            execution.own.as_ref(),
            execution.source.as_ref(),
            &execution.function
        )
    )
}

/// Describes a block that ran because of a decision or call.
fn run(block: &BlockRun) -> String {
    let t = grouped(block.t);
    let place = place_of(block.own.as_ref(), block.source.as_ref(), &block.function);
    let (Some(first), Some(last)) = (block.offset, block.last_offset) else {
        return format!("t={t}  a block without operators{place}");
    };
    let (first, last) = (OrigOffset(first), OrigOffset(last));
    let statements = counted(block.statements as u64, "statement");
    format!("t={t}  @{first}..@{last}, {statements}{place}")
}

fn place_of(own: Option<&OwnPlace>, line: Option<&SourceLine>, function: &Function) -> String {
    format!("  {}", OwnPlace::text(own, line, &function.name))
}

/// Formats the values that an execution gave.
fn gave(values: &[TypedValue], trapped: Option<&str>) -> String {
    match trapped {
        Some(why) => format!("  trapped ({why})"),
        None if values.is_empty() => String::new(),
        None => {
            let texts = values.iter().map(|value| value.text.as_str());
            format!(" = {}", Vec::from_iter(texts).join(", "))
        }
    }
}

/// Describes the bytes that the host read.
fn place(range: &MemoryRange) -> String {
    let &MemoryRange {
        memory,
        address,
        bytes,
    } = range;
    let of = match memory {
        0 => "memory".to_owned(),
        other => format!("memory {other},"),
    };
    match bytes {
        1 => format!("{of} 0x{address:x}"),
        _ => format!(
            "{of} 0x{address:x}..0x{:x}",
            address.wrapping_add(bytes - 1)
        ),
    }
}

/// Formats the first bytes of a range, as text if they are printable and otherwise in hexadecimal.
fn shown(held: &[u8], length: u64) -> String {
    /// The maximum number of bytes to show in hexadecimal.
    const DIGITS: usize = 12;
    let more = if length > held.len() as u64 {
        "…"
    } else {
        ""
    };
    let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t');
    if let Ok(text) = str::from_utf8(held)
        && held.iter().all(is_text)
    {
        return format!("{text:?}{more}");
    }
    let few = &held[..held.len().min(DIGITS)];
    let more = if length > few.len() as u64 {
        " …"
    } else {
        ""
    };
    let digits = few.iter().map(|byte| format!("{byte:02x}"));
    format!("{}{more}", Vec::from_iter(digits).join(" "))
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn bytes_are_text_or_digits() {
        assert_eq!(shown(b"a\"b\n", 4), r#""a\"b\n""#);
        assert_eq!(shown(b"it's", 4), "\"it's\"");
        assert_eq!(shown(b"ab", 9), "\"ab\"…");
        assert_eq!(shown(&[0, 255], 2), "00 ff");
        assert_eq!(shown(&[1; 24], 30), "01 01 01 01 01 01 01 01 01 01 01 01 …");
    }
}
