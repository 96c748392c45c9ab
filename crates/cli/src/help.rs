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
/// suggests other commands. For a second argument without an option, suggests the option that takes
/// places or functions.
pub(crate) fn suggested(command: &clap::Command, mut error: clap::Error) -> clap::Error {
    let words = Vec::from_iter(std::env::args_os());
    let asked = words.get(1).and_then(|name| command.find_subcommand(name));
    if let Some(tip) = asked.and_then(|asked| option_for(asked, &error)) {
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

/// Returns the tip for a place or function that was given without an option.
fn option_for(command: &clap::Command, error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(place)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    if error.kind() != ErrorKind::UnknownArgument || place.starts_with('-') {
        return None;
    }
    let is_function = !place.replace("::", "").contains([':', '#', '@', '=', '%']);
    let mut options = ["at", if is_function { "function" } else { "from" }].into_iter();
    let option = options.find(|option| {
        let mut all = command.get_arguments();
        all.any(|one| one.get_long() == Some(option))
    })?;
    Some(format!(
        "to name a place or a function, use '--{option} {place}'"
    ))
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
