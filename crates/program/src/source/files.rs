//! The table of source files.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use gimli::{FileEntry, LineProgramHeader};

use super::{FileId, Slice};

/// The source files, with each path listed once.
#[derive(Debug, Default)]
pub(super) struct FileTable {
    paths: Vec<String>,
    /// The MD5 digest of each file's text, if the debug information has one (DWARF 5, section
    /// 6.2.4.1).
    digests: Vec<Option<[u8; 16]>>,
    by_path: HashMap<String, FileId>,
}

impl FileTable {
    pub(super) fn paths(&self) -> &[String] {
        &self.paths
    }

    pub(super) fn digests(&self) -> impl Iterator<Item = (&str, [u8; 16])> {
        let files = self.paths.iter().zip(&self.digests);
        files.filter_map(|(path, digest)| Some((path.as_str(), (*digest)?)))
    }

    /// Adds a file. If units were compiled from different versions of the file, the file gets no
    /// digest.
    fn insert(&mut self, path: String, digest: Option<[u8; 16]>) -> FileId {
        match self.by_path.entry(path) {
            Entry::Occupied(known) => {
                let known = *known.get();
                let other = &mut self.digests[known.0 as usize];
                if *other != digest {
                    *other = None;
                }
                known
            }
            Entry::Vacant(new) => {
                self.paths.push(new.key().clone());
                self.digests.push(digest);
                *new.insert(FileId(self.paths.len() as u32 - 1))
            }
        }
    }

    /// Adds the files of a unit's line table. The result has the same indices as the table. `left`
    /// is the remaining budget for bytes of paths. When a path exceeds the budget, the budget
    /// becomes 0, and this file and all later files have no path.
    pub(super) fn enter<'a>(
        &mut self,
        dwarf: &gimli::Dwarf<Slice<'a>>,
        unit: &gimli::Unit<Slice<'a>>,
        header: &LineProgramHeader<Slice<'a>>,
        left: &mut usize,
    ) -> Vec<Option<FileId>> {
        let unit = unit.unit_ref(dwarf);
        let mut enter = |index| {
            if *left == 0 {
                return None;
            }
            let file = header.file(index)?;
            let path = full_path(unit, header, file).ok()?;
            let digest = header.file_has_md5().then(|| *file.md5());
            // Assemblers write zeros for a digest that they do not know.
            let digest = digest.filter(|digest| *digest != [0; 16]);
            *left = left.saturating_sub(path.len());
            (*left > 0).then(|| self.insert(path, digest))
        };
        (0..=header.file_names().len() as u64)
            .map(&mut enter)
            .collect()
    }
}

/// Builds the path of a file from the unit's working directory, the file's directory and its name.
/// Each of the three may be absolute (DWARF 5, section 6.2.4).
fn full_path<'a>(
    unit: gimli::UnitRef<'_, Slice<'a>>,
    header: &LineProgramHeader<Slice<'a>>,
    file: &FileEntry<Slice<'a>>,
) -> gimli::Result<String> {
    let mut path = unit
        .comp_dir
        .map_or(Cow::Borrowed(""), |dir| dir.to_string_lossy())
        .into_owned();
    // Directory 0 is the working directory.
    if file.directory_index() != 0
        && let Some(directory) = file.directory(header)
    {
        join(&mut path, &unit.attr_string(directory)?.to_string_lossy());
    }
    join(
        &mut path,
        &unit.attr_string(file.path_name())?.to_string_lossy(),
    );
    Ok(simplified(&path))
}

/// Removes `.` and `folder/..` from a path, so that one file has one path. Symbolic links are not
/// resolved.
pub(super) fn simplified(path: &str) -> String {
    let (scheme, rest) = match path.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => path.split_at(path.len() - rest.len()),
        _ => ("", path),
    };
    let separator = if rest.contains('/') { '/' } else { '\\' };
    let is_dotted = |part: &str| part.is_empty() || part == "." || part == "..";
    if !rest.split(separator).skip(1).any(is_dotted) && !rest.starts_with("./") {
        return path.to_owned();
    }
    let mut kept: Vec<&str> = Vec::new();
    for (at, part) in rest.split(separator).enumerate() {
        match part {
            // The first component is the root.
            "" if at > 0 => {}
            "." => {}
            ".." => match kept.last() {
                Some(&"") => {}
                Some(&last) if last != ".." => _ = kept.pop(),
                _ => kept.push(part),
            },
            _ => kept.push(part),
        }
    }
    format!("{scheme}{}", kept.join(&separator.to_string()))
}

/// Appends a path. An absolute path replaces the whole path. Windows paths and URLs (`scheme://…`)
/// also occur.
fn join(path: &mut String, part: &str) {
    let drive = part.get(1..3).is_some_and(|p| p == ":\\" || p == ":/");
    let address = part
        .split_once("://")
        .is_some_and(|(scheme, _)| !scheme.contains('/'));
    if path.is_empty() || drive || address || part.starts_with(['/', '\\']) {
        path.clear();
    } else if !path.ends_with(['/', '\\']) {
        let windows = path.contains('\\') && !path.contains('/');
        path.push(if windows { '\\' } else { '/' });
    }
    path.push_str(part.strip_prefix("./").unwrap_or(part));
}

#[cfg(test)]
mod tests {
    use super::{join, simplified};

    #[test]
    fn one_file_has_one_path() {
        for (path, simple) in [
            ("/p/src/../inc/a.h", "/p/inc/a.h"),
            ("/p/./src//a.c", "/p/src/a.c"),
            ("/../a.c", "/a.c"),
            ("../../a.c", "../../a.c"),
            ("x/../../a.c", "../a.c"),
            ("./a.c", "a.c"),
            ("a.c", "a.c"),
            ("", ""),
            ("C:\\x\\..\\a.c", "C:\\a.c"),
            ("C:/x/../a.c", "C:/a.c"),
            ("sdk://v1/x/../a.c", "sdk://v1/a.c"),
            ("/p/..a/b..c", "/p/..a/b..c"),
        ] {
            assert_eq!(simplified(path), simple, "{path}");
        }
    }

    #[test]
    fn absolute_parts_replace_what_came_before() {
        let joined = |parts: &[&str]| {
            let mut path = String::new();
            parts.iter().for_each(|part| join(&mut path, part));
            path
        };
        assert_eq!(joined(&["/home/me", "src", "a.c"]), "/home/me/src/a.c");
        assert_eq!(
            joined(&["/home/me", "/usr/include", "a.h"]),
            "/usr/include/a.h"
        );
        assert_eq!(joined(&["/home/me/", "./a.c"]), "/home/me/a.c");
        assert_eq!(joined(&["C:\\x", "src", "a.c"]), "C:\\x\\src\\a.c");
        assert_eq!(joined(&["/x", "C:/y", "a.c"]), "C:/y/a.c");
        assert_eq!(joined(&["", "a.c"]), "a.c");
        assert_eq!(
            joined(&["/build", "sdk://v1/src", "a.c"]),
            "sdk://v1/src/a.c"
        );
    }
}
