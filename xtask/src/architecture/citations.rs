//! Checks citations, since prose that cites files becomes outdated. Every file named in the
//! documents must exist, and every crate must be in ARCHITECTURE.md.

use super::files;
use anyhow::{Context, Result};
use std::path::Path;

/// The beginnings of citations, as paths from the root of the project. Build products are not
/// checked.
const PLACES: &[&str] = &[
    ".cargo/",
    ".ci/",
    ".github/",
    "corpus/",
    "crates/",
    "docs/",
    "examples/",
    "fuzz/",
    "runs/",
    "xtask/",
];

/// The endings of files that are cited without a folder.
const ENDINGS: &[&str] = &[".md", ".rs", ".toml"];

/// Files that belong to users of the program.
const OF_USERS: [&str; 2] = [".afterimage.toml", "FILE.notes.md"];

/// Returns the violations in the documents and in the comments of the sources.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let mut documents = files(root, "md")?;
    for folder in ["crates", "xtask", "fuzz"] {
        documents.extend(files(&root.join(folder), "rs")?);
    }
    // The tests of this file cite nonexistent files.
    let own = root.join("xtask/src/architecture/citations.rs");
    let mut violations = Vec::new();
    for path in documents.iter().filter(|&path| *path != own) {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let prose = path.extension().is_some_and(|extension| extension == "md");
        let folder = path.parent().unwrap_or(root);
        // Pages of the guide name the programs that they run.
        let places = [root, folder, &root.join("examples/mugs")];
        for cited in citations(&text, prose) {
            if !OF_USERS.contains(&cited.as_str())
                && !places.iter().any(|place| place.join(&cited).exists())
            {
                let short = path.strip_prefix(root).unwrap_or(path);
                violations.push(format!(
                    "{} names {cited}, which does not exist",
                    short.display()
                ));
            }
        }
    }
    let map = root.join("ARCHITECTURE.md");
    let map =
        std::fs::read_to_string(&map).with_context(|| format!("cannot read {}", map.display()))?;
    let mut crates = Vec::new();
    let folder = root.join("crates");
    for entry in
        std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        crates.push(entry?.file_name().to_string_lossy().into_owned());
    }
    crates.sort();
    violations.extend(unnamed(&map, &crates));
    Ok(violations)
}

/// Returns the crates that are missing from the map of the project.
fn unnamed(map: &str, crates: &[String]) -> Vec<String> {
    crates
        .iter()
        .filter(|name| !map.contains(&format!("- `{name}`: ")))
        .map(|name| format!("ARCHITECTURE.md has no line for the crate {name}"))
        .collect()
}

/// Returns the paths that a text names. In prose, these are all paths in backquotes or links. In
/// sources, they are the documents named in comments.
fn citations(text: &str, prose: bool) -> Vec<String> {
    let mut cited = Vec::new();
    if prose {
        let mut fenced = false;
        for line in text.lines() {
            if line.starts_with("```") {
                fenced = !fenced;
            } else if !fenced {
                cited.extend(line.split('`').skip(1).step_by(2).filter(|w| is_path(w)));
                let links = line
                    .split("](")
                    .skip(1)
                    .filter_map(|rest| rest.split_once(')'));
                let links = links.map(|link| link.0.split('#').next().unwrap_or_default());
                cited.extend(links.filter(|link| !link.is_empty() && !link.contains(':')));
            }
        }
    } else {
        for line in text.lines().map(str::trim_start) {
            if line.starts_with("//") {
                let separator = |c: char| !(c.is_ascii_alphanumeric() || "./_-".contains(c));
                let words = line.split(separator).map(|word| word.trim_end_matches('.'));
                cited.extend(words.filter(|word| word.ends_with(".md") && is_path(word)));
            }
        }
    }
    cited.sort_unstable();
    cited.dedup();
    cited.into_iter().map(str::to_owned).collect()
}

/// Whether a word looks like a path of this project. Words such as `NAME` are placeholders.
fn is_path(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "./_-".contains(c);
    let placeholder = |part: &str| part.len() > 2 && part.chars().all(|c| c.is_ascii_uppercase());
    let cites = PLACES.iter().any(|place| word.starts_with(place))
        || ENDINGS
            .iter()
            .any(|end| word.strip_suffix(end).is_some_and(|stem| !stem.is_empty()));
    cites && word.chars().all(plain) && !word.split('/').any(placeholder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_from_other_words() {
        let text = "See `docs/GONE.md`, `crates/x/src/lib.rs` and `lessons.md`, not `a/b`, `corpus/NAME`, `x.y()`.\n\
                    A [link](docs/OTHER.md#part) and [another](https://example.org/a.md).\n\
                    ```\n`docs/QUOTED.md`\n```\n";
        assert_eq!(
            citations(text, true),
            [
                "crates/x/src/lib.rs",
                "docs/GONE.md",
                "docs/OTHER.md",
                "lessons.md"
            ]
        );
    }

    #[test]
    fn sources_cite_documents_in_comments() {
        let text =
            "//! As docs/GONE.md says.\nlet x = \"docs/STRING.md\";\n    // See `docs/TWO.md`.\n";
        assert_eq!(citations(text, false), ["docs/GONE.md", "docs/TWO.md"]);
    }

    #[test]
    fn a_cited_file_that_is_not_there_is_found() {
        let root =
            std::env::temp_dir().join(format!("afterimage-citations-{}", std::process::id()));
        for folder in ["crates/one", "xtask", "fuzz", "docs"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(
            root.join("ARCHITECTURE.md"),
            "- `one`: `docs/HERE.md` `docs/GONE.md`\n",
        )
        .unwrap();
        std::fs::write(
            root.join("docs/HERE.md"),
            "Beside it: `THERE.md`, above: `crates/one`.\n",
        )
        .unwrap();
        let found = check(&root);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(
            found.unwrap(),
            [
                "ARCHITECTURE.md names docs/GONE.md, which does not exist",
                "docs/HERE.md names THERE.md, which does not exist"
            ]
        );
    }

    #[test]
    fn a_crate_without_a_line_is_found() {
        let crates = ["graph".to_owned(), "ids".to_owned()];
        assert_eq!(
            unnamed("- `ids`: names\nand `graph` in passing\n", &crates),
            ["ARCHITECTURE.md has no line for the crate graph"]
        );
    }
}
