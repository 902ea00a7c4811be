//! Fixes for pull requests from forks: suggested in one review, and never written to their branches.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::model::{Hub, Level, Owner, REPOSITORY, Stands, TOKEN, Token};
use crate::common::{Project, Ran, git};
use crate::forge::git_server::Bare;
use crate::forge::web::{Fault, Planned, When};

const FORK: &str = "mallory/project";

/// Makes every `bad` a `good`.
const TIDY: &str = "\
name: tidy
initial: check
states:
  check: {action: '! grep -rq bad src', on_yes: done, on_no: fix}
  fix: {action: sh fix.sh, next: check}
  done: {terminal: true}
";

const FIX: &str = "sed -i 's/bad/good/' $(grep -rl bad src)\n";

fn numbered(most: usize, odd: impl Fn(usize) -> Option<&'static str>) -> String {
    (1..=most).map(|n| odd(n).map_or_else(|| format!("line {n}\n"), |text| format!("{text} {n}\n"))).collect()
}

/// A pull request from a fork, and what its run left.
struct Fixed {
    hub: Hub,
    fork: Bare,
    head: String,
    number: u64,
    /// Has the bundle among its reports.
    job: Project,
    /// Holds what the job wrote beside its checkout.
    _beside: Project,
    bundle: PathBuf,
}

impl Fixed {
    /// Lets a fork change files, and fixes them in the job of its pull request, which is at the head, or at its merge.
    fn new(
        before: &[(&str, Option<&str>)],
        change: &[(&str, Option<&str>)],
        fix: &str,
        at_merge: bool,
    ) -> Self {
        let hub = Hub::start();
        let bare = hub.bare();
        let first = [(".loops/tidy.yaml", Some(TIDY)), ("fix.sh", Some(fix))];
        bare.commits("main", &[&first, before].concat(), "first");
        let fork = hub.another(FORK);
        fork.git(&["fetch", "-q", bare.path.to_str().unwrap(), "main:refs/heads/topic"]);
        let head = fork.commits("topic", change, "change");
        let number = hub.of_fork(&fork, FORK, "topic");
        bare.commits("main", &[("other.txt", Some("other\n"))], "meanwhile");
        let tree = bare.git(&["merge-tree", "--write-tree", "main", &head]);
        let merge = bare.git(&["commit-tree", &tree, "-p", "main", "-p", &head, "-m", "merge"]);
        bare.git(&["update-ref", "refs/pull/1/merge", &merge]);

        let job = Project::new();
        fs::remove_dir(job.at(".loops")).unwrap();
        git(&job, &["init", "-q"]);
        let at = if at_merge { &merge } else { &head };
        git(&job, &["fetch", "-q", "--depth=1", bare.path.to_str().unwrap(), at]);
        git(&job, &["checkout", "-q", "--detach", at]);
        let job =
            hub.job(job).env("GITHUB_EVENT_NAME", "pull_request").env("GITHUB_REF", "refs/pull/1/merge");
        // The runner's own files are not part of a checkout.
        let beside = Project::new().file("out", "").file("summary", "");
        let at = |name: &str| beside.at(name).to_string_lossy().into_owned();
        fs::remove_file(job.at("out")).unwrap();
        fs::remove_file(job.at("summary")).unwrap();
        let job = job.env("GITHUB_OUTPUT", at("out")).env("GITHUB_STEP_SUMMARY", at("summary"));
        let _ended = job.run(&["run", "tidy", "--report-dir", "reports"]).code(1);
        let found = fs::read_dir(job.at("reports")).unwrap().map(|entry| entry.unwrap().path());
        let bundle = found.into_iter().find(|path| path.extension().is_some_and(|end| end == "llz")).unwrap();
        Self { hub, fork, head, number, job, _beside: beside, bundle }
    }

    /// Suggests the fix in a job that the run set off.
    fn suggest(&self, more: &[&str]) -> Ran {
        self.suggest_for(&self.event(), more)
    }

    fn event(&self) -> Value {
        json!({"workflow_run": {
            "id": 77, "head_sha": self.head, "head_branch": "topic", "conclusion": "failure", "run_attempt": 1,
            "event": "pull_request", "pull_requests": [],
            "html_url": format!("{}/{REPOSITORY}/actions/runs/77", self.hub.web.url()),
            "head_repository": {"full_name": FORK},
        }})
    }

