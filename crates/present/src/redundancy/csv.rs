//! Writes redundancy as a table.

use std::io::Write;

use super::{RedundancyReport, RedundancyScene};
use crate::PresentError;
use crate::addresses::Shown;
use crate::csv::Csv;

/// Writes redundant operators as comma-separated values, with a row for each operator and its first
/// source.
///
/// # Errors
/// Returns an error if `out` fails or the module does not match the program.
pub fn redundancy_csv(
    out: &mut dyn Write,
    scene: &RedundancyScene<'_>,
    report: &RedundancyReport,
) -> Result<(), PresentError> {
    let header = "function,name,offset,operator,file,line,executions,redundant,same_call,by_path,source_function,source_offset,source_operator,source_times";
    let mut table = Csv::new(out, header)?;
    let steps = &scene.steps;
    for operator in &report.operators {
        let shown = Shown::of(steps, operator.site)?;
        let (file, line) = shown.file_and_line(steps);
        let mut fields = vec![
            operator.site.function.as_u32().to_string(),
            steps.names.function(operator.site.function).to_owned(),
            shown.offset.0.to_string(),
            shown.name,
            file,
            line,
            operator.executions.to_string(),
            operator.redundant.to_string(),
            operator.within.to_string(),
            report
                .path(operator)
                .map_or(String::new(), |by_path| by_path.redundant.to_string()),
        ];
        match operator.sources.first() {
            Some(source) => {
                let shown = Shown::of(steps, source.site)?;
                fields.extend([
                    source.site.function.as_u32().to_string(),
                    shown.offset.0.to_string(),
                    shown.name,
                    source.times.to_string(),
                ]);
            }
            None => fields.extend(std::iter::repeat_n(String::new(), 4)),
        }
        table.row(&Vec::from_iter(fields.iter().map(|field| field as _)))?;
    }
    table.finish()
}
