//! Turns finished structs into text, JSON and the formats of other tools. All output goes to the
//! receiver that the caller supplies. This crate neither prints nor opens files.

mod accessed;
mod activation;
mod addresses;
mod annotate;
mod calls;
mod cfg;
mod compare;
mod context_dot;
mod coverage;
mod csv;
mod currency;
mod dataflow;
mod deps;
mod diff;
pub mod document;
mod dot;
mod dynamic_cfg;
mod error;
mod explore;
pub mod export;
pub mod info;
mod inlined;
mod json;
mod listing;
mod loads;
mod matching;
mod memory;
mod name;
mod number;
mod output;
mod own;
pub mod page;
mod paths;
mod plain;
mod profile;
mod rank;
mod redundancy;
mod render;
mod shell;
mod simulate;
mod slice;
mod sources;
mod state;
mod steps;
mod table;
mod text;
mod trace;
mod value;
pub mod values;
pub mod verify;
mod visible;
mod why;
mod why_not;

pub use accessed::{NextAccessed, accessed_binary, accessed_rows, accessed_text};
pub use activation::{
    ActivationCall, ActivationCaller, ActivationChange, ActivationLine, ActivationReport,
    ActivationVariable, ActivationWrite,
};
pub use addresses::{
    AddressStatsHead, AddressesHead, NextAccess, address_rows, address_stats_rows,
    address_stats_text, addresses_text,
};
pub use annotate::{Annotation, annotate};
pub use calls::{CallGraphView, CallView, CallsDocument, absent};
pub use cfg::{CfgCounter, CfgView, InstrumentDocument};
pub use compare::{
    CompareActivity, CompareArrivals, CompareDocument, CompareFunction, CompareLine, CompareRow,
    CompareSide, CompareView,
};
pub use context_dot::context_dot;
pub use csv::csv;
pub use currency::{
    Assigned, Cause, CurrenciesView, CurrencyCause, CurrencyDocument, CurrencyReport, CurrencyRow,
    CurrencyView, Unreported, Verdict,
};
pub use dataflow::{DataflowDocument, DataflowView, FactRow, FactScene};
pub use deps::{
    BlockRun, Dependence, DependsOn, DepsAlong, DepsDirection, DepsExecution, DepsReport,
    DepsStatement, DepsUse, DepsUsers, HostGave, OperatorUse, UsedBy,
};
pub use diff::{
    AlikeReport, DiffDocument, DiffEnding, DiffReport, DiffView, FirstDifference, LineDifference,
    NextQuestion, OutputPlaces, PartingDifference, ReplacedReport, VersionsDocument, VersionsView,
};
pub use dot::{calls_dot, cfg_dot, cfg_text};
pub use dynamic_cfg::DynamicCfgView;
pub use error::PresentError;
pub use explore::{
    ExecutionTime, ExecutionsDocument, FilesDocument, FilesEntry, FlowBlock, FlowDocument,
    FlowEdge, FlowTrace, ImportCalls, InfluenceDocument, InfluencedOutput, MomentDocument,
    NamesDocument, SourceBranch, SourceDocument, SourceFunction, SourceRange, SourceRow, SourceWay,
    StepDocument,
};
pub use json::{ProfileDocument, json, profile_document};
pub use loads::{
    NextLoads, load_values_json, load_values_text, loaded_binary, loaded_json, loaded_text,
};
pub use matching::{MatchDocument, MatchSide, MatchView};
pub use memory::{CallThere, MemoryPart, MemoryReport, VariableThere};
pub use number::{counted, grouped, size, time, times};
pub use output::{OutputDocument, OutputTotals, OutputWrite};
pub use own::OwnPlace;
pub use paths::{
    PathNames, PathsDocument, PathsJson, TraceForm, TraceListing, Whole, found_text, hot_text,
    outlines_document, paths_document, paths_json, trace_counts_text, traces_text,
};
pub use plain::{is_hidden, plain};
pub use profile::ProfileView;
pub use rank::{RankDocument, RankView, RankedValues};
pub use redundancy::{
    RedundancyDocument, RedundancyOf, RedundancyReport, RedundancyScene, RedundancyView,
};
pub use render::{Format, Render, render};
pub use shell::{shell_name, shell_word};
pub use simulate::{
    HistoriesView, MissesView, SimulateHead, SimulationView, SiteHistory, WorstSite, WorstView,
    misses_rows, outcome_text,
};
pub use slice::{SliceLine, SliceReport, SliceRows, SliceStatement, SliceView, slice_command};
pub use sources::{NoSources, Sources};
pub use state::{LastOwn, ResultValue, StateView, WrittenSince, with_results, written_text};
pub use steps::{
    CodeOf, FoldedSteps, NextStep, ShownStep, SkipFn, StepCode, StepRow, StepScene, StepTried,
    StepWhat, range_text, step_rows, steps_binary, steps_text,
};
pub use table::{COLORS, Style, narrow, wrapped};
pub use text::text;
pub use trace::{
    CallSource, ChangedPartRow, ChangedRow, ChangedVariable, LineEntry, LineRow, LineStyle,
    NextLine, Scene, Stretch, TraceHead, TraceLevel, call_rows, calls_binary, calls_in_text,
    leave_out_library, line_rows, lines_text, trace_binary, trace_rows, trace_text,
};
pub use value::{bits_text, type_text, value_text};
pub use visible::{Content, Visible};
pub use why::{
    InlinedCall, LeftOut, SEARCHED, WhyBranch, WhyCsv, WhyDeath, WhyDot, WhyEnd, WhyEntry,
    WhyFrame, WhyHead, WhyHow, WhyInLine, WhyLed, WhyMade, WhyMove, WhyOperand, WhyPlace, WhyText,
    expression, why_head, why_origin,
};
pub use why_not::{
    WhyNotBefore, WhyNotCause, WhyNotEnd, WhyNotHop, WhyNotHow, WhyNotKind, WhyNotNeeds,
    WhyNotReport, WhyNotVariable, WhyNotView, WhyNotWent, not_executed,
};
