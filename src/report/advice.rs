//! What can be done about a run, in commands that work where they are read: beside the run's own files, or on another
//! machine that has nothing but a clone of the repository.

use std::fmt;

use super::digest::{Digest, ReportPaths};
use super::reading_place::{Reader, RunDownload};
use crate::base::advised_command::{self, CommandLine};
use crate::base::redact;
use crate::engine::event::LoopStart;
use crate::engine::question::Awaiting;

/// Says in which repository the run of a workflow is.
fn of_workflow(command: CommandLine, repository: &str, api: Option<&str>) -> CommandLine {
    let command = command.option("--repo", repository);
    match api {
        Some(api) => command.env("GITHUB_API_URL", api),
        None => command,
    }
}

/// What can be done, and the command that does it where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The words before the command.
    pub words: String,
    /// The command.
    pub command: Option<CommandLine>,
}

impl<T: Into<String>> From<T> for Advice {
    fn from(words: T) -> Self {
        Self { words: words.into(), command: None }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)?;
        match &self.command {
            Some(command) => write!(f, " `{command}`"),
            None => Ok(()),
        }
    }
}

/// Returns the command that continues the run.
pub fn resume(digest: &Digest) -> CommandLine {
    let Reader { directory, remote, .. } = &digest.reader;
    let resume = match remote {
        None => advised_command::resume(digest.run_id()),
        Some(RunDownload::Bundle(path)) => CommandLine::of("resume").option("--from", path),
        Some(RunDownload::Workflow { repository, run, key, api }) => {
            let resume = CommandLine::of("resume").option("--from", &format!("run:{run}"));
            let resume = key.iter().fold(resume, |resume, key| resume.option("--key", key));
            of_workflow(resume, repository, api.as_deref()).arg(digest.loop_name())
        }
    };
    let resume = resume.within(directory);
    let Some(start) = digest.start() else { return resume };
    let resume = if start.strict && remote.is_some() { resume.flag("--strict") } else { resume };
    // The journal has every other value.
    let hidden = given(start).filter(|(.., value)| value.contains(redact::MASK));
    hidden.fold(resume, |resume, (_, name, value)| resume.variable("--context", name, value))
}

/// Returns the command that answers the question of the run, and continues it.
pub fn answer(digest: &Digest, awaiting: &Awaiting) -> CommandLine {
    let Reader { directory, remote, .. } = &digest.reader;
    let answer = match remote {
        None => advised_command::answer(digest.run_id()),
        Some(RunDownload::Bundle(path)) => {
            CommandLine::of("answer").option("--from", path).arg(digest.loop_name()).arg("approve")
        }
        Some(RunDownload::Workflow { repository, run, key, api }) => {
            let answer = CommandLine::of("answer").option("--from", &format!("run:{run}"));
            let answer = key.iter().fold(answer, |answer, key| answer.option("--key", key));
            of_workflow(answer, repository, api.as_deref()).arg(digest.loop_name()).arg("approve")
        }
    };
    answer.option("--code", &awaiting.code).within(directory)
}

/// Returns the command that continues the run with more time, which counts from its start.
pub fn resume_with_time(digest: &Digest) -> CommandLine {
    // Twice the time of a run that was cut off within seconds would hardly be more.
    let seconds = digest.duration().as_secs().saturating_mul(2).max(60);
    let time = if seconds < 600 { format!("{seconds}s") } else { format!("{}m", seconds.div_ceil(60)) };
    resume(digest).option("--timeout", &time)
}

/// Returns the command that continues the run with twice the cap that it met, where that came from the command line.
pub fn resume_with_budget(digest: &Digest) -> Option<CommandLine> {
    let (caps, spent) = (&digest.start()?.overrides, digest.usage());
    let resume = resume(digest);
    if let Some(cap) = caps.max_llm_calls.filter(|cap| spent.calls >= *cap) {
        return Some(resume.option("--max-llm-calls", &cap.saturating_mul(2).to_string()));
    }
    // A call that would not have fit is not made, so that the two others need not be used up.
    match (caps.max_tokens, caps.max_cost) {
        (Some(cap), None) => Some(resume.option("--max-tokens", &cap.saturating_mul(2).to_string())),
        (None, Some(cap)) => Some(resume.option("--max-cost", &format!("{:.2}", cap * 2.0))),
        (None, None) | (Some(_), Some(_)) => None,
    }
}

