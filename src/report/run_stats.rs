//! What many runs have in common: how they ended, how long their states took, what is flaky and what they cost. Folded
//! from journals, one run at a time; nothing of a run is kept but its numbers.

pub mod stats_report;
mod value_counts;

use std::collections::BTreeMap;
use std::time::Duration;

use indexmap::IndexMap;
use value_counts::Spread;

use super::digest::{Digest, EndKind};
use super::step::Step;
use super::taken_edges::{MAX_STATES, has_room};
use crate::base::name::StateName;
use crate::base::time::{Timestamp, millis};
use crate::engine::event::{Event, Stamped};
use crate::evaluate::model::Usage;

/// How many states that cost most time are named.
const SLOWEST: usize = 5;

/// Folds one run.
#[derive(Debug)]
pub struct RunFold {
    digest: Digest,
    began: Option<Timestamp>,
    first_pass: Option<u32>,
    states: IndexMap<StateName, VisitCounts>,
    /// The step that the end of the run cut off, which goes on if the run does.
    cut: Option<Step>,
}

/// The numbers of a run.
#[derive(Clone, Debug)]
pub struct RunNumbers {
    /// The loop.
    pub loop_name: String,
    /// The id that the run says it has.
    pub run_id: String,
    /// When it began itself.
    pub began: Option<Timestamp>,
    outcome: &'static str,
    is_success: bool,
    is_verified: bool,
    flaky: Vec<StateName>,
    acted: Duration,
    passes: Option<u32>,
    usage: Usage,
    states: IndexMap<StateName, VisitCounts>,
    reuse: RunReuse,
}

/// What a run has to do with an earlier one that found the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunReuse {
    /// Nothing.
    None,
    /// That one, which took so long, stands for it.
    Reused(Duration),
    /// It was made to prove that one, and came to the same.
    Proved,
    /// It was made to prove that one, and came to something else.
    Refuted,
}

/// The visits of a state.
#[derive(Clone, Debug, Default)]
struct VisitCounts {
    count: u64,
    total: Duration,
    durations: Spread,
}

impl RunNumbers {
    /// Returns what models took in it.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }
}

impl VisitCounts {
    fn add(&mut self, step: &Step) {
        self.count += 1;
        self.total = self.total.saturating_add(step.duration());
        // A visit without an action has no duration; counted as zero, it would pull the median down.
        if step.result.is_some() {
            self.durations.add(millis(step.duration()));
        }
    }

    fn add_all(&mut self, other: &Self) {
        self.count += other.count;
        self.total = self.total.saturating_add(other.total);
        self.durations.add_all(&other.durations);
    }
}

impl Default for RunFold {
    fn default() -> Self {
        Self {
            digest: Digest::without_steps(0),
            began: None,
            first_pass: None,
            states: IndexMap::new(),
            cut: None,
        }
    }
}

impl RunFold {
    /// Takes the next event. What a rewound run has from the run before it counts there, and not once more.
    pub fn event(&mut self, stamped: &Stamped) {
        if stamped.inherited {
            // Of the run before, only the loop and its options are those of this run as well.
            if matches!(stamped.event, Event::LoopStart(_)) && stamped.depth == 0 {
                self.digest.event(stamped);
            }
            return;
        }
        self.began.get_or_insert(stamped.ts);
        if let Event::StateEnter { iteration, .. } = &stamped.event
            && stamped.depth == 0
        {
            self.first_pass.get_or_insert(*iteration);
        }
        if matches!(stamped.event, Event::LoopResume(_)) && stamped.depth == 0 {
            self.cut = None;
        }
        let finished = self.digest.finished(stamped);
        if let Some(step) = finished.filter(|step| !step.closing) {
            if step.cut.is_some() {
                self.cut = Some(step);
            } else {
                self.visited(&step);
            }
        }
    }

