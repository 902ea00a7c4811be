//! Puts together what the key of a run is made of, so that it can be made twice: before the run, and after it, when what was
//! verified has to be what there still is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::base::explanation::Explanation;
use crate::base::gitpath;
use crate::base::sum::Sum;
use crate::base::template::{Namespace, Template};
use crate::base::territory::{ScopePath, Territory};
use crate::context::Session;
use crate::context::options::BeginOptions;
use crate::definition::emit;
use crate::definition::load::DIRECTORY;
use crate::engine::request::{JudgingRequest, ObservingCommand};
use crate::files::read;
use crate::git::runner::Git;
use crate::machine::{Action, Machine, Reuse, provided};
use crate::process::signal::Cancel;
use crate::repository;
use crate::reuse::chosen_files::{Choice, ListedTree};
use crate::reuse::ignored_sources::IgnoredReads;
use crate::reuse::input_files::ReadFiles;
use crate::reuse::input_patterns::InputPatterns;
use crate::reuse::key::{KeyParts, of_texts, of_value};
use crate::reuse::keyed_tree::{KeyedTree, TreeRead};
use crate::reuse::no_key::NoKey;
use crate::reuse::run_values::tool_commands;
use crate::reuse::store::ReuseStore;
use crate::reuse::undeclared::undeclared;
use crate::reuse::{input_files, tool_output};
use crate::run::area::Area;
use crate::run::judging;
use crate::session::prepare::prepared::Prepared;

/// Where a system says which one it is, and how much of that is read.
const OS_RELEASE: &str = "/etc/os-release";
const MOST_OF_RELEASE: u64 = 64 * 1024;

/// Variables by which CI systems name the image of a job.
const IMAGES: [&str; 4] = ["ImageOS", "ImageVersion", "CI_JOB_IMAGE", "LL_IMAGE"];

/// The directory that the variables of a run name in place of its own, which is another one each time.
const RUN_DIR: &str = "/.running/run.dir";

/// Everything that has to be known to make the key of a run.
pub(crate) struct KeyQuestion {
    reuse: Reuse,
    context: Value,
    judging: JudgingRequest,
    territory: Territory,
    /// Files that the run itself writes.
    own: Vec<PathBuf>,
    root: PathBuf,
    git: Git,
    /// What actions inherit.
    env: BTreeMap<String, String>,
    /// The variables that are read by name: those of `reuse` and those of templates.
    names: BTreeSet<String>,
    definition: Sum,
    options: Sum,
    sandbox: Sum,
}

/// A key with what it says of the commit.
pub(crate) struct FoundKey {
    /// What it is made of.
    pub(crate) parts: KeyParts,
    /// Whether some input is in no commit.
    pub(crate) has_uncommitted: bool,
    /// What is hidden from the actions of a hermetic run, each by its whole path.
    pub(crate) hidden: Vec<String>,
}

/// The files of a key, as they were read.
pub(super) struct KeyedFiles {
    /// The top of the working tree.
    top: PathBuf,
    /// The same, as a path of a scope.
    here: ScopePath,
    /// The directory in which actions run, from there.
    inside: String,
    read: ReadFiles,
    has_uncommitted: bool,
    /// What git tracks where the store lies, each by its whole path.
    tracked: BTreeSet<PathBuf>,
}

impl KeyedFiles {
    /// Hands over what git tracks where the store lies.
    pub(super) fn take_tracked(&mut self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut self.tracked)
    }
}

/// What a run is, as far as its key depends on it.
pub(crate) struct KeyedRun<'r> {
    /// Its options.
    pub(crate) options: &'r BeginOptions,
    /// Its variables.
    pub(crate) context: &'r Map<String, Value>,
    /// What is known of its judges.
    pub(crate) judging: JudgingRequest,
    /// What it works on.
    pub(crate) territory: &'r Territory,
    /// What in it is not work of the run.
    pub(crate) area: &'r Area,
}

