//! Writes simulations as comma-separated values.

use std::io::Write;

use afterimage_analyses::simulate::{MissesBy, MissesPlace};

use super::SimulationView;
use super::json::kind_name;
use crate::PresentError;
use crate::csv::{Csv, known};
use crate::steps::StepScene;

/// Writes the rows of simulations, which all have the same kind of place. Values that are unknown
/// or were not simulated are empty fields.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn misses_csv(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    reports: &[SimulationView<'_>],
) -> Result<(), PresentError> {
    let by = reports.first().map_or(MissesBy::Line, |report| report.by);
    let place = match by {
        MissesBy::Line => "file,line",
        MissesBy::Function => "function,name",
        MissesBy::Instruction => "function,name,kind,operator,offset,file,line",
    };
    let header = format!("simulation,{place},executions,missed,missed_second");
    let mut table = Csv::new(out, &header)?;
    for report in reports {
        let simulation = report.summary.spec.to_string();
        for row in report.shown() {
            let mut fields = vec![simulation.clone()];
            let files = scene.source.files();
            let line = |at: Option<(u32, u32)>| match at {
                None => [String::new(), String::new()],
                Some((file, line)) => [
                    files.get(file as usize).cloned().unwrap_or_default(),
                    line.to_string(),
                ],
            };
            match &row.place {
                MissesPlace::Line(at) => {
                    fields.extend(line(at.map(|line| (line.file.0, line.number))));
                }
                MissesPlace::Function(function) => fields.extend([
                    function.as_u32().to_string(),
                    scene.names.function(*function).to_owned(),
                ]),
                MissesPlace::Instruction {
                    kind,
                    function,
                    place,
                    ..
                } => {
                    fields.extend([
                        function.as_u32().to_string(),
                        scene.names.function(*function).to_owned(),
                        kind_name(*kind).to_owned(),
                        place.name.to_string(),
                        place.offset.0.to_string(),
                    ]);
                    fields.extend(line(place.position.map(|at| (at.file.0, at.line))));
                }
            }
            fields.extend([row.tally.executions, row.tally.missed].map(|n| n.to_string()));
            let is_two = report.summary.spec.is_two();
            fields.push(known(is_two.then_some(row.tally.last)));
            table.row(&Vec::from_iter(fields.iter().map(|field| field as _)))?;
        }
    }
    table.finish()
}
