//! Makes tampered recordings, which have correct checksums but incorrect contents.

use afterimage_testkit::modules::SplitMix64;
use afterimage_trace::{Kind, TraceFile};

/// The length of a chunk's header in bytes.
const HEADER: usize = 40;
/// The flag of the last chunk.
const LAST: u8 = 1;
const NAMED: u8 = 2;

/// The values to write in place of numbers.
const NUMBERS: [u64; 12] = [
    0,
    1,
    0x7f,
    0x80,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 40,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// A chunk, as it will be written.
#[derive(Clone, Debug)]
struct Chunk {
    kind: u16,
    flags: u8,
    section: u32,
    sequence: u32,
    first: u64,
    name: Option<String>,
    bytes: Vec<u8>,
    /// False lengths for the header.
    lengths: Option<(u32, u32)>,
}

/// A recording in parts.
#[derive(Clone, Debug)]
pub struct Parts {
    chunks: Vec<Chunk>,
}

impl Parts {
    pub fn of(file: &TraceFile) -> Self {
        let mut chunks = Vec::new();
        for number in 0.. {
            let Some(mut section) = file.section(number) else {
                break;
            };
            let name = section.name().unwrap().map(str::to_owned);
            let all = section.chunks();
            for sequence in 0..all {
                assert!(section.advance().unwrap());
                let last = sequence + 1 == all && section.is_complete();
                let name = name.clone().filter(|_| sequence == 0);
                let named = if name.is_some() { NAMED } else { 0 };
                chunks.push(Chunk {
                    kind: section.kind().0,
                    flags: if last { LAST } else { 0 } | named,
                    section: number as u32,
                    sequence: sequence as u32,
                    first: section.first(),
                    name,
                    bytes: section.bytes().to_vec(),
                    lengths: None,
                });
            }
        }
        Self { chunks }
    }

    /// Whether there is a path, so that no command executes the program to build it.
    pub fn is_built(&self) -> bool {
        let has = |kind: Kind| self.chunks.iter().any(|chunk| chunk.kind == kind.0);
        has(Kind::PATHS) && has(Kind::PATH_INDEX)
    }

    /// Returns the file, with or without an index and a footer.
    pub fn write(&self, footer: bool) -> Vec<u8> {
        let mut out = b"\x89AFT\r\n\x1a\n\x01\0\x03\0".to_vec();
        seal(&mut out, 0);
        let mut index = Vec::new();
        for chunk in &self.chunks {
            index.extend((out.len() as u64).to_le_bytes());
            let at = out.len();
            chunk.write(&mut out);
            index.extend_from_slice(&out[at..at + HEADER]);
        }
        if footer {
            let at = out.len();
            let chunk = Chunk {
                kind: Kind::INDEX.0,
                flags: LAST,
                section: 0,
                sequence: 0,
                first: 0,
                name: None,
                bytes: index,
                lengths: None,
            };
            chunk.write(&mut out);
            let (start, length) = (out.len(), out.len() - at);
            out.extend_from_slice(b"AFTEND\r\n");
            out.extend((at as u64).to_le_bytes());
            out.extend((length as u64).to_le_bytes());
            out.extend(1u32.to_le_bytes());
            seal(&mut out, start);
        }
        out
    }

    /// Changes a part of the recording. `other` supplies parts of another recording. Returns a
    /// description of the change.
    pub fn mutate(&mut self, other: &Parts, random: &mut SplitMix64) -> String {
        let at = self.choose(random);
        let what = random.below(16);
        let count = self.chunks.len();
        let chunk = &mut self.chunks[at];
        let named = format!("{what} in {} {}", Kind(chunk.kind), chunk.sequence);
        match what {
            0..=8 => change(&mut chunk.bytes, what, random),
            9 => {
                let number = NUMBERS[random.below(NUMBERS.len())];
                match random.below(5) {
                    0 => chunk.first = number,
                    1 => chunk.section = number as u32,
                    2 => chunk.sequence = number as u32,
                    3 => chunk.kind = random.below(14) as u16,
                    _ => chunk.flags ^= LAST,
                }
            }
            10 => {
                let number = NUMBERS[random.below(NUMBERS.len())] as u32;
                let (stored, raw) = (chunk.bytes.len() as u32, chunk.bytes.len() as u32);
                chunk.lengths = Some(match random.below(3) {
                    0 => (number, raw),
                    1 => (stored, number),
                    _ => (stored.wrapping_add(1), raw.wrapping_sub(1)),
                });
            }
            11 => {
                self.chunks.remove(at);
            }
            12 => {
                let mut copy = chunk.clone();
                if random.below(2) == 0 {
                    copy.section = count as u32 + 1;
                } else {
                    copy.sequence += 1;
                }
                let to = random.below(count + 1);
                self.chunks.insert(to, copy);
            }
            13 => {
                let with = random.below(count);
                let bytes = std::mem::take(&mut self.chunks[at].bytes);
                let bytes = std::mem::replace(&mut self.chunks[with].bytes, bytes);
                self.chunks[at].bytes = bytes;
            }
            14 => {
                let to = random.below(count);
                self.chunks.swap(at, to);
            }
            _ => {
                let fits = |of: &&Chunk| of.kind == chunk.kind;
                if let Some(lent) = other.chunks.iter().find(fits) {
                    chunk.bytes.clone_from(&lent.bytes);
                }
            }
        }
        if self.chunks.is_empty() {
            self.chunks.clone_from(&other.chunks);
        }
        named
    }

    /// Chooses a chunk. All kinds are equally likely except the module, which is parsed first.
    fn choose(&self, random: &mut SplitMix64) -> usize {
        let mut kinds = Vec::from_iter(self.chunks.iter().map(|chunk| chunk.kind));
        kinds.sort_unstable();
        kinds.dedup();
        if random.below(8) > 0 {
            kinds.retain(|&kind| kind != Kind::MODULE.0);
        }
        if kinds.is_empty() {
            return 0;
        }
        let kind = kinds[random.below(kinds.len())];
        let of_kind = self.chunks.iter().enumerate();
        let of_kind = Vec::from_iter(of_kind.filter(|(_, chunk)| chunk.kind == kind));
        of_kind[random.below(of_kind.len())].0
    }
}

impl Chunk {
    fn write(&self, out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        if let Some(name) = &self.name {
            payload.push(name.len() as u8);
            payload.extend_from_slice(name.as_bytes());
        }
        payload.extend_from_slice(&self.bytes);
        let lengths = (payload.len() as u32, self.bytes.len() as u32);
        let (stored, raw) = self.lengths.unwrap_or(lengths);
        let at = out.len();
        out.extend_from_slice(b"AFTC");
        out.extend(self.kind.to_le_bytes());
        // Store the bytes uncompressed.
        out.extend([0, self.flags]);
        out.extend(self.section.to_le_bytes());
        out.extend(self.sequence.to_le_bytes());
        out.extend(self.first.to_le_bytes());
        out.extend(stored.to_le_bytes());
        out.extend(raw.to_le_bytes());
        out.extend(crc32fast::hash(&payload).to_le_bytes());
        seal(out, at);
        out.extend(payload);
    }
}

/// Changes bytes.
pub fn change(bytes: &mut Vec<u8>, what: usize, random: &mut SplitMix64) {
    if bytes.is_empty() {
        bytes.push(random.next() as u8);
        return;
    }
    let at = random.below(bytes.len());
    let end = |random: &mut SplitMix64| (at + 1 + random.below(24)).min(bytes.len());
    match what {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = NUMBERS[random.below(NUMBERS.len())] as u8,
        2 => {
            let end = end(random);
            let piece = bytes[at..end].to_vec();
            bytes.splice(at..at, piece);
        }
        3 => {
            let end = end(random);
            bytes.drain(at..end);
        }
        4 => bytes.truncate(at),
        5 => {
            // Replace a number in LEB128 by another.
            let rest = bytes[at..].iter().position(|byte| byte & 0x80 == 0);
            let end = rest.map_or(bytes.len(), |rest| at + rest + 1);
            let mut number = NUMBERS[random.below(NUMBERS.len())];
            let mut leb = Vec::new();
            while number >= 0x80 {
                leb.push(number as u8 | 0x80);
                number >>= 7;
            }
            leb.push(number as u8);
            bytes.splice(at..end, leb);
        }
        6 => {
            let number = NUMBERS[random.below(NUMBERS.len())].to_le_bytes();
            let width = [2, 4, 8][random.below(3)].min(bytes.len() - at);
            bytes[at..at + width].copy_from_slice(&number[..width]);
        }
        7 => {
            for _ in 0..8 {
                let at = random.below(bytes.len());
                bytes[at] = random.next() as u8;
            }
        }
        _ => {
            let end = end(random);
            let to = random.below(bytes.len());
            let piece = bytes[at..end].to_vec();
            bytes.splice(to..to, piece);
        }
    }
}

/// Appends the checksum of the bytes from `start`.
fn seal(out: &mut Vec<u8>, start: usize) {
    let crc = crc32fast::hash(&out[start..]);
    out.extend(crc.to_le_bytes());
}
