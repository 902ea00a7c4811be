//! Makes of the process of an action one that is confined, and looks afterwards at what it left.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::container_flags::{MountFacts, container_flags};
use super::engines::{LandlockReady, ReadyEngine};
use super::household::{CREDENTIALS, LEADING_OUT, OPENED, addresses, identity, of_host};
use super::landlock_rules::{self, landlock_rules};
use super::order::{
    EngineCall, FiltersBy, GATE, GateOrder, GateReport, Reached, WARDEN, disguised, proxy_address,
};
use super::plan::{self, DOORS, PROGRAM, PROXY_PORT, PlanFacts, bwrap_options, is_below, plan};
use super::protected::{self, CONTINUATION, Masks, ProtectedFiles};
use crate::base::sandbox::{HostPattern, SandboxEngine, SandboxMode, SandboxNet, SandboxRules};
use crate::files::gitdir::{self, GitDirectory};
use crate::files::read::{self, MIB, Unread};
use crate::files::replace::create;
use crate::files::transient;
use crate::process::spawn::Program;

/// The longest table of the kernel that is read, in bytes: a million lines.
const LONGEST_TABLE: u64 = 256 * MIB;

/// What confines the actions of a run.
#[derive(Debug)]
pub struct Confinement {
    ready: ReadyEngine,
    /// The program of ll-loop.
    program: PathBuf,
    home: Option<PathBuf>,
    home_entries: Vec<String>,
    /// What leads out by the environment of the run, which may have more than that of an action.
    leading_out: Vec<String>,
    /// What is private to the run: its `/tmp`, its home, and what stands in for other files.
    private: TempDir,
}

/// How an action is to be confined.
#[derive(Debug)]
pub struct Wish<'w> {
    /// What the loop says.
    pub rules: &'w SandboxRules,
    /// The working tree of the run.
    pub root: &'w Path,
    /// What of it the run claims.
    pub scope: &'w [PathBuf],
    /// The directory of the run for files of its actions.
    pub run_dir: &'w Path,
    /// The host that the action calls, where it is a prompt.
    pub host: Option<&'w str>,
    /// Whether it is to look and change nothing, neither files nor commits.
    pub only_looks: bool,
    /// Files that it reads, wherever they are.
    pub read: &'w [PathBuf],
}

/// An action that is confined.
#[derive(Debug)]
pub struct Confined {
    protected: ProtectedFiles,
    masks: Masks,
    root: PathBuf,
    git: Vec<PathBuf>,
    aside: PathBuf,
    report: PathBuf,
    net: SandboxNet,
    mode: SandboxMode,
    engine: SandboxEngine,
    /// Where Landlock alone confines it, how far that goes.
    landlock: Option<LandlockReady>,
    /// Holds the sockets of this action.
    _own: TempDir,
}

/// What is known of a confined action when it has ended.
#[derive(Debug, Default)]
pub struct ConfinedEnd {
    /// Why it could not be started.
    pub failure: Option<String>,
    /// What it reached.
    pub reached: Reached,
    /// Protected files that it changed, which were put back.
    pub put_back: Vec<String>,
    /// Why something could not be put back.
    pub not_put_back: Option<String>,
}

