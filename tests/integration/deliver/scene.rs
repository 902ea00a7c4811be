//! A repository on the server, nights in which a loop runs there, and jobs that deliver what it fixed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::model::{Hub, Pull, TOKEN};
use crate::ci::ci_mode::outputs;
use crate::common::{Project, Ran, git};
use crate::forge::git_server::Bare;

/// Mends the word that is wrong, wherever it stands.
pub(super) const TIDY: &str = "\
name: tidy
initial: check
max_iterations: 5
states:
  check: {action: '! grep -rq wrong src', on_yes: done, on_no: fix}
  fix: {action: 'grep -rl wrong src | xargs sed -i s/wrong/right/', next: check}
  done: {terminal: true}
";

/// The branch of its deliveries.
pub(super) const BRANCH: &str = "ll-loop/tidy/main";
pub(super) const BRANCH_REF: &str = "refs/heads/ll-loop/tidy/main";
pub(super) const DELIVERED: &str = "refs/ll-loop/delivered/tidy/main";

/// Before and behind the wrong word, so that changes at both ends do not touch.
fn text(word: &str) -> String {
    let lines: String = (1..=12).map(|n| format!("line {n}\n")).collect();
    format!("{lines}{word}\n{lines}")
}

pub(super) struct Scene {
    pub(super) hub: Hub,
    pub(super) bare: Bare,
}

/// What a delivery has done.
pub(super) struct Delivered {
    pub(super) ran: Ran,
    pub(super) outputs: BTreeMap<String, String>,
    pub(super) project: Project,
}

/// Returns the content of the file that is wrong, with another word in its place.
pub(super) fn wrong(word: &str) -> String {
    text(word)
}

impl Scene {
    /// A repository in which one word is wrong.
    pub(super) fn new() -> Self {
        Self::with(TIDY, &[])
    }

    pub(super) fn with(tidy: &str, more: &[(&str, &str)]) -> Self {
        let hub = Hub::start();
        let bare = hub.bare();
        let wrong = text("wrong");
        let mut files = vec![
            (".loops/tidy.yaml", Some(tidy)),
            ("src/a.txt", Some(wrong.as_str())),
            ("README.md", Some("read\n")),
        ];
        files.extend(more.iter().map(|(path, text)| (*path, Some(*text))));
        bare.commits("main", &files, "first");
        Self { hub, bare }
    }

    fn checkout(&self, options: &[&str]) -> Project {
        let project = Project::new();
        fs::remove_dir(project.at(".loops")).unwrap();
        let url = format!("file://{}", self.bare.path.display());
        git(&project, &[&["clone", "-q"], options, &[url.as_str(), "."]].concat());
        git(&project, &["remote", "set-url", "origin", &format!("{}/octo/project", self.hub.web.url())]);
        // What the runner keeps elsewhere.
        project.write(".git/info/exclude", "/out\n/summary\n/event.json\n/reports\n/kept\n/*.llz\n");
        let sha = git(&project, &["rev-parse", "HEAD"]);
        self.hub.job(project).env("GITHUB_SHA", sha)
    }

    /// Runs the loop at the newest commit of the base; returns the bundle.
    pub(super) fn night(&self) -> Vec<u8> {
        self.night_with(&[], |project| project)
    }

    pub(super) fn night_with(&self, arguments: &[&str], set: impl FnOnce(Project) -> Project) -> Vec<u8> {
        let project = set(self.checkout(&[]));
        let begin = ["run", "tidy", "--report-dir", "reports", "--on-change", "report"];
        let ran = project.run(&[&begin, arguments].concat());
        let entries = fs::read_dir(project.at("reports")).unwrap_or_else(|_| panic!("{}", ran.all()));
        let mut files = entries.map(|entry| entry.unwrap().path());
        let found = files.find(|path| path.extension().is_some_and(|end| end == "llz"));
        fs::read(found.unwrap_or_else(|| panic!("{}", ran.all()))).unwrap()
    }

    /// A job that delivers: a shallow checkout of the newest commit, and the bundle beside it.
    pub(super) fn job(&self, bundle: &[u8]) -> Project {
        let project = self.checkout(&["--depth", "1"]);
        fs::write(project.at("fix.llz"), bundle).unwrap();
        project.env("LL_TOKEN", TOKEN)
    }

    pub(super) fn deliver(&self, bundle: &[u8]) -> Delivered {
        self.deliver_with(bundle, &[])
    }

    pub(super) fn deliver_with(&self, bundle: &[u8], arguments: &[&str]) -> Delivered {
        deliver(self.job(bundle), arguments)
    }

    /// Forgets everything but the base.
    pub(super) fn reset(&self) {
        for name in self.bare.refs().into_keys().filter(|name| name != "refs/heads/main") {
            self.bare.git(&["update-ref", "-d", &name]);
        }
        self.hub.set(|state| state.pulls.clear());
        self.hub.begin(None);
    }

    pub(super) fn pulls(&self) -> Vec<Pull> {
        self.hub.pulls()
    }

    /// The branch has exactly one commit on the newest base, the ref of deliveries is at it, and nothing temporary stays.
    #[track_caller]
    pub(super) fn is_in_order(&self, said: &str) {
        let refs = self.bare.refs();
        let tip = refs.get(BRANCH_REF).unwrap_or_else(|| panic!("no branch: {refs:#?}\n{said}"));
        assert_eq!(refs.get(DELIVERED), Some(tip), "{refs:#?}\n{said}");
        let parents = self.bare.git(&["log", "-1", "--format=%P", tip]);
        assert_eq!(parents, refs["refs/heads/main"], "one commit on the newest base\n{said}");
        let known = ["refs/heads/main", BRANCH_REF, DELIVERED];
        let stays: Vec<&String> = refs
            .keys()
            .filter(|name| !known.contains(&name.as_str()) && !name.starts_with("refs/pull/"))
            .collect();
        assert!(stays.is_empty(), "{stays:?}\n{said}");
    }
}

/// Delivers in a job.
pub(super) fn deliver(project: Project, arguments: &[&str]) -> Delivered {
    project.write("out", "");
    let ran = project.run(&[&["deliver", "fix.llz", "--report-dir", "kept"], arguments].concat());
    let outputs = outputs(&project.read("out"));
    Delivered { ran, outputs, project }
}

impl Delivered {
    /// Asserts how it ended, and what the outputs say.
    #[track_caller]
    pub(super) fn is(self, code: i32, word: &str) -> Self {
        let said = self.ran.all();
        assert_eq!((self.ran.code, self.output("delivered")), (Some(code), word), "{said}");
        assert!(!self.ran.stderr.contains("panicked"), "{said}");
        self
    }

    pub(super) fn output(&self, name: &str) -> &str {
        self.outputs.get(name).map_or("", String::as_str)
    }

    #[track_caller]
    pub(super) fn says(self, text: &str) -> Self {
        assert!(self.ran.all().contains(text), "no {text:?} in\n{}", self.ran.all());
        self
    }

    /// Asserts that the patch is kept, and that its path is printed.
    #[track_caller]
    pub(super) fn keeps_the_patch(self) -> Self {
        let said = self.ran.all();
        assert!(self.project.read("kept/changes.patch").starts_with("diff --git "), "{said}");
        assert!(said.contains("kept/changes.patch"), "{said}");
        self
    }

    #[track_caller]
    pub(super) fn keeps_nothing(self) -> Self {
        assert!(!Path::exists(&self.project.at("kept/changes.patch")), "{}", self.ran.all());
        self
    }
}
