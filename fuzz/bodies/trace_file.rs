//! Reads everything in a trace file. The reader may refuse, but it must not panic or take
//! disproportionate memory.

use afterimage_trace::TraceFile;

/// The lengths of the file header and of a chunk's header.
const FILE_HEADER: usize = 16;
const CHUNK_HEADER: usize = 40;

/// Reads the bytes as they are, and again with all checksums corrected, to reach the data behind
/// the checksums.
pub fn read_everything(bytes: &[u8]) {
    read(bytes.to_vec());
    read(sealed(bytes.to_vec()));
}

fn read(bytes: Vec<u8>) {
    let Ok(file) = TraceFile::from_bytes(bytes) else {
        return;
    };
    let _ = (
        file.meta(),
        file.module(),
        file.end(),
        file.counts(),
        file.sections(),
    );
    if let Ok(Some(sources)) = file.sources() {
        for (path, _) in sources.files() {
            let _ = sources.read(path);
        }
    }
    if let Ok(log) = file.log() {
        log.for_each(drop);
    }
    let report = file.verify();
    assert!(
        report.is_sound()
            || report
                .findings
                .iter()
                .all(|finding| !finding.text.is_empty())
    );
}

/// Returns the bytes as a file of chunks with correct labels and checksums, as far as they go.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() < FILE_HEADER {
        return bytes;
    }
    bytes[..12].copy_from_slice(b"\x89AFT\r\n\x1a\n\x01\0\0\0");
    seal(&mut bytes[..FILE_HEADER]);
    let mut rest = &mut bytes[FILE_HEADER..];
    while rest.len() >= CHUNK_HEADER {
        let (header, after) = rest.split_at_mut(CHUNK_HEADER);
        // Lengths that do not fit are adjusted: the low bits decide.
        let stored = u16::from_le_bytes([header[24], header[25]]) as usize % (after.len() + 1);
        let (payload, next) = after.split_at_mut(stored);
        header[..4].copy_from_slice(b"AFTC");
        // Five kinds are known; some chunks have an unknown kind.
        header[5] = 0;
        header[4] %= 8;
        header[24..28].copy_from_slice(&(stored as u32).to_le_bytes());
        header[31] = 0;
        header[32..36].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
        seal(header);
        rest = next;
    }
    bytes
}

fn seal(bytes: &mut [u8]) {
    let (body, crc) = bytes.split_at_mut(bytes.len() - 4);
    crc.copy_from_slice(&crc32fast::hash(body).to_le_bytes());
}
