//! `ll-loop test`: plays the cases of test files, without running a command.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::base::time::millis;
use crate::ci::github::commands::WorkflowCommands;
use crate::cli::misread::Misread;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::files::replace::deliver;
use crate::process::clock::Clock;
use crate::report::dialect::Dialect as _;
use crate::testing::rerun::watch;
use crate::testing::suite::{self, GenerateTo, MutantOptions, SuiteOptions, TestedFile};
use crate::testing::writing::{self, WrittenCases};
use crate::testing::{self, SuiteReport, old_runs};

/// The arguments of `test`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "they are switches of a command line")]
pub(in crate::cli) struct TestArgs {
    /// Loops, test files, or directories of them. The default is everything in `.loops/tests`
    #[arg(value_name = "LOOP|FILE|DIR")]
    pub(super) loops: Vec<String>,
    /// Only the cases with such a name
    #[arg(long, value_name = "GLOB")]
    pub(super) case: Option<String>,
    /// Show which ways no test takes
    #[arg(long)]
    pub(super) coverage: bool,
    /// Fail where a smaller share of the ways is taken, in percent
    #[arg(long, value_name = "PCT", value_parser = percent)]
    pub(super) min_edges: Option<f64>,
    /// Write a case for each way that no test takes, for somebody to look at
    #[arg(long, conflicts_with_all = ["mutate", "fuzz", "replay", "from", "update", "watch"])]
    pub(super) generate: bool,
    /// With `--generate` and `--from`: print the cases
    #[arg(long)]
    pub(super) stdout: bool,
    /// Change the loop in many ways, and show which changes no test notices
    #[arg(long)]
    pub(super) mutate: bool,
    /// Fail where a smaller share of the mutants is noticed, in percent
    #[arg(long, value_name = "PCT", value_parser = percent, requires = "mutate")]
    pub(super) min_killed: Option<f64>,
    /// Only change what is not as in this commit
    #[arg(long, value_name = "REF", requires = "mutate")]
    pub(super) in_diff: Option<String>,
    /// Only this part of the mutants: `2/4`
    #[arg(long, value_name = "K/N", value_parser = shard, requires = "mutate")]
    pub(super) shard: Option<(usize, usize)>,
    /// Take so many walks at random, with kills and resumes
    #[arg(long, value_name = "N")]
    pub(super) fuzz: Option<u64>,
    /// What the walks follow from; by default another number each time
    #[arg(long, value_name = "S", requires = "fuzz")]
    pub(super) seed: Option<u64>,
    /// Write the snapshots of texts anew
    #[arg(long)]
    pub(super) update: bool,
    /// Write nothing, as in CI, where it is the default
    #[arg(long)]
    pub(super) ci: bool,
    /// Play old runs on their loops as they are now: `history`, a run, a bundle, a directory, or `artifact:NAME`
    #[arg(long, value_name = "RUNS", conflicts_with_all = ["from", "watch"])]
    pub(super) replay: Option<String>,
    /// Write a case of a run
    #[arg(long, value_name = "RUN", conflicts_with = "watch")]
    pub(super) from: Option<String>,
    /// Run the mocked commands once each, in a temporary worktree, and compare what they come to
    #[arg(long, conflicts_with = "watch")]
    pub(super) verify_mocks: bool,
    /// Run this state truly, in a temporary worktree
    #[arg(long, value_name = "STATE", conflicts_with = "watch")]
    pub(super) real: Option<String>,
    /// Run again what a change touches
    #[arg(long)]
    pub(super) watch: bool,
    /// How the results are written
    #[arg(long, value_enum, default_value_t = ResultsFormat::Text)]
    pub(super) format: ResultsFormat,
    /// Write them as JUnit XML to this file, too
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,
}

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ResultsFormat {
    /// For people
    Text,
    /// One object
    Json,
    /// JUnit XML, a case for each case
    Junit,
    /// Annotations of GitHub Actions, and the text
    Github,
    /// The coverage of the lines of loop files
    Lcov,
}

fn percent(text: &str) -> Result<f64, Misread> {
    let number = text.trim_end_matches('%').trim().parse::<f64>().ok();
    number.filter(|number| (0.0..=100.0).contains(number)).ok_or(Misread("write a number from 0 to 100"))
}

fn shard(text: &str) -> Result<(usize, usize), Misread> {
    let parts = text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
    parts.filter(|(part, of)| (1..=*of).contains(part)).ok_or(Misread("write `K/N`, such as `2/4`"))
}

pub(in crate::cli) fn test(args: &TestArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let is_ci = args.ci || crate::ci::is_ci(&session.env.lookup());
    if args.generate || args.from.is_some() {
        return write_cases(args, is_ci, session, output);
    }
    if args.update && is_ci {
        return Err(Error::refused("`--update` writes snapshots, which nothing does in CI")
            .with_hint("run it on your machine, and commit what it writes"));
    }
    if let Some(which) = &args.replay {
        let report = replayed(which, args, session)?;
        return told(args, &report, session, output);
    }
    if args.watch {
        return watch(&args.loops, session, &mut |changed| {
            once(args, is_ci, changed, session).map(|report| write(args.format, &report, output))
        });
    }
    let report = once(args, is_ci, &args.loops, session)?;
    told(args, &report, session, output)
}

