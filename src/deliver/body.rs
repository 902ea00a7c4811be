//! What people read of a delivery: the title and the text of its pull request. It says first what to be careful of, then
//! what was verified and how, so that a reviewer need not open the job to judge the change.
//!
//! A bundle is the claim of whoever wrote it. Everything in it is shown as code or as words that mean nothing to
//! Markdown, and the text fits into a pull request whatever the run was called or printed.

use std::fmt::Write as _;

use super::caveats::Caveats;
use crate::base::name::{InstanceName, LoopName, StateName};
use crate::base::sum::Sum;
use crate::base::text::{head, one_line, plural};
use crate::base::time::human;
use crate::engine::changes::{FileMode, LineCount};
use crate::forge::change::FileChange;
use crate::forge::forge_trait::Checks;
use crate::forge::marker::Marker;
use crate::forge::message::{PatchId, headline};
use crate::forge::standing::FixStanding;
use crate::report::digest::{Digest, SentencePart};
use crate::report::formats::markdown::{code, fenced, words};
use crate::report::shown_steps::{self, ShownStep};
use crate::report::step::{Step, StepStanding};
use crate::report::{advice, nights};

/// The longest text, in bytes. GitHub refuses a text of more than 65,536 characters.
// Counted in bytes, of which a text never has fewer than characters.
pub const MAX_BODY: usize = 60_000;

/// What is kept for the lines behind the sections.
const RESERVED: usize = 2_000;

const MAX_FILES: usize = 100;
const MAX_STEPS: usize = 12;
const MAX_STATES: usize = 20;
const MAX_NAMED: usize = 8;

/// How long a name, a path and an action may be, in characters.
const NAME: usize = 100;
const PATH: usize = 200;
const ACTION: usize = 100;

/// What the text of a pull request is made of.
#[derive(Clone, Copy, Debug)]
pub struct BodyFacts<'b> {
    /// The loop.
    pub loop_name: &'b LoopName,
    /// The run.
    pub run: &'b InstanceName,
    /// What happened in it.
    pub digest: &'b Digest,
    /// Whether it verified its fix.
    pub standing: FixStanding,
    /// The files that are changed.
    pub changes: &'b [FileChange],
    /// The changes as a whole.
    pub patch: &'b PatchId,
    /// What becomes of checks.
    pub checks: Checks,
    /// The job of the run, as people can look it up: its page, where it has one.
    pub job: Option<&'b str>,
    /// The digest of the bundle that the fix came in.
    pub bundle: &'b Sum,
}

