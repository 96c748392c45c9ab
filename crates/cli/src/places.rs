//! Implements `afterimage places`.

use anyhow::Result;
use clap::CommandFactory;

use crate::Cli;
use crate::exit::Exit;
use crate::output::print;

/// How to write places in a program and moments of a run
///
/// All commands accept and print them in the same form.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A place is a location in the code:
  file.c:42          a source line; give as much of the path as makes it unique
  file.c:42:7        the code of this line and column
  parse              a function; leave out namespaces, generic arguments and
                     parameters if you like, or write a mangled name, the name
                     of an export, or func[12]
  parse+0x2a         the instruction 0x2a bytes into the code of a function
  @0x1f3             the instruction at this offset in the module

An execution is a place with a number:
  file.c:42#3        the third time that the run reached line 42
  parse#3            the third call to parse
  @0x1f3#last        the last time that the instruction executed

A moment is a point of the run. An execution means the moment right before it;
a call means the moment right after the function's prologue. Other moments:
  123456, t=123456   before the 123456th executed block
  start, end         the beginning of the run, and where it ended
  50%                after half of its blocks
  -1000              the 1000th block from the end

Examples:
  afterimage profile app.aft --by line
  afterimage state app.aft --at parse.c:42#last
  afterimage values app.aft --at parse.c:42 --var length
  afterimage why app.aft --at parse+0x2a#3
  afterimage trace app.aft --from 50% --limit 20")]
pub(crate) struct Arguments {}

/// Prints the help of this command, which is the whole page.
pub(crate) fn run(_: Arguments) -> Result<Exit> {
    let mut command = Cli::command();
    let page = command.find_subcommand_mut("places");
    let page = page.map(|page| page.render_long_help().to_string());
    print(|out| Ok(out.write_all(page.unwrap_or_default().as_bytes())?))?;
    Ok(Exit::Success)
}
