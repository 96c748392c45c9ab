//! Implements `afterimage why`.

use afterimage::check::{self, Needs};
use afterimage::why::show::{Form, Rest};
use afterimage::why::{Byte, WhyAbout, WhyQuery, printed};
use afterimage_analyses::why::Stream;
use anyhow::Result;
use clap::ArgGroup;

use crate::arguments::{ViewArguments, entries};
use crate::exit::Exit;
use crate::lens;

/// Explain where a value came from, step by step
///
/// The explanation goes back to the constant, the host call or the input byte where the value
/// started. It is a chain, not a slice. Moves through locals, memory, copies, arguments and results
/// take one line. At a computation it shows the operands with their values, and follows one of
/// them: the nearest operand that leads to program input, or otherwise the operand that was
/// computed first. Constants are skipped. The report shows how to ask about the other operands, and
/// folds repeated steps.
///
/// If the run failed, no option is needed: the explanation is then that of --trap.
///
/// It follows values, not the addresses that they were read from. The exception is memory that was
/// never written, such as a lookup table: there it follows the address if that leads to program
/// input.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group = ArgGroup::new("about"))]
#[command(group = ArgGroup::new("printed").args(["stdout", "stderr"]))]
#[command(override_usage = "\
afterimage why [OPTIONS] <FILE.aft>
       afterimage why [OPTIONS] --at <PLACE#K> <FILE.aft>
       afterimage why [OPTIONS] <--stdout|--stderr> <BYTE|TEXT> <FILE.aft>
       afterimage why [OPTIONS] --trap <FILE.aft>")]
#[command(after_help = "\
Examples:
  afterimage why crash.aft
  afterimage why app.aft --at parser.c:42#7
  afterimage why app.aft --at parser.c:42#7 --var depth
  afterimage why app.aft --at @0x1f3#last
  afterimage why app.aft --at @0x1f3#1000 --operand left
  afterimage why app.aft --stdout line:last
  afterimage why app.aft --stdout line:3:7
  afterimage why app.aft --stdout 'total: 41'
  afterimage why app.aft --stdout 1000
  afterimage why app.aft --stderr 12
  afterimage why app.aft --trap
  afterimage why app.aft --at parse+0x2a --format json
  afterimage why app.aft --at parser.c:42#7 --format dot | dot -Tsvg > a.svg")]
pub(crate) struct Arguments {
    /// The statement and its execution: func+0x2a#K, @0x1f3#last [default: the first]; or
    /// file.c:42#K, the last statement with a value that the K-th arrival at the line executes; or
    /// func#K, the last such statement of the K-th call
    #[arg(
        long,
        value_name = "PLACE#K",
        group = "about",
        allow_hyphen_values = true
    )]
    at: Option<String>,
    /// Explain a number or byte that the program printed. Give line:N from 1 or line:last for the
    /// line's last number; line:N:COLUMN for the number or byte there; a string for the number at
    /// its end, or else its first byte (text:12 for a string that is a number); or a byte's number,
    /// from 0
    #[arg(
        long,
        value_name = "BYTE|TEXT",
        group = "about",
        allow_hyphen_values = true
    )]
    stdout: Option<Byte>,
    /// Explain a byte that the program printed to standard error, given in the same way
    #[arg(
        long,
        value_name = "BYTE|TEXT",
        group = "about",
        allow_hyphen_values = true
    )]
    stderr: Option<Byte>,
    /// If the printed byte is a digit of a number, explain only the digit
    #[arg(long, requires = "printed")]
    digit: bool,
    /// Explain what ended the program: the operand that trapped, the exit code, or the branch that
    /// led to the end
    #[arg(long, group = "about")]
    trap: bool,
    /// Explain what a source variable, or an expression such as p->next, holds right before the
    /// place executes; --at is then a moment, as for `afterimage state`. Without debug information,
    /// $0 is the local with index 0
    #[arg(long, value_name = "NAME", requires = "at", conflicts_with = "operand")]
    var: Option<String>,
    /// Explain this operand of the statement instead of its value: left, right, address, value,
    /// condition, …, or its number from 1
    #[arg(long, value_name = "OPERAND", requires = "at")]
    operand: Option<String>,
    /// Show all of a long explanation as text, not only both ends
    #[arg(long)]
    all: bool,
    /// Go back at most N moves and computations
    #[arg(long, value_name = "N", default_value_t = WhyQuery::STEPS, value_parser = entries)]
    steps: u64,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    view: ViewArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    /// One object per line: first the question, then the entries
    Json,
    /// One row per step
    Csv,
    /// A graph for Graphviz
    Dot,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let report = &arguments.view.report;
    let session = arguments.view.session(lens::finished)?;
    check::places(&session, Needs::Values, arguments.at.as_deref())?;
    if arguments.trap {
        check::killed(&session, "ask with --at or --stdout")?;
    } else if arguments.query().about == WhyAbout::Trap {
        check::failed(&session)?;
    }
    let put = [
        (Stream::Output, &arguments.stdout),
        (Stream::Error, &arguments.stderr),
    ];
    for (stream, byte) in put {
        if let Some(byte) = byte
            && !check::is_built(&session, Needs::Values)
        {
            let found = printed::check(session.file(), session.program(), &stream, byte);
            report.named(found)?;
        }
    }
    let (query, style) = (arguments.query(), report.to.style());
    let form = match arguments.format {
        Format::Text if arguments.all => Form::Text(Rest::Shown, style),
        Format::Text => Form::Text(Rest::Hidden("--all shows them"), style),
        Format::Json => Form::Json,
        Format::Csv => Form::Csv,
        Format::Dot => Form::Dot,
    };
    let text = session.answer(
        Needs::Values,
        |_| Ok(()),
        |session| {
            let mut text = Vec::new();
            lens::opened(session, |scene| {
                let start = query.start(scene)?;
                start.show(&mut text, scene, query.steps, form)
            })?;
            Ok(text)
        },
    )?;
    report.to.write(|out| Ok(out.write_all(&text)?))?;
    lens::say_not_at_hand(&session);
    Ok(Exit::Success)
}

impl Arguments {
    fn query(&self) -> WhyQuery {
        let about = match (&self.at, &self.var) {
            (Some(at), Some(name)) => WhyAbout::Variable {
                at: at.clone(),
                name: name.clone(),
            },
            (Some(at), None) => WhyAbout::Statement {
                at: at.clone(),
                operand: self.operand.clone(),
            },
            (None, _) => match (self.stdout.clone(), self.stderr.clone()) {
                (Some(byte), _) => WhyAbout::Output(byte),
                (None, Some(byte)) => WhyAbout::Error(byte),
                (None, None) => WhyAbout::Trap,
            },
        };
        WhyQuery {
            about,
            steps: self.steps,
            digit: self.digit,
        }
    }
}