    /// Returns the version of the format of the journal, where only a newer version of ll-loop understands it.
    pub fn newer_schema(&self) -> Option<u32> {
        self.digest.newer_schema()
    }

    /// Ends the fold of a run whose process was killed.
    pub fn was_killed(&mut self) {
        self.digest.was_killed();
    }

    /// Returns the numbers of the run, if it was one.
    pub fn numbers(mut self) -> Option<RunNumbers> {
        if let Some(step) = self.cut.take() {
            self.visited(&step);
        }
        let Self { digest, began, first_pass, states, .. } = self;
        digest.start()?;
        let is_success = digest.is_success();
        let reuse = reuse_of(&digest);
        // A run that was rewound goes on with the count of passes that it inherited.
        let own_passes = |first: u32| digest.iterations().saturating_sub(first).saturating_add(1);
        Some(RunNumbers {
            loop_name: digest.loop_name().to_owned(),
            run_id: digest.run_id().to_owned(),
            began,
            outcome: digest.outcome_word(),
            is_success,
            is_verified: is_success && digest.end().is_some_and(|end| end.verified),
            flaky: digest.mends().flaky(),
            acted: states.values().map(|visits| visits.total).fold(Duration::ZERO, Duration::saturating_add),
            passes: first_pass.filter(|_| is_success).map(own_passes),
            usage: digest.usage().clone(),
            states,
            reuse,
        })
    }

    fn visited(&mut self, step: &Step) {
        if has_room(&self.states, &step.state, MAX_STATES) {
            self.states.entry(step.state.clone()).or_default().add(step);
        }
    }
}

fn reuse_of(digest: &Digest) -> RunReuse {
    let is_proof = || digest.start().is_some_and(|start| start.checks.proves.is_some());
    let is_verified = digest.end().is_some_and(|end| end.verified);
    match digest.reused() {
        Some(reused) => RunReuse::Reused(Duration::from_millis(reused.duration_ms)),
        None if !is_proof() => RunReuse::None,
        None if is_verified => RunReuse::Proved,
        None if digest.end_kind() == EndKind::Failure => RunReuse::Refuted,
        // What kept it from its end says nothing about the earlier run.
        None => RunReuse::None,
    }
}

/// What runs have in common, by loop.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    loops: BTreeMap<String, LoopStats>,
}

/// What the runs of a loop have in common.
#[derive(Clone, Debug, Default)]
pub struct LoopStats {
    runs: Vec<TrendPoint>,
    outcomes: IndexMap<&'static str, u64>,
    successes: u64,
    verified: u64,
    flaky: u64,
    durations: Spread,
    passes: Spread,
    usage: Usage,
    states: IndexMap<StateName, StateStats>,
    reuse: ReuseCounts,
}

/// For what earlier runs stood, and whether they were right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ReuseCounts {
    runs: u64,
    /// Items that a plan left out.
    items: u64,
    saved: Duration,
    proved: u64,
    refuted: u64,
}

/// One run as a point of a trend.
#[derive(Clone, Copy, Debug)]
struct TrendPoint {
    began: Option<Timestamp>,
    is_success: bool,
    acted_ms: u64,
    passes: Option<u32>,
    cost: Option<f64>,
}

/// What the visits of a state have in common.
#[derive(Clone, Debug, Default)]
struct StateStats {
    visits: VisitCounts,
    runs: u64,
    flaky: u64,
}

/// A state that costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowState<'s> {
    loop_name: &'s str,
    state: &'s StateName,
    total: Duration,
}

impl Stats {
    /// Adds a run.
    pub fn add(&mut self, run: &RunNumbers) {
        let name = run.loop_name.clone();
        self.loops.entry(name).or_default().add(run);
    }

    /// Adds an item that a plan left out, because an earlier run stood for it, which took so long.
    pub fn add_reused_item(&mut self, loop_name: &str, saved: Duration) {
        let counts = &mut self.loops.entry(loop_name.to_owned()).or_default().reuse;
        counts.items += 1;
        counts.saved = counts.saved.saturating_add(saved);
    }

