//! Groups the commands in the help by purpose.

use std::fmt::Write;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Each heading with its commands, in the order in which users need the commands.
const GROUPS: [(&str, &str); 8] = [
    ("Record", "record runner build info verify strip instrument"),
    ("Count", "profile paths redundancy simulate"),
    ("Follow", "trace calls state values memory addresses cfg"),
    ("Explain", "why why-not deps slice dataflow"),
    ("Compare", "diff match currency"),
    ("Export", "export report"),
    ("Serve", "explore dap mcp"),
    ("Help", "help places completions man"),
];

/// Makes a command list its subcommands by group in its help.
pub(crate) fn grouped(command: clap::Command) -> clap::Command {
    let styles = command.get_styles();
    let (heading, literal) = (styles.get_header(), styles.get_literal());
    let about = |name: &str| match name {
        "help" => "Print help for a command".to_owned(),
        _ => {
            let found = command.find_subcommand(name);
            let about = found.and_then(clap::Command::get_about);
            about.map(ToString::to_string).unwrap_or_default()
        }
    };
    let mut list = String::new();
    for (group, names) in GROUPS {
        let _ = writeln!(list, "{heading}{group}:{heading:#}");
        for name in names.split(' ') {
            let _ = writeln!(list, "  {literal}{name:<11}{literal:#}  {}", about(name));
        }
        list.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{heading}Options:{heading:#}\n{{options}}{{after-help}}"
    );
    command.help_template(template)
}

/// Replaces the error of `help` with a misspelt command by the error of the command itself, which
/// suggests other commands. For a second argument without an option, suggests `--at` if the command
/// has it.
pub(crate) fn suggested(command: &clap::Command, mut error: clap::Error) -> clap::Error {
    let words = Vec::from_iter(std::env::args_os());
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(place)) = error.get(ContextKind::InvalidArg)
        && !place.starts_with('-')
        && let Some(asked) = words.get(1).and_then(|name| command.find_subcommand(name))
        && asked
            .get_arguments()
            .any(|one| one.get_long() == Some("at"))
    {
        let tip = format!("to name a place or a moment, use '--at {place}'");
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    match words.as_slice() {
        [this, help, name] if help == "help" && error.kind() == ErrorKind::InvalidSubcommand => {
            let tried = command.clone().try_get_matches_from([this, name]);
            tried.err().unwrap_or(error)
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::GROUPS;
    use crate::Cli;

    #[test]
    fn every_command_is_in_one_group_in_one_line() {
        let command = Cli::command();
        let mut all = Vec::from_iter(command.get_subcommands().map(clap::Command::get_name));
        all.push("help");
        let mut listed = Vec::from_iter(GROUPS.iter().flat_map(|(_, names)| names.split(' ')));
        all.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, all);
        for command in command.get_subcommands() {
            let about = command.get_about().map(ToString::to_string);
            let about = about.unwrap_or_default();
            assert!((10..=65).contains(&about.chars().count()), "{about}");
        }
    }
}
