//! Reports a run that could not begin, in the same places as a run: whoever looks at the commit, the reports or the
//! outputs of the job sees why, and need not read the log.

use std::path::Path;

use super::publication::{Publication, ReportedEnd, Stage, publisher};
use crate::base::name::{InstanceName, LoopName};
use crate::ci::github::is_about_a_commit;
use crate::ci::reported::ReportOptions;
use crate::context::error::{Error, Kind};
use crate::context::mistakes::shown;
use crate::context::options::{KeyOption, RunOptions};
use crate::context::{Session, key_of_run};
use crate::definition::load::{self, DIRECTORY, LoadError, Located};
use crate::journal::files::RunFiles;
use crate::process::clock::Clock;
use crate::report::unbegun_run::{Hindrance, Mistake, Unbegun};

/// How a loop is called of which nothing is known.
const NAMELESS: &str = "loop";

impl Session<'_> {
    /// Reports that a run could not begin. `name` is the loop, its file or the run, as the caller named it.
    pub fn report_unbegun(&self, error: &Error, exit_code: u8, name: Option<&str>, options: &RunOptions) {
        let Some(provider) = publisher(options) else { return };
        let bundled = error.bundled();
        let about = UnbegunRun::find(name.or(bundled.map(|run| run.loop_name.as_str())), self);
        let (root, loop_name) = (about.root.as_path(), &about.name);
        let mut options = options.clone();
        // The commit that waits for the end of a run that was handed off is the one on which it began, whatever is checked out here.
        let begun_at = bundled.filter(|run| run.loop_name == about.name).and_then(|run| run.sha.as_ref());
        if options.commit.sha.is_none() && is_about_a_commit(&self.env.lookup()) {
            options.commit.sha = begun_at.map(|sha| sha.as_str().to_owned());
        }
        // Who has the run tells how it ends; and without its name, nobody would know a status again.
        let is_told = matches!(error.kind(), Kind::Taken | Kind::GoneOn | Kind::Over);
        if is_told || (!about.is_named && options.commit.context.is_none()) {
            options.commit = ReportOptions { status: Some(false), ..ReportOptions::default() };
        }
        if error.kind() == Kind::Over {
            // The reports of the run may be there.
            options.report_dir = None;
        }
        let files = RunFiles::fresh(&root.join(DIRECTORY), loop_name, Clock::start().now());
        let mut publication = Publication::new(&options, provider, root, loop_name, &files, None, self);
        publication.begin(&options, loop_name.as_str(), Stage::Over, self);
        let unbegun = Unbegun {
            loop_name: loop_name.to_string(),
            file: about.file,
            hindrance: hindrance(error.kind()),
            exit_code,
            message: self.redactor.text(error.message()).into_owned(),
            help: error.hint().map(|hint| self.redactor.text(hint).into_owned()),
            mistakes: error.mistakes().iter().map(|mistake| self.redacted(mistake)).collect(),
        };
        publication.tell(ReportedEnd::Unbegun(unbegun), self);
    }

    /// Says at the commit that a run was killed in its container. Whatever is said is known from the job: the container may
    /// have written any end of the run into its files.
    pub fn report_killed(&self, name: Option<&str>, run: &str, exit_code: u8, options: &RunOptions) {
        let Some(provider) = publisher(options) else { return };
        let about = UnbegunRun::find(name.or(Some(run)), self);
        let (root, loop_name) = (about.root.as_path(), &about.name);
        let mut options = options.clone();
        let given = match &options.key {
            KeyOption::Given(given) => given.clone(),
            KeyOption::Known(_) => None,
        };
        // Its run has been counted among those of the job already.
        if let Some(key) = key_of_run::of_job(given.as_deref(), provider.job().id.as_ref()) {
            options.key = KeyOption::Known(key);
        }
        let files = RunFiles::of(&root.join(DIRECTORY), run);
        let files =
            files.unwrap_or_else(|| RunFiles::fresh(&root.join(DIRECTORY), loop_name, Clock::start().now()));
        let mut publication = Publication::new(&options, provider, root, loop_name, &files, None, self);
        publication.begin(&options, loop_name.as_str(), Stage::Over, self);
        let killed = Unbegun {
            loop_name: loop_name.to_string(),
            file: about.file,
            hindrance: Hindrance::Interrupted,
            exit_code,
            message: "killed in its container".to_owned(),
            help: None,
            mistakes: Vec::new(),
        };
        publication.tell_commit(killed, self);
    }

    /// Tells whether a text holds a secret.
    fn hides(&self, text: &str) -> bool {
        self.redactor.text(text) != text
    }

    fn redacted(&self, mistake: &Mistake) -> Mistake {
        Mistake {
            message: self.redactor.text(&mistake.message).into_owned(),
            help: mistake.help.as_deref().map(|help| self.redactor.text(help).into_owned()),
            file: self.redactor.text(&mistake.file).into_owned(),
            ..mistake.clone()
        }
    }
}