    /// Tells whether there was no run.
    pub fn is_empty(&self) -> bool {
        self.loops.is_empty()
    }

    /// Returns the states that cost most time in all, the dearest first.
    pub fn slowest(&self) -> Vec<SlowState<'_>> {
        let mut all: Vec<SlowState<'_>> = Vec::new();
        for (loop_name, stats) in &self.loops {
            for (state, of_state) in &stats.states {
                all.push(SlowState { loop_name, state, total: of_state.visits.total });
            }
        }
        // A state that took no time would be named as one of those that take most of it.
        all.retain(|slow| slow.total >= Duration::from_millis(1));
        all.sort_by_key(|slow| std::cmp::Reverse(slow.total));
        all.truncate(SLOWEST);
        all
    }
}

impl LoopStats {
    fn add(&mut self, run: &RunNumbers) {
        let acted_ms = millis(run.acted);
        self.runs.push(TrendPoint {
            began: run.began,
            is_success: run.is_success,
            acted_ms,
            passes: run.passes,
            cost: cost(&run.usage),
        });
        *self.outcomes.entry(run.outcome).or_default() += 1;
        self.successes += u64::from(run.is_success);
        self.verified += u64::from(run.is_verified);
        self.flaky += u64::from(!run.flaky.is_empty());
        match run.reuse {
            RunReuse::None => {}
            RunReuse::Reused(saved) => {
                self.reuse.runs += 1;
                self.reuse.saved = self.reuse.saved.saturating_add(saved);
            }
            RunReuse::Proved => self.reuse.proved += 1,
            RunReuse::Refuted => self.reuse.refuted += 1,
        }
        // Where no action ran, none took any time.
        if !matches!(run.reuse, RunReuse::Reused(_)) {
            self.durations.add(acted_ms);
        }
        run.passes.into_iter().for_each(|passes| self.passes.add(u64::from(passes)));
        self.usage.add(&run.usage);
        for (name, visits) in &run.states {
            if !has_room(&self.states, name, MAX_STATES) {
                continue;
            }
            let state = self.states.entry(name.clone()).or_default();
            state.visits.add_all(visits);
            state.runs += 1;
            state.flaky += u64::from(run.flaky.contains(name));
        }
    }

    /// Returns the runs in the order in which they began.
    fn in_order(&self) -> Vec<&TrendPoint> {
        let mut runs: Vec<&TrendPoint> = self.runs.iter().collect();
        runs.sort_by_key(|run| run.began);
        runs
    }
}

/// Returns what calls cost: nothing where there were none, and nothing known where one had no price.
fn cost(usage: &Usage) -> Option<f64> {
    if usage.is_nothing() { Some(0.0) } else { usage.cost_usd }
}

