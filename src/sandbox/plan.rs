//! What a mode means: the file system, the network and the processes that an action sees, as a list that an engine
//! carries out. Nothing here looks at the machine.

use crate::base::sandbox::{SandboxMode, SandboxNet};

/// Where ll-loop itself is found inside.
pub const PROGRAM: &str = "/run/ll-loop/program";

/// The option by which bubblewrap shows one path at another, to be read alone.
pub const RO_BIND: &str = "--ro-bind";

/// Where the sockets are that lead out.
pub const DOORS: &str = "/run/ll-loop/doors";

/// The port inside at which the proxy is reached.
// The port that is usual for proxies since Squid.
pub const PROXY_PORT: u16 = 3128;

/// A part of the file system that an action sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mount {
    /// What is there outside, read-only.
    Read(String),
    /// What is there outside, to write.
    Write(String),
    /// Something else of outside, read-only.
    ReadAs {
        /// Where it is outside.
        from: String,
        /// Where it is inside.
        to: String,
    },
    /// Something else of outside, to write.
    WriteAs {
        /// Where it is outside.
        from: String,
        /// Where it is inside.
        to: String,
    },
    /// An empty directory of its own.
    Empty(String),
    /// An empty directory in which nothing can be made.
    Nothing(String),
    /// An empty directory in the place of a protected one that is not there. What somebody makes in it by force is gone
    /// with the action.
    Mask(String),
    /// Few harmless devices.
    Devices,
    /// Its own processes.
    Processes,
}

/// What is known of the machine and the working tree. All paths are absolute.
#[derive(Clone, Debug, Default)]
pub struct PlanFacts {
    /// The working tree.
    pub root: String,
    /// The parts of it that may be written.
    pub scope: Vec<String>,
    /// The directories of git that commands of git write.
    pub git: Vec<String>,
    /// The directory of the run for files of its actions.
    pub run_dir: String,
    /// The home of the user.
    pub home: Option<String>,
    /// What lies in it, without what holds credentials.
    pub home_entries: Vec<String>,
    /// What of it programs are started from.
    pub home_programs: Vec<String>,
    /// Directories of programs in places of which an action has its own. The working tree may lie in one of them.
    pub programs: Vec<String>,
    /// The directory that takes the place of the home.
    pub private_home: String,
    /// The directory that takes the place of `/tmp`.
    pub private_tmp: String,
    /// Directories above protected paths, the outermost first.
    pub above_protected: Vec<String>,
    /// Protected paths that are there.
    pub protected: Vec<String>,
    /// Protected files that are not there.
    pub absent_files: Vec<String>,
    /// Protected directories that are not there.
    pub absent_directories: Vec<String>,
    /// What is excluded from the repository, with those; and the file of git that it takes the place of.
    pub exclude: Option<(String, String)>,
    /// Files below protected directories that may be written all the same.
    pub written: Vec<String>,
    /// Directories that are hidden.
    pub hidden_directories: Vec<String>,
    /// Files and sockets that are hidden.
    pub hidden_files: Vec<String>,
    /// Files that the action reads, wherever they are.
    pub read: Vec<String>,
    /// What is read-only in what may be written beyond the scope.
    pub read_again: Vec<String>,
    /// Further paths that may be written.
    pub more: Vec<String>,
    /// An empty file.
    pub blank: String,
    /// The program of ll-loop.
    pub program: String,
    /// The directory of the sockets that lead out.
    pub doors: String,
    /// What has to stay of `/run`.
    pub kept_of_run: Vec<String>,
}

/// What an engine carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The file system, in the order in which it is put together.
    pub mounts: Vec<Mount>,
    /// Whether it has a network of its own.
    pub has_own_net: bool,
}

