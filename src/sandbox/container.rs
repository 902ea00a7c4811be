//! Docker or Podman as an engine: whether it answers, whether it sees the files of this machine, and its empty image.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Resource, getrlimit};

use super::bounded_answer::{ANSWER, WORK, answer_within};
use super::capability::Lack;
use super::container_flags::{ContainerClient, of_user};
use super::order::GateUser;
use crate::base::text::one_line;
use crate::files::transient;
use crate::process::spawn;

/// Variables by which its client finds the engine.
pub const OF_CLIENT: [&str; 12] = [
    "PATH",
    "HOME",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_TLS_VERIFY",
    "DOCKER_CERT_PATH",
    "DOCKER_API_VERSION",
    "CONTAINER_HOST",
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "XDG_RUNTIME_DIR",
];

/// The name of the image. It has nothing but the directories and links at the root, to which the machine's own are bound.
const IMAGE: &str = "ll-loop-sandbox";

/// What podman sets for itself, and cannot raise where it has no right to.
const MOST_FILES: u64 = 1 << 20;
const MOST_PROCESSES: u64 = 1 << 15;

/// An engine of containers that works here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerReady {
    /// Its client.
    pub program: PathBuf,
    /// The image.
    pub image: String,
    /// The environment of its client.
    pub env: Vec<(String, String)>,
    /// As whom actions run: the owner of the working tree.
    pub user: GateUser,
    /// Directories at the root that are no links.
    pub top: Vec<String>,
    /// Which client it is.
    pub client: ContainerClient,
    /// How it is told as whom actions run.
    pub of_user: Vec<String>,
}

/// Finds out whether docker, or podman in its place, confines actions in this working tree, by letting it.
///
/// # Errors
/// It does not.
pub fn container(root: &Path, env: &[(String, String)]) -> Result<ContainerReady, Lack> {
    if !cfg!(target_os = "linux") {
        return Err(Lack::NotLinux);
    }
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
    // Without root, it maps users in ways that were not tried.
    let podman = spawn::find("podman", path).filter(|_| rustix::process::getuid().is_root());
    match (spawn::find("docker", path), podman) {
        (None, None) => Err(Lack::NoDocker),
        (None, Some(podman)) => asked(podman, "podman", root, env),
        (Some(docker), None) => asked(docker, "docker", root, env),
        (Some(docker), Some(podman)) => asked(docker, "docker", root, env)
            // Docker would be taken first, so its reason is the one to mend.
            .or_else(|lack| asked(podman, "podman", root, env).map_err(|_| lack)),
    }
}

/// Finds out whether one of them does.
fn asked(
    program: PathBuf,
    name: &'static str,
    root: &Path,
    env: &[(String, String)],
) -> Result<ContainerReady, Lack> {
    let client = ClientCall { program: &program, env };
    let failed = |error: &io::Error| Lack::Docker(name, one_line(&error.to_string(), 300));
    let owner = root.metadata().map_err(|error| failed(&error))?;
    let me = GateUser { uid: rustix::process::getuid().as_raw(), gid: rustix::process::getgid().as_raw() };
    let user = if me.uid == 0 { GateUser { uid: owner.uid(), gid: owner.gid() } } else { me };
    let Top { directories, links } = Top::look().map_err(|error| failed(&error))?;
    let kind = client.kind(name).map_err(|error| failed(&error))?;
    let limits = [("nofile", Resource::Nofile, MOST_FILES), ("nproc", Resource::Nproc, MOST_PROCESSES)];
    let limits = limits.map(|(name, resource, most)| (name, own_limit(resource, most)));
    let of_user = of_user(kind, user, &limits);
    let image = client.image(&directories, &links).map_err(|error| failed(&error))?;
    client.try_out(&image, &of_user).map_err(|error| failed(&error))?;
    Ok(ContainerReady { program, image, env: env.to_vec(), user, top: directories, client: kind, of_user })
}

/// Returns what this process may take, and no more than podman lets itself have.
fn own_limit(resource: Resource, most: u64) -> String {
    let limit = getrlimit(resource);
    let own = limit.current.unwrap_or(most).min(limit.maximum.unwrap_or(most)).min(most);
    format!("{own}:{own}")
}

/// What lies at the root.
struct Top {
    directories: Vec<String>,
    links: Vec<String>,
}

