//! Declares the guest bytes that each WASI preview 1 function reads and writes.
//!
//! Comparing all memory before and after every call would cost more than the call itself. A test
//! makes this comparison, and checks that no declaration is missing.

use afterimage_trace::{HostRead, RawValue};

/// The effect of a pointer argument.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    /// Writes `.1` bytes at the address in argument `.0`.
    Write(usize, u64),
    /// Writes at the address in argument `.0`. Argument `.1` is the number of bytes.
    WriteLen(usize, usize),
    /// Writes at the address in argument `.0`. The number of bytes is `.2` times the word that the
    /// call leaves at the address in argument `.1`.
    WriteUsed(usize, usize, u64),
    /// Writes into the vectors at the address in argument `.0`. Argument `.1` is their number. The
    /// call stores the number of bytes that it wrote in a word at the address in argument `.2`.
    WriteVectors(usize, usize, usize),
    /// Reads items of `.2` bytes at the address in argument `.0`. Argument `.1` is their number.
    ReadLen(usize, usize, u64),
    /// Reads the vectors at the address in argument `.0`, and the bytes they point to. Argument
    /// `.1` is the number of vectors.
    ReadVectors(usize, usize),
    /// Writes pointers to the command-line arguments at the address in argument `.0`, and their
    /// strings at the address in argument `.1`.
    Arguments(usize, usize),
    /// Writes pointers to the environment variables at the address in argument `.0`, and their
    /// strings at the address in argument `.1`.
    Environment(usize, usize),
}

/// The number of strings, and their total size in bytes, including the terminating zeros.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Strings {
    pub count: u64,
    pub bytes: u64,
}

impl Strings {
    pub(crate) fn of<'a>(strings: impl Iterator<Item = usize> + 'a) -> Self {
        strings.fold(Self::default(), |s, len| Self {
            count: s.count + 1,
            bytes: s.bytes + len as u64 + 1,
        })
    }
}

/// Returns the effects of a WASI preview 1 function by name, or `None` for other names.
pub(crate) fn effects(name: &str) -> Option<&'static [Effect]> {
    use Effect::{
        Arguments, Environment, ReadLen, ReadVectors, Write, WriteLen, WriteUsed, WriteVectors,
    };
    Some(match name {
        "args_get" => &[Arguments(0, 1)],
        "args_sizes_get" | "environ_sizes_get" => &[Write(0, 4), Write(1, 4)],
        "environ_get" => &[Environment(0, 1)],
        "clock_res_get" => &[Write(1, 8)],
        "clock_time_get" => &[Write(2, 8)],
        "fd_advise"
        | "fd_allocate"
        | "fd_close"
        | "fd_datasync"
        | "fd_fdstat_set_flags"
        | "fd_fdstat_set_rights"
        | "fd_filestat_set_size"
        | "fd_filestat_set_times"
        | "fd_renumber"
        | "fd_sync"
        | "proc_exit"
        | "proc_raise"
        | "sched_yield"
        | "sock_shutdown" => &[],
        "fd_fdstat_get" => &[Write(1, 24)],
        "fd_filestat_get" => &[Write(1, 64)],
        "fd_pread" => &[WriteVectors(1, 2, 4), Write(4, 4)],
        "fd_prestat_get" => &[Write(1, 8)],
        "fd_prestat_dir_name" => &[WriteLen(1, 2)],
        "fd_pwrite" => &[ReadVectors(1, 2), Write(4, 4)],
        "fd_read" => &[WriteVectors(1, 2, 3), Write(3, 4)],
        "fd_readdir" => &[WriteUsed(1, 4, 1), Write(4, 4)],
        "fd_seek" => &[Write(3, 8)],
        "fd_tell" => &[Write(1, 8)],
        "fd_write" => &[ReadVectors(1, 2), Write(3, 4)],
        "path_create_directory" | "path_remove_directory" | "path_unlink_file" => {
            &[ReadLen(1, 2, 1)]
        }
        "path_filestat_get" => &[ReadLen(2, 3, 1), Write(4, 64)],
        "path_filestat_set_times" => &[ReadLen(2, 3, 1)],
        "path_link" => &[ReadLen(2, 3, 1), ReadLen(5, 6, 1)],
        "path_open" => &[ReadLen(2, 3, 1), Write(8, 4)],
        "path_readlink" => &[ReadLen(1, 2, 1), WriteUsed(3, 5, 1), Write(5, 4)],
        "path_rename" => &[ReadLen(1, 2, 1), ReadLen(4, 5, 1)],
        "path_symlink" => &[ReadLen(0, 1, 1), ReadLen(3, 4, 1)],
        "poll_oneoff" => &[ReadLen(0, 2, 48), WriteUsed(1, 3, 32), Write(3, 4)],
        "random_get" => &[WriteLen(0, 1)],
        "sock_accept" => &[Write(2, 4)],
        "sock_recv" => &[WriteVectors(1, 2, 4), Write(4, 4), Write(5, 2)],
        "sock_send" => &[ReadVectors(1, 2), Write(4, 4)],
        _ => return None,
    })
}