impl KeyQuestion {
    /// Collects it, for a loop that says what its checks read.
    pub(crate) fn of(prepared: &mut Prepared, run: KeyedRun<'_>, session: &Session<'_>) -> Option<Self> {
        let reuse = prepared.machine.reuse.clone()?;
        let KeyedRun { options, context, mut judging, territory, area } = run;
        let below = prepared.library.below(&prepared.machine);
        let machines: Vec<&Machine> =
            std::iter::once(&prepared.machine).chain(below.iter().map(std::rc::Rc::as_ref)).collect();
        judging.commands.extend(below.iter().flat_map(|machine| commands_of(machine)));
        let of_actions = machines.iter().flat_map(|machine| env_of(machine));
        let names = reuse.env.iter().cloned().chain(of_actions).collect();
        let mut context = context.clone();
        provided::rebase(&mut context, RUN_DIR);
        Some(Self {
            definition: definition(prepared),
            options: of_options(options),
            sandbox: of_texts([options.run.llm.sandbox.map_or("as usual", |mode| mode.word())]),
            context: Value::Object(context),
            judging,
            territory: territory.clone(),
            own: area.own.clone(),
            root: prepared.located.root.clone(),
            git: repository::at(&prepared.located.root, session),
            env: session.env.for_actions(options.run.pass_token),
            reuse,
            names,
        })
    }

    /// Returns how long the result of a run is used, and how often one is made all the same.
    pub(crate) fn rules(&self) -> &Reuse {
        &self.reuse
    }

    /// Returns the directory of the loops.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns what calls git where the run works.
    pub(super) fn git(&self) -> &Git {
        &self.git
    }

    /// Returns where the results of this repository are kept.
    pub(super) fn store(&self) -> ReuseStore {
        ReuseStore::new(&self.root.join(DIRECTORY), &self.git)
    }

    /// Makes the key of what there is now.
    pub(crate) async fn ask(&self, cancel: &Cancel) -> Result<FoundKey, NoKey> {
        self.complete(self.read()?, cancel).await
    }

    /// Reads the files of the key, which may take a while.
    pub(super) fn read(&self) -> Result<KeyedFiles, NoKey> {
        let top = input_files::top(&self.git)?;
        let git = self.git.of(&top);
        let here = ScopePath::from(top.to_string_lossy().into_owned());
        let scope = self.scope(&here)?;
        let inputs = InputPatterns::of(&self.reuse.inputs, &self.context)?;
        let inside = self.territory.tree.seen_from(&here);
        let inside = if inside == "." { "" } else { inside.as_str() };
        let followed = judging::followed(&self.judging, &top, inside, &self.env);
        let own: Vec<String> = self
            .own
            .iter()
            .filter_map(|own| Some(own.strip_prefix(&top).ok()?.to_owned()))
            .map(|own| gitpath::to_text(std::os::unix::ffi::OsStrExt::as_bytes(own.as_os_str())))
            .collect();
        let declared = &self.judging.declared;
        let choice = Choice { inputs: &inputs, declared, obeyed: &followed.obeyed, scope: &scope, own: &own };
        let reads = IgnoredReads::of(&followed.called);
        let TreeRead { read, has_uncommitted, tree } =
            KeyedTree { git: &git, top: &top, choice: &choice, reads: &reads }.read()?;
        let tracked = self.tracked_around_store(&tree, &top)?;
        Ok(KeyedFiles { top, inside: inside.to_owned(), here, read, has_uncommitted, tracked })
    }

    /// Returns what git tracks below the folder of the loops, and the submodules around it: the store may be among that.
    fn tracked_around_store(&self, tree: &ListedTree, top: &Path) -> Result<BTreeSet<PathBuf>, NoKey> {
        let unreadable = |why| NoKey::Unreadable { path: self.root.display().to_string(), why };
        let root = self.root.canonicalize().map_err(unreadable)?;
        let near = tree.tracked.iter().chain(tree.submodules.keys()).filter(|path| path.contains(DIRECTORY));
        let place = |path: &String| {
            let place = input_files::place(top, path);
            Some(self.root.join(place.strip_prefix(&root).ok()?))
        };
        Ok(near.filter_map(place).collect())
    }

    /// Makes the key of files that were read, and of everything else that it is made of.
    pub(super) async fn complete(&self, files: KeyedFiles, cancel: &Cancel) -> Result<FoundKey, NoKey> {
        let KeyedFiles { top, here, inside, read, has_uncommitted, tracked: _ } = files;
        let commands = tool_commands(&self.reuse.tools, &self.context)?;
        let tools = tool_output::ask_all(&commands, &self.root, &self.env, cancel).await?;
        let value = |name: &String| {
            // Only the digest goes into the record, for a value may be a secret.
            let sum = self.env.get(name).map(|value| Sum::of(value.as_bytes()));
            (name.clone(), sum)
        };
        let parts = KeyParts {
            definition: self.definition,
            values: of_value(&self.context),
            options: self.options,
            inputs: read.inputs,
            judges: read.judges,
            tools,
            env: self.names.iter().map(value).collect(),
            platform: self.platform(inside),
            sandbox: self.sandbox,
        };
        let hidden = if self.reuse.hermetic { undeclared(&top, &parts)? } else { Vec::new() };
        let hidden = hidden.iter().map(|path| here.join(path).to_string()).collect();
        Ok(FoundKey { parts, has_uncommitted, hidden })
    }