impl Top {
    fn look() -> io::Result<Self> {
        let (mut directories, mut links) = (BTreeSet::new(), BTreeSet::new());
        for entry in fs_err::read_dir("/")?.flatten() {
            let Some(name) = entry.file_name().to_str().map(|name| format!("/{name}")) else { continue };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && name != "/lost+found" => directories.insert(name),
                Ok(kind) if kind.is_symlink() => links.insert(name),
                Ok(_) | Err(_) => false,
            };
        }
        Ok(Self { directories: directories.into_iter().collect(), links: links.into_iter().collect() })
    }
}

/// A client, and its environment.
struct ClientCall<'c> {
    program: &'c Path,
    env: &'c [(String, String)],
}

impl ClientCall<'_> {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        command
            .args(arguments)
            .env_clear()
            .envs(self.env.iter().cloned())
            .current_dir("/")
            .stdin(Stdio::null());
        command
    }

    fn ask(&self, arguments: &[&str]) -> io::Result<String> {
        said(&answer_within(&mut self.command(arguments), ANSWER)?)
    }

    /// Asks which client it is, and whether its engine answers.
    fn kind(&self, name: &str) -> io::Result<ContainerClient> {
        if name == "podman" {
            return self
                .ask(&["version", "--format", "{{.Client.Version}}"])
                .map(|_| ContainerClient::Podman);
        }
        // Without a server there is nothing to say of it, which is an error.
        let versions = self.ask(&["version", "--format", "{{.Client.Version}} {{.Server.Version}}"])?;
        // From 25 on, `bind-recursive` says what `bind-nonrecursive` said before.
        let major = versions.split('.').next().and_then(|major| major.parse().ok());
        let is_recent = major.is_some_and(|major: u32| major >= 25);
        Ok(if is_recent { ContainerClient::Docker } else { ContainerClient::OldDocker })
    }

    /// Returns the image, which is made where it is not there. Its name says what lies at the root.
    fn image(&self, directories: &[String], links: &[String]) -> io::Result<String> {
        let names: Vec<&str> =
            directories.iter().chain(links).map(|name| name.trim_start_matches('/')).collect();
        let digest = crate::base::sum::Sum::of(names.join("\n").as_bytes()).to_string();
        let image = format!("{IMAGE}:{}", digest.get(..12).unwrap_or("latest"));
        if self.ask(&["image", "inspect", "--format", "{{.Id}}", &image]).is_ok() {
            return Ok(image);
        }
        // `import` makes an image of a tar, so no registry is asked for one and nothing is built.
        let mut tar = Command::new("tar")
            .args(["-C", "/", "--no-recursion", "-cf", "-", "--"])
            .args(&names)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let packed = tar.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let made = answer_within(self.command(&["import", "-", &image]).stdin(packed), WORK);
        let _reaped = tar.wait();
        said(&made?)?;
        Ok(image)
    }

    /// Lets a container see a file of this machine: an engine elsewhere has others.
    fn try_out(&self, image: &str, of_user: &[String]) -> io::Result<()> {
        let seen = transient::directory("ll-seen-")?;
        let mount = |at: &str| format!("type=bind,source={at},target={at},readonly");
        let directory = seen.path().to_string_lossy().into_owned();
        fs_err::create_dir(seen.path().join("of-this-machine"))?;
        // The container may be of another user, who has to look into it.
        fs_err::set_permissions(seen.path(), std::fs::Permissions::from_mode(0o755))?;
        // `--pull never`: no registry is asked for an image of this name, which anybody could have
        // put there.
        let mut arguments =
            vec!["run", "--rm", "--pull", "never", "--network", "none", "--read-only", "--cap-drop", "ALL"];
        arguments.extend(of_user.iter().map(String::as_str));
        arguments.extend(["--log-driver", "none", "--mount"]);
        let shown = format!("type=bind,source={directory},target=/mnt,readonly");
        arguments.push(&shown);
        // The image is empty, and the shell of the trial needs its libraries.
        let needed: Vec<String> = ["/bin", "/lib", "/lib64", "/usr"]
            .into_iter()
            .filter(|place| Path::new(place).is_dir() && !Path::new(place).is_symlink())
            .map(mount)
            .collect();
        for place in &needed {
            arguments.extend(["--mount", place]);
        }
        arguments.extend([image, "/bin/sh", "-c", "test -d /mnt/of-this-machine"]);
        let output = answer_within(&mut self.command(&arguments), WORK)?;
        match (output.status.code(), said(&output)) {
            // The answer of `test`: what fails in a client or an engine ends with 125 or more.
            (Some(1), _) => Err(io::Error::other("it does not see the files of this machine")),
            (_, said) => said.map(drop),
        }
    }
}

fn said(output: &Output) -> io::Result<String> {
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(io::Error::other(one_line(&String::from_utf8_lossy(&output.stderr), 300)))
    }
}