impl Confinement {
    /// Makes what the actions of a run share.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(ready: ReadyEngine, home: Option<PathBuf>, leading_out: Vec<String>) -> io::Result<Self> {
        let private = transient::directory("ll-sandbox-")?;
        // The home `/`, which containers give to users whom they do not know, would put the private one over everything.
        let home = home.and_then(|home| home.canonicalize().ok()).filter(|home| home.parent().is_some());
        let this = Self {
            program: std::env::current_exe()?,
            home_entries: Vec::new(),
            leading_out,
            home,
            ready,
            private,
        };
        this.open_to_user()?;
        for name in ["tmp", "home"] {
            this.own(&this.at(name), true)?;
        }
        // A file, and not `/dev/null`: `git add -A` fails on a device in the working tree.
        create(&this.at("blank"), "")?;
        fs_err::set_permissions(this.at("blank"), std::fs::Permissions::from_mode(0o444))?;
        if let Some(home) = &this.home {
            let identity = this.at("home").join(".gitconfig");
            // The user's own configuration is out of sight, and without a name and an address `git commit` refuses.
            create(&identity, identity_in(home))?;
            this.own(&identity, false)?;
        }
        let home_entries = this.home.iter().flat_map(|home| this.entries(home)).collect();
        Ok(Self { home_entries, ..this })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.private.path().join(name)
    }

    /// Where actions run as somebody else, lets that user pass through our own directories, whose names cannot be guessed.
    fn open_to_user(&self) -> io::Result<()> {
        if self.ready.other_user().is_some() {
            for directory in self.private.path().ancestors().take(2) {
                fs_err::set_permissions(directory, std::fs::Permissions::from_mode(0o711))?;
            }
        }
        Ok(())
    }

    /// Makes a directory that is the action's own, or gives it a file.
    fn own(&self, path: &Path, is_directory: bool) -> io::Result<()> {
        if is_directory {
            fs_err::create_dir_all(path)?;
            fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
        }
        match self.ready.other_user() {
            Some(user) => chown(path, Some(user.uid), Some(user.gid)),
            None => Ok(()),
        }
    }

    /// Returns what is seen of a home. As somebody else, nothing of it is.
    fn entries(&self, home: &Path) -> Vec<String> {
        if self.ready.other_user().is_some() {
            return Vec::new();
        }
        let mut entries = Vec::new();
        let mut open = vec![home.to_owned()];
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
                let path = entry.path();
                let below = path.strip_prefix(home).unwrap_or(&path).to_string_lossy().into_owned();
                // A link without an end cannot be bound.
                if CREDENTIALS.contains(&below.as_str()) || !path.exists() {
                    continue;
                }
                if OPENED.contains(&below.as_str()) && path.is_dir() && !path.is_symlink() {
                    open.push(path);
                } else {
                    entries.push(text(&path));
                }
            }
        }
        entries
    }

    /// Confines an action: returns the process to start in its place, and what looks after it.
    ///
    /// # Errors
    /// Something of it cannot be made.
    pub fn confine(&self, action: Program, wish: &Wish<'_>) -> io::Result<(Program, Confined)> {
        let root = wish.root.canonicalize()?;
        let git = git_directories(&root);
        let is_shared = matches!(self.ready, ReadyEngine::Landlock(_));
        let look = if is_shared { ProtectedFiles::copied } else { ProtectedFiles::look };
        let protected = look(&root, &git)?;
        let own = transient::directory("ll-gate-")?;
        if self.ready.other_user().is_some() {
            fs_err::set_permissions(own.path(), std::fs::Permissions::from_mode(0o711))?;
        }
        let doors = own.path().join("doors");
        self.own(&doors, true)?;
        self.own(wish.run_dir, false)?;
        for file in wish.read {
            self.own(file, false)?;
        }
        // Without mounts, nothing stands in for what is not there: what appears is found afterwards.
        let masks = if is_shared { Masks::default() } else { protected::absent(&root) };
        let exclude = if is_shared { None } else { exclude(&root, &masks, own.path())? };
        let mut env: BTreeMap<String, String> = action.env.into_iter().collect();
        let reach = SandboxReach::of(wish, &action.argv, &env);
        let hidden = self.hidden(&mut env, &root, wish)?;
        reach.tell(&mut env);
        let (tmp, home) = if is_shared {
            (text(&self.at("tmp")), Some(text(&self.at("home"))))
        } else {
            ("/tmp".to_owned(), None)
        };
        // The `TMPDIR` of the machine may lie where an action cannot write.
        env.insert("TMPDIR".to_owned(), tmp);
        env.extend(home.map(|home| ("HOME".to_owned(), home)));
        let (mut facts, copied) = self.of_host(wish, &env);
        for (from, to) in copied {
            let copy = self.at("home").join(to);
            if read::copy(&from, &copy).is_ok() {
                self.own(&copy, false)?;
            }
        }
        let texts = |paths: &[PathBuf]| paths.iter().map(|path| text(path)).collect::<Vec<_>>();
        let written: &[PathBuf] = if wish.only_looks { &[] } else { wish.scope };
        // What does not exist cannot be bound.
        let in_scope = written.iter().filter(|path| path.exists()).map(|path| text(path)).collect();
        facts = PlanFacts {
            root: text(&root),
            scope: in_scope,
            git: if wish.only_looks { Vec::new() } else { texts(&git) },
            run_dir: text(wish.run_dir),
            // A home in the working tree is part of the work, which a private one would cover.
            home: self.home.as_deref().filter(|home| !home.starts_with(&root)).map(text),
            home_entries: self.home_entries.clone(),
            home_programs: self.programs(&env),
            private_home: text(&self.at("home")),
            private_tmp: text(&self.at("tmp")),
            above_protected: protected.above(&root, &git).iter().map(|path| text(path)).collect(),
            protected: protected.bound().map(|path| text(path)).collect(),
            absent_files: texts(&masks.files),
            absent_directories: texts(&masks.directories),
            exclude,
            written: continuation(&root),
            programs: programs_elsewhere(&env, &root),
            read: texts(wish.read),
            blank: text(&self.at("blank")),
            program: text(&self.program),
            doors: text(&doors),
            kept_of_run: kept_of_run(&reach.net),
            ..facts
        };
        let (directories, files) = hidden;
        facts.hidden_directories = directories;
        facts.hidden_files = files;
        for path in if self.is_root() { roots_own(Path::new("/etc")) } else { Vec::new() } {
            if Path::new(&path).is_dir() { &mut facts.hidden_directories } else { &mut facts.hidden_files }
                .push(path);
        }
        facts.more.extend(wish.rules.write.iter().filter_map(|path| self.named(path, &root)));
        let hide = wish.rules.hide.iter().filter_map(|path| self.named(path, &root));
        for path in hide {
            if Path::new(&path).is_dir() { &mut facts.hidden_directories } else { &mut facts.hidden_files }
                .push(path);
        }
        let report = own.path().join("report");
        let cwd = action.cwd.clone().map_or_else(|| root.clone(), |cwd| cwd.canonicalize().unwrap_or(cwd));
        let order = GateOrder {
            parent: std::process::id(),
            engine: self.call((wish.rules.mode, &reach), &facts, &text(&cwd))?,
            doors: text(&doors),
            hosts: reach.hosts(),
            forward: reach.ports.iter().copied().collect(),
            report: text(&report),
            cwd: text(&cwd),
            action: action.argv,
        };
        // The plan of all mounts may be longer than the 128 KiB that Linux takes as one argument.
        let file = own.path().join("order");
        create(&file, serde_json::to_vec(&order)?)?;
        let program = Program {
            argv: vec![text(&self.program), GATE.to_owned(), text(&file)],
            env: disguised(env),
            cwd: None,
            stdin: action.stdin,
            guard: action.guard,
        };
        let confined = Confined {
            protected,
            masks,
            root,
            git,
            aside: wish.run_dir.join("set-aside"),
            report,
            net: reach.net,
            mode: wish.rules.mode,
            engine: self.engine(),
            landlock: match self.ready {
                ReadyEngine::Landlock(ready) => Some(ready),
                ReadyEngine::Bwrap(_) | ReadyEngine::Container(_) => None,
            },
            _own: own,
        };
        Ok((program, confined))
    }

    /// Returns what confines them.
    pub fn engine(&self) -> SandboxEngine {
        self.ready.word()
    }

    /// Says how the engine is started.
    fn call(
        &self,
        (mode, reach): (SandboxMode, &SandboxReach),
        facts: &PlanFacts,
        cwd: &str,
    ) -> io::Result<EngineCall> {
        let plan = &plan(mode, &reach.net, facts);
        let warden = [PROGRAM, WARDEN, DOORS].map(str::to_owned);
        Ok(match &self.ready {
            ReadyEngine::Bwrap(ready) => {
                let mut argv = vec![text(&ready.program)];
                argv.extend(ready.forbids_namespaces.then(|| "--disable-userns".to_owned()));
                argv.extend(bwrap_options(plan));
                argv.extend(["--chdir", cwd].map(str::to_owned));
                let warden = std::iter::once("--".to_owned()).chain(warden).collect();
                let hidden = facts.hidden_files.iter().cloned().collect();
                EngineCall { argv, hidden, warden, user: ready.user, ..EngineCall::default() }
            }
            ReadyEngine::Landlock(ready) => {
                let ports: Vec<u16> = reach.ports.iter().copied().collect();
                let of = (ports.as_slice(), ready.is_scoped);
                EngineCall {
                    argv: vec![text(&self.program)],
                    hidden: BTreeSet::new(),
                    warden: vec![WARDEN.to_owned(), facts.doors.clone()],
                    user: ready.user,
                    env: Vec::new(),
                    filters: FiltersBy::Warden,
                    landlock: Some(landlock_rules(mode, &reach.net, of, &directories_at_root(), facts)),
                }
            }
            ReadyEngine::Container(ready) => {
                let facts = MountFacts {
                    user: Some(ready.user),
                    top: ready.top.clone(),
                    mounted: mounted()?,
                    client: ready.client,
                    of_user: ready.of_user.clone(),
                };
                let mut argv = vec![text(&ready.program)];
                argv.extend(container_flags(plan, &facts));
                let warden = std::iter::once(ready.image.clone()).chain(warden).collect();
                let env = ready.env.clone();
                EngineCall { argv, warden, env, filters: FiltersBy::Warden, ..EngineCall::default() }
            }
        })
    }

    /// Tells whether actions run as root, without its rights.
    fn is_root(&self) -> bool {
        matches!(&self.ready, ReadyEngine::Container(ready) if ready.user.uid == 0)
    }

    /// Returns what is hidden, and takes what leads there out of the environment.
    fn hidden(
        &self,
        env: &mut BTreeMap<String, String>,
        root: &Path,
        wish: &Wish<'_>,
    ) -> io::Result<(Vec<String>, Vec<String>)> {
        let mut directories = BTreeSet::new();
        let mut files = BTreeSet::new();
        let of_action: Vec<_> = LEADING_OUT.into_iter().filter_map(|name| env.remove(name)).collect();
        for value in of_action.iter().chain(&self.leading_out) {
            // `DOCKER_HOST` and `CONTAINER_HOST` name a socket by an address.
            let path = PathBuf::from(value.strip_prefix("unix://").unwrap_or(value));
            // The runner of GitHub has all of these files in one directory, those of other steps
            // too.
            let is_runners = path.parent().is_some_and(|parent| parent.ends_with("_runner_file_commands"));
            if is_runners {
                directories.extend(path.parent().map(text));
            } else if path.is_absolute() && path.is_file() {
                files.insert(text(&path));
            }
        }
        // Where it is not a link to `/run`, which is empty inside, it has the sockets of services.
        if !Path::new("/var/run").is_symlink() && Path::new("/var/run").is_dir() {
            directories.insert("/var/run".to_owned());
        }
        files.extend(sockets()?.into_iter().filter(|socket| {
            // Sockets of the work are the action's own; the other three places are not those of the machine in a sandbox.
            let inside = [root, wish.run_dir, Path::new("/tmp"), Path::new("/run"), Path::new("/dev")];
            // The table also has sockets whose file was removed, or lies in another mount namespace.
            let is_there = std::fs::symlink_metadata(socket).is_ok();
            is_there && !inside.iter().any(|inside| is_below(socket, &text(inside)))
        }));
        // In a home, credentials are not bound in the first place; in the scope they would be.
        if let Some(home) = self.home.as_deref().filter(|home| home.starts_with(root)) {
            for name in CREDENTIALS {
                let path = home.join(name);
                if path.is_dir() {
                    directories.insert(text(&path));
                } else if path.is_file() {
                    files.insert(text(&path));
                }
            }
        }
        Ok((directories.into_iter().collect(), files.into_iter().collect()))
    }

    /// Returns the directories below the home that programs are started from.
    fn programs(&self, env: &BTreeMap<String, String>) -> Vec<String> {
        let Some(home) = &self.home else { return Vec::new() };
        if self.ready.other_user().is_some() {
            return Vec::new();
        }
        let below = on_path(env).map(Path::new);
        let below = below.filter(|path| path.starts_with(home) && *path != home && path.is_dir());
        let mut programs: BTreeSet<String> = below
            .flat_map(|path| {
                // Programs of Node.js lie in `bin`, and what they are made of in `lib` beside it.
                let beside = path.parent().filter(|_| path.ends_with("bin")).map(|above| above.join("lib"));
                [Some(path.to_owned()), beside.filter(|beside| beside.is_dir())]
            })
            .flatten()
            .map(|path| text(&path))
            .collect();
        // The programs in `~/.cargo/bin` are proxies of rustup, which start those of a toolchain in here.
        let toolchains = home.join(".rustup");
        if toolchains.is_dir() {
            programs.insert(text(&toolchains));
        }
        programs.into_iter().collect()
    }

    /// Returns what the host of a prompt needs of the home, and what is copied into the private one.
    fn of_host(
        &self,
        wish: &Wish<'_>,
        env: &BTreeMap<String, String>,
    ) -> (PlanFacts, Vec<(PathBuf, String)>) {
        let mut facts = PlanFacts::default();
        let (Some(host), Some(home)) = (wish.host.and_then(of_host), &self.home) else {
            return (facts, Vec::new());
        };
        if self.ready.other_user().is_some() {
            return (facts, Vec::new());
        }
        let elsewhere = host.variable.and_then(|name| env.get(name)).map(PathBuf::from);
        let directory = elsewhere.unwrap_or_else(|| home.join(host.directory));
        if directory.is_dir() {
            facts.more.push(text(&directory));
            let protected = host.protected.iter().map(|name| directory.join(name));
            facts.read_again.extend(protected.filter(|path| path.exists()).map(|path| text(&path)));
        }
        let copied = host.copied.map(|name| (home.join(name), name.to_owned()));
        (facts, copied.into_iter().filter(|(from, _)| from.is_file()).collect())
    }

    /// Finds a path that the loop names.
    fn named(&self, path: &str, root: &Path) -> Option<String> {
        let path = match (path.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            (Some(_), None) => return None,
            (None, _) => root.join(path),
        };
        // What is not there need not be hidden, and cannot be bound.
        path.canonicalize().ok().map(|path| text(&path))
    }
}

