//! Describes the host's part in dependences: the origins of the bytes that it read, and the results
//! that it gave.

use afterimage_present::{Dependence, DependsOn, HostGave};
use afterimage_replay::steps::Range;
use afterimage_replay::values::{HostPart, Instance};
use anyhow::{Context, Result};

use super::{Finder, Point};

/// The maximum number of bytes to show for each part.
const SHOWN: u64 = 24;

impl Finder<'_, '_> {
    /// Adds the parts that the host read in the call at the end of an execution.
    pub(super) fn host_parts(
        &self,
        instance: Instance,
        parts: &[HostPart],
        all: &mut Vec<(Dependence, Option<Point>)>,
    ) -> Result<()> {
        if parts.is_empty() {
            return Ok(());
        }
        let ranges = parts.iter().map(|part| Range {
            length: part.range.length.min(SHOWN),
            ..part.range
        });
        let ranges = Vec::from_iter(ranges);
        let held = self.scene.host.bytes(instance, &ranges)?;
        for (part, contents) in parts.iter().zip(held) {
            let (from, point) = self.origin(part.origin)?;
            let dependence = Dependence {
                read: Some(part.range.into()),
                contents,
                ..Dependence::new("memory", from)
            };
            all.push((dependence, point));
        }
        Ok(())
    }

    /// Describes the host's writes in a call, or one of the call's results. There is no caller if
    /// the host acted on its own.
    pub(super) fn of_host(
        &self,
        call: u64,
        caller: Option<Instance>,
        result: Option<u32>,
    ) -> Result<(DependsOn, Option<Point>)> {
        let values = self.scene.values;
        let logged = values.host()?.get(call)?;
        let logged = logged.context("a host call is not in the log")?;
        let imports = &self.scene.traced.program().imports;
        let import = imports.get(logged.import.as_u32() as usize);
        let import = import.context("an import is not in the program")?;
        let mut gave = HostGave {
            import: format!("{}.{}", import.module, import.name),
            call,
            result: result.map(|result| result + 1),
            called: None,
        };
        let Some(instance) = caller else {
            return Ok((DependsOn::Host(gave), None));
        };
        let node = &values.path().nodes()[instance.node];
        let last = node.blocks.last();
        let op = last.and_then(|&block| self.last_op(node.function, block));
        let op = op.context("a block has no operators")?;
        gave.called = Some(self.executed(instance, op)?);
        let takes = true;
        let point = Point {
            instance,
            op,
            takes,
        };
        Ok((DependsOn::Host(gave), Some(point)))
    }
}
