//! Finds the direct dependences of accesses and branches, that is, the operators that computed the
//! addresses and the conditions.

use afterimage_ids::{FuncId, OpId};
use afterimage_program::Program;

use afterimage_replay::values::{Executions, Origin, RecordedValues, ValuesError, dependences};

/// The source of a site's first operand, which is the address of an access or the condition of a
/// branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Producer {
    /// An operator computed or read the operand.
    Operator(FuncId, OpId),
    /// The operand is a constant, or a variable that was never written.
    Constant,
    /// The host passed the operand as an argument or result.
    Host,
}

/// Returns the producers of the first operand in these executions of an operator, with their
/// counts, most frequent first. Leaves out executions in parts of the run without stored values.
///
/// # Errors
/// Returns an error if the trace is damaged.
pub fn producers<'a>(
    values: &RecordedValues<'a>,
    program: &'a Program,
    function: FuncId,
    op: OpId,
    numbers: &[u64],
) -> Result<Vec<(Producer, u64)>, ValuesError> {
    let executions = Executions::of(values, program, function, op)?;
    let mut found: Vec<(Producer, u64)> = Vec::new();
    for &number in numbers {
        let Some(execution) = executions.get(values, number)? else {
            continue;
        };
        let made = match dependences(values, &execution) {
            Ok(made) => made,
            Err(ValuesError::Outside { .. }) => continue,
            Err(error) => return Err(error),
        };
        let Some(first) = made.iter().find(|made| made.value.is_some()) else {
            continue;
        };
        let producer = match first.origin {
            Origin::Operator { instance, op } => {
                let node = &values.path().nodes()[instance.node];
                Producer::Operator(node.function, op)
            }
            Origin::Constant | Origin::Zero | Origin::Initial => Producer::Constant,
            Origin::Argument { .. } | Origin::Returned { .. } | Origin::Host { .. } => {
                Producer::Host
            }
        };
        match found.iter_mut().find(|(known, _)| *known == producer) {
            Some((_, count)) => *count += 1,
            None => found.push((producer, 1)),
        }
    }
    found.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    Ok(found)
}
