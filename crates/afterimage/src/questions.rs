//! The questions that a session answers.

use afterimage_analyses::slices::SliceQuery;
use afterimage_present::document::WithRows;
use afterimage_present::values::{ConditionReport, ValuesReport, VariableReport};
use afterimage_present::{
    ActivationReport, AddressStatsHead, AddressesHead, CallsDocument, CompareDocument,
    CurrencyDocument, DataflowDocument, DepsDirection, DepsReport, ExecutionsDocument,
    FilesDocument, FlowDocument, InfluenceDocument, MatchDocument, MemoryReport, MomentDocument,
    NamesDocument, NoSources, OutputDocument, PathsDocument, ProfileDocument, RankDocument,
    RankView, RedundancyDocument, SimulateHead, SliceReport, SourceDocument, StateView,
    StepDocument, Style, WhyBranch, WhyNotReport,
};

use crate::activation::ActivationQuery;
use crate::addresses::{self, AddressesQuery};
use crate::calls::CallsQuery;
use crate::check::Needs;
use crate::compared::compare;
use crate::counted::{Counted, ProfileQuery};
use crate::currency::question::{CurrencyQuery, refuse_unlike};
use crate::dataflow::DataflowQuery;
use crate::deps::DepsQuery;
use crate::diff::rank::{RankQuery, rank};
use crate::diff::versions::{MatchQuery, matched};
use crate::diff::{DiffQuery, Differences};
use crate::early;
use crate::error::QuestionError;
use crate::explain::{Scene, explain};
use crate::explore::{
    ExecutionsQuery, FilesQuery, FlowQuery, InfluenceQuery, MomentQuery, OutputQuery, SourceQuery,
    StepQuery, names,
};
use crate::memory::MemoryQuery;
use crate::named::{NamedProgram, with_names};
use crate::paths::PathsQuery;
use crate::redundancy::RedundancyQuery;
use crate::session::Session;
use crate::simulate::SimulateQuery;
use crate::slice::{self, NearLines, NearQuery, Wanted};
use crate::state::StateQuery;
use crate::trace::{TraceQuery, TraceReport};
use crate::values::{ConditionQuery, Detail, ValuesQuery, VariableQuery};
use crate::why::{DecisionsQuery, WhyQuery, WhyReport};
use crate::why_not::WhyNotQuery;

/// Each question builds the path and the values that it needs, if they do not exist yet. It fails
/// if there is no such place or execution, if the run cannot be executed or followed again, or if
/// the recording is damaged.
impl Session {
    /// Returns how often functions, lines, blocks, edges or instructions were executed, in this run
    /// and the runs of `others` together. Executes a run again if its recording has no counts yet.
    ///
    /// # Errors
    /// Returns an error if the recordings are of several programs, the end of a run is unknown, or
    /// there is no such function.
    pub fn execution_counts(
        &self,
        others: &[&Self],
        query: &ProfileQuery,
    ) -> Result<ProfileDocument, QuestionError> {
        let ask = || -> anyhow::Result<ProfileDocument> {
            if query.is_bound() && !others.is_empty() {
                anyhow::bail!("a range of the run is counted in one recording only");
            }
            let of = |session: &Self| -> anyhow::Result<Counted> {
                let counted = Counted::of(session, session.at(), None)?;
                let counted = counted.in_range(session, query, false)?;
                Ok(counted.with_whole_lines(session, query.whole()))
            };
            let mut counted = of(self)?;
            for other in others {
                counted.add(of(other)?)?;
            }
            counted.ask(self.monitor(), |profiled| query.answer(profiled))
        };
        Ok(ask()?)
    }

    /// Returns how much more often functions or lines were executed in another run (B) than in this
    /// run (A). If the programs differ, functions are matched by name.
    ///
    /// # Errors
    /// Returns an error if the end of a run is unknown, there is no such function, or lines of
    /// different programs are to be compared.
    pub fn compare_counts(
        &self,
        other: &Self,
        query: &ProfileQuery,
    ) -> Result<CompareDocument, QuestionError> {
        let ask = || -> anyhow::Result<CompareDocument> {
            let a = Counted::of(self, self.at(), None)?;
            let b = Counted::of(other, other.at(), None)?;
            compare([&a, &b], query, &NoSources, self.monitor(), |view| {
                Ok(view.document())
            })
        };
        Ok(ask()?)
    }