/// Decides what an action sees.
pub fn plan(mode: SandboxMode, net: &SandboxNet, facts: &PlanFacts) -> Plan {
    // The sockets of services lie in `/run`, those of Docker and systemd among them.
    let mut mounts = vec![Mount::Read("/".to_owned()), Mount::Empty("/run".to_owned())];
    mounts.extend(facts.kept_of_run.iter().cloned().map(Mount::Read));
    for place in ["/tmp", "/var/tmp"] {
        mounts.push(Mount::WriteAs { from: facts.private_tmp.clone(), to: place.to_owned() });
    }
    mounts.extend(home(mode, facts));
    mounts.extend(facts.programs.iter().cloned().map(Mount::Read));
    // After the home, in which a working tree often lies.
    mounts.push(Mount::Read(facts.root.clone()));
    mounts.extend(facts.scope.iter().chain(&facts.git).chain(&facts.more).cloned().map(Mount::Write));
    // Bound onto itself, a directory cannot be renamed with the mounts below it.
    let above = facts.above_protected.iter().filter(|path| facts.is_written(path));
    // Only those: bound in this way, a directory that is read-only would become writable.
    mounts.extend(above.cloned().map(Mount::Write));
    mounts.extend(facts.protected.iter().chain(&facts.read_again).cloned().map(Mount::Read));
    let files = facts.absent_files.iter().filter(|path| facts.is_written(path));
    mounts.extend(files.map(|path| Mount::ReadAs { from: facts.blank.clone(), to: path.clone() }));
    mounts
        .extend(facts.exclude.iter().map(|(from, to)| Mount::ReadAs { from: from.clone(), to: to.clone() }));
    // After the protected directories, in one of which such a file lies.
    mounts.extend(facts.written.iter().cloned().map(Mount::Write));
    mounts.push(Mount::Write(facts.run_dir.clone()));
    // After everything that can be written: what is hidden stays hidden, whatever the scope is.
    mounts.extend(facts.hidden_directories.iter().cloned().map(Mount::Nothing));
    let hidden = facts.hidden_files.iter();
    mounts.extend(hidden.map(|path| Mount::ReadAs { from: facts.blank.clone(), to: path.clone() }));
    mounts.extend(facts.read.iter().cloned().map(Mount::Read));
    let directories = facts.absent_directories.iter().filter(|path| facts.is_written(path));
    mounts.extend(directories.cloned().map(Mount::Mask));
    // For each bind, bubblewrap reads the list of all mounts so far: what brings several and is bound by nobody comes late, but
    // where something of the work lies in it.
    let is_in_system =
        |mount: &Mount| ["/dev", "/proc"].into_iter().any(|place| is_below(mount.place(), place));
    let at = if mounts.iter().any(is_in_system) { 1 } else { mounts.len() };
    mounts.splice(at..at, [Mount::Devices, Mount::Processes]);
    mounts.push(Mount::ReadAs { from: facts.program.clone(), to: PROGRAM.to_owned() });
    mounts.push(Mount::ReadAs { from: facts.doors.clone(), to: DOORS.to_owned() });
    Plan { mounts: uncovered(mounts), has_own_net: *net != SandboxNet::Any }
}

/// Leaves out what a later mount covers as a whole: each one costs an engine time.
fn uncovered(mounts: Vec<Mount>) -> Vec<Mount> {
    let mut kept: Vec<Mount> = Vec::with_capacity(mounts.len());
    for mount in mounts {
        kept.retain(|earlier| !is_below(earlier.place(), mount.place()));
        kept.push(mount);
    }
    kept
}

/// The home: private, with what lies in the user's to read. Strictly, only programs of it are there.
fn home(mode: SandboxMode, facts: &PlanFacts) -> Vec<Mount> {
    let Some(home) = &facts.home else { return Vec::new() };
    let seen = match mode {
        SandboxMode::Strict => &facts.home_programs,
        SandboxMode::Off | SandboxMode::Workspace | SandboxMode::ReadOnly => &facts.home_entries,
    };
    let private = Mount::WriteAs { from: facts.private_home.clone(), to: home.clone() };
    std::iter::once(private).chain(seen.iter().cloned().map(Mount::Read)).collect()
}

