//! Groups the commands in the help by purpose.

use std::fmt::Write;

use afterimage_program::nearest;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The headings with their commands, in the order in which users need them.
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

/// The names that users try for a format, each with the nearest format and its purpose.
const FORMATS: [(&str, &str, &str); 11] = [
    (
        "flamegraph flame folded inferno stacks svg perf",
        "collapsed",
        "stacks for flamegraph.pl, inferno and speedscope",
    ),
    (
        "chrome chrome-trace trace-event catapult ctf timeline json",
        "perfetto",
        "calls over time, for ui.perfetto.dev and chrome://tracing",
    ),
    (
        "gecko samply",
        "firefox",
        "calls over time, for profiler.firefox.com",
    ),
    (
        "kcachegrind qcachegrind cachegrind valgrind",
        "callgrind",
        "counts for KCachegrind and callgrind_annotate",
    ),
    (
        "protobuf proto pb gperftools",
        "pprof",
        "counts for `go tool pprof`",
    ),
    (
        "gcov llvm-cov cobertura coverage codecov genhtml info xml",
        "lcov",
        "coverage for genhtml and coverage services",
    ),
    ("page report", "html", "source with counts, as a page"),
    ("graphviz gv png pdf", "dot", "a graph for Graphviz"),
    (
        "sql sqlite duckdb arrow",
        "parquet",
        "the whole run as tables for SQL",
    ),
    ("jsonl ndjson", "json", "a document for programs"),
    ("tsv excel xlsx table", "csv", "rows for spreadsheets"),
];

/// Replaces an error with an error that names the remedy:
///
/// - For `help` with a misspelt command, the error of the command itself, which suggests other
///   commands.
/// - For a second argument without an option, the option that takes places or functions.
/// - For an option that only other commands have, those commands.
/// - For a misspelt option, the nearest option. clap suggests only options that are very similar.
/// - For a format that does not exist, the nearest format.
/// - For missing arguments, an example.
pub(crate) fn suggested(command: &clap::Command, mut error: clap::Error) -> clap::Error {
    let words = Vec::from_iter(std::env::args_os());
    let asked = words.get(1).and_then(|name| command.find_subcommand(name));
    if let Some(asked) = asked {
        let typed = words[2..].iter().filter_map(|word| word.to_str());
        if let Some(lacks) = lacking(asked, &error, &Vec::from_iter(typed)) {
            return clap::Error::raw(ErrorKind::MissingRequiredArgument, lacks);
        }
        let tip = option_for(asked, &error)
            .or_else(|| format_for(command, asked, &error))
            .or_else(|| command_for(command, &error));
        if let Some(tip) = tip {
            let tips = ContextValue::StyledStrs(vec![tip.into()]);
            error.insert(ContextKind::Suggested, tips);
        } else if let Some(option) = nearest_option(asked, &error) {
            error.insert(ContextKind::SuggestedArg, ContextValue::String(option));
            error.remove(ContextKind::Suggested);
        }
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

/// The maximum number of commands that a tip names.
const NAMED: usize = 3;

/// Returns the name of an option that does not exist, if clap suggests no other.
fn unknown_option(error: &clap::Error) -> Option<&str> {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let is_open = error.get(ContextKind::SuggestedArg).is_none();
    let name = option.strip_prefix("--")?;
    (error.kind() == ErrorKind::UnknownArgument && is_open).then_some(name)
}

/// Returns the command's option that a misspelt option may mean.
fn nearest_option(command: &clap::Command, error: &clap::Error) -> Option<String> {
    let name = unknown_option(error)?;
    let options = command.get_arguments().filter(|one| !one.is_hide_set());
    let nearest = nearest(name, options.filter_map(clap::Arg::get_long));
    nearest.first().map(|option| format!("--{option}"))
}

/// Returns the tip for an option that only other commands have.
fn command_for(all: &clap::Command, error: &clap::Error) -> Option<String> {
    let name = unknown_option(error)?;
    let has = |command: &&clap::Command| {
        let mut arguments = command.get_arguments();
        arguments.any(|one| one.get_long() == Some(name))
    };
    let commands = all.get_subcommands().filter(has);
    let names = Vec::from_iter(commands.map(clap::Command::get_name).take(NAMED + 1));
    match names.len() {
        1..=NAMED => Some(format!("'--{name}' is an option of {}", names.join(", "))),
        _ => None,
    }
}

/// Returns the tip for a format that the command does not have.
fn format_for(all: &clap::Command, asked: &clap::Command, error: &clap::Error) -> Option<String> {
    let (Some(ContextValue::String(option)), Some(ContextValue::String(value))) = (
        error.get(ContextKind::InvalidArg),
        error.get(ContextKind::InvalidValue),
    ) else {
        return None;
    };
    if error.kind() != ErrorKind::InvalidValue || !option.starts_with("--format ") {
        return None;
    }
    let value = value.to_ascii_lowercase();
    let (_, format, purpose) = FORMATS.iter().find(|(names, format, _)| {
        *format == value || names.split(' ').any(|name| name == value)
    })?;
    let has = |command: &&clap::Command| {
        let mut arguments = command.get_arguments();
        let found = arguments.find(|one| one.get_long() == Some("format"));
        let values = found.map(clap::Arg::get_possible_values);
        values.is_some_and(|values| values.iter().any(|one| one.get_name() == *format))
    };
    let others = ["export", "profile"].iter();
    let others = others.filter_map(|name| all.find_subcommand(name));
    let command = std::iter::once(asked).chain(others).find(has)?;
    Some(format!(
        "'afterimage {} FILE.aft --format {format}' writes {purpose}",
        command.get_name()
    ))
}

/// Returns a sentence about missing arguments, with the example from the command's help that is
/// nearest to the `typed` arguments.
fn lacking(command: &clap::Command, error: &clap::Error, typed: &[&str]) -> Option<String> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    if error.kind() != ErrorKind::MissingRequiredArgument {
        return None;
    }
    let examples = command
        .get_after_help()
        .or(command.get_after_long_help())?
        .to_string();
    let lines = examples.lines().map(str::trim);
    let begins = format!("afterimage {} ", command.get_name());
    let lines = lines.filter(|line| line.starts_with(&begins));
    let shared = |line: &&str| {
        let words = Vec::from_iter(line.split([' ', '=']));
        let options = typed.iter().filter(|word| word.starts_with("--"));
        options.filter(|option| words.contains(option)).count()
    };
    // The first of the nearest examples.
    let example = Vec::from_iter(lines).into_iter().rev().max_by_key(shared)?;
    let named = |argument: &String| {
        let argument = argument.replace("|--", " or --");
        argument.replace(['<', '>'], "")
    };
    let missing = Vec::from_iter(missing.iter().map(named)).join(" and ");
    Some(format!(
        "{} needs {missing}; for example: {example}\n",
        command.get_name()
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
