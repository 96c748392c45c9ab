//! Two versions of a program that ran on the same input.

use std::path::Path;

use afterimage::Session;
use afterimage::given::{endings, say_if_given_otherwise};
use afterimage::steps::follow;
use afterimage_analyses::diff::{Side, output_differences};
use afterimage_analyses::matching::{divergences, match_runs, same_names, suspects};
use afterimage_present::{MatchReport, MatchSide, VersionsView, render};
use afterimage_replay::steps::Operators;
use anyhow::Result;

use super::{Arguments, Format};
use crate::matching::sketched;
use crate::output::write;

pub(super) fn compare(
    arguments: &Arguments,
    places: [&Path; 2],
    a: &Session,
    b: &Session,
) -> Result<()> {
    say_if_given_otherwise([a, b], "was changed in the program")?;
    let (of_a, of_b) = sketched(places, [a, b])?;
    let sources = (a.source_map(), b.source_map());
    let names = (a.module().names(&sources.0), b.module().names(&sources.1));
    let same = same_names((a.program(), &names.0), (b.program(), &names.1));
    let (found, diverging, suspects, outputs) = follow(a, |run_a, _| {
        follow(b, |run_b, _| {
            let logs = (|| a.file().log(), || b.file().log());
            let outputs = output_differences(
                Side {
                    run: run_a,
                    log: &logs.0,
                },
                Side {
                    run: run_b,
                    log: &logs.1,
                },
            )?;
            let runs = [(run_a, &logs.0 as _), (run_b, &logs.1 as _)];
            let found = match_runs([&of_a, &of_b], Some(&same), runs)?;
            let diverging = divergences([&of_a, &of_b], &found, runs)?;
            let suspects = suspects([&of_a, &of_b], &found);
            Ok((found.matching, diverging, suspects, outputs))
        })
    })?;
    let operators = (
        Operators::new(a.program(), a.bytes(), &sources.0),
        Operators::new(b.program(), b.bytes(), &sources.1),
    );
    let texts = places.map(|place| place.display().to_string());
    let endings = endings([a, b])?;
    let report = MatchReport {
        a: MatchSide {
            name: &texts[0],
            names: &names.0,
            operators: &operators.0,
            source: &sources.0,
            sketched: &of_a,
        },
        b: MatchSide {
            name: &texts[1],
            names: &names.1,
            operators: &operators.1,
            source: &sources.1,
            sketched: &of_b,
        },
        matching: &found,
        divergences: &diverging,
        endings: endings.as_ref(),
        accuracy: None,
        names_used: true,
        top: arguments.top,
        all: false,
    };
    let out = arguments.output.as_deref();
    let style = arguments.color.style(out);
    let view = VersionsView {
        report,
        suspects,
        outputs,
    };
    write(out, false, |out| {
        render(out, &view, arguments.format, style)?;
        match arguments.format {
            Format::Text => arguments.slices(out, [a, b], &view.questions()?),
            _ => Ok(()),
        }
    })
}