/// Writes the results where they are wanted, and returns how the command ends.
fn told(args: &TestArgs, report: &SuiteReport, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    write(args.format, report, output);
    if let Some(junit) = &args.junit {
        let file = session.path(junit);
        let made = file.parent().map_or(Ok(()), fs_err::create_dir_all);
        made.and_then(|()| deliver(&file, testing::junit(report)))
            .map_err(|error| Error::unwritten(format!("cannot write `{}`", junit.display()), &error))?;
    }
    Ok(report.exit_code())
}

/// Runs tests once.
fn once(args: &TestArgs, is_ci: bool, names: &[String], session: &Session<'_>) -> Result<SuiteReport, Error> {
    let mutants = MutantOptions { in_diff: args.in_diff.clone(), shard: args.shard };
    let options = SuiteOptions {
        case: args.case.clone(),
        updates: args.update,
        is_ci,
        mutants: args.mutate.then_some(mutants),
        fuzz: args.fuzz.map(|walks| (walks, args.seed.unwrap_or_else(seed))),
        verifies_mocks: args.verify_mocks,
        real: args.real.clone(),
    };
    let mut report = begun(args);
    for place in suite::find_tests(names, session)? {
        let mut file = TestedFile::read(place, session)?;
        report.files.push(suite::run(&mut file, &options, session)?);
    }
    // A bad file has said what is wrong, and may hold the case that is meant.
    let is_nothing = report.files.iter().all(|file| file.cases.is_empty() && !file.is_bad());
    if let Some(pattern) = args.case.as_deref().filter(|_| is_nothing) {
        return Err(Error::refused(format!("no case is called like `{pattern}`")));
    }
    let is_mocked = report.files.iter().all(|file| file.ran_truly == 0 && !file.is_bad());
    if let Some(state) = args.real.as_deref().filter(|_| is_mocked) {
        return Err(Error::refused(format!("no case comes to a command of `{state}`, so nothing ran truly"))
            .with_hint(
                "name a state that runs a command, as the cases do; one of a sub-loop is `state/inner`",
            ));
    }
    Ok(report)
}

fn begun(args: &TestArgs) -> SuiteReport {
    SuiteReport {
        files: Vec::new(),
        shows_coverage: args.coverage,
        min_edges: args.min_edges,
        min_killed: args.min_killed,
        old_runs: Vec::new(),
        now: Clock::start().now(),
    }
}

/// Plays old runs.
fn replayed(which: &str, args: &TestArgs, session: &Session<'_>) -> Result<SuiteReport, Error> {
    let mut report = begun(args);
    report.old_runs = old_runs::check_all(which, &args.loops, session)?;
    Ok(report)
}

fn write_cases(args: &TestArgs, is_ci: bool, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let to = if args.stdout { GenerateTo::Stdout } else { GenerateTo::File };
    if is_ci && to == GenerateTo::File {
        return Err(Error::refused("cases are written into test files, which nothing does in CI")
            .with_hint("print them with `--stdout`, or run it on your machine"));
    }
    let written = match &args.from {
        Some(run) => {
            let runs = old_runs::find(run, session)?;
            runs.iter().map(|run| writing::of_run(run, to, session)).collect::<Result<Vec<_>, _>>()?
        }
        None if args.loops.is_empty() => {
            return Err(Error::refused("`--generate` needs a loop").with_hint("name one, or its test file"));
        }
        None => {
            let of = |name: &String| writing::generated(name, to, session);
            args.loops.iter().map(of).collect::<Result<Vec<_>, _>>()?
        }
    };
    for written in written {
        match written {
            WrittenCases::Text(text) => output.data(&text),
            WrittenCases::Lines(lines) => output.data(&(lines.join("\n") + "\n")),
        }
    }
    Ok(0)
}

/// Returns a number that is another one each time.
fn seed() -> u64 {
    // Short enough to be typed again.
    millis(Clock::start().now().since_epoch()) % 1_000_000
}

fn write(format: ResultsFormat, report: &SuiteReport, output: &Output) {
    match format {
        ResultsFormat::Text => output.drawn(&testing::text(report, output.color)),
        ResultsFormat::Json => output.json(testing::object(report)),
        ResultsFormat::Junit => output.data(&testing::junit(report)),
        ResultsFormat::Lcov => output.data(&testing::lcov(report)),
        ResultsFormat::Github => {
            output.drawn(&testing::text(report, output.color));
            let commands = WorkflowCommands::default();
            let all = testing::annotations(report);
            let lines: String = all.iter().map(|annotation| commands.annotation(annotation) + "\n").collect();
            output.commands(&lines, "github");
        }
    }
}
