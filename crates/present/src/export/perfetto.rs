//! Writes calls over time in the JSON format of Chrome's tracing, which Perfetto reads.
//!
//! A call is a pair of events `B` and `E`. The format needs the name of the call only in `B`.
//! However, both events have it, because speedscope and Chrome's DevTools pair events by name.
//! Merged calls are one event `X`, whose `args` hold the number of calls. Events are written in
//! order of time, without holding them in memory.

use std::io::Write;

use afterimage_replay::whole_path::{Timeline, TimelineEvent};
use afterimage_wpp::Segments;
use serde_json::json;

use super::timeline::{CLOCK, TimelineHead, merged_name};
use crate::PresentError;
use crate::trace::unreadable;

/// Writes a timeline.
///
/// # Errors
/// Returns an error if `out` fails, or the path cannot be read.
pub fn perfetto<S: Segments>(
    out: &mut dyn Write,
    head: &TimelineHead<'_>,
    timeline: &mut Timeline<'_, S>,
) -> Result<(), PresentError>
where
    S::Error: Send + Sync,
{
    let metadata = json!({
        "clock": CLOCK,
        "tool": "afterimage",
        "program": head.program,
        "first_block": head.window.first,
        "last_block": head.window.last,
        "calls_shorter_are_merged": head.limits.min,
        "calls_deeper_are_merged": deepest(head),
    });
    let named = |kind: &str, name: &str| json!({"ph": "M", "pid": 1, "tid": 1, "name": kind, "args": {"name": name}});
    write!(
        out,
        "{{\"displayTimeUnit\":\"ms\",\"otherData\":{metadata},\"traceEvents\":[\n{},\n{}",
        named("process_name", head.program),
        named("thread_name", CLOCK)
    )?;
    let mut open = Vec::new();
    while let Some(event) = timeline.next_event().map_err(unreadable)? {
        out.write_all(b",\n")?;
        match event {
            TimelineEvent::Begin { function, time } => {
                let name = head.names.function(function);
                open.push(name);
                edge(out, 'B', time, name)?;
            }
            TimelineEvent::End { time } => {
                edge(out, 'E', time, open.pop().unwrap_or_default())?;
            }
            TimelineEvent::Merged {
                why,
                from,
                to,
                calls,
                blocks,
                left_out,
            } => {
                let dur = to - from;
                write!(
                    out,
                    "{{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":{from},\"dur\":{dur},\"name\":"
                )?;
                serde_json::to_writer(&mut *out, &merged_name(why, head.limits))?;
                write!(out, ",\"args\":{{\"calls\":{calls},\"blocks\":{blocks}")?;
                if left_out > 0 {
                    write!(out, ",\"left_out\":{left_out}")?;
                }
                out.write_all(b"}}")?;
            }
        }
    }
    writeln!(out, "\n]}}")?;
    Ok(())
}

/// Writes the event at which a call begins or ends.
fn edge(out: &mut dyn Write, phase: char, time: u64, name: &str) -> Result<(), PresentError> {
    write!(
        out,
        "{{\"ph\":\"{phase}\",\"pid\":1,\"tid\":1,\"ts\":{time},\"name\":"
    )?;
    serde_json::to_writer(&mut *out, name)?;
    out.write_all(b"}")?;
    Ok(())
}

/// Returns the deepest level that is shown separately; `None` for all levels.
fn deepest(head: &TimelineHead<'_>) -> Option<usize> {
    Some(head.limits.depth).filter(|&depth| depth < usize::MAX)
}