impl Mount {
    /// Returns where it is inside.
    pub fn place(&self) -> &str {
        match self {
            Self::Read(path)
            | Self::Write(path)
            | Self::Empty(path)
            | Self::Nothing(path)
            | Self::Mask(path) => path,
            Self::ReadAs { to, .. } | Self::WriteAs { to, .. } => to,
            Self::Devices => "/dev",
            Self::Processes => "/proc",
        }
    }
}

impl PlanFacts {
    fn is_written(&self, path: &str) -> bool {
        let mut written = self.scope.iter().chain(&self.git).chain(&self.more);
        written.any(|writable| is_below(path, writable))
    }
}

/// Tells whether a path is another one or lies below it.
pub fn is_below(path: &str, directory: &str) -> bool {
    // Of `/` nothing is left to compare, so every absolute path is below it.
    let rest = path.strip_prefix(directory.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the options of bubblewrap that carry a plan out.
pub fn bwrap_options(plan: &Plan) -> Vec<String> {
    // A session of its own keeps an action from typing into the terminal of the user.
    let mut options: Vec<String> = [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
    ]
    .map(str::to_owned)
    .to_vec();
    if plan.has_own_net {
        options.push("--unshare-net".to_owned());
    }
    let mut push = |words: &[&str]| options.extend(words.iter().map(|word| (*word).to_owned()));
    for mount in &plan.mounts {
        match mount {
            Mount::Read(path) => push(&[RO_BIND, path, path]),
            Mount::Write(path) => push(&["--bind", path, path]),
            Mount::ReadAs { from, to } => push(&[RO_BIND, from, to]),
            Mount::WriteAs { from, to } => push(&["--bind", from, to]),
            Mount::Empty(path) => push(&["--tmpfs", path]),
            Mount::Nothing(path) => push(&["--tmpfs", path, "--remount-ro", path]),
            // To be made read-only as well would cost as much as a bind.
            Mount::Mask(path) => push(&["--perms", "0555", "--tmpfs", path]),
            Mount::Devices | Mount::Processes => {
                push(&[if *mount == Mount::Devices { "--dev" } else { "--proc" }, mount.place()]);
            }
        }
    }
    options
}

/// Says what a plan of this mode enforces where it is carried out as a whole.
pub fn enforced(mode: SandboxMode, net: &SandboxNet) -> Vec<String> {
    let mut enforced = vec!["writes", "protected files", "processes", "devices", "sockets", "system calls"];
    if mode == SandboxMode::Strict {
        enforced.push("home");
    }
    if *net != SandboxNet::Any {
        enforced.push("network");
    }
    enforced.into_iter().map(str::to_owned).collect()
}

/// Says what stays open.
pub fn left_open(net: &SandboxNet) -> Vec<String> {
    match net {
        SandboxNet::Any => {
            vec!["network: everything that this machine reaches, abstract sockets too".to_owned()]
        }
        SandboxNet::None | SandboxNet::Hosts(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> PlanFacts {
        PlanFacts {
            root: "/w".to_owned(),
            scope: vec!["/w/src".to_owned()],
            git: vec!["/w/.git".to_owned()],
            run_dir: "/w/.loops/.running/x.dir".to_owned(),
            home: Some("/home/me".to_owned()),
            home_entries: vec!["/home/me/.gitconfig".to_owned()],
            home_programs: vec!["/home/me/.cargo/bin".to_owned()],
            above_protected: vec!["/w".to_owned(), "/w/.git".to_owned()],
            protected: vec!["/w/.git/hooks".to_owned(), "/w/.loops".to_owned()],
            absent_files: vec!["/w/.npmrc".to_owned(), "/w/.git/config.worktree".to_owned()],
            absent_directories: vec!["/w/src/.github".to_owned(), "/w/.codex".to_owned()],
            blank: "/t/blank".to_owned(),
            ..PlanFacts::default()
        }
    }

    #[test]
    fn what_is_protected_comes_after_what_may_be_written_and_the_run_last() {
        let plan = plan(SandboxMode::Workspace, &SandboxNet::None, &facts());
        let at = |mount: &Mount| plan.mounts.iter().position(|other| other == mount);
        let write = |path: &str| Mount::Write(path.to_owned());
        let read = |path: &str| Mount::Read(path.to_owned());
        assert!(at(&write("/w/.git")) < at(&read("/w/.git/hooks")));
        assert!(at(&read("/w/.loops")) < at(&write("/w/.loops/.running/x.dir")));
        assert!(at(&write("/w")).is_none(), "the scope is narrower");
        let blank = |path: &str| Mount::ReadAs { from: "/t/blank".to_owned(), to: path.to_owned() };
        assert!(at(&blank("/w/.git/config.worktree")).is_some());
        assert!(at(&blank("/w/.npmrc")).is_none(), "nobody can write there");
        let mask = |path: &str| Mount::Mask(path.to_owned());
        assert!(at(&mask("/w/src/.github")).is_some() && at(&mask("/w/.codex")).is_none());
        assert!(at(&read("/home/me/.gitconfig")).is_some());
        assert!(plan.has_own_net);
    }

    #[test]
    fn work_below_a_directory_of_programs_is_not_covered_by_it() {
        let programs = vec!["/tmp/zz".to_owned(), "/tmp/other/bin".to_owned()];
        let root = "/tmp/zz/w".to_owned();
        let of = PlanFacts { scope: vec![root.clone()], root: root.clone(), programs, ..facts() };
        let plan = plan(SandboxMode::Workspace, &SandboxNet::None, &of);
        let at = |mount: &Mount| plan.mounts.iter().position(|other| other == mount).unwrap();
        let work = at(&Mount::Write(root));
        for programs in ["/tmp/zz", "/tmp/other/bin"] {
            assert!(at(&Mount::Read(programs.to_owned())) < work, "{programs}");
        }
    }

    #[test]
    fn work_in_a_directory_of_devices_is_not_covered_by_them() {
        let with = |root: &str| {
            let of = PlanFacts { root: root.to_owned(), scope: vec![root.to_owned()], ..facts() };
            let plan = plan(SandboxMode::Workspace, &SandboxNet::None, &of);
            let at = |mount: &Mount| plan.mounts.iter().position(|other| other == mount);
            (
                at(&Mount::Devices).unwrap(),
                at(&Mount::Processes).unwrap(),
                at(&Mount::Write(root.to_owned())).unwrap(),
            )
        };
        let (devices, processes, work) = with("/dev/shm/w");
        assert!(devices < work && processes < work);
        let (devices, processes, work) = with("/w");
        assert!(devices > work && processes > work);
    }

    #[test]
    fn strictly_the_home_is_not_there() {
        let plan = plan(SandboxMode::Strict, &SandboxNet::Any, &facts());
        assert!(!plan.mounts.contains(&Mount::Read("/home/me/.gitconfig".to_owned())));
        assert!(plan.mounts.contains(&Mount::Read("/home/me/.cargo/bin".to_owned())));
        assert!(!plan.has_own_net && !bwrap_options(&plan).contains(&"--unshare-net".to_owned()));
    }

    #[test]
    fn what_is_covered_is_not_mounted() {
        let (read, write) =
            (|path: &str| Mount::Read(path.to_owned()), |path: &str| Mount::Write(path.to_owned()));
        let nothing = Mount::Nothing("/w/b".to_owned());
        let mounts = vec![
            read("/"),
            read("/w"),
            write("/w"),
            write("/w/b/c"),
            write("/w/a"),
            read("/w/a"),
            nothing.clone(),
        ];
        assert_eq!(uncovered(mounts), [read("/"), write("/w"), read("/w/a"), nothing]);
    }

    #[test]
    fn a_path_is_below_itself_and_not_below_what_begins_like_it() {
        for (path, directory, expected) in [
            ("/a", "/a", true),
            ("/a/b", "/a", true),
            ("/ab", "/a", false),
            ("/a", "/", true),
            ("/", "/a", false),
        ] {
            assert_eq!(is_below(path, directory), expected, "{path} {directory}");
        }
    }
}
