//! What the host read: whose bytes they were.

use afterimage_query::steps::Range;
use afterimage_query::values::{HostPart, HostReads, Instance, RecordedValues};
use anyhow::Result;
use serde_json::json;

use super::{Scene, Told};

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
        values: &RecordedValues<'_>,
        part: &HostPart,
        held: &[u8],
    ) -> Result<Told> {
        let Range {
            memory,
            address,
            length,
        } = part.range;
        let (from, mut json) = self.origin(values, part.origin)?;
        let value = shown(held, length);
        json["role"] = json!("memory");
        json["address"] = json!(address);
        json["bytes"] = json!(length);
        json["value"] = json!(value);
        if memory > 0 {
            json["memory"] = json!(memory);
        }
        Ok(Told {
            role: place(part.range),
            value,
            from,
            json,
            further: Vec::new(),
        })
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
