//! Bubblewrap on this machine, found out by doing it, and what to do where actions cannot be confined.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::bounded_answer::{ANSWER, answer_within};
use super::order::GateUser;
use crate::base::explanation::Explanation;
use crate::base::text::one_line;
use crate::files::read::{self, MIB};

/// The oldest bubblewrap with everything that is asked of it.
const OLDEST: (u32, u32) = (0, 6);

/// The first one that can forbid further user namespaces by itself.
const FORBIDS: (u32, u32) = (0, 8);

/// A bubblewrap that works here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BwrapReady {
    /// The program.
    pub program: PathBuf,
    /// Whether it is asked to forbid further user namespaces. Without, the filter of system calls alone does.
    pub forbids_namespaces: bool,
    /// As whom actions run, where that is somebody else.
    pub user: Option<GateUser>,
}

/// Why actions cannot be confined here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lack {
    /// It is Linux that can.
    #[error("this system is not Linux, and only Linux has what a sandbox is made of")]
    NotLinux,
    /// The program is not there.
    #[error("`bwrap` is not on PATH")]
    Absent,
    /// The program is too old.
    #[error("`{0}` is older than 0.6")]
    Old(String),
    /// Root confines nothing that belongs to root.
    #[error("this is root, and `{0}` belongs to root: inside, the action would have to be its owner")]
    RootOwned(PathBuf),
    /// The user that actions run as cannot get to the working tree.
    #[error("actions run as the owner of the working tree, who may not enter `{0}` above it")]
    Closed(PathBuf),
    /// The system does not let it.
    #[error("bubblewrap cannot start here: {said}")]
    Refused {
        /// What it said.
        said: String,
        /// What keeps it from starting.
        by: RefusedBy,
    },
    /// There is no client of an engine of containers.
    #[error("neither `docker` nor `podman` is on PATH")]
    NoDocker,
    /// An engine of containers does not do what is asked of it.
    #[error("{0} cannot confine actions here: {1}")]
    Docker(&'static str, String),
    /// There is no Landlock, or an older one.
    #[error("Landlock cannot confine actions here: {0}")]
    Landlock(String),
    /// What is private to a run cannot be made.
    #[error("what is private to a run cannot be made: {0}")]
    Unmade(String),
    /// The engine that was asked for is not there.
    #[error("the engine `{0}` cannot confine actions in this version of ll-loop")]
    Engine(&'static str),
}

/// What keeps bubblewrap from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedBy {
    /// AppArmor's rule of Ubuntu 24.04 and later.
    AppArmor,
    /// A setting of the kernel: the one that lets it start.
    Sysctl(&'static str),
    /// A container's own rules.
    Container,
    /// Nothing that is known.
    Unknown,
}

impl Lack {
    /// Returns what to do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::NotLinux => "run it in a Linux container or machine, or write `sandbox: off`".to_owned(),
            Self::Absent => INSTALL.to_owned(),
            Self::Old(_) => format!("{INSTALL}, in a version of 0.6 or later"),
            Self::RootOwned(root) => format!(
                "run it as another user, or give the working tree to one: `chown -R 1000:1000 {}`; or write `engine: container`",
                root.display()
            ),
            Self::Closed(folder) => format!(
                "let others pass through it, `chmod o+x {}`, or put the working tree elsewhere; or write `engine: container`",
                folder.display()
            ),
            Self::Refused { by: RefusedBy::AppArmor, .. } => format!("give bubblewrap a profile: {APPARMOR}"),
            Self::Refused { by: RefusedBy::Sysctl(setting), .. } => format!(
                "let users of this machine make user namespaces: `sudo sysctl -w {setting}`, and the same in a file of \
                 `/etc/sysctl.d` for the next start; for a container, on the machine that it is on"
            ),
            Self::Refused { by: RefusedBy::Container, .. } => {
                "start the container with `docker run --security-opt seccomp=unconfined --security-opt \
                 systempaths=unconfined`, and `apparmor=unconfined` in the same way where AppArmor is on; or write \
                 `engine: landlock`, which leaves more open"
                    .to_owned()
            }
            Self::Refused { by: RefusedBy::Unknown, .. } => {
                "`ll-loop doctor` shows what works here".to_owned()
            }
            Self::NoDocker => "install docker or podman, or write `engine: auto`".to_owned(),
            Self::Docker(..) => {
                "start its service on this machine, and let this user ask it; or write `engine: auto`"
                    .to_owned()
            }
            Self::Landlock(_) => {
                "use a kernel of 6.7 or later that was started with `landlock` among its `lsm`, or write `engine: auto`"
                    .to_owned()
            }
            Self::Unmade(_) => {
                "look at the temporary directory: `TMPDIR`, and the room that is left".to_owned()
            }
            Self::Engine(_) => "write `engine: auto`, or remove the key".to_owned(),
        }
    }
}