    fn suggest_for(&self, event: &Value, more: &[&str]) -> Ran {
        let job = Project::new().file("event.json", &event.to_string());
        git(&job, &["init", "-q"]);
        let payload = job.at("event.json").to_string_lossy().into_owned();
        let job = self
            .hub
            .job(job)
            .env("GITHUB_EVENT_NAME", "workflow_run")
            .env("GITHUB_EVENT_PATH", payload)
            .env("GITHUB_RUN_ID", "88")
            .env("LL_TOKEN", TOKEN);
        let bundle = self.bundle.to_str().unwrap();
        let words = ["deliver", bundle, "--to", "suggest", "--report-dir", "kept"];
        let mut ran = job.run(&[&words, more].concat());
        ran.stdout += &job.read("out");
        ran.stdout += &job.read("summary");
        if job.exists("kept/changes.patch") {
            ran.stdout += "\nkept the patch\n";
        }
        ran
    }

    fn reviews(&self) -> Vec<Value> {
        let pulls = self.hub.pulls();
        pulls.iter().find(|pull| pull.number == self.number).unwrap().reviews.clone()
    }

    /// Returns a file of the head with the suggestions of all reviews, as GitHub applies them.
    fn applied(&self, path: &str) -> String {
        let head = self.fork.file(&self.head, path).unwrap() + "\n";
        let mut lines: Vec<String> = head.lines().map(|line| format!("{line}\n")).collect();
        let reviews = self.reviews();
        let comments = reviews.iter().flat_map(|review| review["comments"].as_array().unwrap());
        let mut of_path: Vec<&Value> = comments.filter(|comment| comment["path"] == path).collect();
        of_path.sort_by_key(|comment| std::cmp::Reverse(comment["line"].as_u64()));
        for comment in of_path {
            let last = usize::try_from(comment["line"].as_u64().unwrap()).unwrap();
            let first = comment["start_line"].as_u64().map_or(last, |line| usize::try_from(line).unwrap());
            let body = comment["body"].as_str().unwrap();
            let inside = body.strip_prefix("```suggestion\n").unwrap().strip_suffix("```").unwrap();
            lines.splice(first - 1..last, [inside.to_owned()]);
        }
        lines.concat()
    }
}

/// Three changes in what the pull request shows, and one beside it.
fn usual(at_merge: bool) -> Fixed {
    let before = numbered(100, |n| (n == 95).then_some("bad"));
    let after = numbered(100, |n| match n {
        10 | 40 | 70 => Some("a bad"),
        95 => Some("bad"),
        _ => None,
    });
    let (path, new) = ("src/a.txt", "src/new.txt");
    Fixed::new(&[(path, Some(&before))], &[(path, Some(&after)), (new, Some("fine\n"))], FIX, at_merge)
}

#[test]
fn a_fix_for_a_fork_is_suggested_once() {
    let fixed = usual(false);
    let ran = fixed.suggest(&[]).code(0).says("delivered: created").says("3 suggested, 1 not");
    assert!(ran.stdout.contains("#pullrequestreview-"), "{}", ran.stdout);
    let reviews = fixed.reviews();
    assert_eq!(reviews.len(), 1);
    let (review, text) = (&reviews[0], reviews[0]["body"].as_str().unwrap());
    assert_eq!((&review["state"], &review["commit_id"]), (&json!("COMMENTED"), &json!(fixed.head)));
    let lines: Vec<_> =
        review["comments"].as_array().unwrap().iter().map(|one| one["line"].as_u64()).collect();
    assert_eq!(lines, [Some(10), Some(40), Some(70)]);
    assert!(text.contains("src/a.txt") && text.contains("git apply --3way"), "{text}");
    let expected = numbered(100, |n| match n {
        10 | 40 | 70 => Some("a good"),
        95 => Some("bad"),
        _ => None,
    });
    assert_eq!(fixed.applied("src/a.txt"), expected);

    // The printed command adds the rest, also where the suggestions were taken.
    let clone = Project::new();
    git(&clone, &["init", "-q"]);
    git(&clone, &["fetch", "-q", fixed.fork.path.to_str().unwrap(), &fixed.head]);
    git(&clone, &["checkout", "-q", "--detach", &fixed.head]);
    clone.write("src/a.txt", &expected);
    git(&clone, &["add", "src/a.txt"]);
    let patch = fixed.job.at("reports/changes.patch");
    git(&clone, &["apply", "--3way", patch.to_str().unwrap()]);
    assert_eq!(clone.read("src/a.txt"), fixed.job.read("src/a.txt"));

    let refs = (fixed.fork.refs(), fixed.hub.bare().refs());
    let again = fixed.suggest(&[]).code(0).says("delivered: unchanged");
    assert!(again.stdout.contains("suggests this fix already"), "{}", again.stdout);
    assert_eq!(fixed.reviews().len(), 1);
    assert_eq!((fixed.fork.refs(), fixed.hub.bare().refs()), refs, "nothing is written to a fork");
}