/// Places of which an action has its own.
const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/run"];

/// Returns the directories on `PATH` that lie in a place of which the action has its own: installers put programs there.
fn programs_elsewhere(env: &BTreeMap<String, String>, root: &Path) -> Vec<String> {
    let is_elsewhere = |directory: &&str| {
        let in_private =
            |place: &&str| directory.trim_end_matches('/') != *place && is_below(directory, place);
        PRIVATE.iter().any(in_private) && !is_below(directory, &text(root)) && Path::new(directory).is_dir()
    };
    on_path(env).filter(is_elsewhere).map(str::to_owned).collect()
}

/// Returns the directories on `PATH`.
fn on_path(env: &BTreeMap<String, String>) -> impl Iterator<Item = &str> {
    env.get("PATH").into_iter().flat_map(|path| path.split(':'))
}

/// Returns what root alone reads in the configuration of the machine: without its rights, root would still read it as the owner
/// of these files. A directory that others may list and not enter, or the reverse, is so as a whole.
fn roots_own(top: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![top.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            let needed = if metadata.is_dir() { 0o005 } else { 0o004 };
            if !metadata.is_symlink() && metadata.mode() & needed != needed {
                found.push(text(&entry.path()));
            } else if metadata.is_dir() {
                open.push(entry.path());
            }
        }
    }
    found
}

