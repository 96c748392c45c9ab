//! Whether the host gave two runs the same, and whether they ended alike.

use afterimage_present::{DiffEnding, grouped};
use afterimage_trace::{Ending, Event, RawValue};
use anyhow::Result;

use crate::lens::Traced;
use crate::output::{pasted, say};

/// Says where the host gave two runs of versions of a program something else, or whoever recorded them did: what differs then differs `whatever` happened.
///
/// # Errors
/// If a log is damaged.
pub(crate) fn say_if_given_otherwise(runs: [&Traced; 2], whatever: &str) -> Result<()> {
    let others = recorded_otherwise(runs)?;
    if !others.is_empty() {
        say(format_args!(
            "the runs were not given the same: {}; what depends on that differs whatever {whatever}",
            others.join(", and ")
        ));
    }
    if let Some(call) = given_otherwise(runs)? {
        say(format_args!(
            "the host did not give both runs the same: first in {call}; what depends on that differs whatever {whatever}",
        ));
    }
    Ok(())
}

/// How two runs ended, if one did otherwise than the other.
///
/// # Errors
/// If an ending is damaged.
pub(crate) fn endings(runs: [&Traced; 2]) -> Result<Option<[DiffEnding; 2]>> {
    let [a, b] = [ending(runs[0])?, ending(runs[1])?];
    Ok((a.text != b.text).then_some([a, b]))
}

fn ending(run: &Traced) -> Result<DiffEnding> {
    let ending = run.file.end()?.map(|end| end.ending);
    let file = pasted(&run.at);
    let question = ending.as_ref().and_then(|ending| match ending {
        Ending::Returned | Ending::Exited { code: 0 } => None,
        Ending::Exited { .. } | Ending::Trapped { .. } | Ending::Exception { .. } => {
            Some(format!("afterimage why {file} --trap"))
        }
        Ending::Interrupted { .. } | Ending::StackOverflow | Ending::HostError { .. } => {
            Some(format!("afterimage state {file} --at end"))
        }
    });
    Ok(DiffEnding {
        text: ending.map(|ending| ending.to_string()),
        question,
    })
}

/// What whoever recorded the runs gave them otherwise, in words, if the programs ask for it.
fn recorded_otherwise(runs: [&Traced; 2]) -> Result<Vec<String>> {
    let [a, b] = [runs[0].file.meta()?, runs[1].file.meta()?];
    let asks = |calls: [&str; 2]| {
        let mut imports = runs.iter().flat_map(|run| &run.loaded.program.imports);
        imports.any(|import| calls.contains(&import.name.as_str()))
    };
    let mut others = Vec::new();
    if asks(ARGUMENTS) && a.program_name != b.program_name {
        others.push(format!(
            "the program's own name ({}, {})",
            a.program_name, b.program_name
        ));
    }
    if asks(ARGUMENTS) && a.args != b.args {
        others.push("the arguments".to_owned());
    }
    if asks(ENVIRONMENT) && a.env != b.env {
        others.push("the environment".to_owned());
    }
    Ok(others)
}

/// By which calls a program asks for its arguments.
const ARGUMENTS: [&str; 2] = ["args_get", "args_sizes_get"];
/// And for its environment.
const ENVIRONMENT: [&str; 2] = ["environ_get", "environ_sizes_get"];

/// The first call of the host that gave two runs different results or bytes, in words. Arguments and the environment are known otherwise; where they were put depends on the version, and is
/// not compared.
fn given_otherwise(runs: [&Traced; 2]) -> Result<Option<String>> {
    type Given = (String, Vec<RawValue>, Vec<u8>);
    let calls = |run: &Traced| -> Result<_> {
        let imports = &run.loaded.program.imports;
        let names = Vec::from_iter(imports.iter().map(|import| import.name.clone()));
        let given = run.file.log()?.filter_map(move |event| match event {
            Ok(Event::HostCall {
                import,
                results,
                writes,
                ..
            }) => {
                let name = names
                    .get(import.as_u32() as usize)
                    .cloned()
                    .unwrap_or_default();
                let bytes = writes.into_iter().flat_map(|write| write.bytes);
                Some(Ok((name, results, bytes.collect())))
            }
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        });
        Ok(given)
    };
    let [a, b] = runs;
    for (number, (a, b)) in (1u64..).zip(calls(a)?.zip(calls(b)?)) {
        let (a, b): (Given, Given) = (a?, b?);
        let mut known = ARGUMENTS.iter().chain(&ENVIRONMENT);
        let is_known = known.any(|name| *name == a.0);
        // If they are different functions, it is said elsewhere that the runs did not do the same.
        if a != b && a.0 == b.0 && !is_known {
            return Ok(Some(format!(
                "call {} of the host, {}",
                grouped(number),
                a.0
            )));
        }
    }
    Ok(None)
}