    /// Returns the paths that the run works on, from the top of the working tree.
    fn scope(&self, top: &ScopePath) -> Result<Vec<String>, NoKey> {
        let seen = self.territory.paths.iter().map(|path| {
            if path.holds(top) && path != top {
                return Err(NoKey::ScopeOutside(path.to_string()));
            }
            match path.seen_from(top).as_str() {
                "." => Ok(String::new()),
                outside if outside.starts_with('/') => Err(NoKey::ScopeOutside(outside.to_owned())),
                inside => Ok(inside.to_owned()),
            }
        });
        seen.collect()
    }

    /// Returns where it runs: on what, and in which directory, as a check finds other files in another one.
    fn platform(&self, directory: String) -> BTreeMap<String, String> {
        let release = read::bytes(Path::new(OS_RELEASE), MOST_OF_RELEASE);
        // macOS has no such file.
        let release = release.map_or_else(|_| "none".to_owned(), |bytes| Sum::of(&bytes).to_string());
        let fixed = [
            ("os", std::env::consts::OS.to_owned()),
            ("architecture", std::env::consts::ARCH.to_owned()),
            ("release", release),
            ("directory", directory),
        ];
        let images = IMAGES.into_iter().filter_map(|name| Some((name, self.env.get(name)?.clone())));
        fixed.into_iter().chain(images).map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Says why a run has no key, for people.
pub(crate) fn no_key(why: &NoKey) -> Explanation {
    Explanation::new(format!("nothing is reused or kept, because the run has no key: {why}"))
}

/// Returns the digest of a loop as it was compiled, and of the files of the loops that it runs.
fn definition(prepared: &Prepared) -> Sum {
    // Written anew, so that a comment or the layout of the loop file does not make another key.
    let compiled = emit::to_yaml(&prepared.loaded.tree);
    // Sorted, because the library is a hash map: the key must be the same in each process.
    let below: BTreeSet<(String, String)> = prepared.library.texts().collect();
    let below = below.iter().flat_map(|(file, text)| [file.as_str(), text.as_str()]);
    let own = [prepared.machine.name.as_str(), compiled.as_str()];
    of_texts(own.into_iter().chain(below))
}

/// Returns the digest of the options that change what a loop does.
fn of_options(options: &BeginOptions) -> Sum {
    // Variables of the command line are not among these options: they are in the values of the run.
    of_value(&serde_json::json!({
        "max_iterations": options.max_iterations,
        "max_cycles": options.max_cycles,
        "no_closing_pass": options.no_closing_pass,
        "scope": options.scope,
        "pass_token": options.run.pass_token,
    }))
}

/// Returns the commands of a loop that another one runs.
fn commands_of(machine: &Machine) -> Vec<ObservingCommand> {
    let of = machine.steps().filter_map(|(_, step)| match &step.action {
        Some(Action::Shell(shell)) => Some(ObservingCommand {
            state: step.name.clone(),
            text: shell.text.source().to_owned(),
            cwd: shell.setting.cwd.as_ref().and_then(|cwd| Some(cwd.as_literal()?.into_owned())),
            env: Vec::new(),
            shell: shell.shell.clone(),
        }),
        _ => None,
    });
    of.collect()
}

/// Returns the names of variables that the texts of a loop read.
fn env_of(machine: &Machine) -> Vec<String> {
    let names = |template: &Template| {
        let read = template.expressions().filter(|expression| expression.namespace == Namespace::Env);
        read.filter_map(|expression| match expression.path.first()? {
            crate::base::path::Segment::Key(name) => Some(name.clone()),
            crate::base::path::Segment::Index(_) => None,
        })
        .collect::<Vec<_>>()
    };
    machine.templates().into_iter().flat_map(|(_, _, template)| names(template)).collect()
}