    /// Finds where a value came from. Without values, builds only the stretches of the run that the
    /// answer needs. Each step back takes O(log n).
    ///
    /// # Errors
    /// Returns an error if there is no such place or execution, or the recording is damaged.
    pub fn why(&self, query: &WhyQuery) -> Result<WhyReport, QuestionError> {
        self.first(|session| session.prepared(|scene| query.answer(scene)))
    }

    /// Returns the values that the statements at a place produced. Builds the path and the values
    /// if they do not exist yet. Each value then takes O(log n). Follows the run instead if that is
    /// faster.
    ///
    /// # Errors
    /// Returns an error if there is no such place, there are no such executions, or the recording
    /// is damaged.
    pub fn statement_values(&self, query: &ValuesQuery) -> Result<ValuesReport, QuestionError> {
        match query.detail {
            Detail::Each => self.first(|session| session.ensured(|| query.answer(session))),
            Detail::Stats | Detail::Histogram => self.ensured(|| query.answer(self)),
        }
    }

    /// Returns the values of a source variable each time the run was at a place. Builds the path
    /// and the values if they do not exist yet.
    ///
    /// # Errors
    /// Returns an error if there is no such place or variable, the run never reached the place, or
    /// the recording is damaged.
    pub fn variable_values(&self, query: &VariableQuery) -> Result<VariableReport, QuestionError> {
        match query.values.detail {
            Detail::Each => self.first(|session| session.ensured(|| query.answer(session))),
            Detail::Stats | Detail::Histogram => self.ensured(|| query.answer(self)),
        }
    }

    /// Finds when a condition about variables holds. Works like
    /// [`variable_values`](Self::variable_values), but examines all times at the place.
    ///
    /// # Errors
    /// Returns an error if there is no such place or variable, the text is not a condition, or the
    /// recording is damaged.
    pub fn condition(&self, query: &ConditionQuery) -> Result<ConditionReport, QuestionError> {
        self.first(|session| session.ensured(|| query.answer(session)))
    }

    /// Returns what memory contained at a moment, what wrote it last, and what reads and writes it
    /// next. Without values, searches at most about four million blocks forward and sixteen million
    /// back, and the answer marks the accesses that may lie beyond. With values, takes O(log n) for
    /// each part of the bytes.
    ///
    /// # Errors
    /// Returns an error if the program has no such memory, place or variable, the variable is not
    /// in memory at that moment, or the recording is damaged.
    pub fn memory(&self, query: &MemoryQuery) -> Result<MemoryReport, QuestionError> {
        self.answer(Needs::Values, Self::build_whole_path, |session| {
            query.answer(session, &|| Ok(session.ensure_all_values()?))
        })
    }

    /// Finds why a place was not executed. Builds the path and the values if they do not exist yet.
    ///
    /// # Errors
    /// Returns an error if the program has no such place, the place was executed, or the recording
    /// is damaged.
    pub fn why_not(&self, query: &WhyNotQuery) -> Result<WhyNotReport, QuestionError> {
        self.prepared(|scene| query.answer(scene))
    }

    /// Returns what an execution of a statement depends on, or what depends on it. Builds the path
    /// and the values if they do not exist yet.
    ///
    /// # Errors
    /// Returns an error if there is no such place or execution, or the recording is damaged.
    pub fn deps(&self, query: &DepsQuery) -> Result<DepsReport, QuestionError> {
        match query.direction {
            DepsDirection::Backward => {
                self.first(|session| session.prepared(|scene| query.answer(scene)))
            }
            DepsDirection::Forward => self.prepared(|scene| query.answer(scene)),
        }
    }

    /// Returns what an execution depends on, directly or indirectly, or what depends on it. With a
    /// depth, builds only the stretches of the run that the slice needs, if these are few.
    /// Otherwise builds the path and the values if they do not exist yet, and follows the run.
    ///
    /// # Errors
    /// Returns an error if there is no such place or execution, or the recording is damaged.
    pub fn slice(&self, query: &SliceQuery) -> Result<SliceReport, QuestionError> {
        let wanted = Wanted::Answer(query.clone());
        let ask = |session: &Self| {
            session.ensured(|| slice::find(session, &wanted, None, |found| found.report()))
        };
        match query.depth {
            Some(_) => self.first(ask),
            None => ask(self),
        }
    }

    /// Returns the lines of the user's own code on which some executions depend, nearest first.
    /// Builds the same data as [`slice`](Self::slice) with a depth.
    ///
    /// # Errors
    /// Returns the same errors as [`slice`](Self::slice).
    pub fn near(&self, query: &NearQuery) -> Result<NearLines, QuestionError> {
        self.first(|session| session.prepared(|scene| query.answer(scene)))
    }

