//! Implements `afterimage simulate`.

use afterimage::Session;
use afterimage::files;
use afterimage::named::{NamedProgram, with_names};
use afterimage::simulate::{self, MissesShown, default_specs, missed, specs};
use afterimage_analyses::simulate::{
    LevelSpec, MissesBy, PredictorSpec, Spec, StoredSimulation, StoredSimulations, Summary,
    stored_simulations,
};
use afterimage_present::{HistoriesView, MissesView, Render, WorstView, shell_name};
use afterimage_profile::location::{Place, Resolved};
use anyhow::{Context, Result, bail};

use crate::arguments::{CodeArguments, ReportArguments, choices, entries, formats};
use crate::exit::Exit;
use crate::lens::{self, traced_whole};
use crate::output::say;

/// Simulate branch predictors and caches on a run
///
/// It shows which branches were mispredicted, and which loads and stores missed. The run is
/// followed exactly, and each branch and each access to linear memory is passed to the models. The
/// recording keeps one bit for each execution: whether it was mispredicted or missed. Later
/// questions are then answered at once. Without options, the command shows all kept results.
/// Branches are br_if and if (direction), and br_table and calls through tables (target). Locals,
/// globals and the operand stack are assumed to be in registers.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Predictors:
  bimodal:bits=12            2^12 two-bit counters
  gshare:bits=14,history=12  2^14 counters, selected by the branch and the last
                             12 outcomes
  tage:tables=7,bits=10,min=5,max=130,tag=11,base=13
                             7 tagged tables of 2^10 entries, for histories of 5
                             to 130
  Each also takes targets=9: 2^9 targets of indirect branches. Options that you
  leave out have the values shown here.

Caches:
  SIZE,WAYS,LINE as in cachegrind: 32768,8,64 or 32k,8,64; WAYS may be full.
  Replacement is least recently used; stores write back and allocate.

Without any of these options, the command shows all results in the recording.
If there are none, it simulates tage and caches of 32k,8,64 and 1m,16,64.

Examples:
  afterimage simulate app.aft --branch-predictor gshare:bits=14,history=12
  afterimage simulate app.aft --cache 32k,8,64 --cache2 1m,16,64 --by function
  afterimage simulate app.aft --branch-predictor tage --format json
  afterimage simulate app.aft --at parser.c:42 --cache 32k,8,64
  afterimage simulate app.aft --at @0x1f3#1000
  afterimage simulate app.aft --worst --limit 5
  afterimage simulate app.aft")]
pub(crate) struct Arguments {
    /// Predict branches with this predictor; may be repeated
    #[arg(long, value_name = "PREDICTOR")]
    branch_predictor: Vec<PredictorSpec>,
    /// First-level cache
    #[arg(long, value_name = "SIZE,WAYS,LINE", alias = "D1")]
    cache: Option<LevelSpec>,
    /// Second-level cache
    #[arg(long, value_name = "SIZE,WAYS,LINE", alias = "LL", requires = "cache")]
    cache2: Option<LevelSpec>,
    /// Show the history at a place: file.c:42, func+0x2a, @0x1f3, or a function; append #K or #last
    /// to an instruction for one execution
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["by", "no_save"])]
    at: Option<String>,
    /// Show the loads or branches with the most misses, and the command for the slice of a miss. If
    /// the recording has values, also show what computed their addresses or conditions
    #[arg(long, conflicts_with_all = ["by", "at", "no_save"])]
    worst: bool,
    /// Repeat simulations whose results are already stored
    #[arg(long)]
    again: bool,
    /// Simulate, but keep no history in the recording; not with --at, --worst or --again
    #[arg(long, conflicts_with = "again")]
    no_save: bool,
    /// Kind of rows [default: line, or function if no line is known]
    #[arg(long)]
    by: Option<By>,
    /// Show at most N rows [default for text: 20; 100 lines of each history with --at; 5 with
    /// --worst]; with --at, only in text, and not with #K
    #[arg(long = "limit", alias = "top", value_name = "N", value_parser = entries)]
    top: Option<u64>,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    code: CodeArguments,
    #[command(flatten)]
    report: ReportArguments,
}

choices!(By => MissesBy { Line, Function, Instruction });

formats! {
    Text,
    /// One object per line
    Json,
    Csv,
}

/// The default number of rows in text.
const ROWS: u64 = 20;
/// The default number of lines of each history in text.
const LINES: u64 = 100;
/// The default number of worst sites.
const SITES: u64 = 5;

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let caches = arguments.cache.map(|first| (first, arguments.cache2));
    let mut specs = specs(caches, &arguments.branch_predictor)?;
    let at = &arguments.report.file;
    let is_new = || -> Result<bool> {
        let StoredSimulations { sound, damaged } = stored_simulations(&files::recording(at)?)?;
        Ok(sound.is_empty() && damaged.is_empty())
    };
    if specs.is_empty() && !arguments.no_save && is_new()? {
        specs = default_specs()?;
    }
    let session = arguments.code.session(|| traced_whole(at))?;
    let found = arguments.answer(&session, specs);
    found.with_context(|| at.display().to_string())?;
    Ok(Exit::Success)
}

