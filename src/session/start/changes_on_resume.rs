//! Works out what changes when a run goes on: its options, its variables, and a definition that was edited.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::base::redact;
use crate::base::time::millis;
use crate::ci::found_trace::trace_origin;
use crate::context::error::Error;
use crate::context::options::ResumeOptions;
use crate::context::{Session, binding};
use crate::engine::event::{LoopStart, ResumeChanges};
use crate::journal::files::RunFiles;
use crate::machine::provided::{self, Provided};
use crate::machine::run_variables;
use crate::session::prepare::claim;
use crate::session::prepare::prepared::{Prepared, changed};
use crate::session::prepare::variables::given_again;

/// Works out what changes from now on.
pub(crate) fn changes(
    options: &ResumeOptions,
    files: &RunFiles,
    session: &Session<'_>,
    prepared: &Prepared,
    start: &LoopStart,
) -> Result<ResumeChanges, Error> {
    let is_changed = prepared.loaded.digest != start.definition_sha256;
    if is_changed && !options.accept_changes {
        return Err(changed(start.r#loop.as_str()));
    }
    let provided = prepared.provided(files).at_most(options.max_iterations);
    let mut context = variables(options, provided, session, prepared, start, is_changed)?;
    // The bundle may come from a machine on which the directory of the run lay elsewhere.
    provided::rebase(&mut context, &files.scratch().to_string_lossy());
    Ok(ResumeChanges {
        // A cap from the first command line still holds; a cap from the file is read again.
        max_iterations: options.max_iterations.or_else(|| {
            let of_file = prepared.machine.limits.iterations.limit;
            (is_changed && start.overrides.max_iterations.is_none()).then_some(of_file)
        }),
        timeout_ms: options.timeout.map(millis),
        strict: options.run.strict,
        // This, the captures and what was not carried are set by the caller, who knows them later.
        llm: None,
        definition_sha256: is_changed.then(|| prepared.loaded.digest.clone()),
        source: is_changed.then(|| prepared.source()),
        context: (context != start.context).then_some(context),
        place: Some(claim::place(&prepared.located.root)).filter(|place| start.place.as_ref() != Some(place)),
        captured: BTreeMap::new(),
        trace: trace_origin(&session.env.lookup())
            .map(Box::new)
            .filter(|trace| start.trace.as_ref() != Some(trace)),
        assignment: options.run.assignment.clone().map(Box::new),
        policy: binding::records(&prepared.policy)
            .into_iter()
            .filter(|record| !start.policy.contains(record))
            .collect(),
        not_carried: Vec::new(),
    })
}

/// Returns the variables, which may differ from before: with a changed loop file, with values of this command line,
/// and with secrets, which the journal does not hold.
fn variables(
    options: &ResumeOptions,
    provided: Provided,
    session: &Session<'_>,
    prepared: &Prepared,
    start: &LoopStart,
    is_changed: bool,
) -> Result<Map<String, Value>, Error> {
    let is_masked = start.context.values().any(redact::is_masked);
    // Not worked out anew: with the environment of today, a run could go on with other values than it began with.
    if !is_changed && !is_masked && options.context.is_empty() {
        return Ok(start.context.clone());
    }
    let overrides = &start.overrides;
    let mut context = overrides.context.clone();
    context.extend(options.context.iter().cloned());
    let hidden = |value: &String| value.contains(redact::MASK);
    let missing = context
        .iter()
        .chain(&overrides.param)
        .find(|(name, value)| hidden(value) && !options.context.iter().any(|(given, _)| given == *name));
    let input_key = prepared.machine.input_key.as_str();
    let input = overrides.input.as_ref().filter(|_| !context.contains_key(input_key));
    if let Some(name) =
        missing.map(|(name, _)| name.as_str()).or(input.filter(|input| hidden(input)).map(|_| input_key))
    {
        return Err(Error::refused(format!("the value of `{name}` was a secret, and secrets are not kept"))
            .with_hint(format!("give it again: `--context {name}=…`")));
    }
    let given = given_again(overrides, &context, input_key, provided);
    let now = run_variables::resolve(&prepared.machine, &given, &session.env.for_templates()).map_err(
        |errors| {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            Error::refused(errors.join("; "))
        },
    )?;
    if is_changed {
        return Ok(now);
    }
    let mut kept = redact::filled(&start.context, &now);
    kept.extend(options.context.iter().map(|(name, value)| (name.clone(), json!(value))));
    Ok(kept)
}
