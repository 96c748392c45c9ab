//! Writes the command that computes a slice.

use afterimage_analyses::slices::{Algorithm, Direction, SliceAbout, SliceAlong, SliceQuery};

use crate::shell::{shell_name, shell_word};

/// Returns the command that computes a slice of a recording, for pasting into a shell.
pub fn slice_command(file: &str, query: &SliceQuery) -> String {
    let mut command = format!("afterimage slice {}", shell_name(file));
    let mut option = |name: &str, value: &str| {
        command += &format!(" {name}");
        if !value.is_empty() {
            command += &format!(" {}", shell_word(value));
        }
    };
    match query.about.at() {
        Some(at) => option("--at", at),
        None => option("--trap", ""),
    }
    match &query.about {
        SliceAbout::Statement { .. } | SliceAbout::Trap => {}
        SliceAbout::Operand { operand, .. } => option("--operand", operand),
        SliceAbout::Variable { name, .. } => option("--var", name),
        SliceAbout::Bytes {
            address, length, ..
        } => {
            let last = address.saturating_add(length.saturating_sub(1));
            option("--address", &format!("0x{address:x}..0x{last:x}"));
        }
    }
    if query.direction == Direction::Forward {
        option("--forward", "");
    }
    match query.algorithm {
        Algorithm::Full => {}
        Algorithm::Edges => option("--algorithm", "edges"),
        Algorithm::Nodes => option("--algorithm", "nodes"),
    }
    match query.along {
        SliceAlong::All => {}
        SliceAlong::Data => option("--data-only", ""),
        SliceAlong::Control => option("--control-only", ""),
        SliceAlong::Thin => option("--thin", ""),
    }
    if let Some(chop) = &query.chop {
        option("--chop", chop);
    }
    if let Some(depth) = query.depth {
        option("--depth", &depth.to_string());
    }
    command
}