/// Writes what git is told to leave out, with what stands in for protected files that are not there. Git reads that in the
/// directory that all working trees of a repository share, wherever it lies, and takes it from the top of each.
fn exclude(root: &Path, masks: &Masks, own: &Path) -> io::Result<Option<(String, String)>> {
    let Some(GitDirectory { root: top, shared, .. }) = gitdir::named(root) else { return Ok(None) };
    let Ok(info) = shared.join("info").canonicalize() else { return Ok(None) };
    if !info.is_dir() {
        return Ok(None);
    }
    let place = info.join("exclude");
    let mut content = match read::bytes(&place, MIB) {
        Ok(content) => content,
        Err(Unread::Absent) => Vec::new(),
        // With an empty file in its place, git inside would see and commit what the user's own leaves out.
        Err(why) => return Err(io::Error::other(format!("{}: {why}", place.display()))),
    };
    let continuation = root.join(CONTINUATION);
    let made = masks.all().chain([&continuation]).filter_map(|path| path.strip_prefix(&top).ok());
    for path in made.filter(|path| !path.starts_with(".git")) {
        content.extend_from_slice(format_line(path).as_bytes());
    }
    let file = own.join("exclude");
    create(&file, content)?;
    fs_err::set_permissions(&file, std::fs::Permissions::from_mode(0o444))?;
    // A mount needs something to lie on.
    if !place.exists() {
        create(&place, "")?;
    }
    Ok(Some((text(&file), text(&place))))
}

