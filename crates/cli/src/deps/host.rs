//! What the host read: whose bytes they were.

use afterimage_present::grouped;
use afterimage_replay::steps::Range;
use afterimage_replay::values::{HostPart, HostReads, Instance, RecordedValues};
use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{DependenceRow, Line, Point, Scene};
use crate::output::harmless;

/// So many bytes of a part are shown.
const SHOWN: u64 = 24;

impl<'a> Scene<'a> {
    /// The first bytes of parts that the host read in the call that an execution ends with.
    pub(super) fn held(
        &self,
        host: &HostReads<'_, 'a>,
        instance: Instance,
        parts: &[HostPart],
    ) -> Result<Vec<Vec<u8>>> {
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let ranges = parts.iter().map(|part| Range {
            length: part.range.length.min(SHOWN),
            ..part.range
        });
        Ok(host.bytes(instance, &Vec::from_iter(ranges))?)
    }

    /// Tells of a part.
    pub(super) fn host_part(
        &self,
        host: &HostReads<'_, 'a>,
        part: &HostPart,
        held: &[u8],
    ) -> Result<(DependenceRow, Option<Point>)> {
        let Range {
            memory,
            address,
            length,
        } = part.range;
        let (from, mut json, point) = self.origin(host, part.origin)?;
        let value = shown(held, length);
        json["role"] = json!("memory");
        json["address"] = json!(address);
        json["bytes"] = json!(length);
        json["value"] = json!(value);
        if memory > 0 {
            json["memory"] = json!(memory);
        }
        let told = DependenceRow {
            role: place(part.range),
            value,
            from,
            json,
            further: Vec::new(),
        };
        Ok((told, point))
    }

    /// What the host wrote in a call, or which of its results it is: the function that was called, and where. Nobody called it, if the host did something by itself.
    pub(super) fn of_host(
        &self,
        values: &RecordedValues<'_>,
        call: u64,
        caller: Option<Instance>,
        result: Option<u32>,
    ) -> Result<(Line, Value, Option<Point>)> {
        let logged = values.host()?.get(call)?;
        let logged = logged.context("a call of the host that the log does not have")?;
        let imports = &self.traced.program().imports;
        let import = imports.get(logged.import.as_u32() as usize);
        let import = import.context("an import that the program does not have")?;
        let import = format!("{}.{}", import.module, import.name);
        let name = harmless(&import);
        let what = match result {
            None => format!("what the host's {name} wrote, call {}", grouped(call)),
            Some(0) => format!("what the host's {name} returned, call {}", grouped(call)),
            Some(result) => format!(
                "result {} of the host's {name}, call {}",
                result + 1,
                grouped(call)
            ),
        };
        let mut json = json!({ "from": "host", "import": import, "call": call });
        if let Some(result) = result {
            json["result"] = json!(result + 1);
        }
        let Some(instance) = caller else {
            let line = Line {
                before: what,
                ..Line::default()
            };
            return Ok((line, json, None));
        };
        let function = values.path().nodes()[instance.node].function;
        let last = values.path().nodes()[instance.node].blocks.last();
        let op = last.and_then(|&block| self.last_op(function, block));
        let op = op.context("a block without operators")?;
        let (time, function, offset) = self.when(values, instance, op)?;
        json["time"] = json!(time);
        json["function"] = json!(self.names.function(function));
        json["offset"] = json!(offset.0);
        let line = Line {
            after: format!(": {what}"),
            ..Line::at(time, function, offset)
        };
        let takes = true;
        let point = Point {
            instance,
            op,
            takes,
        };
        Ok((line, json, Some(point)))
    }
}

/// Where the host read.
pub(super) fn place(range: Range) -> String {
    let Range {
        memory,
        address,
        length,
    } = range;
    let of = match memory {
        0 => "memory".to_owned(),
        other => format!("memory {other},"),
    };
    match length {
        1 => format!("{of} 0x{address:x}"),
        _ => format!(
            "{of} 0x{address:x}..0x{:x}",
            address.wrapping_add(length - 1)
        ),
    }
}

/// Bytes as text where they are, otherwise as hexadecimal digits.
fn shown(held: &[u8], length: u64) -> String {
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
    let few = &held[..held.len().min(SHOWN as usize / 2)];
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
