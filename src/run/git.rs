//! Makes the calls of [`crate::git::call`] while a run goes on: they share their time, and end with the run.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::clock::Clock;
use crate::base::object::ObjectId;
use crate::base::text::one_line;
use crate::evaluate::observation::{Stop, Stream};
use crate::files::transient;
use crate::git::call::{Call, Filters, Walk, alternate, copy_index, environment};
use crate::process::guard::Guard;
use crate::process::signal::{Cancel, EndRequest};
use crate::process::spawn::{self, Heard, ProcessLimits, Program};

/// More than this is neither a list of changes nor a patch.
const MOST_OUTPUT: usize = 256 * 1024 * 1024;

const CANCELLED: &str = "the run is to end";

/// Calls of `git` that share their time.
#[derive(Clone)]
pub(super) struct GitCalls {
    pub(super) env: BTreeMap<String, String>,
    pub(super) cancel: Cancel,
    pub(super) clock: Clock,
    pub(super) limit: Duration,
    /// What the system says about directories that may be trusted, as it was said in each directory.
    trusted: HashMap<PathBuf, Filters>,
}

impl GitCalls {
    /// Starts the time for calls in this environment. Which repository is meant is the user's choice.
    pub(super) fn new(env: BTreeMap<String, String>, cancel: Cancel, limit: Duration) -> Self {
        Self { env: environment(env), cancel, clock: Clock::start(), limit, trusted: HashMap::new() }
    }

    /// Runs `git` and returns everything it printed.
    pub(super) async fn run(&mut self, directory: &Path, call: &Call) -> Result<Vec<u8>, String> {
        let env = self.env.clone();
        let filters = self.filters_for(call, directory, &env).await?;
        self.perform(directory, call, &filters, env, None).await
    }

    /// Tells whether the repository knows filters.
    pub(super) async fn has_filters(&mut self, directory: &Path) -> Result<bool, String> {
        let env = self.env.clone();
        Ok(self.look(directory, &env).await?.is_any())
    }

    /// Gives `git` something to read, and returns everything it printed.
    pub(super) async fn feed(
        &mut self,
        directory: &Path,
        call: &Call,
        input: Vec<u8>,
    ) -> Result<Vec<u8>, String> {
        let env = self.env.clone();
        let filters = self.filters_for(call, directory, &env).await?;
        self.perform(directory, call, &filters, env, Some(input)).await
    }

    /// Runs `git` with an index of our own, gives it something to read, and returns everything it printed.
    pub(super) async fn run_in(
        &mut self,
        own: &OwnIndex,
        directory: &Path,
        call: &Call,
        input: Option<Vec<u8>>,
    ) -> Result<Vec<u8>, String> {
        let mut env = self.env.clone();
        env.extend(own.env.clone());
        let filters = self.filters_for(call, directory, &env).await?;
        self.perform(directory, call, &filters, env, input).await
    }

    /// The same for a call that prints an id.
    pub(super) async fn id_in(
        &mut self,
        own: &OwnIndex,
        directory: &Path,
        call: &Call,
    ) -> Result<ObjectId, String> {
        let printed = self.run_in(own, directory, call, None).await?;
        ObjectId::parse(String::from_utf8_lossy(&printed).trim()).map_err(|error| error.to_string())
    }

    /// Begins with new time.
    pub(super) fn again(&mut self) {
        self.clock = Clock::start();
    }

    /// Returns what is to be turned off for a call in this environment, as it is now.
    async fn filters_for(
        &mut self,
        call: &Call,
        directory: &Path,
        env: &BTreeMap<String, String>,
    ) -> Result<Filters, String> {
        if call.reads_files() {
            return self.look(directory, env).await;
        }
        if let Some(known) = self.trusted.get(directory) {
            return Ok(known.clone());
        }
        let mut walk = Walk::new(directory);
        walk.step()?;
        let env = self.env.clone();
        // The system comes first, and a filter that cannot be turned off matters to other calls.
        let _filter = walk.configured(&self.configuration(directory, env).await?);
        self.trusted.insert(directory.to_owned(), walk.trusted());
        Ok(walk.trusted())
    }

    /// Looks for the filters that are to be turned off, in the repositories that are in the index of this environment.
    async fn look(&mut self, directory: &Path, env: &BTreeMap<String, String>) -> Result<Filters, String> {
        let mut walk = Walk::new(directory);
        let mut env = env.clone();
        while let Some(directory) = walk.step()? {
            walk.configured(&self.configuration(&directory, env.clone()).await?)?;
            let trusted = walk.trusted();
            // Where there is no repository, there is none inside; what is wrong with one is said by the call itself.
            let listed = self.perform(&directory, &Walk::inside(), &trusted, env.clone(), None).await;
            let listed = listed.unwrap_or_default();
            if Walk::is_any(&listed) {
                let top = self.perform(&directory, &Walk::top(), &trusted, env.clone(), None).await?;
                walk.listed(Path::new(OsStr::from_bytes(top.strip_suffix(b"\n").unwrap_or(&top))), &listed);
            }
            env = Walk::environment_inside(env);
        }
        Ok(walk.filters())
    }

