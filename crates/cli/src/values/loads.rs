//! What all loads of a program read.

use afterimage::Session;
use afterimage::steps::follow;
use afterimage_present::{
    PresentError, StepScene, load_values_json, load_values_text, loaded_binary, loaded_json,
    loaded_text,
};
use afterimage_replay::steps::{LoadedStretches, Operators, load_values};
use anyhow::Result;

use super::{Arguments, Format};
use crate::output::write;

/// Lines that text has on standard output if nothing else is asked for.
const LINES: u64 = 100;

pub(super) fn answer(arguments: &Arguments, traced: &Session) -> Result<()> {
    let loaded = traced.module();
    let source = &traced.source_map();
    let names = &loaded.names(source);
    let operators = Operators::new(&loaded.program, &loaded.bytes, source);
    let scene = StepScene {
        names,
        operators: &operators,
        source,
        memories: loaded.program.memories,
        style: arguments.report.style(),
    };
    let out = arguments.report.output.as_deref();
    let screen = arguments.format == Format::Text && out.is_none();
    let limit = arguments.limit.or(screen.then_some(LINES));
    if !arguments.each {
        let loads = follow(traced, |run, log| Ok(load_values(run, log)?))?;
        return write(out, false, |out| {
            match arguments.format {
                Format::Text => {
                    if load_values_text(out, &scene, &loads, limit)? {
                        writeln!(out, "… and more: see them with --limit N, or -o FILE")?;
                    }
                }
                Format::Json | Format::Bin => load_values_json(out, &scene, &loads)?,
            }
            Ok(())
        });
    }
    follow(traced, |run, log| {
        let mut stretches = LoadedStretches::new(run, log)?;
        let mut next = || {
            let next = stretches.next();
            next.map_err(|error| PresentError::Path(Box::new(error)))
        };
        write(out, arguments.format == Format::Bin, |out| {
            match arguments.format {
                Format::Text => {
                    if loaded_text(out, &scene, &mut next, limit)? {
                        writeln!(out, "… and more: see them with --limit N, or -o FILE")?;
                    }
                }
                Format::Json => loaded_json(out, &scene, &mut next, limit)?,
                Format::Bin => loaded_binary(out, &scene, &mut next, limit)?,
            }
            Ok(())
        })
    })
}