#[test]
fn a_fix_of_the_merge_is_suggested_for_the_lines_of_the_head() {
    let fixed = usual(true);
    let _ran = fixed.suggest(&[]).code(0).says("3 suggested, 1 not");
    let reviews = fixed.reviews();
    assert_eq!(reviews[0]["commit_id"], json!(fixed.head));
    assert!(fixed.applied("src/a.txt").contains("line 9\na good 10\nline 11\n"));
    assert!(reviews[0]["body"].as_str().unwrap().contains("merge of this commit"));
}

/// Anybody can merge the head with a commit of a fork, and have a run begin there.
#[test]
fn a_merge_with_what_is_on_no_branch_stands_for_no_head() {
    let fixed = usual(true);
    fixed.hub.bare().git(&["update-ref", "refs/heads/main", "main^"]);
    let ran = fixed.suggest(&[]).code(5);
    assert!(ran.stdout.contains("nor a merge of it"), "{}", ran.all());
    assert!(fixed.hub.writes().is_empty(), "{:?}", fixed.hub.writes());
}

#[test]
fn a_rehearsal_writes_nothing() {
    let fixed = usual(false);
    let _ran = fixed.suggest(&["--dry-run"]).code(0).says("3 suggested, 1 not");
    assert!(fixed.hub.writes().is_empty(), "{:?}", fixed.hub.writes());
}

#[test]
fn what_is_not_the_one_open_pull_request_of_the_run_gets_nothing() {
    let fixed = usual(false);
    let refused = |text: &str| {
        let ran = fixed.suggest(&[]).code(5);
        assert!(ran.stdout.contains("delivered: refused") && ran.stdout.contains(text), "{}", ran.all());
        assert!(ran.stdout.contains("kept the patch"), "{}", ran.all());
        assert!(fixed.hub.writes().is_empty(), "{:?}", fixed.hub.writes());
    };
    let set = |change: &dyn Fn(&mut super::model::Pull)| fixed.hub.set(|state| change(&mut state.pulls[0]));
    set(&|pull| pull.is_locked = true);
    refused("is locked");
    set(&|pull| pull.is_locked = false);
    for stands in [Stands::Closed, Stands::Merged] {
        set(&|pull| pull.stands = stands);
        refused("no open pull request");
    }
    set(&|pull| pull.stands = Stands::Open);
    let second = fixed.hub.of_fork(&fixed.fork, FORK, "topic");
    refused("#1, #2");
    fixed.hub.set(|state| state.pulls.retain(|pull| pull.number != second));
    let moved = fixed.fork.commits("topic", &[("src/new.txt", Some("more\n"))], "more");
    let bare = fixed.hub.bare();
    bare.git(&["fetch", "-q", fixed.fork.path.to_str().unwrap(), "+topic:refs/pull/1/head"]);
    set(&|pull| pull.sha.clone_from(&moved));
    refused("new commits");
}

#[test]
fn a_bundle_of_another_run_or_commit_is_refused() {
    let fixed = usual(false);
    let mut event = fixed.event();
    event["workflow_run"]["html_url"] =
        json!(format!("{}/{REPOSITORY}/actions/runs/78", fixed.hub.web.url()));
    let ran = fixed.suggest_for(&event, &[]).code(5);
    assert!(ran.stdout.contains("of another run"), "{}", ran.all());
    let moved = fixed.fork.commits("topic", &[("src/new.txt", Some("more\n"))], "more");
    let bare = fixed.hub.bare();
    bare.git(&["fetch", "-q", fixed.fork.path.to_str().unwrap(), "+topic:refs/pull/1/head"]);
    fixed.hub.set(|state| state.pulls[0].sha.clone_from(&moved));
    let mut event = fixed.event();
    event["workflow_run"]["head_sha"] = json!(moved);
    let ran = fixed.suggest_for(&event, &[]).code(5);
    assert!(ran.stdout.contains("nor a merge of it"), "{}", ran.all());
    assert!(fixed.hub.writes().is_empty(), "{:?}", fixed.hub.writes());
}