/// What an action reaches.
struct SandboxReach {
    net: SandboxNet,
    ports: BTreeSet<u16>,
}

impl SandboxReach {
    /// A prompt always reaches its model, unless the loop says that it reaches nothing.
    fn of(wish: &Wish<'_>, argv: &[String], env: &BTreeMap<String, String>) -> Self {
        let mut ports: BTreeSet<u16> = wish.rules.forward.iter().copied().collect();
        let Some(host) = wish.host else { return Self { net: wish.rules.network(), ports } };
        let base =
            env.iter().filter(|(name, _)| name.ends_with("_BASE_URL")).map(|(_, value)| value.as_str());
        let (mut hosts, mut loopback) = (Vec::new(), Vec::new());
        // A prompt is no argument, so what addresses stand there are ours.
        for text in base.chain(argv.iter().filter(|word| word.contains("base_url")).map(String::as_str)) {
            let (names, more) = addresses(text);
            hosts.extend(names);
            loopback.extend(more);
        }
        ports.extend(&loopback);
        // With an address of its own, such as that of the broker, a call has no use for the vendor's hosts: they stay closed.
        if hosts.is_empty() && loopback.is_empty() {
            let known = of_host(host).into_iter().flat_map(|known| known.model);
            hosts.extend(known.map(ToString::to_string));
        }
        let hosts = hosts.iter().filter_map(|host| HostPattern::parse(host).ok());
        let net = match &wish.rules.net {
            Some(SandboxNet::Hosts(named)) => SandboxNet::Hosts(named.iter().cloned().chain(hosts).collect()),
            Some(net @ (SandboxNet::None | SandboxNet::Any)) => net.clone(),
            None => SandboxNet::Hosts(hosts.collect()),
        };
        Self { net, ports }
    }