impl Arguments {
    fn answer(&self, session: &Session, mut specs: Vec<Spec>) -> Result<()> {
        let is_live = files::recorder(&self.report.file, session.file()).is_some();
        if is_live && (self.at.is_some() || self.worst) {
            bail!(
                "it is still being recorded, so no history can be kept in it yet; ask again \
                 when the program has ended, or without --at and --worst"
            );
        }
        with_names(session, |program| {
            if self.no_save || is_live {
                if specs.is_empty() {
                    specs = default_specs()?;
                }
                return self.shown(program, &simulate::unsaved(session, &specs)?);
            }
            let place = self.at.as_deref();
            let place =
                place.map(|place| Ok::<_, anyhow::Error>((place, self.resolved(program, place)?)));
            let place = place.transpose()?;
            let (stored, problem) = simulate::stored(session, &specs, self.again)?;
            if let Some((place, resolved)) = &place {
                self.histories(program, &stored, place, resolved)?;
            } else if self.worst {
                self.worst(program, &stored)?;
            } else {
                let summaries = Vec::from_iter(stored.iter().map(|stored| stored.summary.clone()));
                self.shown(program, &summaries)?;
            }
            // Report damage only after showing the undamaged results.
            problem.map_or(Ok(()), Err)
        })
    }

    /// Writes the results.
    fn shown(&self, program: NamedProgram<'_>, summaries: &[Summary]) -> Result<()> {
        let few = matches!(self.format, Format::Text).then_some(ROWS);
        let shown = MissesShown {
            by: self.by.map(MissesBy::from),
            top: self.top.or(few),
            own: self.is_own(),
        };
        let scene = program.own_scene(self.report.to.style());
        missed(program, summaries, shown, |reports| {
            self.rendered(&MissesView { scene, reports })
        })
    }

    /// Whether to leave out library code. Formats for programs are complete, unless the code to
    /// show is named.
    fn is_own(&self) -> bool {
        matches!(self.format, Format::Text) || self.code.is_given()
    }

    fn rendered(&self, report: &impl Render) -> Result<()> {
        self.report.to.show(report, self.format)
    }

    /// Returns the resolved place, if its history can be requested with these options.
    fn resolved(&self, program: NamedProgram<'_>, place: &str) -> Result<Resolved> {
        let resolved = program.resolver().location(place)?;
        if resolved.occurrence.is_some() && !matches!(resolved.place, Place::Operator(..)) {
            bail!(
                "--at {place}: only instructions have histories, and this is a line or a \
                 function: leave out the # to list its instructions, then add it to one of them"
            );
        }
        let is_one = resolved.occurrence.is_some();
        if self.top.is_some() && !is_one && !matches!(self.format, Format::Text) {
            bail!(
                "--limit only shortens the text of --at; the other formats have the whole history"
            );
        }
        Ok(resolved)
    }

    /// Writes the histories of the sites at a place, simulation by simulation.
    fn histories(
        &self,
        program: NamedProgram<'_>,
        stored: &[StoredSimulation],
        place: &str,
        resolved: &Resolved,
    ) -> Result<()> {
        let scene = program.scene(self.report.to.style());
        let histories = simulate::histories(stored, &resolved.place, place)?;
        let Some(which) = resolved.occurrence else {
            return self.rendered(&HistoriesView {
                scene,
                histories: &histories,
                limit: self.top.unwrap_or(LINES),
            });
        };
        self.report.to.write(|out| {
            if !matches!(self.format, Format::Text) {
                bail!(
                    "the result of one execution is only written as text; {place} without # has \
                     the whole history in the other formats"
                );
            }
            simulate::outcomes(out, &scene, &histories, which, place)
        })
    }

    /// Writes the sites with the most misses, simulation by simulation.
    fn worst(&self, program: NamedProgram<'_>, stored: &[StoredSimulation]) -> Result<()> {
        if matches!(self.format, Format::Csv) {
            bail!("--worst writes only text or JSON; --by instruction writes everything as CSV");
        }
        let scene = program.scene(self.report.to.style());
        let values = lens::values_if_built(program.session)?;
        if values.is_none() {
            say(format_args!(
                "to see what computed addresses and conditions, build the values: afterimage \
                 build --lens full {}",
                shell_name(&self.report.file.display().to_string())
            ));
        }
        let top = self.top.unwrap_or(SITES);
        let worst = stored.iter().map(|stored| {
            let found = simulate::worst(program, stored, values.as_ref(), (top, self.is_own()));
            Ok((&stored.summary, found?))
        });
        let worst = worst.collect::<Result<_>>()?;
        self.rendered(&WorstView { scene, worst })
    }
}