/// Returns the command that begins the run again; nothing where the journal does not say how it began.
pub fn again(digest: &Digest) -> Option<CommandLine> {
    let start = digest.start();
    if digest.file().is_empty() {
        return None;
    }
    let Some(start) = start else {
        return Some(advised_command::run(digest.file()).within(&digest.reader.directory));
    };
    let mut run = advised_command::run(loop_of(start)).within(&digest.reader.directory);
    if start.strict {
        run = run.flag("--strict");
    }
    // Elsewhere than in CI changes are only told.
    if start.fails_on_change() {
        run = run.option("--on-change", start.on_change.word());
    }
    let caps =
        [("--max-iterations", start.overrides.max_iterations), ("--max-cycles", start.overrides.max_cycles)];
    for (name, cap) in caps {
        run = cap.into_iter().fold(run, |run, cap| run.option(name, &cap.to_string()));
    }
    let models = [("--model", &start.overrides.model), ("--llm-model", &start.overrides.llm_model)];
    for (name, model) in models {
        run = model.iter().fold(run, |run, model| run.option(name, model));
    }
    let pairs = given(start).filter(|(option, ..)| option.is_some());
    run = pairs.fold(run, |run, (option, name, value)| run.variable(option.unwrap_or(""), name, value));
    Some(start.overrides.input.iter().fold(run, |run, input| run.last(input)))
}

/// Returns how a command line names the loop of a run: a file of another name than its loop by its path.
pub fn loop_of(start: &LoopStart) -> &str {
    let (name, file) = (start.r#loop.as_str(), start.source.file.as_str());
    let is_named =
        // A name finds only a file of that name in `.loops`.
        |extension| file.strip_prefix(".loops/").is_some_and(|file| file == format!("{name}.{extension}"));
    if is_named("yaml") || is_named("yml") { name } else { file }
}

/// Returns the values of a command line: the option that gave each, none for the input, and its variable.
fn given(start: &LoopStart) -> impl Iterator<Item = (Option<&'static str>, &str, &str)> {
    let overrides = &start.overrides;
    let params = overrides.param.iter().map(|(name, value)| (Some("--param"), name.as_str(), value.as_str()));
    let context =
        overrides.context.iter().map(|(name, value)| (Some("--context"), name.as_str(), value.as_str()));
    let input = overrides.input.as_deref().map(|input| (None, input_key(start, input), input));
    params.chain(context).chain(input)
}

/// Returns the variable that holds the input.
fn input_key<'s>(start: &'s LoopStart, input: &str) -> &'s str {
    let holds = |value: &serde_json::Value| value.as_str() == Some(input);
    let named = start.context.get("input").filter(|value| holds(value)).map(|_| "input");
    let other = || start.context.iter().find(|(_, value)| holds(value)).map(|(name, _)| name.as_str());
    named.or_else(other).unwrap_or("input")
}

