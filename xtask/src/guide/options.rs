//! Checks commands that pages mention but that nothing runs. The command and its options must
//! exist.

use crate::tool;
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Returns the commands of README.md and of the pages in docs that the tool does not know, or that
/// have options it does not know.
///
/// # Errors
/// Returns an error if a page cannot be read or the tool cannot be run.
pub fn unknown(tool: &Path, root: &Path) -> Result<Vec<String>> {
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for folder in ["docs", "docs/guide"] {
        pages.extend(super::sorted(&root.join(folder), "md")?);
    }
    let mut helps = HashMap::new();
    let mut wrong = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page)
            .with_context(|| format!("{}: cannot be read", page.display()))?;
        for command in mentioned(&text) {
            let command = command.strip_prefix("help ").unwrap_or(command);
            let name = command.split_whitespace().next().unwrap_or_default();
            if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
                continue;
            }
            if !helps.contains_key(name) {
                helps.insert(name.to_owned(), help(tool, name)?);
            }
            let short = page.strip_prefix(root).unwrap_or(&page).display();
            let Some(help) = &helps[name] else {
                wrong.push(format!(
                    "{short}: `afterimage {command}`: there is no command {name}"
                ));
                continue;
            };
            let missing = options(command).find(|option| !help.iter().any(|known| known == option));
            if let Some(option) = missing {
                wrong.push(format!(
                    "{short}: `afterimage {command}`: {name} has no option {option}"
                ));
            }
        }
    }
    Ok(wrong)
}

/// Returns the words of a command's help, or none if there is no such command.
fn help(tool: &Path, name: &str) -> Result<Option<Vec<String>>> {
    let output = tool::start(tool)
        .args([name, "--help"])
        .output()
        .with_context(|| format!("cannot run {}", tool.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c)));
    let known = output
        .status
        .success()
        .then(|| words.map(str::to_owned).collect());
    Ok(known)
}

/// Returns the words after `afterimage` in pieces of code, in a line of a block or between
/// backquotes, but not in a `console` block.
fn mentioned(text: &str) -> Vec<&str> {
    let mut commands = Vec::new();
    let mut block = None;
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            block = if block.is_some() {
                None
            } else {
                Some(language)
            };
        } else if block.is_none() && !line.starts_with("    ") {
            let code = line.split('`').skip(1).step_by(2);
            commands.extend(code.filter_map(|code| code.strip_prefix("afterimage ")));
        } else if block != Some("console") {
            commands.extend(line.trim_start().strip_prefix("afterimage "));
        }
    }
    commands
}

/// Returns the long options of a command, up to the options of the guest and of other programs.
fn options(command: &str) -> impl Iterator<Item = &str> {
    let own = command
        .split([';', '|', '>', '#'])
        .next()
        .unwrap_or_default();
    let words = own
        .split_whitespace()
        .take_while(|word| *word != "--" && *word != "&&");
    let options = words.filter(|word| word.starts_with("--"));
    options.map(|word| word.split(['=', '|', ',']).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_where_they_are_code() {
        let text = "Run `afterimage why a.aft --trap`, not afterimage alone.\n```sh\nafterimage info a.aft # --x\n```\n\
                    ```console\n$ afterimage run\nafterimage says\n```\n    afterimage record --force a -- --guest\n";
        let commands = mentioned(text);
        assert_eq!(
            commands,
            [
                "why a.aft --trap",
                "info a.aft # --x",
                "record --force a -- --guest"
            ]
        );
        let options = Vec::from_iter(commands.iter().flat_map(|command| options(command)));
        assert_eq!(options, ["--trap", "--force"]);
    }
}