const INSTALL: &str = "install it: `sudo apt-get install -y bubblewrap`, `sudo dnf install -y bubblewrap` or `apk add bubblewrap`";

const APPARMOR: &str = "`printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile bwrap /usr/bin/bwrap flags=(unconfined) \
    {\\n  userns,\\n}\\n' | sudo tee /etc/apparmor.d/bwrap && sudo apparmor_parser -r /etc/apparmor.d/bwrap`";

/// Finds out whether bubblewrap confines actions in this working tree.
///
/// # Errors
/// It does not.
pub fn bwrap(root: &Path, path: Option<&str>) -> Result<BwrapReady, Lack> {
    if !cfg!(target_os = "linux") {
        return Err(Lack::NotLinux);
    }
    let program = crate::process::spawn::find("bwrap", path).ok_or(Lack::Absent)?;
    let said = answer_within(Command::new(&program).arg("--version").env_clear(), ANSWER);
    let silent = |why: std::io::Error| Lack::Refused { said: why.to_string(), by: RefusedBy::Unknown };
    let said = one_line(&String::from_utf8_lossy(&said.map_err(silent)?.stdout), 80);
    let version =
        version(&said).filter(|version| *version >= OLDEST).ok_or_else(|| Lack::Old(said.clone()))?;
    let user = user(root)?;
    let with = |forbids_namespaces| BwrapReady { program: program.clone(), forbids_namespaces, user };
    let strict = with(version >= FORBIDS);
    let is_ready = |ready: &BwrapReady| try_out(ready, root);
    match is_ready(&strict) {
        Ok(()) => Ok(strict),
        // The filters of system calls forbid further namespaces as well.
        Err(_) if strict.forbids_namespaces && is_ready(&with(false)).is_ok() => Ok(with(false)),
        Err(why) => Err(match user.and_then(|user| closed_above(root, user)) {
            Some(folder) => Lack::Closed(folder),
            None => Lack::Refused { by: by(why.as_str()), said: why.into() },
        }),
    }
}

/// Returns the outermost folder above a working tree that a user may not enter, as far as its mode says it.
fn closed_above(root: &Path, user: GateUser) -> Option<PathBuf> {
    let root = root.canonicalize().ok()?;
    let above: Vec<&Path> = root.ancestors().skip(1).collect();
    let is_closed = |folder: &&&Path| {
        folder.metadata().is_ok_and(|found| {
            let may_enter = if found.uid() == user.uid {
                0o100
            } else if found.gid() == user.gid {
                0o010
            } else {
                0o001
            };
            found.mode() & may_enter == 0
        })
    };
    above.iter().rev().find(is_closed).map(|folder| folder.to_path_buf())
}

