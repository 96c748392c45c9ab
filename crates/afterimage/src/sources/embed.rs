//! Embeds source files in a recording.
//!
//! Writes the files under given folders, the *roots*, into the recording, if the program's debug
//! information names them.
//!
//! A program may name any file of the user who records it, such as a private key. So a path is
//! resolved, including all symbolic links, before its file is opened. The file is then opened from
//! the root, folder by folder, without following links that may have been created in the meantime.
//! No other file is read.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use afterimage_present::{counted, grouped, size};
use afterimage_program::SourceMap;
use afterimage_trace::TraceWriter;
use anyhow::{Context, Result, bail};
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::{LARGEST_SOURCE, SourceFiles};

/// The sources to embed.
pub struct Embedding {
    /// The files under a root, by their paths in the debug information.
    files: Vec<Chosen>,
    /// For each file that seems to be under a root but is not embedded, a sentence with the reason.
    refused: Vec<String>,
    /// The number of files in the debug information that are not under a root.
    elsewhere: usize,
    /// The number of files that do not exist.
    missing: usize,
}

/// A file under a root.
struct Chosen {
    /// The file's path in the debug information.
    path: String,
    /// The file's place on disk.
    place: PathBuf,
    root: PathBuf,
    /// The file's place relative to the root, without links.
    inner: PathBuf,
    length: u64,
    written: Option<SystemTime>,
}

/// The maximum number of files to list before the program runs.
const LISTED: usize = 20;
/// The maximum number of files to name in a sentence.
const NAMED: usize = 3;

impl Embedding {
    /// Chooses the files that the debug information names and that are under a root.
    ///
    /// # Errors
    /// Returns an error if a root does not exist or is not a folder, or there is no file under any
    /// root.
    pub fn choose(
        roots: &[PathBuf],
        source: &SourceMap<'_>,
        sources: &SourceFiles,
    ) -> Result<Self> {
        let roots = roots.iter().map(|root| {
            let found = root.canonicalize();
            let found = found.with_context(|| format!("--sources {}", root.display()))?;
            if !found.is_dir() {
                bail!("--sources {}: not a folder", root.display());
            }
            Ok(found)
        });
        let roots = roots.collect::<Result<Vec<_>>>()?;
        let mut chosen = Self {
            files: Vec::new(),
            refused: Vec::new(),
            elsewhere: 0,
            missing: 0,
        };
        for path in source.files() {
            chosen.consider(path, &roots, sources);
        }
        chosen.files.sort_by(|a, b| a.path.cmp(&b.path));
        if chosen.files.is_empty() {
            let why = match (source.files().len(), chosen.refused.first()) {
                (0, _) => format!("no source file is known{}", source.missing().hint()),
                (_, Some(refused)) => refused.clone(),
                (_, None) => format!(
                    "no source file of the program is in the given folders; {} in other folders, \
                     and {} not found; say where they are with --source-path OLD=NEW",
                    plural(chosen.elsewhere, ["is", "are"]),
                    plural(chosen.missing, ["was", "were"]),
                ),
            };
            bail!("--sources: {why}");
        }
        Ok(chosen)
    }

    fn consider(&mut self, path: &str, roots: &[PathBuf], sources: &SourceFiles) {
        let Some(place) = sources.locate(path) else {
            self.missing += 1;
            return;
        };
        let Ok(real) = place.canonicalize() else {
            self.missing += 1;
            return;
        };
        let inside = |place: &Path| {
            let mut under = roots.iter().filter(|root| place.starts_with(root));
            under.next().cloned()
        };
        let inner = inside(&real).and_then(|root| {
            let inner = real.strip_prefix(&root).ok()?.to_owned();
            Some((root, inner))
        });
        let Some((root, inner)) = inner else {
            let folder = place.parent().and_then(|folder| folder.canonicalize().ok());
            let seems = std::path::absolute(&place).ok();
            let seems = seems.as_deref().and_then(inside).is_some();
            // The folder may be under a root even if the file's path in the debug information is
            // not.
            if seems || folder.as_deref().and_then(inside).is_some() {
                self.refused.push(format!(
                    "{} leads out of the folders of --sources, to {}: not embedded",
                    place.display(),
                    real.display()
                ))
            } else {
                self.elsewhere += 1
            }
            return;
        };
        let data = fs::metadata(&real).ok();
        self.files.push(Chosen {
            path: path.to_owned(),
            place,
            root,
            inner,
            length: data.as_ref().map_or(0, fs::Metadata::len),
            written: data.and_then(|data| data.modified().ok()),
        });
    }

