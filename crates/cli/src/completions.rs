//! Implements `afterimage completions`.

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::exit::Exit;
use crate::output::print;

/// Write a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  source <(afterimage completions bash)
  cd ~/.zfunc && afterimage completions zsh > _afterimage")]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let mut script = Vec::new();
    generate(
        arguments.shell,
        &mut crate::Cli::command(),
        "afterimage",
        &mut script,
    );
    print(|out| Ok(out.write_all(&script)?))?;
    Ok(Exit::Success)
}