    fn hosts(&self) -> Option<Vec<String>> {
        match &self.net {
            SandboxNet::Hosts(hosts) => Some(hosts.iter().map(HostPattern::word).collect()),
            SandboxNet::None | SandboxNet::Any => None,
        }
    }

    /// Tells programs of the proxy.
    fn tell(&self, env: &mut BTreeMap<String, String>) {
        if self.net == SandboxNet::Any {
            return;
        }
        // The proxies of the machine cannot be reached from inside.
        for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
            env.remove(name);
            env.remove(&name.to_uppercase());
        }
        if self.hosts().is_some() {
            for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"] {
                env.insert(name.to_owned(), proxy_address(PROXY_PORT));
            }
            // A server that the action starts listens on the loopback inside, which the proxy outside cannot reach.
            for name in ["no_proxy", "NO_PROXY"] {
                env.insert(name.to_owned(), "127.0.0.1,localhost,::1".to_owned());
            }
        }
    }
}

impl Confined {
    /// Looks at what the action left, before anything else of ours looks at the working tree. Of what came out as errors, the last line
    /// says why a sandbox did not start: nothing of the action was there to print it.
    pub fn end(self, errors: &str) -> ConfinedEnd {
        // First, or the empty files that an engine leaves would be taken for protected files that appeared.
        self.masks.remove();
        let report = read::bytes(&self.report, MIB)
            .ok()
            .and_then(|text| serde_json::from_slice::<GateReport>(&text).ok());
        let failure = match &report {
            Some(GateReport { failure: Some(why), .. }) => Some(why.clone()),
            Some(GateReport { is_started: false, failure: None, .. }) | None => {
                let last = errors.lines().rev().find(|line| !line.trim().is_empty());
                let why = last.map_or_else(String::new, |line| format!(": {}", line.trim()));
                Some(format!("the sandbox did not start, so neither did the action{why}"))
            }
            Some(GateReport { is_started: true, failure: None, .. }) => None,
        };
        let (put_back, not_put_back) = match self.protected.put_back(&self.root, &self.git, &self.aside) {
            Ok(put_back) => (put_back, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        // Without a report, it is the failure that says so.
        let reached = report.into_iter().flat_map(|report| report.reached).collect();
        ConfinedEnd { failure, reached, put_back, not_put_back }
    }

    /// Returns what stands in for protected paths while it runs.
    pub fn masks(&self) -> &Masks {
        &self.masks
    }

    /// Returns how far it is confined.
    pub fn mode(&self) -> SandboxMode {
        self.mode
    }

    /// Returns what of it is enforced.
    pub fn enforced(&self) -> Vec<String> {
        match self.landlock {
            Some(ready) => landlock_rules::enforced(self.mode, &self.net, ready.is_scoped),
            None => plan::enforced(self.mode, &self.net),
        }
    }

    /// Returns what stays open.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = match self.landlock {
            Some(ready) => landlock_rules::left_open(&self.net, ready.is_scoped),
            None => plan::left_open(&self.net),
        };
        if self.protected.is_partial {
            missing.push("protected files deep in a working tree with this many directories".to_owned());
        }
        missing
    }