/// Returns the last lines about a run: where its reports are, and how to see more of it. Beside its files, a run that
/// ended well has been seen.
pub fn more(reader: &Reader, places: &ReportPaths, ended_well: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if !places.report_dir.is_empty() {
        lines.push(format!("reports: {}", places.report_dir));
    }
    let run = places.run_id.as_str();
    let shown = |command: CommandLine| command.within(&reader.directory);
    lines.push(match &reader.remote {
        None if ended_well => return lines,
        None => {
            let (history, logs) = (shown(advised_command::history(run)), shown(advised_command::logs(run)));
            format!("run {run}: `{history}` shows its steps, `{logs}` what they printed")
        }
        Some(RunDownload::Bundle(_)) => {
            format!(
                "run {run}: `{}` shows it where they are kept",
                advised_command::report(&places.report_dir)
            )
        }
        Some(RunDownload::Workflow { .. }) if places.artifact_name.is_empty() => format!("run {run}"),
        Some(RunDownload::Workflow { repository, run: workflow, api, .. }) => {
            let artifact = &places.artifact_name;
            let download = CommandLine::of("artifact download").arg(artifact).option("--run", workflow);
            let download = of_workflow(download, repository, api.as_deref()).option("--to", artifact);
            format!("run {run}: `{download} && {}` shows it", advised_command::report(artifact))
        }
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::outcome::{Outcome, TerminatedBy};
    use crate::report::closing::advice;
    use crate::report::testing::{Journal, failing};

    fn left(reader: Reader) -> Digest {
        let mut journal = Journal::start();
        journal.step(("check", 1), "mypy", (1, ""), "no", "fix");
        journal.end(Outcome::Handoff, TerminatedBy::Handoff, "fix", false);
        let mut digest = journal.digest();
        digest.reader = reader;
        digest
    }

    fn workflow(api: Option<&str>) -> RunDownload {
        let [repository, run] = ["octo/project", "77"].map(str::to_owned);
        RunDownload::Workflow { repository, run, key: None, api: api.map(str::to_owned) }
    }

    #[test]
    fn the_command_fits_the_place_where_it_is_read() {
        let id = "fix-types-20251120T234847-1f2e";
        let check = |directory: &str, remote: Option<RunDownload>, expected: &str| {
            let reader = Reader { directory: directory.to_owned(), remote, ..Reader::default() };
            assert_eq!(advice(&left(reader)).unwrap().to_string(), format!("continue with `{expected}`"));
        };
        check("", None, &format!("ll-loop resume {id}"));
        check("/else where", None, &format!("cd '/else where' && ll-loop resume {id}"));
        let of_run = "ll-loop resume --from run:77 --repo octo/project fix-types --strict";
        check("", Some(workflow(None)), of_run);
        check("a/b", Some(workflow(None)), &format!("cd a/b && {of_run}"));
        let api = "https://ghe.example/api/v3";
        check("", Some(workflow(Some(api))), &format!("GITHUB_API_URL={api} {of_run}"));
        let bundle = RunDownload::Bundle(format!("reports/{id}.llz"));
        check("", Some(bundle), &format!("ll-loop resume --from reports/{id}.llz --strict"));
    }

    #[test]
    fn more_time_is_more_than_was_used() {
        let mut journal = Journal::start();
        journal.step(("check", 1), "mypy", (1, ""), "no", "fix");
        journal.end(Outcome::Timeout, TerminatedBy::Timeout, "fix", false);
        let said = advice(&journal.digest()).unwrap().to_string();
        assert_eq!(said, "continue with `ll-loop resume fix-types-20251120T234847-1f2e --timeout 60s`");
    }

    #[test]
    fn a_run_that_is_begun_again_gets_what_it_got() {
        let mut digest = failing().digest();
        assert_eq!(again(&digest).unwrap().to_string(), "ll-loop run fix-types --strict");
        digest.reader.directory = "sub".to_owned();
        let mut journal = Journal::start();
        journal.given(
            &[("--param", "n", "3"), ("--context", "who", "it's me"), ("--context", "key", "***")],
            Some("-x y"),
        );
        let reader = digest.reader;
        let mut digest = journal.digest();
        digest.reader = reader;
        let expected = "cd sub && ll-loop run fix-types --strict --param n=3 --context \"who=it's me\" \
                        --context 'key=<secret>' -- '-x y'";
        assert_eq!(again(&digest).unwrap().to_string(), expected);
        // Every value but the secret is in the journal.
        let resumed = "cd sub && ll-loop resume fix-types-20251120T234847-1f2e --context 'key=<secret>'";
        assert_eq!(resume(&digest).to_string(), resumed);
    }

    #[test]
    fn the_last_lines_lead_to_the_run() {
        let (mut reader, mut places) = (Reader::default(), ReportPaths::default());
        let id = "fix-types-20251120T234847-1f2e";
        id.clone_into(&mut places.run_id);
        let local = format!(
            "run {id}: `ll-loop history {id}` shows its steps, `ll-loop logs {id}` what they printed"
        );
        assert_eq!(more(&reader, &places, false), [local]);
        assert!(more(&reader, &places, true).is_empty());
        places.report_dir = "reports".to_owned();
        reader.remote = Some(workflow(None));
        assert_eq!(more(&reader, &places, true), ["reports: reports".to_owned(), format!("run {id}")]);
        let artifact = "ll-loop-fix-types-check-r77-a1";
        places.artifact_name = artifact.to_owned();
        let download =
            format!("ll-loop artifact download {artifact} --run 77 --repo octo/project --to {artifact}");
        let shown = format!("run {id}: `{download} && ll-loop report {artifact}` shows it");
        assert_eq!(more(&reader, &places, true)[1], shown);
        reader.remote = Some(RunDownload::Bundle("reports/x.llz".to_owned()));
        let kept = format!("run {id}: `ll-loop report reports` shows it where they are kept");
        assert_eq!(more(&reader, &places, true)[1], kept);
    }
}