impl BodyFacts<'_> {
    /// Returns the title. It says whether something verified the fix, because lists show nothing else.
    pub fn title(&self) -> String {
        let title = headline(self.loop_name.as_str(), self.changes.len());
        match self.standing {
            FixStanding::Verified => title,
            FixStanding::ToReview => format!("To review: {title}"),
            FixStanding::Unverified => format!("Unverified: {title}"),
        }
    }

    /// Returns the text, in Markdown. Its last line is the [`Marker`].
    pub fn body(&self) -> String {
        let mut out = String::new();
        out.push_str(&self.cautions());
        out.push_str(&self.lead());
        let sections: [(&str, String); 6] = [
            ("what changed", self.changed()),
            ("how it was checked", self.way()),
            ("the checks", self.states()),
            ("what the run found", self.mends()),
            ("how to run it", self.again()),
            ("where it comes from", self.provenance()),
        ];
        let mut left_out = Vec::new();
        for (name, section) in sections {
            // A section that does not fit is left out whole: a table or a fence cut in the middle
            // would swallow the marker behind it.
            if out.len() + section.len() + RESERVED <= MAX_BODY {
                out.push_str(&section);
            } else {
                left_out.push(name);
            }
        }
        if !left_out.is_empty() {
            let _ = writeln!(out, "Too long to be shown here: {}.\n", left_out.join(", "));
        }
        // Without its marker, the next delivery takes this text for one that a person wrote.
        out.push_str(&self.marker().text());
        out.push('\n');
        out
    }

    /// Returns the mark by which the pull request is known again.
    pub fn marker(&self) -> Marker {
        Marker { run: self.run.clone(), patch: self.patch.clone(), standing: self.standing }
    }

    /// What is to be known before anything else, each as a quotation that stands out where the host knows such.
    fn cautions(&self) -> String {
        let mut out = String::new();
        if self.standing == FixStanding::Unverified {
            let _ = writeln!(
                out,
                "> [!WARNING]\n> **Nothing verified this fix.** The run ended so: {}. Do not merge it as it is. A later run \
                 that verifies its fix makes this draft ready.\n",
                sentence(self.digest)
            );
        }
        out.push_str(&Caveats::of(self.digest).quotations());
        match self.checks {
            Checks::Run => {}
            Checks::Approval => out.push_str(
                "> [!IMPORTANT]\n> **Checks do not start by themselves**, because this was written with `GITHUB_TOKEN`. \
                 Somebody with write access starts them: press **Approve and run workflows** below, or, where there is no \
                 such button, close this pull request and open it again.\n\n",
            ),
            Checks::None => out.push_str(
                "> [!IMPORTANT]\n> **No checks run here**, because the token that wrote this starts none. Somebody with \
                 write access starts them: close this and open it again. A push to the branch starts them, too, but then the \
                 branch is theirs, and no later run brings it up to date.\n\n",
            ),
        }
        out
    }

    /// Says in a few lines what this is.
    fn lead(&self) -> String {
        let mut out = String::new();
        let files = plural(self.changes.len() as u64, "file");
        let _ = write!(out, "The loop {} changed {files}", code(self.loop_name.as_str(), NAME));
        match (self.standing, self.last_passing()) {
            // What that means is said above.
            (FixStanding::ToReview | FixStanding::Unverified, _) => out.push('.'),
            (FixStanding::Verified, Some(step)) => {
                let (state, said) = (code(step.state.as_str(), NAME), words(&one_line(&step.said(), 200)));
                let _ = write!(out, " and verified the result: {state} {said} in step {}.", step.number);
            }
            (FixStanding::Verified, None) => out.push_str(" and verified the result."),
        }
        let digest = self.digest;
        let mut facts = vec![
            plural(digest.iterations(), "iteration"),
            plural(digest.step_count(), "step"),
            human(digest.duration()),
        ];
        facts.extend(digest.usage().sentence());
        facts.push(format!("run {}", code(self.run.as_str(), PATH)));
        let _ = writeln!(out, "\n\n{}\n", facts.join(" · "));
        if let Some(job) = self.job {
            let _ = writeln!(out, "Log and reports: {}\n", link(job));
        }
        out
    }

    /// Returns the step that looked at the result and found it good.
    fn last_passing(&self) -> Option<&Step> {
        let steps: Vec<&Step> = self.digest.steps().collect();
        let is_meant = |step: &&&Step| step.judged.is_some() && step.standing() == StepStanding::Passing;
        steps.iter().rev().find(is_meant).copied()
    }

    fn changed(&self) -> String {
        let mut out =
            String::from("### What changed\n\n| file | change | lines | bytes |\n|---|---|--:|--:|\n");
        for change in self.changes.iter().take(MAX_FILES) {
            let lines = self.lines(change).map(|count| format!("+{} −{}", count.added, count.removed));
            let bytes = change.new.as_ref().map(|new| new.size.to_string());
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} |",
                code(&change.path, PATH),
                kind(change),
                lines.unwrap_or_default(),
                bytes.unwrap_or_default(),
            );
        }
        let more = self.changes.len().saturating_sub(MAX_FILES) as u64;
        if more > 0 {
            let _ = writeln!(out, "\n… and {}", plural(more, "more file"));
        }
        out.push('\n');
        out
    }

    /// Returns how many lines of a file the run changed, as its end says it.
    fn lines(&self, change: &FileChange) -> Option<LineCount> {
        self.digest.changes()?.files.iter().find(|file| file.path == change.path)?.lines
    }

    /// Returns the last steps, verdict by verdict, up to the end that they led to.
    fn way(&self) -> String {
        let (steps, _) = shown_steps::steps(self.digest);
        // Checks that the closing pass made once more are not on the way that the run took.
        let steps: Vec<_> = steps.into_iter().filter(|shown| !shown.step.closing).collect();
        if steps.is_empty() {
            return String::new();
        }
        let mut out = String::from("### How it was checked\n\n");
        let last = &steps[steps.len().saturating_sub(MAX_STEPS)..];
        let before = self.digest.step_count().saturating_sub(last.len() as u64);
        if before > 0 {
            let _ = writeln!(out, "After {}:\n", plural(before, "step"));
        }
        for ShownStep { step, next } in last {
            let _ = write!(out, "- {} {}", step.mark(), code(step.state.as_str(), NAME));
            if let Some(action) = step.action_line(ACTION) {
                let _ = write!(out, ", {}", code(&action, ACTION));
            }
            let _ = write!(out, ": {}", words(&one_line(&step.verdict_line(), 200)));
            if let Some(next) = next {
                let _ = write!(out, " → {}", code(next.as_str(), NAME));
            }
            out.push('\n');
        }
        if let Some(end) = self.digest.end() {
            let verified = if end.verified { "verified" } else { "not verified" };
            let state = code(end.final_state.as_str(), NAME);
            let _ = writeln!(out, "\nIt ended at {state}, {verified}.");
        }
        out.push('\n');
        out
    }

    fn states(&self) -> String {
        // A state that judged nothing is no check: it mends, or looks.
        let judged = |step: &Step| step.judged.is_some();
        let names: Vec<&StateName> =
            self.digest.steps().filter(|step| judged(step)).map(|step| &step.state).collect();
        let states: Vec<_> =
            self.digest.states().iter().filter(|(state, _)| names.contains(state)).take(MAX_STATES).collect();
        if states.is_empty() {
            return String::new();
        }
        let mut out = String::from("| check | verdicts | last | time |\n|---|---|---|--:|\n");
        for (state, count) in states {
            let verdicts: Vec<String> = count
                .verdicts
                .iter()
                .take(MAX_NAMED)
                .map(|(word, times)| format!("{} ×{times}", code(word, 60)))
                .collect();
            let last = match count.last {
                Some(StepStanding::Passing) => "✓",
                Some(StepStanding::Failing) => "✗",
                Some(StepStanding::Open) | None => "•",
            };
            let _ = writeln!(
                out,
                "| {} | {} | {last} | {} |",
                code(state.as_str(), NAME),
                verdicts.join(", "),
                human(count.duration)
            );
        }
        out.push('\n');
        out
    }

    /// Says what was fixed and by what, what is flaky, and what comes back night after night.
    fn mends(&self) -> String {
        let mends = self.digest.mends();
        let mut lines = Vec::new();
        for state in mends.fixed().iter().take(MAX_STATES) {
            let by: Vec<String> =
                mends.mended_by(state).take(MAX_NAMED).map(|by| code(by.as_str(), NAME)).collect();
            let by = if by.is_empty() { String::new() } else { format!(" by {}", by.join(", ")) };
            lines.push(format!("- fixed: {}{by}", code(state.as_str(), NAME)));
        }
        for (what, states) in [
            ("flaky: it failed, and passed although nothing had been done", mends.flaky()),
            ("left: it failed last", mends.left()),
        ] {
            let (word, why) = what.split_once(": ").unwrap_or((what, ""));
            lines.extend(
                states
                    .iter()
                    .take(MAX_STATES)
                    .map(|state| format!("- {word}: {} ({why})", code(state.as_str(), NAME))),
            );
        }
        let history = nights::of(self.digest);
        let recurring = history.map_or_else(Vec::new, |history| history.recurring());
        for one in recurring.iter().take(MAX_STATES) {
            lines.push(format!("- recurring: {} {}", code(one.state.as_str(), NAME), one.words()));
        }
        if lines.is_empty() {
            String::new()
        } else {
            format!("### What the run found\n\n{}\n\n", lines.join("\n"))
        }
    }

    fn again(&self) -> String {
        let command = advice::again(self.digest);
        let block =
            |command| format!("### To see it yourself\n\nWith this branch checked out:\n\n{command}\n");
        command.map_or_else(String::new, |command| block(fenced(&command.to_string())))
    }

    fn provenance(&self) -> String {
        let mut out = String::from("### Where it comes from\n\n");
        let _ = write!(out, "- loop {}", code(self.loop_name.as_str(), NAME));
        if let Some(start) = self.digest.start() {
            let _ = write!(out, ", definition {}", code(one_line(&start.definition_sha256, 64).as_str(), 64));
        }
        let _ = write!(out, "\n- run {}", code(self.run.as_str(), PATH));
        if let Some(commit) = self.digest.commit() {
            let _ = write!(out, " on commit {}", code(commit, 64));
        }
        let _ = writeln!(out, "\n- bundle `sha256:{}`", self.bundle);
        let _ = writeln!(out, "- patch `{}`\n", self.patch);
        out
    }
}