    /// Returns the branches of the user's own code that caused blocks to be executed. Builds the
    /// same data as [`slice`](Self::slice) with a depth.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged.
    pub fn decisions(&self, query: &DecisionsQuery) -> Result<Vec<WhyBranch>, QuestionError> {
        self.first(|session| session.prepared(|scene| query.answer(scene)))
    }

    /// Returns the state at a moment: the call stack and the values of variables. If the moment is
    /// a time and the recording has no values, follows the run from the preceding snapshot. If
    /// there are no snapshots, one re-execution takes them first. For other moments, builds the
    /// path and the values if they do not exist yet.
    ///
    /// # Errors
    /// Returns an error if the run has no such moment, or the recording is damaged.
    pub fn state(&self, query: &StateQuery) -> Result<StateView, QuestionError> {
        match self.early_state(query)? {
            Some(found) => Ok(found),
            None => self.first(|session| session.prepared(|scene| query.answer(scene))),
        }
    }

    /// Like [`state`](Self::state), but returns `None` unless the path and the values are missing
    /// and the answer does not need them.
    ///
    /// # Errors
    /// Returns the same errors as [`state`](Self::state).
    pub fn early_state(&self, query: &StateQuery) -> Result<Option<StateView>, QuestionError> {
        let early = || {
            if query.is_at_time() {
                early::ensure_for_questions(self)?;
            }
            query.answer_early(self)
        };
        let early = early();
        Ok(early.map_err(|error| error.context(self.at().display().to_string()))?)
    }

    /// Returns what the run executed, in order. Builds the path if it does not exist yet. All
    /// entries are in memory at once. A run may have billions of entries, so select a part of the
    /// run or limit their number.
    ///
    /// # Errors
    /// Returns an error if the run has no such part, the program has no such function, or the
    /// recording is damaged.
    pub fn trace(&self, query: &TraceQuery) -> Result<TraceReport, QuestionError> {
        self.about(|| {
            query.check()?;
            self.ensure_path()?;
            query.answer(self)
        })
    }

    /// Returns the lines, changes, writes and calls of one execution of a function. Builds the path
    /// if it does not exist yet, and follows the run while the function is open.
    ///
    /// # Errors
    /// Returns an error if the run has no such moment, the program has no line information, or the
    /// recording is damaged.
    pub fn activation(&self, query: &ActivationQuery) -> Result<ActivationReport, QuestionError> {
        self.about(|| {
            self.ensure_whole_path()?;
            query.answer(self)
        })
    }

    /// Returns the paths that the run took. Builds the path if it does not exist yet.
    ///
    /// # Errors
    /// Returns an error if there is no such function or block, or the recording is damaged.
    pub fn paths(&self, query: &PathsQuery) -> Result<PathsDocument, QuestionError> {
        self.about(|| query.document(self))
    }

    /// Returns the addresses that loads and stores accessed. For a few named executions, builds
    /// only the stretches of the run that contain them. Otherwise builds the path if it does not
    /// exist yet, and follows the run. All executions are in memory at once.
    ///
    /// # Errors
    /// Returns an error if there are no loads or stores at the place, or the recording is damaged.
    pub fn addresses(
        &self,
        query: &AddressesQuery,
    ) -> Result<WithRows<AddressesHead>, QuestionError> {
        match self.about(|| query.answer_early(self))? {
            Some(found) => Ok(found),
            None => self.followed(|program| query.answer(program)),
        }
    }

    /// Summarises the addresses of the loads and stores at a place, or in the whole program.
    ///
    /// # Errors
    /// Returns the same errors as [`addresses`](Self::addresses).
    pub fn address_stats(
        &self,
        at: Option<&str>,
    ) -> Result<WithRows<AddressStatsHead>, QuestionError> {
        self.followed(|program| addresses::summed(program, at))
    }

    /// Decides whether a fact held at the executions of a place, and finds what decided it. Builds
    /// the path if it does not exist yet.
    ///
    /// # Errors
    /// Returns an error if the fact has no known form, does not apply at its place, or the
    /// recording is damaged.
    pub fn dataflow(&self, query: &DataflowQuery) -> Result<DataflowDocument, QuestionError> {
        self.followed(|program| {
            let found = query.answer(program)?;
            found.shown(
                query,
                program,
                Style::default(),
                |view| Ok(view.document()?),
            )
        })
    }

