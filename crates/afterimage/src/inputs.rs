//! Compares the data that the host gave to two runs, and the ends of the runs.

use std::collections::HashSet;

use crate::Session;
use afterimage_present::{DiffEnding, grouped};
use afterimage_record::addresses;
use afterimage_replay::state::quoted;
use afterimage_trace::{Ending, Event, HostRead, HostWrite, RawValue};
use anyhow::Result;

use crate::monitor::Note;
use crate::text::pasted;

/// Reports the different input that two versions of a program received from the host, or from the
/// user who recorded them. The message warns that some differences may come from this input.
/// `whatever` completes the message, which ends with "not from what {whatever}".
///
/// # Errors
/// Returns an error if a log is damaged.
pub fn remark_different_inputs(runs: [&Session; 2], whatever: &str) -> Result<()> {
    let others = different_options(runs)?;
    let remark = |text: String| {
        runs[0].monitor().note(runs[0].at(), &Note::Remark(text));
    };
    if !others.is_empty() {
        remark(format!(
            "the runs had different inputs: {}; some differences may come from these, not from \
             what {whatever}",
            others.join(", and ")
        ));
    }
    let (random, other) = first_different_inputs(runs)?;
    let random = random.map(|call| format!("{call} ({SEED})"));
    let other = other.map(|(call, _)| call);
    let calls = Vec::from_iter(random.into_iter().chain(other));
    if !calls.is_empty() {
        let first = match calls.len() {
            1 => "difference is",
            _ => "differences are",
        };
        remark(format!(
            "the host did not give both runs the same data: the first {first} in {}; some \
             differences may come from that, not from what {whatever}",
            calls.join(", and in ")
        ));
    }
    Ok(())
}

/// Reports that two runs of a program received different random numbers, and the first difference
/// in other input.
///
/// # Errors
/// Returns an error if a log is damaged.
pub fn remark_random_numbers(runs: [&Session; 2]) -> Result<()> {
    let (_, other) = first_different_inputs(runs)?;
    let besides = match other {
        Some((call, bytes)) => {
            format!("apart from these, the host first gave different input in {call}{bytes}")
        }
        None => "apart from these, the host gave both runs the same data".to_owned(),
    };
    let text = format!("the runs received different random numbers ({SEED}); {besides}");
    runs[0].monitor().note(runs[0].at(), &Note::Remark(text));
    Ok(())
}

/// Describes how two runs ended, if they ended differently.
///
/// # Errors
/// Returns an error if an ending is damaged.
pub fn endings(runs: [&Session; 2]) -> Result<Option<[DiffEnding; 2]>> {
    let [a, b] = [ending(runs[0])?, ending(runs[1])?];
    Ok((a.text != b.text).then_some([a, b]))
}

fn ending(run: &Session) -> Result<DiffEnding> {
    let ending = run.file().end()?.map(|end| end.ending);
    let file = pasted(run.at());
    let question = ending.as_ref().and_then(|ending| match ending {
        Ending::Returned | Ending::Exited { code: 0 } => None,
        Ending::Exited { .. }
        | Ending::Trapped { .. }
        | Ending::Exception { .. }
        | Ending::StackOverflow => Some(format!("afterimage why {file} --trap")),
        Ending::Interrupted { .. } | Ending::HostError { .. } => {
            Some(format!("afterimage state {file} --at end"))
        }
    });
    Ok(DiffEnding {
        text: ending.map(|ending| ending.to_string()),
        question,
    })
}