/// Returns a share of a whole, if there is a whole.
fn share(part: u64, whole: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "nobody has so many runs that it would show")]
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::super::testing::{Journal, failing, succeeding, working};
    use super::*;
    use crate::engine::event::{LoopResume, ResumeChanges, ResumeReason};
    use crate::engine::outcome::{Outcome, TerminatedBy};
    use crate::evaluate::observation::{Observation, Stop};

    fn numbers(journal: &Journal) -> RunNumbers {
        let mut fold = RunFold::default();
        journal.events.iter().for_each(|event| fold.event(event));
        fold.numbers().unwrap()
    }

    fn of(journals: &[&Journal]) -> Stats {
        let mut stats = Stats::default();
        for journal in journals {
            stats.add(&numbers(journal));
        }
        stats
    }

    /// A check that fails and passes on the same tree, and takes so many milliseconds each time.
    fn flaky(ms: u64) -> Journal {
        let mut journal = Journal::start();
        for exit in [1, 0] {
            let mut seen = Observation::exited(exit, "");
            seen.duration = Duration::from_millis(ms);
            journal.enter("check", 1).act("mypy").seen(seen);
            journal.judge(if exit == 0 { "yes" } else { "no" }).route(Some("x"), "check");
        }
        journal.end(Outcome::Success, TerminatedBy::Terminal, "done", true);
        journal
    }

    #[test]
    fn runs_are_counted_by_loop_and_state() {
        let stats = of(&[&failing(), &succeeding(), &flaky(10), &working()]);
        assert_snapshot!(stats_report::text(&stats), @"
        build: 1 run, 1 failure
          outcomes  of the last 1 run                       ✗
          verified  no success yet
          flaky     0% of the runs
          actions   median 42.1s, p90 42.1s                 █
          cost      17 model calls, 17340 tokens, $8.50     █

          state         visits     median        p90      total  flaky
          plan               2       2.3s       2.3s       4.6s     0%
          load               2          -          -          -     0%
          review             2       2.3s       2.3s       4.6s     0%
          review_round       1          -          -          -     0%
          approve_plan       1          -          -          -     0%
          next               7          -          -          -     0%
          implement          6       2.3s       2.3s      14.0s     0%
          test               2       2.3s       2.3s       4.6s     0%
          fix_round          1          -          -          -     0%
          fix                1       2.3s       2.3s       2.3s     0%
          facts              1       2.3s       2.3s       2.3s     0%
          verify             3       2.3s       2.3s       7.0s     0%
          pass               2          -          -          -     0%
          fail               4          -          -          -     0%
          replan             1       2.3s       2.3s       2.3s     0%
          split              1          -          -          -     0%
          give_up            1          -          -          -     0%

        fix-types: 3 runs, 1 failure, 2 success
          outcomes  of the last 3 runs                      ✗✓✓
          verified  100% of the successes
          flaky     33% of the runs
          actions   median 7.0s, p90 11.7s                  █▅▁
          passes    median 1 until clean                     █▄

          state  visits     median        p90      total  flaky
          check       7       2.3s       2.3s      11.7s    33%
          fix         3       2.3s       2.3s       7.0s     0%

        most time went into
              14.0s  build: implement
              11.7s  fix-types: check
               7.0s  build: verify
               7.0s  fix-types: fix
               4.6s  build: plan
        ");
        assert_snapshot!(format!("{:#}", stats_report::json(&of(&[&failing(), &succeeding(), &flaky(10)]))), @r#"
        {
          "loops": [
            {
              "loop": "fix-types",
              "runs": 3,
              "outcomes": {
                "failure": 1,
                "success": 2
              },
              "verified": 1.0,
              "flaky": 0.3333333333333333,
              "median_ms": 7020,
              "p90_ms": 11700,
              "passes": {
                "median": 1
              },
              "cost_usd": 0.0,
              "states": [
                {
                  "state": "check",
                  "visits": 7,
                  "median_ms": 2340,
                  "p90_ms": 2340,
                  "total_ms": 11720,
                  "flaky": 0.3333333333333333
                },
                {
                  "state": "fix",
                  "visits": 3,
                  "median_ms": 2340,
                  "p90_ms": 2340,
                  "total_ms": 7020,
                  "flaky": 0.0
                }
              ]
            }
          ],
          "slowest": [
            {
              "loop": "fix-types",
              "state": "check",
              "total_ms": 11720
            },
            {
              "loop": "fix-types",
              "state": "fix",
              "total_ms": 7020
            }
          ]
        }
        "#);
    }

    #[test]
    fn a_share_is_of_what_could_have_been() {
        let of_loop = |stats: &Stats| stats_report::json(stats)["loops"][0].clone();
        let never = of_loop(&of(&[&failing()]));
        assert_eq!((&never["verified"], &never["passes"]["median"]), (&().into(), &().into()), "no success");
        assert_eq!((never["flaky"].as_f64(), never["cost_usd"].as_f64()), (Some(0.0), Some(0.0)));
        let mut unverified = Journal::start();
        unverified.next("fix", 1, "x", 0, "done").end(
            Outcome::Success,
            TerminatedBy::Terminal,
            "done",
            false,
        );
        let half = of_loop(&of(&[&succeeding(), &unverified]));
        assert_eq!(half["verified"], 0.5);
        // `fix` has never been flaky, and `check` in one of the two runs that came to it.
        let states = &of_loop(&of(&[&unverified, &succeeding(), &flaky(1)]))["states"];
        assert_eq!((&states[0]["state"], &states[0]["flaky"]), (&"fix".into(), &0.0.into()));
        assert_eq!((&states[1]["state"], &states[1]["flaky"]), (&"check".into(), &0.5.into()));
    }

    #[test]
    fn what_a_rewound_run_has_from_the_one_before_is_not_counted_again() {
        let mut rewound = succeeding();
        // The run goes on at its third step, the first of its second pass.
        let at =
            rewound.events.iter().rposition(|event| matches!(event.event, Event::StateEnter { .. })).unwrap();
        rewound.events[..at].iter_mut().for_each(|event| event.inherited = true);
        let numbers = numbers(&rewound);
        assert_eq!(numbers.loop_name, "fix-types");
        assert_eq!(numbers.began, Some(rewound.events[at].ts));
        assert_eq!(
            (numbers.states[&super::super::testing::state("check")].count, numbers.states.len()),
            (1, 1)
        );
        assert_eq!(numbers.passes, Some(1), "it needed one pass of its own");
        assert!(numbers.is_verified);
    }

    #[test]
    fn a_step_that_was_cut_off_and_goes_on_is_one_visit() {
        let late = Observation {
            stop: Some(Stop::LoopTimeout),
            duration: Duration::from_secs(9),
            ..Observation::exited(124, "")
        };
        let mut journal = Journal::start();
        journal.enter("check", 1).act("x").seen(late);
        journal.end(Outcome::Timeout, TerminatedBy::Timeout, "check", false);
        assert_eq!(numbers(&journal).acted, Duration::from_secs(9), "it is not resumed");
        journal.push(Event::LoopResume(LoopResume {
            from_state: super::super::testing::state("check"),
            iteration: 1,
            step: 1,
            reason: ResumeReason::Timeout,
            continuation: None,
            keeps_sessions: false,
            tree_changed: false,
            changes: ResumeChanges::default(),
        }));
        let state = super::super::testing::state("check");
        journal.push(Event::StateEnter { state, iteration: 1, step: 1, attempt: 1 });
        journal.act("x").done(0, "", "").judge("yes").route(Some("yes"), "done");
        journal.end(Outcome::Success, TerminatedBy::Terminal, "done", true);
        let numbers = numbers(&journal);
        assert_eq!(
            (numbers.states[&super::super::testing::state("check")].count, numbers.outcome),
            (1, "success")
        );
        assert_eq!(numbers.acted, Duration::from_millis(2_340));
    }

    #[test]
    fn a_journal_without_a_beginning_is_no_run() {
        let mut fold = RunFold::default();
        succeeding().events[1..].iter().for_each(|event| fold.event(event));
        assert!(fold.numbers().is_none());
    }

    #[test]
    fn the_five_dearest_states_of_all_loops_are_named() {
        let mut journal = Journal::start();
        for (index, name) in ["a", "b", "c", "d", "e", "f", "g"].into_iter().enumerate() {
            let duration = Duration::from_millis([3, 0, 5, 7, 1, 9, 4][index]);
            journal.enter(name, 1).act("x").seen(Observation { duration, ..Observation::exited(0, "") });
            journal.route(None, "x");
        }
        journal.end(Outcome::Success, TerminatedBy::Terminal, "done", false);
        let stats = of(&[&journal]);
        let named: String = stats.slowest().iter().map(|slow| slow.state.as_str()).collect();
        assert_eq!(named, "fdcga");
    }
}