    /// Returns the dynamic call graph, or the part of it around a function. Builds the path if it
    /// does not exist yet. The rest takes time linear in the size of the path's grammar.
    ///
    /// # Errors
    /// Returns an error if there is no such function, or the path is damaged.
    pub fn calls(&self, query: &CallsQuery) -> Result<CallsDocument, QuestionError> {
        self.about(|| {
            self.ensure_path()?;
            with_names(self, |program| query.answer(program))
        })
    }

    /// Finds executions that read or recomputed a value that was already available. Builds the path
    /// if it does not exist yet, and follows the run.
    ///
    /// # Errors
    /// Returns an error if there is no such function, or the run cannot be followed.
    pub fn redundancy(&self, query: &RedundancyQuery) -> Result<RedundancyDocument, QuestionError> {
        self.followed(|program| Ok(query.shown(program, Style::default())?.document()?))
    }

    /// Finds what branch predictors and caches would have missed. Returns one answer for each
    /// simulation. Builds the path if it does not exist yet, and follows the run.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed, stored simulations are damaged, or nothing
    /// can be added to the file.
    pub fn simulate(
        &self,
        query: &SimulateQuery,
    ) -> Result<Vec<WithRows<SimulateHead>>, QuestionError> {
        self.followed(|program| query.answer(program))
    }

    /// Finds where another execution first differs from this one. Builds both paths if they do not
    /// exist yet, and follows both runs.
    ///
    /// # Errors
    /// Returns an error if a run cannot be followed, or a recording is damaged.
    pub fn diff(&self, other: &Self, query: DiffQuery) -> Result<Differences, QuestionError> {
        self.about(|| {
            self.ensure_path()?;
            other.ensure_path()?;
            query.answer([self, other])
        })
    }

    /// Ranks the lines and values that separate `failing` executions from `passing` ones, all of
    /// one program. Counts each line's executions, and follows each run if values are ranked.
    ///
    /// # Errors
    /// Returns an error if there are no failing executions, the recordings are of several programs,
    /// or a recording lacks its end or is damaged.
    pub fn rank(
        passing: &[Self],
        failing: &[Self],
        query: RankQuery,
    ) -> Result<RankDocument, QuestionError> {
        let ask = |view: &RankView<'_>| Ok(view.document()?);
        Ok(rank(passing, failing, query, &NoSources, ask)?)
    }

    /// Finds which statements of another version correspond to statements of this version. Builds
    /// both paths if they do not exist yet, and follows both runs several times.
    ///
    /// # Errors
    /// Returns an error if a run cannot be followed, line tables are requested but do not exist, or
    /// a recording is damaged.
    pub fn matching(
        &self,
        other: &Self,
        query: MatchQuery,
    ) -> Result<MatchDocument, QuestionError> {
        self.about(|| {
            self.ensure_whole_path()?;
            other.ensure_whole_path()?;
            matched(
                [self, other],
                query,
                |_| {},
                |report| Ok(report.document()?),
            )
        })
    }

    /// Decides whether a debugger shows, in this optimised run, the value of a variable that the
    /// unoptimised program implies. Returns one answer for each variable. Builds the paths and the
    /// values of both runs if they do not exist yet.
    ///
    /// # Errors
    /// Returns an error if the runs cannot be compared, there is no such line or variable, or a
    /// recording is damaged.
    pub fn currency(
        &self,
        unoptimised: &Self,
        query: &CurrencyQuery,
    ) -> Result<Vec<CurrencyDocument>, QuestionError> {
        self.about(|| {
            query.check()?;
            for session in [unoptimised, self] {
                session.ensure_whole_path()?;
            }
            refuse_unlike([unoptimised, self])?;
            for session in [unoptimised, self] {
                session.ensure_all_values()?;
            }
            let found = query.answer([unoptimised, self])?;
            Ok(found.iter().map(|report| report.document()).collect())
        })
    }

    /// Returns the source files from which the program's code comes, with their executed lines in
    /// the whole run, or in a stretch of it. Executes the run again if the recording has no counts
    /// yet. For a stretch, builds the path if it does not exist yet.
    ///
    /// # Errors
    /// Returns an error if the end of the run is unknown, or the run cannot be executed again.
    pub fn files(&self, query: &FilesQuery) -> Result<FilesDocument, QuestionError> {
        self.about(|| query.answer(self))
    }

    /// Returns the text of a source file with the execution count of each line. The counts cover
    /// the whole run, or a stretch of it, as for [`files`](Self::files).
    ///
    /// # Errors
    /// Returns an error if no code comes from the file, and as for [`files`](Self::files).
    pub fn source(&self, query: &SourceQuery) -> Result<SourceDocument, QuestionError> {
        self.about(|| query.answer(self))
    }