/// Describes the inputs that the user chose for the recordings and that differ between the runs.
/// Ignores inputs that neither program requests.
fn different_options(runs: [&Session; 2]) -> Result<Vec<String>> {
    let [a, b] = [runs[0].file().meta()?, runs[1].file().meta()?];
    let asks = |calls: [&str; 2]| {
        let mut imports = runs.iter().flat_map(|run| &run.program().imports);
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

/// The calls with which a program asks for its arguments.
const ARGUMENTS: [&str; 2] = ["args_get", "args_sizes_get"];
/// The call with which a program asks for random numbers.
pub const RANDOM: &str = "random_get";
/// The remedy for different random numbers.
const SEED: &str = "record both with the same --seed to give them the same random numbers";
/// The number of differing bytes to show of an input.
const SHOWN: usize = 24;
/// The calls with which a program asks for its environment.
const ENVIRONMENT: [&str; 2] = ["environ_get", "environ_sizes_get"];

/// Calls that take lists of addresses and lengths to read or write.
const OF_LISTS: [&str; 6] = [
    "fd_read",
    "fd_pread",
    "fd_write",
    "fd_pwrite",
    "sock_recv",
    "sock_send",
];

/// A program's request to the host, and the answer.
struct Exchange {
    name: String,
    args: Vec<RawValue>,
    reads: Vec<HostRead>,
    digest: u32,
    results: Vec<RawValue>,
    writes: Vec<HostWrite>,
}

impl Exchange {
    /// Whether an argument is an address, according to the function's description. An argument of
    /// an unknown function is an address if the host read or wrote there.
    fn is_address(&self, index: usize) -> bool {
        if let Some(known) = addresses(&self.name) {
            return known.contains(&index);
        }
        let bits = match self.args.get(index) {
            Some(RawValue::I32(value)) => u64::from(*value as u32),
            Some(RawValue::I64(value)) => *value as u64,
            _ => return false,
        };
        self.places().any(|address| address == bits)
    }

    /// Returns the addresses that the host read and wrote.
    fn places(&self) -> impl Iterator<Item = u64> + '_ {
        let read = self.reads.iter().map(|read| read.address);
        read.chain(self.writes.iter().map(|write| write.address))
    }

    /// Whether another call to the same function made the same request. Ignores addresses and lists
    /// of addresses, which depend on the version.
    fn is_same_call(&self, other: &Self) -> bool {
        let lengths = |of: &Self| Vec::from_iter(of.reads.iter().map(|read| read.length));
        let has_moved = || self.args != other.args || self.places().ne(other.places());
        let arguments = (0..).zip(self.args.iter().zip(&other.args));
        let mut others = arguments
            .filter(|(_, (x, y))| x != y)
            .map(|(index, _)| index);
        others.all(|index| self.is_address(index) || other.is_address(index))
            && lengths(self) == lengths(other)
            && (self.digest == other.digest
                || OF_LISTS.contains(&self.name.as_str()) && has_moved())
    }

    /// Returns the bytes that the host wrote.
    fn bytes(&self) -> Vec<u8> {
        let writes = self.writes.iter().map(|write| write.bytes.as_slice());
        Vec::from_iter(writes).concat()
    }

    /// Whether both calls returned the same results and bytes.
    fn gave_the_same(&self, other: &Self) -> bool {
        self.results == other.results && self.bytes() == other.bytes()
    }

    /// Describes the first bytes that differ between two calls to `fd_read`, after a colon. Returns
    /// an empty string for other calls, which write numbers.
    fn different_bytes(&self, other: &Self) -> String {
        let read = |of: &Self| {
            let read = of.writes.split_last().map_or(&[][..], |(_, read)| read);
            let read = read.iter().map(|write| write.bytes.as_slice());
            Vec::from_iter(read).concat()
        };
        let [a, b] = [read(self), read(other)];
        if !self.name.ends_with("read") || a == b {
            return String::new();
        }
        let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        let [a, b] = [a, b].map(|bytes| {
            let bytes = &bytes[same..];
            quoted(&bytes[..bytes.len().min(SHOWN)])
        });
        format!(": {a} and {b} from byte {} on", grouped(same as u64))
    }

    /// Returns the file descriptor that the call concerns.
    fn descriptor(&self) -> Option<i32> {
        match self.args.first() {
            Some(&RawValue::I32(descriptor)) if self.name.starts_with("fd_") => Some(descriptor),
            _ => None,
        }
    }

    fn has_succeeded(&self) -> bool {
        matches!(self.results.as_slice(), [RawValue::I32(0)])
    }

    /// Returns the descriptors that refer to a different file, or to none, after this call.
    fn renewed(&self) -> impl Iterator<Item = i32> {
        let number = |index: usize| match self.args.get(index) {
            Some(&RawValue::I32(number)) => Some(number),
            _ => None,
        };
        let opened = || {
            let bytes = self.writes.last()?.bytes.first_chunk::<4>()?;
            Some(i32::from_le_bytes(*bytes))
        };
        let found = match self.name.as_str() {
            _ if !self.has_succeeded() => [None; 2],
            "fd_close" => [number(0), None],
            "fd_renumber" => [number(0), number(1)],
            "path_open" | "sock_accept" => [opened(), None],
            _ => [None; 2],
        };
        found.into_iter().flatten()
    }
}

/// The first call that gave two runs different random numbers, and the first other call that gave
/// them different input. The other call comes with a description of the bytes that it read.
type DifferentInputs = (Option<String>, Option<(String, String)>);

/// Describes the first host calls that made the same request in two runs but got different results
/// or bytes. These are the first call for random numbers, and the first other call. Arguments and
/// the environment are compared elsewhere. Ignores addresses, which depend on the version. Also
/// ignores the contents of a file after the runs have made different requests about it.
fn first_different_inputs(runs: [&Session; 2]) -> Result<DifferentInputs> {
    let calls = |run: &Session| -> Result<_> {
        let imports = &run.program().imports;
        let names = Vec::from_iter(imports.iter().map(|import| import.name.clone()));
        let given = run.file().log()?.filter_map(move |event| match event {
            Ok(Event::HostCall {
                import,
                args,
                results,
                writes,
                reads,
                read_digest,
            }) => {
                let name = names.get(import.as_u32() as usize);
                Some(Ok(Exchange {
                    name: name.cloned().unwrap_or_default(),
                    args,
                    reads,
                    digest: read_digest,
                    results,
                    writes,
                }))
            }
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        });
        Ok(given)
    };
    let [a, b] = runs;
    let mut otherwise: HashSet<i32> = HashSet::new();
    let mut random = None;
    for (number, (a, b)) in (1u64..).zip(calls(a)?.zip(calls(b)?)) {
        let (a, b): (Exchange, Exchange) = (a?, b?);
        let mut known = ARGUMENTS.iter().chain(&ENVIRONMENT);
        // If the functions differ, another message reports that the runs acted differently.
        if a.name != b.name || known.any(|name| *name == a.name) {
            continue;
        }
        let of = [a.descriptor(), b.descriptor()];
        for renewed in a.renewed().chain(b.renewed()) {
            otherwise.remove(&renewed);
        }
        if !a.is_same_call(&b) {
            // A failed call changes nothing.
            if a.has_succeeded() || b.has_succeeded() {
                otherwise.extend(of.into_iter().flatten());
            }
            continue;
        }
        let is_followed = of.iter().flatten().any(|of| otherwise.contains(of));
        if !is_followed && !a.gave_the_same(&b) {
            let call = format!("host call {}, {}", grouped(number), a.name);
            if a.name == RANDOM {
                random.get_or_insert(call);
            } else {
                return Ok((random, Some((call, a.different_bytes(&b)))));
            }
        }
    }
    Ok((random, None))
}