fn hindrance(kind: Kind) -> Hindrance {
    match kind {
        Kind::Refused | Kind::Over | Kind::Absent => Hindrance::Invalid,
        Kind::Locked | Kind::Taken | Kind::GoneOn => Hindrance::Locked,
        Kind::Unavailable => Hindrance::Unavailable,
        Kind::Interrupted(_) => Hindrance::Interrupted,
        Kind::Failed => Hindrance::Error,
    }
}

/// What the run would have been of.
struct UnbegunRun {
    root: std::path::PathBuf,
    file: String,
    name: LoopName,
    is_named: bool,
}

impl UnbegunRun {
    fn find(asked: Option<&str>, session: &Session<'_>) -> Self {
        let located = asked.and_then(|asked| load::find(asked, &session.cwd).ok());
        if let Some(located) = located {
            // Names become names of files, artifacts and statuses, where nothing masks a secret.
            let name = name_of(&located).filter(|name| !session.hides(name.as_str()));
            let file = session.redactor.text(&shown(&located.path, &located.root)).into_owned();
            return Self {
                file,
                is_named: name.is_some(),
                name: name.unwrap_or_else(nameless),
                root: located.root,
            };
        }
        let ancestors = load::ancestors(&session.cwd);
        let root = ancestors.into_iter().find(|root| root.join(DIRECTORY).is_dir());
        let root = root.unwrap_or_else(|| session.cwd.clone());
        // A run is named by its id as well, which begins with the name of its loop.
        let run = asked.filter(|asked| InstanceName::parse(asked).is_ok());
        let run = run.and_then(|run| RunFiles::of(&root.join(DIRECTORY), run));
        let of_run = run.and_then(|run| LoopName::parse(run.stem()).ok());
        let plain = asked.filter(|asked| Path::new(asked).extension().is_none());
        let written = || plain.and_then(|plain| LoopName::parse(plain).ok());
        let of_file = || asked.and_then(stem).and_then(|stem| LoopName::parse(&stem).ok());
        let name = of_run.or_else(written).or_else(of_file);
        let name = name.filter(|name| !session.hides(name.as_str()));
        Self { root, file: String::new(), is_named: name.is_some(), name: name.unwrap_or_else(nameless) }
    }
}

fn nameless() -> LoopName {
    LoopName::parse(NAMELESS).expect("it is a name")
}

/// Returns the name of a loop, also of one that cannot be loaded.
fn name_of(located: &Located) -> Option<LoopName> {
    if located.name.is_some() {
        return located.name.clone();
    }
    let written = match load::load(located) {
        Ok(loaded) => return Some(loaded.definition.name),
        Err(LoadError::Rejected { rejected, .. }) => {
            let name = rejected.tree.as_ref().and_then(|tree| tree.get("name"));
            name.and_then(|name| Some(name.as_scalar()?.text.clone()))
        }
        Err(_) => None,
    };
    let of_file = || stem(&located.path.to_string_lossy());
    written.or_else(of_file).and_then(|name| LoopName::parse(&name).ok())
}

fn stem(path: &str) -> Option<String> {
    Path::new(path).file_stem().map(|stem| stem.to_string_lossy().into_owned())
}