    /// Returns how often a function's blocks, edges and path traces were executed in a stretch of
    /// the run. Builds the path if it does not exist yet.
    ///
    /// # Errors
    /// Returns an error if there is no such function, or the recording is damaged.
    pub fn flow(&self, query: &FlowQuery) -> Result<FlowDocument, QuestionError> {
        self.about(|| query.answer(self))
    }

    /// Returns the statements and the bytes of output that depend on a byte of input. Builds the
    /// path and the values if they do not exist yet. Then follows the run once, from the read on.
    ///
    /// # Errors
    /// Returns an error if the run did not read the byte, or the recording is damaged.
    pub fn influence(&self, query: &InfluenceQuery) -> Result<InfluenceDocument, QuestionError> {
        self.ensured(|| explain(self, |scene| query.answer(scene)))
    }

    /// Returns the names of functions in the short forms that people write, and the places that
    /// call the host.
    ///
    /// # Errors
    /// Returns an error if the program does not belong to the recording.
    pub fn names(&self) -> Result<NamesDocument, QuestionError> {
        Ok(names(self)?)
    }

    /// Returns what the program printed, and when. If the values are not built, builds the path if
    /// it does not exist yet, and follows the run up to the last reported output.
    ///
    /// # Errors
    /// Returns an error if the run cannot be executed again, or the recording is damaged.
    pub fn output(&self, query: &OutputQuery) -> Result<OutputDocument, QuestionError> {
        self.about(|| query.answer(self))
    }

    /// Returns when a place was executed. Finds a few executions in stretches of the run, if these
    /// suffice. Otherwise, builds the path if it does not exist yet.
    ///
    /// # Errors
    /// Returns an error if there is no such place or stretch, or the recording is damaged.
    pub fn executions(&self, query: &ExecutionsQuery) -> Result<ExecutionsDocument, QuestionError> {
        if query.limit <= ExecutionsQuery::FEW {
            self.answer(Needs::Path, Self::build_whole_path, |session| {
                query.answer(session)
            })
        } else {
            self.about(|| {
                self.ensure_whole_path()?;
                query.answer(self)
            })
        }
    }

    /// Returns the name of a moment. Builds the path only if stretches of the run do not suffice.
    ///
    /// # Errors
    /// Returns an error if the run has no such moment, or the recording is damaged.
    pub fn moment(&self, query: &MomentQuery) -> Result<MomentDocument, QuestionError> {
        self.answer(Needs::Path, Self::build_whole_path, |session| {
            query.answer(session)
        })
    }

    /// Returns the moment to which a move leads, by lines or by writes. Builds the path and the
    /// values only if stretches of the run do not suffice.
    ///
    /// # Errors
    /// Returns an error if the run has no such moment, or the recording is damaged.
    pub fn step(&self, query: &StepQuery) -> Result<StepDocument, QuestionError> {
        let build = |session: &Self| {
            session.ensure_whole_path()?;
            session.ensure_all_values()?;
            Ok(())
        };
        self.answer(Needs::Values, build, |session| query.answer(session))
    }

    /// Answers from stretches of the run if they suffice, and otherwise from the whole run. `ask`
    /// builds the data that it needs.
    fn first<R>(
        &self,
        ask: impl Fn(&Self) -> Result<R, QuestionError>,
    ) -> Result<R, QuestionError> {
        self.answer(Needs::Values, |_| Ok(()), |session| Ok(ask(session)?))
    }

    fn build_whole_path(&self) -> anyhow::Result<()> {
        self.ensure_whole_path()?;
        Ok(())
    }

    fn prepared<R>(
        &self,
        ask: impl FnOnce(&Scene<'_, '_>) -> anyhow::Result<R>,
    ) -> Result<R, QuestionError> {
        self.ensured(|| explain(self, ask))
    }

    fn ensured<R>(&self, ask: impl FnOnce() -> anyhow::Result<R>) -> Result<R, QuestionError> {
        let prepare = || -> anyhow::Result<R> {
            self.ensure_whole_path()?;
            self.ensure_all_values()?;
            ask()
        };
        self.about(prepare)
    }

    fn followed<R>(
        &self,
        ask: impl FnOnce(NamedProgram<'_>) -> anyhow::Result<R>,
    ) -> Result<R, QuestionError> {
        self.about(|| {
            self.ensure_whole_path()?;
            with_names(self, ask)
        })
    }
}