    /// Returns what confines it.
    pub fn engine(&self) -> SandboxEngine {
        self.engine
    }
}

/// Returns who makes commits, by the configuration of a home that actions do not see.
fn identity_in(home: &Path) -> String {
    // In the order in which git reads them: what the second says wins.
    let texts = [".config/git/config", ".gitconfig"]
        .map(|name| read::text(&home.join(name), MIB).unwrap_or_default());
    identity(&texts.concat())
}

/// Returns the directories of git that commands of git write in a working tree.
fn git_directories(root: &Path) -> Vec<PathBuf> {
    let Some(GitDirectory { own, shared, .. }) = gitdir::named(root) else { return Vec::new() };
    let mut directories: Vec<_> = [shared, own].iter().filter_map(|path| path.canonicalize().ok()).collect();
    // Outside of a linked working tree, both are the same directory.
    directories.dedup();
    directories
}

/// Returns where an agent leaves word for the next session. Where there is no directory for it, the agent makes one.
fn continuation(root: &Path) -> Vec<String> {
    let file = root.join(CONTINUATION);
    file.is_file().then(|| text(&file)).into_iter().collect()
}

/// With the machine's own network, names are resolved by what lies there.
fn kept_of_run(net: &SandboxNet) -> Vec<String> {
    let resolving = (*net == SandboxNet::Any).then_some("/run/systemd/resolve");
    // On NixOS, the programs and drivers of the system are links that lead through these two.
    let kept = ["/run/current-system", "/run/opengl-driver"].into_iter().chain(resolving);
    kept.filter(|path| Path::new(path).exists()).map(str::to_owned).collect()
}

/// Returns the directories at the root.
fn directories_at_root() -> Vec<String> {
    let entries = std::fs::read_dir("/").into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| text(&entry.path())).collect()
}

/// Reads a table of the kernel. Without it, what an action would see is unknown, so the action is not started.
fn table(path: &str) -> io::Result<String> {
    read::text(Path::new(path), LONGEST_TABLE).map_err(io::Error::other)
}

/// Returns the places where something is mounted.
fn mounted() -> io::Result<Vec<String>> {
    let table = table("/proc/self/mountinfo")?;
    let place = |line: &str| {
        // The backslash comes last: replaced earlier, it could begin a code that the kernel did not write.
        let octal = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
        let place = line.split(' ').nth(4)?.to_owned();
        Some(octal.into_iter().fold(place, |place, (code, sign)| place.replace(code, sign)))
    };
    Ok(table.lines().filter_map(place).collect())
}

/// Returns the paths of sockets that somebody listens on, without links: `/var/run` is one on most systems.
fn sockets() -> io::Result<Vec<String>> {
    let table = table("/proc/net/unix")?;
    // Abstract sockets begin with `@`, and others have no name at all.
    let named = table.lines().filter_map(|line| line.find(" /").map(|at| Path::new(&line[at + 1..])));
    let real = |socket: &Path| Some(socket.parent()?.canonicalize().ok()?.join(socket.file_name()?));
    Ok(named.filter_map(real).map(|socket| text(&socket)).collect())
}

