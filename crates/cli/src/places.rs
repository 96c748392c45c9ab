//! `afterimage places`

use anyhow::Result;
use clap::CommandFactory;

use crate::Cli;
use crate::exit::Exit;
use crate::output::write;

/// How to write places in a program and moments of a run
///
/// All commands take them in the same form, and print them in it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A place is where:
  file.c:42          a line of the source; of the file's path as much as tells it from others
  file.c:42:7        what the line has in this column
  parse              a function. Namespaces before the name, generic arguments and parameters may
                     be left out; mangled names, names of exports and func[12] will do, too
  parse+0x2a         the instruction 0x2a bytes into the code of a function
  @0x1f3             the instruction at this offset in the module
An execution is a place and which time:
  file.c:42#3        the third time that the run came to line 42
  parse#3            the third call of parse
  @0x1f3#last        the last time that the instruction was executed
A moment is when. An execution is one: right before it, of a call right after the prologue.
So are:
  123456, t=123456   before the block that was executed as the 123456th
  start, end         the beginning of the run, and where it ended
  50%                half of its blocks
  -1000              the 1000th block from the end

Examples:
  afterimage profile app.aft --by line
  afterimage state app.aft --at parse.c:42#last
  afterimage values app.aft --at parse.c:42 --var length
  afterimage why app.aft --at parse+0x2a#3
  afterimage trace app.aft --from 50% --limit 20")]
pub(crate) struct Arguments {}

/// Prints the page, which is this command's own help.
pub(crate) fn run(_: &Arguments) -> Result<Exit> {
    let mut command = Cli::command();
    let page = command.find_subcommand_mut("places");
    let page = page.map(|page| page.render_long_help().to_string());
    write(None, false, |out| {
        Ok(out.write_all(page.unwrap_or_default().as_bytes())?)
    })?;
    Ok(Exit::Success)
}