#[test]
fn a_fix_beside_everything_that_is_shown_is_refused() {
    let before = numbered(100, |n| (n == 95).then_some("bad"));
    let after = numbered(100, |n| match n {
        10 => Some("a"),
        95 => Some("bad"),
        _ => None,
    });
    let path = "src/a.txt";
    let fixed = Fixed::new(&[(path, Some(&before))], &[(path, Some(&after))], FIX, false);
    let ran = fixed.suggest(&[]).code(5);
    assert!(ran.stdout.contains("nothing of the fix can be suggested"), "{}", ran.all());
    assert!(ran.stdout.contains("kept the patch"), "{}", ran.all());
    assert!(fixed.reviews().is_empty());
}

#[test]
fn the_fiftieth_suggestion_is_the_last() {
    let after = numbered(240, |n| (n % 4 == 0).then_some("bad"));
    let fixed = Fixed::new(&[], &[("src/a.txt", Some(&after))], FIX, false);
    let _ran = fixed.suggest(&[]).code(0).says("50 suggested, 10 not");
    let reviews = fixed.reviews();
    assert_eq!(reviews[0]["comments"].as_array().unwrap().len(), 50);
    assert!(reviews[0]["body"].as_str().unwrap().contains("more than a review should have (10)"));
}

#[test]
fn lines_that_come_and_go_and_files_of_all_kinds() {
    let after = "one\nbad two\nthree\nbad four\nfive\n```\nbad six";
    let change = [
        ("src/a.txt", Some(after)),
        ("src/crlf.txt", Some("bad\r\n")),
        ("src/tab.txt", Some("\tbad\n")),
        ("src/mode.sh", Some("bad\n")),
        ("src/gone.txt", Some("bad\n")),
    ];
    let fix = "sed -i -e '/bad two/d' -e 's/bad four/```\\nfour/' -e 's/bad/good/' src/a.txt src/crlf.txt src/tab.txt src/mode.sh\n\
               chmod +x src/mode.sh\nrm src/gone.txt\necho new > src/added.txt\n";
    let fixed = Fixed::new(&[], &change, fix, false);
    let _ran = fixed.suggest(&[]).code(0);
    let reviews = fixed.reviews();
    let comments = reviews[0]["comments"].as_array().unwrap();
    let told: Vec<_> = comments
        .iter()
        .map(|one| {
            format!("{} {}: {:?}", one["path"].as_str().unwrap(), one["line"], one["body"].as_str().unwrap())
        })
        .collect();
    let expected = [
        "src/a.txt 2: \"```suggestion\\n```\"",
        "src/a.txt 4: \"````suggestion\\n```\\nfour\\n````\"",
        "src/tab.txt 1: \"```suggestion\\n\\tgood\\n```\"",
    ];
    assert_eq!(told, expected);
    let text = reviews[0]["body"].as_str().unwrap();
    for left in [
        "`src/a.txt`: a last line without an end",
        "`src/added.txt`: a new file",
        "`src/crlf.txt`: line ends of Windows",
        "`src/gone.txt`: a deleted file",
        "`src/mode.sh`: a change of mode, or a link",
    ] {
        assert!(text.contains(left), "{left}: {text}");
    }
}

#[test]
fn a_token_that_may_not_is_told_the_permission() {
    let fixed = usual(false);
    fixed.hub.admit(TOKEN, Token::of(Owner::Actions).may("pull_requests", Some(Level::Read)));
    let ran = fixed.suggest(&[]).code(4);
    assert!(ran.stderr.contains("pull-requests: write"), "{}", ran.all());
    assert!(ran.stdout.contains("kept the patch"), "{}", ran.all());
    assert!(fixed.reviews().is_empty());
}

#[test]
fn a_fault_at_any_request_leaves_one_review_in_the_end() {
    let fixed = usual(false);
    let _rehearsed = fixed.suggest(&[]).code(0);
    let requests = fixed.hub.web.served().len();
    for (fault, when) in
        [(Fault::Error, When::Before), (Fault::Error, When::After), (Fault::Lost, When::After)]
    {
        for at in 0..requests {
            fixed.hub.set(|state| state.pulls[0].reviews.clear());
            fixed.hub.begin(Some(Planned { at, count: 1, fault, when }));
            let _first = fixed.suggest(&[]);
            fixed.hub.begin(None);
            let _second = fixed.suggest(&[]).code(0);
            assert_eq!(fixed.reviews().len(), 1, "{fault:?} {when:?} {at}");
        }
    }
}