/// Returns the indices of the address arguments of a WASI preview 1 function, in ascending order,
/// or `None` for other names.
pub fn addresses(name: &str) -> Option<Vec<usize>> {
    use Effect::{
        Arguments, Environment, ReadLen, ReadVectors, Write, WriteLen, WriteUsed, WriteVectors,
    };
    let of = |effect: &Effect| match *effect {
        Write(at, _) | WriteLen(at, _) | ReadLen(at, ..) | ReadVectors(at, _) => [at; 2],
        WriteUsed(at, used, _) | WriteVectors(at, _, used) => [at, used],
        Arguments(pointers, strings) | Environment(pointers, strings) => [pointers, strings],
    };
    let mut found: Vec<usize> = effects(name)?.iter().flat_map(of).collect();
    found.sort_unstable();
    found.dedup();
    Some(found)
}

/// A range of guest memory, inside its bounds.
pub(crate) type Span = std::ops::Range<usize>;

fn argument(args: &[RawValue], i: usize) -> u64 {
    match args.get(i) {
        Some(RawValue::I32(v)) => u64::from(*v as u32),
        Some(RawValue::I64(v)) => *v as u64,
        _ => 0,
    }
}

/// Converts a guest range if it lies in memory. The host rejects other ranges without touching
/// them.
fn span(memory: &[u8], address: u64, length: u64) -> Option<Span> {
    let end = address.checked_add(length)?;
    (end <= memory.len() as u64).then_some(address as usize..end as usize)
}

fn word(memory: &[u8], address: u64) -> u64 {
    let bytes = span(memory, address, 4).map(|s| &memory[s]);
    bytes.map_or(0, |b| {
        u64::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    })
}

fn vectors(memory: &[u8], at: u64, count: u64) -> impl Iterator<Item = Span> + '_ {
    (0..count).map_while(move |i| {
        let entry = at + 8 * i;
        span(memory, entry, 8)?;
        span(memory, word(memory, entry), word(memory, entry + 4))
    })
}

/// Determines the bytes that the host will read. Call this before the function runs.
pub(crate) fn reads(effects: &[Effect], args: &[RawValue], memory: &[u8], out: &mut Vec<HostRead>) {
    out.clear();
    let mut add = |span: Option<Span>| {
        if let Some(span) = span.filter(|s| !s.is_empty()) {
            out.push(HostRead {
                memory: 0,
                address: span.start as u64,
                length: span.len() as u64,
            });
        }
    };
    for effect in effects {
        match *effect {
            Effect::ReadLen(at, count, size) => {
                add(span(
                    memory,
                    argument(args, at),
                    argument(args, count).saturating_mul(size),
                ));
            }
            Effect::ReadVectors(at, count) => {
                let (at, count) = (argument(args, at), argument(args, count));
                add(span(memory, at, count.saturating_mul(8)));
                vectors(memory, at, count).for_each(|s| add(Some(s)));
            }
            Effect::WriteVectors(at, count, _) => {
                add(span(
                    memory,
                    argument(args, at),
                    argument(args, count).saturating_mul(8),
                ));
            }
            _ => {}
        }
    }
}

/// Lists the vectors that the host may fill, in order. Call this before the function runs, because
/// the host may overwrite the list.
pub(crate) fn targets(effects: &[Effect], args: &[RawValue], memory: &[u8], out: &mut Vec<Span>) {
    out.clear();
    for effect in effects {
        if let Effect::WriteVectors(at, count, _) = *effect {
            out.extend(vectors(memory, argument(args, at), argument(args, count)));
        }
    }
}

/// Facts gathered before a call. They determine the bytes that the call may write.
#[derive(Clone, Copy)]
pub(crate) struct BeforeCall<'t> {
    /// The vectors that the host may fill, from [`targets`].
    pub targets: &'t [Span],
    /// The number and size of the program's arguments.
    pub arguments: Strings,
    /// The number and size of the program's environment variables.
    pub environment: Strings,
}

/// Determines the bytes that the host wrote. Call this after the function has succeeded.
pub(crate) fn writes(
    effects: &[Effect],
    args: &[RawValue],
    memory: &[u8],
    before: BeforeCall<'_>,
    out: &mut Vec<Span>,
) {
    out.clear();
    let mut add = |span: Option<Span>| out.extend(span.filter(|s| !s.is_empty()));
    for effect in effects {
        match *effect {
            Effect::Write(at, size) => add(span(memory, argument(args, at), size)),
            Effect::WriteLen(at, len) => add(span(memory, argument(args, at), argument(args, len))),
            Effect::WriteUsed(at, used, size) => {
                let length = word(memory, argument(args, used)).saturating_mul(size);
                add(span(memory, argument(args, at), length));
            }
            Effect::WriteVectors(_, _, used) => {
                let mut left = word(memory, argument(args, used)) as usize;
                for target in before.targets {
                    let length = target.len().min(left);
                    add(Some(target.start..target.start + length));
                    left -= length;
                }
            }
            Effect::Arguments(pointers, strings) | Effect::Environment(pointers, strings) => {
                let sizes = if matches!(effect, Effect::Arguments(..)) {
                    before.arguments
                } else {
                    before.environment
                };
                add(span(memory, argument(args, pointers), 4 * sizes.count));
                add(span(memory, argument(args, strings), sizes.bytes));
            }
            Effect::ReadLen(..) | Effect::ReadVectors(..) => {}
        }
    }
}