    /// Lists the files that will be embedded and the files that will not, line by line. `out` is
    /// the recording, and `program` the program.
    pub fn lines(&self, out: &Path, program: &Path) -> Vec<String> {
        let bytes = self.files.iter().map(|file| file.length).sum();
        let mut lines = vec![format!(
            "embedding {}, {}, in {}:",
            counted(self.files.len() as u64, "source file"),
            size(bytes),
            out.display()
        )];
        for file in self.files.iter().take(LISTED) {
            let from = if Path::new(&file.path) == file.place {
                String::new()
            } else {
                format!(" from {}", file.place.display())
            };
            lines.push(format!("  {}{from}, {}", file.path, size(file.length)));
        }
        if let Some(more) = self.files.len().checked_sub(LISTED + 1) {
            lines.push(format!(
                "  and {} more; afterimage info --sources lists all",
                grouped(more as u64 + 1)
            ));
        }
        lines.extend(self.refused.iter().cloned());
        if self.elsewhere > 0 || self.missing > 0 {
            let count = |count: usize| grouped(count as u64);
            let others = counted((self.elsewhere + self.missing) as u64, "other source file");
            lines.push(match (self.elsewhere, self.missing) {
                (0, _) => format!("did not embed {others}: not found"),
                (_, 0) => format!("did not embed {others}: in other folders"),
                (elsewhere, missing) => format!(
                    "did not embed {others}: {} in other folders, {} not found",
                    count(elsewhere),
                    count(missing)
                ),
            });
        }
        lines.extend(self.newer(program));
        lines
    }

    /// Returns the message about files that were written after the program.
    fn newer(&self, program: &Path) -> Option<String> {
        let made = fs::metadata(program)
            .and_then(|data| data.modified())
            .ok()?;
        let newer = self
            .files
            .iter()
            .filter(|file| file.written.is_some_and(|written| written > made));
        let newer = Vec::from_iter(newer);
        let named = newer.iter().take(NAMED).map(|file| file.path.as_str());
        let mut named = named.collect::<Vec<_>>().join(", ");
        if let Some(more) = newer.len().checked_sub(NAMED + 1) {
            named = format!("{named} and {} more", grouped(more as u64 + 1));
        }
        (!newer.is_empty()).then(|| {
            format!(
                "newer than the program: {named}: the program may have been compiled from \
                other lines"
            )
        })
    }

    /// Writes the files. They may have changed or disappeared since they were chosen, so returns a
    /// sentence for each file that could not be embedded.
    ///
    /// # Errors
    /// Returns an error if the recording cannot be written.
    pub fn write(&self, out: &TraceWriter) -> Result<Vec<String>> {
        let mut section = out.sources()?;
        let mut lost = Vec::new();
        for file in &self.files {
            match file.read() {
                Ok(text) => section.add(&file.path, &text)?,
                Err(error) => lost.push(format!("{}: {error}: not embedded", file.place.display())),
            }
        }
        section.finish()?;
        Ok(lost)
    }
}

/// Formats a number with the right form of its noun.
fn plural(count: usize, [one, many]: [&str; 2]) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{} {many}", grouped(count as u64)),
    }
}

impl Chosen {
    fn read(&self) -> io::Result<Vec<u8>> {
        let file = beneath(&self.root, &self.inner)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no longer a file"));
        }
        let mut text = Vec::new();
        file.take(LARGEST_SOURCE + 1).read_to_end(&mut text)?;
        if text.len() as u64 > LARGEST_SOURCE {
            return Err(io::Error::other("it is larger than 64 MiB"));
        }
        Ok(text)
    }
}