fn version(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.rsplit(' ').next()?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Returns as whom actions run: as root, as the owner of the working tree. An action that stays root reads what root reads.
pub(super) fn user(root: &Path) -> Result<Option<GateUser>, Lack> {
    if !rustix::process::getuid().is_root() {
        return Ok(None);
    }
    match root.metadata() {
        Ok(found) if found.uid() != 0 => Ok(Some(GateUser { uid: found.uid(), gid: found.gid() })),
        Ok(_) | Err(_) => Err(Lack::RootOwned(root.to_owned())),
    }
}

/// Starts something that does nothing in a sandbox with the working tree.
fn try_out(ready: &BwrapReady, root: &Path) -> Result<(), Explanation> {
    let mut command = Command::new(&ready.program);
    // As each run binds it: whoever may not get there cannot.
    let root = root.canonicalize().ok().filter(|root| root.is_dir());
    let tree = root.iter().flat_map(|root| [OsStr::new("--ro-bind"), root.as_os_str(), root.as_os_str()]);
    command
        .args(["--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent"])
        .args(ready.forbids_namespaces.then_some("--disable-userns"))
        .args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"])
        .args(tree)
        .args(["--", "/bin/sh", "-c", ":"])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null());
    if let Some(user) = ready.user {
        command.uid(user.uid).gid(user.gid);
    }
    let output = answer_within(&mut command, ANSWER)?;
    if output.status.success() {
        Ok(())
    } else {
        Err(Explanation::new(one_line(&String::from_utf8_lossy(&output.stderr), 200)))
    }
}

fn by(said: &str) -> RefusedBy {
    // A kernel that does not know a setting does not forbid anything by it.
    let setting = |name: &str| read::text(&Path::new("/proc/sys").join(name), MIB);
    // Settings come before what bubblewrap said: they are certain, and its words are the same for several causes.
    let is = |name: &str, value: &str| setting(name).is_ok_and(|found| found.trim() == value);
    let is_used_up = said.contains("namespaces exceeded");
    if is("kernel/unprivileged_userns_clone", "0") {
        RefusedBy::Sysctl("kernel.unprivileged_userns_clone=1")
    } else if is_used_up || is("user/max_user_namespaces", "0") {
        RefusedBy::Sysctl("user.max_user_namespaces=65536")
    } else if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        RefusedBy::AppArmor
    // Docker's default profile answers `Operation not permitted` to new namespaces.
    } else if said.contains("ermitted") || Path::new("/.dockerenv").exists() {
        RefusedBy::Container
    } else {
        RefusedBy::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_that_cannot_be_started_is_not_an_old_one() {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("bwrap");
        fs_err::write(&program, "#!/nonexistent/interpreter\n").unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs_err::set_permissions(&program, executable).unwrap();
        let lack = bwrap(place.path(), place.path().to_str()).err().unwrap();
        assert!(matches!(lack, Lack::Refused { .. }), "{lack}");
    }

    #[test]
    fn a_folder_that_others_may_not_enter_is_named() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        let (closed, tree) = (top.join("closed"), top.join("closed/open/tree"));
        fs_err::create_dir_all(&tree).unwrap();
        let mode = |mode: u32| {
            let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
            fs_err::set_permissions(&closed, permissions).unwrap();
        };
        // The folder of the test itself is of one user alone.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs_err::set_permissions(&top, open).unwrap();
        let (owner, stranger) = (top.metadata().unwrap(), GateUser { uid: 65_533, gid: 65_533 });
        let owner = GateUser { uid: owner.uid(), gid: owner.gid() };
        mode(0o700);
        assert!(closed_above(&tree, stranger).is_some());
        assert_eq!(closed_above(&tree, owner), None);
        mode(0o711);
        assert_ne!(closed_above(&tree, stranger), Some(closed.clone()));
    }

    #[test]
    fn versions_are_read_and_every_lack_has_a_remedy() {
        assert_eq!(version("bubblewrap 0.8.0"), Some((0, 8)));
        assert_eq!(version("bubblewrap 0.11"), Some((0, 11)));
        assert_eq!(version("nonsense"), None);
        let refused = |by| Lack::Refused { said: "no".to_owned(), by };
        for lack in [
            Lack::NotLinux,
            Lack::Absent,
            Lack::Old("bubblewrap 0.1".to_owned()),
            Lack::RootOwned("/w".into()),
            Lack::Closed("/root".into()),
            refused(RefusedBy::AppArmor),
            refused(RefusedBy::Sysctl("user.max_user_namespaces=65536")),
            refused(RefusedBy::Container),
            refused(RefusedBy::Unknown),
            Lack::Engine("host"),
            Lack::Landlock("no".to_owned()),
            Lack::NoDocker,
            Lack::Docker("docker", "no".to_owned()),
        ] {
            assert!(!lack.remedy().is_empty() && !lack.to_string().is_empty());
        }
    }
}