fn format_line(path: &Path) -> String {
    // The file of the user that comes before may not end with a line feed.
    format!("\n/{}\n", path.display())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_leaves_out_stays_so_however_it_is_written() {
        let (root, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let place = root.path().join(".git/info/exclude");
        fs_err::create_dir_all(place.parent().unwrap()).unwrap();
        let written = || {
            let (file, _) = exclude(root.path(), &Masks::default(), own.path()).unwrap().unwrap();
            let content = fs_err::read(&file).unwrap();
            fs_err::remove_file(file).unwrap();
            content
        };
        let ours = format_line(Path::new(CONTINUATION));
        assert_eq!(written(), ours.as_bytes());
        fs_err::write(&place, b"caf\xe9/").unwrap();
        assert_eq!(written(), [b"caf\xe9/", ours.as_bytes()].concat());
        fs_err::File::create(&place).unwrap().set_len(MIB + 1).unwrap();
        assert!(exclude(root.path(), &Masks::default(), own.path()).is_err());
    }

    fn git(directory: &Path, arguments: &[&str]) {
        let isolated = [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")];
        let mut command = std::process::Command::new("git");
        command.arg("-C").arg(directory).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
        assert!(command.args(arguments).envs(isolated).output().unwrap().status.success(), "{arguments:?}");
    }

    #[test]
    fn git_leaves_out_what_stands_in_for_files_wherever_its_directory_lies() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        let at = |name: &str| top.join(name);
        fs_err::create_dir_all(at("main")).unwrap();
        git(&at("main"), &["init", "-q", "--separate-git-dir", "../apart"]);
        git(&at("main"), &["commit", "-q", "--allow-empty", "-m", "one"]);
        git(&at("main"), &["worktree", "add", "-q", "../linked"]);
        fs_err::create_dir_all(at("linked/below")).unwrap();
        let place = at("apart/info/exclude");
        fs_err::write(&place, "of-the-user\n").unwrap();
        for (root, mask, line) in [
            ("main", ".npmrc", "\n/.npmrc\n"),
            ("linked", ".npmrc", "\n/.npmrc\n"),
            ("linked/below", ".npmrc", "\n/below/.npmrc\n"),
        ] {
            let own = tempfile::tempdir().unwrap();
            let masks = Masks { files: vec![at(root).join(mask)], directories: Vec::new() };
            let (file, covered) = exclude(&at(root), &masks, own.path()).unwrap().unwrap();
            assert_eq!(covered, text(&place), "{root}");
            let content = fs_err::read_to_string(file).unwrap();
            assert!(content.starts_with("of-the-user\n") && content.contains(line), "{root}: {content}");
            assert_eq!(fs_err::read_to_string(&place).unwrap(), "of-the-user\n", "{root}");
        }
    }

    #[test]
    fn what_others_cannot_read_and_enter_is_roots_own_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["open", "listed", "entered", "closed", "open/listed"] {
            fs_err::create_dir_all(at(name)).unwrap();
            fs_err::write(at(name).join("read"), "").unwrap();
            fs_err::write(at(name).join("own"), "").unwrap();
            fs_err::set_permissions(at(name).join("own"), std::fs::Permissions::from_mode(0o640)).unwrap();
            fs_err::set_permissions(at(name).join("read"), std::fs::Permissions::from_mode(0o644)).unwrap();
        }
        fs_err::os::unix::fs::symlink("open/own", at("link")).unwrap();
        for (name, mode) in [
            ("open", 0o755),
            ("listed", 0o744),
            ("entered", 0o711),
            ("closed", 0o700),
            ("open/listed", 0o754),
        ] {
            fs_err::set_permissions(at(name), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let found: BTreeSet<String> = roots_own(directory.path()).into_iter().collect();
        let expected = ["closed", "entered", "listed", "open/listed", "open/own"];
        assert_eq!(found, expected.into_iter().map(|name| text(&at(name))).collect());
    }
}
