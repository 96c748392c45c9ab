//! Writes a profile in all its formats.

use std::io::Write;

use afterimage_profile::{Options, Profile, Report, Scope};

use crate::coverage::{Coverage, html};
use crate::export::{callgrind, lcov, pprof};
use crate::render::{Format, Render};
use crate::{
    Annotation, PresentError, Sources, Style, annotate, calls_dot, cfg_dot, csv, json, text,
};

/// A profile, with the options for showing it.
pub struct ProfileView<'p> {
    /// The profile.
    pub profile: &'p Profile<'p>,
    /// The rows to show.
    pub options: Options,
    /// Whether the text form shows source lines with their counts.
    pub annotated: bool,
    /// A note for the reader if the counts are not exact.
    pub note: Option<&'p str>,
    /// The subject of the profile, for a title.
    pub title: String,
    /// Source text.
    pub sources: &'p dyn Sources,
}

/// The maximum number of functions without source to list as WebAssembly text, if the user names no
/// functions.
const LISTINGS: usize = 3;

impl ProfileView<'_> {
    /// Returns the source files of the shown code, including files that were not found.
    ///
    /// # Errors
    /// Returns an error if the profile cannot be evaluated.
    pub fn files(&self) -> Result<Vec<&str>, PresentError> {
        let Options { scope, code, .. } = &self.options;
        let coverage = Coverage::of(self.profile, scope, code.as_ref())?;
        Ok(coverage.files.into_keys().collect())
    }

    fn report(&self) -> Result<Report, PresentError> {
        Ok(Report::new(self.profile, &self.options)?)
    }
}

impl Render for ProfileView<'_> {
    const NAME: &'static str = "a profile";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        if let Some(note) = self.note {
            writeln!(out, "{note}")?;
        }
        if !self.annotated {
            return text(out, self.profile, &self.report()?, self.sources, style);
        }
        let scope = self.options.scope.clone();
        let listings = match &scope {
            Scope::All => LISTINGS,
            Scope::Only(functions) => functions.len(),
        };
        let code = self.options.code.clone();
        let annotation = Annotation {
            scope,
            listings,
            code,
        };
        annotate(out, self.profile, &annotation, self.sources, style)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        json(out, self.profile, &self.report()?, self.note)
    }

    fn csv(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        csv(out, self.profile, &self.report()?)
    }

    fn dot(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        match &self.options.scope {
            Scope::All => calls_dot(out, self.profile, &Scope::All),
            Scope::Only(functions) => match functions.as_slice() {
                [one] => cfg_dot(out, self.profile, *one),
                _ => Err(PresentError::OneGraph),
            },
        }
    }

    fn html(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        html(out, self)
    }

    fn export(&self, out: &mut dyn Write, format: Format) -> Result<(), PresentError> {
        let Options { scope, code, .. } = &self.options;
        match format {
            Format::Lcov => lcov(out, self.profile, scope, code.as_ref(), self.sources),
            Format::Callgrind => callgrind(out, self.profile, scope),
            Format::Pprof => pprof(out, self.profile, scope),
            format => Err(self.refuse(format)),
        }
    }
}