    async fn configuration(
        &mut self,
        directory: &Path,
        env: BTreeMap<String, String>,
    ) -> Result<Vec<u8>, String> {
        let (none, env) = (Filters::default(), Walk::environment(env));
        self.perform(directory, &Walk::configuration(), &none, env, None).await
    }

    async fn perform(
        &mut self,
        directory: &Path,
        call: &Call,
        filters: &Filters,
        env: BTreeMap<String, String>,
        stdin: Option<Vec<u8>>,
    ) -> Result<Vec<u8>, String> {
        // Starting it in the directory itself costs more, and is left to names that are no text.
        let named = directory.to_str();
        let program = Program {
            argv: call.words(named, filters),
            env: env.into_iter().collect(),
            cwd: if named.is_some() { None } else { Some(directory.to_owned()) },
            stdin,
            guard: Guard::default(),
        };
        let limits = ProcessLimits { end: Some((self.left()?, Stop::Timeout)), idle: None, first: None };
        let mut printed = Vec::new();
        let mut keep = |stream: Stream, bytes: &[u8]| {
            if stream == Stream::Stdout && printed.len() <= MOST_OUTPUT {
                printed.extend_from_slice(bytes);
            }
            Heard::More
        };
        let seen = spawn::run(&program, limits, &mut self.cancel, &mut keep).await;
        if let Some(why) = seen.failure {
            return Err(why);
        }
        match seen.stop {
            Some(Stop::Cancelled) => return Err(CANCELLED.to_owned()),
            Some(_) => return Err(self.too_long()),
            None => {}
        }
        if printed.len() > MOST_OUTPUT {
            return Err("too much has changed in it".to_owned());
        }
        if seen.exit_code == 0 {
            return Ok(printed);
        }
        let said = seen.stderr.as_str();
        let why = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        let why = why.trim().trim_start_matches("fatal: ");
        Err(format!("`git {}` failed (exit {}): {}", call.command(), seen.exit_code, one_line(why, 200)))
    }

    /// Reads a file to its end, in the time of the calls. Reading holds up this thread, so others get their turn between
    /// two pieces.
    pub(super) async fn read(&self, file: &mut impl Read, mut take: impl FnMut(&[u8])) -> Result<(), String> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            tokio::task::yield_now().await;
            self.left()?;
            match file.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => take(&buffer[..count]),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Returns how much time is left, or why there is none.
    pub(super) fn left(&self) -> Result<Duration, String> {
        if self.cancel.request() != EndRequest::None {
            return Err(CANCELLED.to_owned());
        }
        let left = self.limit.saturating_sub(self.clock.elapsed());
        if left.is_zero() { Err(self.too_long()) } else { Ok(left) }
    }

    fn too_long(&self) -> String {
        format!("it took more than {}", crate::base::time::human(self.limit))
    }
}

/// An index of our own, and a place for objects of our own: trees can be made, and the repository stays as it is.
pub(super) struct OwnIndex {
    env: BTreeMap<String, String>,
    /// Holds the index.
    _place: TempDir,
}

impl OwnIndex {
    /// Copies an index. New objects go to `objects`, which stays.
    pub(super) fn copy(index: &Path, known: &Path, objects: &Path) -> Result<Self, String> {
        let place = transient::directory("ll-index-").map_err(|error| error.to_string())?;
        fs_err::create_dir_all(objects).map_err(|error| error.to_string())?;
        let own = place.path().join("index");
        copy_index(index, &own).map_err(|error| error.to_string())?;
        let text = |path: &Path| {
            path.to_str().map(str::to_owned).ok_or_else(|| format!("{} is no text", path.display()))
        };
        let env = BTreeMap::from([
            ("GIT_INDEX_FILE".to_owned(), text(&own)?),
            ("GIT_OBJECT_DIRECTORY".to_owned(), text(objects)?),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES".to_owned(), alternate(&text(known)?)),
        ]);
        Ok(Self { env, _place: place })
    }

    /// Copies an index. New objects go to the repository itself, and git may remember in the copy what it found out about
    /// files.
    pub(super) fn of_repository(index: &Path) -> Result<Self, String> {
        let place = transient::directory("ll-index-").map_err(|error| error.to_string())?;
        let own = place.path().join("index");
        copy_index(index, &own).map_err(|error| error.to_string())?;
        let own = own.to_str().ok_or_else(|| format!("{} is no text", own.display()))?.to_owned();
        let env = BTreeMap::from([
            ("GIT_INDEX_FILE".to_owned(), own),
            ("GIT_OPTIONAL_LOCKS".to_owned(), "1".to_owned()),
        ]);
        Ok(Self { env, _place: place })
    }

    /// Returns the same with variables of its own.
    #[must_use]
    pub(super) fn with(mut self, env: impl IntoIterator<Item = (&'static str, &'static str)>) -> Self {
        self.env.extend(env.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
        self
    }

    /// Makes another one with the same objects, and no files yet.
    pub(super) fn another(&self) -> Result<Self, String> {
        let place = transient::directory("ll-index-").map_err(|error| error.to_string())?;
        let mut env = self.env.clone();
        let own = place.path().join("index");
        env.insert("GIT_INDEX_FILE".to_owned(), own.to_string_lossy().into_owned());
        Ok(Self { env, _place: place })
    }
}