/// Returns the outcome of a run in one sentence.
fn sentence(digest: &Digest) -> String {
    digest.sentence_parts().iter().fold(String::new(), |mut text, part| {
        match part {
            SentencePart::Words(part) => text.push_str(&words(head(part, 1000))),
            SentencePart::Name(name) => text.push_str(&code(name, NAME)),
        }
        text
    })
}

/// Returns an address as a link that shows where it leads, and anything else as code.
fn link(job: &str) -> String {
    // Markdown makes a link of any scheme between angle brackets, `javascript:` among them.
    let is_address = job.starts_with("https://") || job.starts_with("http://");
    // Nothing that could end the link, or be read as other Markdown.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#@!$&+,;=%".contains(c);
    if is_address && job.len() <= 500 && job.chars().all(is_plain) {
        format!("<{job}>")
    } else {
        code(job, PATH)
    }
}

/// Says in a word how a file changed.
fn kind(change: &FileChange) -> &'static str {
    let is_link = |mode| mode == FileMode::Link;
    match (&change.old, &change.new) {
        (None, Some(new)) if is_link(new.mode) => "added link",
        (None, Some(new)) if new.mode == FileMode::Executable => "added executable",
        (None, Some(_)) => "added",
        (Some(_), None) => "deleted",
        (Some(old), Some(new)) if is_link(old.mode) != is_link(new.mode) => "type",
        (Some(old), Some(new)) if old.mode != new.mode && new.mode == FileMode::Executable => {
            "made executable"
        }
        (Some(old), Some(new)) if old.mode != new.mode => "made not executable",
        (Some(_), Some(_)) => "modified",
        (None, None) => "",
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;
    use crate::base::object::ObjectId;
    use crate::base::time::Timestamp;
    use crate::engine::changes::{ChangeKind, ChangedFile, Changes, TreeChanges, TreeIds};
    use crate::engine::event::Event;
    use crate::engine::night::Night;
    use crate::engine::outcome::{Outcome, TerminatedBy};
    use crate::forge::change::FileSide;
    use crate::report::testing::{Journal, failing, state, succeeding};

    fn side(mode: FileMode, size: u64) -> FileSide {
        FileSide { mode, id: ObjectId::parse(&"1".repeat(40)).unwrap(), size }
    }

    fn change(path: &str) -> FileChange {
        FileChange {
            path: path.to_owned(),
            old: Some(side(FileMode::File, 90)),
            new: Some(side(FileMode::File, 95)),
        }
    }

    /// Ends the run of a journal with these lines changed in `src/app.py`.
    fn changed(journal: &mut Journal) -> Digest {
        let id = ObjectId::parse(&"a".repeat(40)).unwrap();
        let ids = TreeIds { commit: id.clone(), tree: id, index: None, rest: None };
        let file = ChangedFile {
            path: "src/app.py".to_owned(),
            from: None,
            kind: ChangeKind::Modified,
            size: Some(95),
            tracked: true,
            lines: Some(LineCount { added: 2, removed: 1 }),
            run: None,
            not_in_patch: None,
        };
        let Some(Event::LoopComplete(end)) = journal.events.last_mut().map(|last| &mut last.event) else {
            panic!("the run has ended")
        };
        end.changes = Some(Changes::Known(Box::new(TreeChanges {
            start: ids.clone(),
            end: ids,
            files: vec![file],
            more: 0,
            commits: Vec::new(),
            before: Vec::new(),
            as_committed: false,
            patch: None,
            no_patch: None,
            unseen: Vec::new(),
        })));
        journal.digest()
    }

    struct DeliveredRun {
        loop_name: LoopName,
        run: InstanceName,
        patch: PatchId,
        bundle: Sum,
    }

    fn told(name: &str) -> DeliveredRun {
        DeliveredRun {
            loop_name: LoopName::parse(name).unwrap(),
            run: InstanceName::parse("fix-types-20251120T234847-1f2e3d").unwrap(),
            patch: PatchId::parse(&"2".repeat(40)).unwrap(),
            bundle: Sum::of(b"bundle"),
        }
    }

    impl DeliveredRun {
        fn facts<'b>(&'b self, digest: &'b Digest, changes: &'b [FileChange]) -> BodyFacts<'b> {
            BodyFacts {
                loop_name: &self.loop_name,
                run: &self.run,
                digest,
                standing: FixStanding::Verified,
                changes,
                patch: &self.patch,
                checks: Checks::Run,
                job: Some("https://github.com/octo/project/actions/runs/77"),
                bundle: &self.bundle,
            }
        }
    }

    #[test]
    fn a_verified_fix() {
        let (told, digest) = (told("fix-types"), changed(&mut succeeding()));
        let changes = [
            change("src/app.py"),
            FileChange { old: None, new: Some(side(FileMode::Executable, 7)), ..change("tool") },
            FileChange { new: None, ..change("old|name.txt") },
            FileChange { new: Some(side(FileMode::Executable, 90)), ..change("run.sh") },
            FileChange { new: Some(side(FileMode::Link, 3)), ..change("link") },
        ];
        let facts = told.facts(&digest, &changes);
        assert_snapshot!(format!("{}\n\n{}", facts.title(), facts.body()), @"
        Fix what fix-types found (5 files)

        The loop `fix-types` changed 5 files and verified the result: `check` said yes in step 3.

        2 iterations · 3 steps · 7.0s · run `fix-types-20251120T234847-1f2e3d`

        Log and reports: <https://github.com/octo/project/actions/runs/77>

        ### What changed

        | file | change | lines | bytes |
        |---|---|--:|--:|
        | `src/app.py` | modified | +2 −1 | 95 |
        | `tool` | added executable |  | 7 |
        | <code>old&#124;name&#46;txt</code> | deleted |  |  |
        | `run.sh` | made executable |  | 90 |
        | `link` | type |  | 3 |

        ### How it was checked

        - ✗ `check`, `mypy src/`: no (exit 1, 2.3s) → `fix`
        - ✓ `fix`, `ruff check --fix src/`: exit 0 (2.3s) → `check`
        - ✓ `check`, `mypy src/`: yes (exit 0, 2.3s) → `done`

        It ended at `done`, verified.

        | check | verdicts | last | time |
        |---|---|---|--:|
        | `check` | `no` ×1, `yes` ×1 | ✓ | 4.6s |

        ### What the run found

        - fixed: `check` by `fix`

        ### To see it yourself

        With this branch checked out:

        ```text
        ll-loop run fix-types --strict
        ```

        ### Where it comes from

        - loop `fix-types`, definition `0000000000000000000000000000000000000000000000000000000000000000`
        - run `fix-types-20251120T234847-1f2e3d`
        - bundle `sha256:1e6ed65d77d6364eeaed5a745ba5c4985ae2b700dd85d7cf7f027bdf294a33fc`
        - patch `2222222222222222222222222222222222222222`

        <!-- ll-loop:deliver run=fix-types-20251120T234847-1f2e3d patch=2222222222222222222222222222222222222222 verified -->
        ");
    }

    #[test]
    fn a_fix_that_nothing_verified_says_so_first() {
        let (told, digest) = (told("fix-types"), failing().digest());
        let changes = [change("src/app.py")];
        let facts = BodyFacts {
            standing: FixStanding::Unverified,
            checks: Checks::Approval,
            job: None,
            ..told.facts(&digest, &changes)
        };
        assert_snapshot!(format!("{}\n\n{}", facts.title(), facts.body()), @"
        Unverified: Fix what fix-types found (1 file)

        > [!WARNING]
        > **Nothing verified this fix.** The run ended so: failure: `check` said no in 3 of 3 iterations. Do not merge it as it is. A later run that verifies its fix makes this draft ready.

        > [!IMPORTANT]
        > **Checks do not start by themselves**, because this was written with `GITHUB_TOKEN`. Somebody with write access starts them: press **Approve and run workflows** below, or, where there is no such button, close this pull request and open it again.

        The loop `fix-types` changed 1 file.

        3 iterations · 5 steps · 11.8s · run `fix-types-20251120T234847-1f2e3d`

        ### What changed

        | file | change | lines | bytes |
        |---|---|--:|--:|
        | `src/app.py` | modified |  | 95 |

        ### How it was checked

        - ✗ `check`, `mypy src/`: no (exit 1, 2.3s) → `fix`
        - ✓ `fix`, `ruff check --fix src/`: exit 0 (2.3s) → `check`
        - ✗ `check`, `mypy src/`: no (exit 1, 2.3s) → `fix`
        - ✓ `fix`, `ruff check --fix src/`: exit 0 (2.3s) → `check`
        - ✗ `check`, `mypy src/`: no (exit 1, 2.3s) → `failed`

        It ended at `failed`, not verified.

        | check | verdicts | last | time |
        |---|---|---|--:|
        | `check` | `no` ×3 | ✗ | 7.0s |

        ### What the run found

        - left: `check` (it failed last)

        ### To see it yourself

        With this branch checked out:

        ```text
        ll-loop run fix-types --strict
        ```

        ### Where it comes from

        - loop `fix-types`, definition `0000000000000000000000000000000000000000000000000000000000000000`
        - run `fix-types-20251120T234847-1f2e3d`
        - bundle `sha256:1e6ed65d77d6364eeaed5a745ba5c4985ae2b700dd85d7cf7f027bdf294a33fc`
        - patch `2222222222222222222222222222222222222222`

        <!-- ll-loop:deliver run=fix-types-20251120T234847-1f2e3d patch=2222222222222222222222222222222222222222 unverified -->
        ");
    }

    #[test]
    fn a_night_says_what_it_fixed_and_what_comes_back() {
        let mut journal = Journal::of("tidy", 20);
        journal.step(("types", 1), "mypy", (1, "bad"), "no", "fix").next("fix", 1, "ruff", 0, "types");
        journal.step(("types", 2), "mypy", (0, ""), "yes", "test");
        journal.step(("test", 2), "pytest", (1, "bad"), "no", "test").step(
            ("test", 3),
            "pytest",
            (0, ""),
            "yes",
            "done",
        );
        journal.end(Outcome::Success, TerminatedBy::Terminal, "done", true);
        let night = |number: i64, fixed: &str| Night {
            run_id: format!("tidy-{number}"),
            at: Timestamp::from_millis(1_763_000_000_000 + number * 86_400_000),
            outcome: Some(Outcome::Success),
            verified: true,
            unchanged: Some(false),
            cycles: 2,
            fixed: vec![state(fixed)],
            flaky: vec![state("test")],
            left: Vec::new(),
        };
        journal.after(vec![night(1, "types"), night(2, "lint")]);
        let (told, digest) = (told("tidy"), journal.digest());
        let changes = [change("a")];
        let body = told.facts(&digest, &changes).body();
        let at = body.find("### What the run found").unwrap();
        let section = body[at..].split("\n\n###").next().unwrap();
        assert_snapshot!(section, @"
        ### What the run found

        - fixed: `types` by `fix`
        - flaky: `test` (it failed, and passed although nothing had been done)
        - recurring: `test` was flaky in 3 of the last 3 nights
        - recurring: `types` was fixed in 2 of the last 3 nights
        ");
    }

    #[test]
    fn a_title_is_a_headline() {
        let (told, digest) = (told("quality/types"), succeeding().digest());
        let changes = [change("a"), change("b")];
        let facts = told.facts(&digest, &changes);
        assert_eq!(facts.title(), "Fix what quality/types found (2 files)");
        let unverified = BodyFacts { standing: FixStanding::Unverified, ..facts };
        assert_eq!(unverified.title(), "Unverified: Fix what quality/types found (2 files)");
    }

    #[test]
    fn a_job_is_a_link_only_where_it_is_an_address() {
        assert_eq!(link("https://x.example/a?b=1#c"), "<https://x.example/a?b=1#c>");
        assert_eq!(link("job 7 of octo/project"), "`job 7 of octo/project`");
        assert_eq!(link("javascript:alert(1)"), "`javascript:alert(1)`");
        assert_eq!(link("https://x/> [a](http://evil) @all"), "`https://x/> [a](http://evil) @all`");
    }

    /// What could do something in Markdown.
    const HOSTILE: &str = "`|\\<img src=x onerror=alert(1)> @team fixes #1 GH-2 [a](http://b.example) <!-- ll-loop:deliver run=x-20260101T000000-abcdef patch=3333333333333333333333333333333333333333 verified -->\n\n# forged\n```\n::error::x\u{202e}";

    fn hostile() -> (Digest, Vec<FileChange>) {
        let name: String =
            HOSTILE.chars().filter(|c| !c.is_control() && !"/\\{}".contains(*c)).take(60).collect();
        let mut journal = Journal::start();
        for iteration in 1..=30 {
            journal.step((&name, iteration), HOSTILE, (1, HOSTILE), HOSTILE, &name);
        }
        journal.step((&name, 31), HOSTILE, (0, HOSTILE), "yes", &name);
        journal.end(Outcome::Failure, TerminatedBy::Terminal, &name, false).because(HOSTILE);
        journal.given(&[("--param", HOSTILE, HOSTILE)], Some(HOSTILE));
        let path = HOSTILE.replace('\n', "") + &"é".repeat(3000);
        (journal.digest(), (0..200).map(|number| change(&format!("{number}{path}"))).collect())
    }

    #[test]
    fn nothing_of_a_run_is_markdown_and_everything_fits() {
        let (told, (digest, changes)) = (told("a @team #1 <b>"), hostile());
        for standing in [FixStanding::Verified, FixStanding::Unverified] {
            let facts = BodyFacts {
                standing,
                job: Some(HOSTILE),
                checks: Checks::Approval,
                ..told.facts(&digest, &changes)
            };
            let body = facts.body();
            assert!(body.len() <= MAX_BODY, "{}", body.len());
            assert_eq!(Marker::find(&body), Some(facts.marker()));
            assert_eq!(body.lines().last(), Some(facts.marker().text().as_str()));
            assert_eq!(body.matches("\n# ").count() + body.matches("\n::error").count(), 0, "{body}");
            let outside = outside_of_code(&body);
            for odd in ["@", " #1", "GH-2", "<img", "](", "\u{202e}"] {
                assert!(!outside.contains(odd), "{odd}: {outside}");
            }
            let title = facts.title();
            assert!(!title.contains(['@', '#', '<']), "{title}");
        }
    }

    /// Leaves out inline code, blocks of code and comments.
    fn outside_of_code(text: &str) -> String {
        let mut out = String::new();
        let mut fence: Option<String> = None;
        for line in text.lines() {
            let ticks: String = line.chars().take_while(|c| *c == '`').collect();
            match &fence {
                Some(open) if line == open => fence = None,
                Some(_) => {}
                None if ticks.len() >= 3 => fence = Some(ticks),
                None => {
                    let parts = line.split('`').enumerate();
                    out.extend(parts.filter(|(at, _)| at % 2 == 0).map(|(_, part)| part));
                    out.push('\n');
                }
            }
        }
        // What stood around such a part is not one word.
        let without = |text: String, begin: &str, end: &str| {
            let mut parts = text.split(begin);
            let first = parts.next().unwrap_or_default().to_owned();
            parts.filter_map(|part| part.split_once(end)).fold(first, |all, (_, rest)| all + " " + rest)
        };
        without(without(out, "<!-- ", "-->"), "<code>", "</code>")
    }

    proptest! {
        #[test]
        fn whatever_a_file_is_called_the_mark_is_read_back(paths in prop::collection::vec(any::<String>(), 0..120)) {
            let (told, digest) = (told("main"), succeeding().digest());
            let changes: Vec<FileChange> = paths.iter().map(|path| change(path)).collect();
            let facts = told.facts(&digest, &changes);
            let body = facts.body();
            prop_assert!(body.len() <= MAX_BODY);
            prop_assert_eq!(Marker::find(&body), Some(facts.marker()));
        }
    }
}