/// Opens a file by its path from `root`. It is an error if a component on the way is a symbolic
/// link, or not a folder. Does not wait for a pipe.
fn beneath(root: &Path, inner: &Path) -> io::Result<File> {
    let open = |folder: &_, name: &OsStr, flags| {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        openat(folder, name, flags, Mode::empty())
    };
    let root = openat(
        CWD,
        root,
        OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY,
        Mode::empty(),
    );
    let mut at = root?;
    let mut parts = inner.components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let flags = match parts.peek() {
            Some(_) => OFlags::DIRECTORY,
            None => OFlags::NONBLOCK,
        };
        at = open(&at, name, flags)?;
    }
    Ok(File::from(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const TEXT: &str = "(module (func (export \"f\") nop))";

    #[test]
    fn what_changes_after_it_was_chosen_leads_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        let own = root.join("src/a.wat");
        let secret = folder.path().join("secret");
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir(&secret).unwrap();
        fs::write(secret.join("a.wat"), "do not share").unwrap();
        let mut parser = wat::Parser::new();
        parser.generate_dwarf(wat::GenerateDwarf::Full);
        let module = parser.parse_str(Some(&own), TEXT).unwrap();
        let map = SourceMap::build(&module);
        let path = own.to_str().unwrap();
        let embedded = |number: u32, change: &dyn Fn()| {
            fs::write(&own, TEXT).unwrap();
            let sources = SourceFiles::new(&root, super::super::SourcePaths::default());
            let roots = [root.clone()];
            let chosen = Embedding::choose(&roots, &map, &sources).unwrap();
            change();
            let at = folder.path().join(format!("{number}.aft"));
            let out = TraceWriter::create(&at, afterimage_trace::Existing::Kept).unwrap();
            let lost = chosen.write(&out).unwrap();
            out.commit().unwrap();
            let file = afterimage_trace::TraceFile::open(&at).unwrap();
            let text = file.sources().unwrap().unwrap().read(path).unwrap();
            (text.map(|text| String::from_utf8(text).unwrap()), lost)
        };
        let (text, lost) = embedded(0, &|| ());
        assert_eq!((text.as_deref(), lost.len()), (Some(TEXT), 0));
        // The embedded contents are the contents at the time of reading.
        let (text, lost) = embedded(1, &|| fs::write(&own, "other").unwrap());
        assert_eq!((text.as_deref(), lost.len()), (Some("other"), 0));
        let goes = || fs::remove_file(&own).unwrap();
        let is_linked = || {
            goes();
            symlink(secret.join("a.wat"), &own).unwrap();
        };
        let is_folder = || {
            goes();
            fs::create_dir(&own).unwrap();
        };
        let grows = || {
            let file = File::create(&own).unwrap();
            file.set_len(LARGEST_SOURCE + 1).unwrap();
        };
        let its_folder_is_linked = || {
            fs::remove_dir_all(root.join("src")).unwrap();
            symlink(&secret, root.join("src")).unwrap();
        };
        let changes: [(&dyn Fn(), &str); 5] = [
            (&goes, "No such file"),
            (&is_linked, "symbolic links"),
            (&is_folder, "no longer a file"),
            (&grows, "larger than 64 MiB"),
            (&its_folder_is_linked, "Not a directory"),
        ];
        for (number, (change, why)) in (2..).zip(changes) {
            let (text, lost) = embedded(number, change);
            assert_eq!(text, None, "{why}");
            assert!(
                lost[0].contains(why) && lost[0].ends_with(": not embedded"),
                "{lost:?}"
            );
            let _ = fs::remove_file(&own).or_else(|_| fs::remove_dir(&own));
        }
    }

    fn read(root: &Path, inner: &str) -> io::Result<String> {
        let mut text = String::new();
        beneath(root, Path::new(inner))?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn no_link_is_followed_from_the_root_on() {
        let folder = tempfile::tempdir().unwrap();
        let (root, secret) = (folder.path().join("root"), folder.path().join("secret"));
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir(&secret).unwrap();
        fs::write(root.join("src/a.c"), "own").unwrap();
        fs::write(secret.join("key"), "secret").unwrap();
        symlink(secret.join("key"), root.join("src/link.c")).unwrap();
        symlink(&secret, root.join("folder")).unwrap();
        assert_eq!(read(&root, "src/a.c").unwrap(), "own");
        for way in [
            "src/link.c",
            "folder/key",
            "../secret/key",
            "src",
            "/etc/passwd",
        ] {
            let found = read(&root, way);
            assert!(found.is_err(), "{way}: {found:?}");
        }
    }
}
