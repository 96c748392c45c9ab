//! Checks the program output that is stored in a file.

use afterimage_trace::{Event, HostRead, LogReader, RawValue};
use afterimage_wet::{MOST_PRINTED, Printed, is_printing};

use super::{HostReads, HostReadsError};

/// A host call that wrote output.
struct Call {
    number: u64,
    /// The number of bytes that the host read.
    length: u64,
    digest: u32,
}

/// The calls in the log that wrote output.
struct Calls<'h, 'a> {
    host: &'h HostReads<'h, 'a>,
    log: LogReader,
    number: u64,
}

impl Calls<'_, '_> {
    /// Returns the next call whose output a file may store.
    fn next(&mut self) -> Result<Option<Call>, HostReadsError> {
        let imports = &self.host.run.program.imports;
        while let Some(event) = self.log.next().transpose()? {
            let (Event::HostCall {
                import,
                args,
                reads,
                read_digest,
                ..
            }
            | Event::HostStop {
                import,
                args,
                reads,
                read_digest,
                ..
            }) = event
            else {
                continue;
            };
            self.number += 1;
            let import = imports.get(import.as_u32() as usize);
            let is_it = import.zip(args.first()).is_some_and(|(import, first)| {
                let RawValue::I32(descriptor) = *first else {
                    return false;
                };
                is_printing(&import.module, &import.name, u64::from(descriptor as u32))
            });
            let length = reads.iter().map(|read: &HostRead| read.length).sum();
            let is_guests = self.host.host()?.of_guest(self.number).is_some();
            if is_it && is_guests && length <= MOST_PRINTED as u64 {
                return Ok(Some(Call {
                    number: self.number,
                    length,
                    digest: read_digest,
                }));
            }
        }
        Ok(None)
    }
}

impl HostReads<'_, '_> {
    /// Checks that the stored output is complete and agrees with the log and the path. Returns the
    /// fault, or `None` if there is no fault.
    ///
    /// # Errors
    /// Returns an error if another part of the recording is damaged.
    pub(in crate::values) fn check_printed(&self) -> Result<Option<String>, HostReadsError> {
        let Some(known) = self.known_printed()? else {
            return Ok(None);
        };
        let mut calls = Calls {
            host: self,
            log: self.file.log()?,
            number: 0,
        };
        let mut wrong = None;
        known.each(|printed| {
            if wrong.is_none() {
                let logged = calls.next()?;
                wrong = self.compare(&printed, logged.as_ref())?;
            }
            Ok::<(), HostReadsError>(())
        })?;
        if wrong.is_none()
            && let Some(next) = calls.next()?
        {
            let time = match self.time_of(next.number) {
                // The log of a run that was cut off may continue beyond its path.
                Err(HostReadsError::Damaged(_)) if self.file.end()?.is_none() => None,
                found => found?,
            };
            if time.is_some_and(|time| time <= known.length()) {
                wrong = Some(format!("call {} is missing", next.number));
            }
        }
        Ok(wrong)
    }

    /// Returns the time of a call by the guest. Returns `None` if the recording was cut off,
    /// because the log alone does not show the time.
    fn time_of(&self, call: u64) -> Result<Option<u64>, HostReadsError> {
        match self.caller(call) {
            Err(error) if error.is_cut() => Ok(None),
            found => Ok(Some(found?.last())),
        }
    }

    fn compare(
        &self,
        printed: &Printed<'_>,
        logged: Option<&Call>,
    ) -> Result<Option<String>, HostReadsError> {
        let Some(logged) = logged.filter(|logged| logged.number == printed.call) else {
            return Ok(Some(format!("call {} is not the next call", printed.call)));
        };
        let time = self.time_of(logged.number)?;
        let same = printed.digest() == logged.digest
            && printed.bytes.len() as u64 == logged.length
            && time.is_none_or(|time| printed.time == time);
        Ok((!same).then(|| format!("call {} differs from the recorded call", printed.call)))
    }
}
