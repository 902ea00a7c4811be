//! A plan as flags of docker, or of podman, which takes the same: the same file system, network and processes, in a container
//! whose image is empty.
//!
//! They put mounts together from the outside in, whatever their order, and an older one makes only the top of a bind
//! read-only. So no bind brings along what is mounted below it: each place that was mounted is bound for itself.

use super::order::GateUser;
use super::plan::{Mount, Plan, is_below};

/// What of the machine root's actions see: what everybody may read, and no data of services.
const OF_SYSTEM: [&str; 9] = ["/bin", "/etc", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/sbin", "/usr"];

/// Places that docker makes itself.
const MADE: [&str; 3] = ["/dev", "/proc", "/sys"];

/// The client of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContainerClient {
    /// Docker before 25.
    #[default]
    OldDocker,
    /// Docker from 25 on, where a flag has another name.
    Docker,
    /// Podman.
    Podman,
}

/// What is known of the machine.
#[derive(Clone, Debug, Default)]
pub struct MountFacts {
    /// As whom actions run.
    pub user: Option<GateUser>,
    /// Directories at the root that are no links.
    pub top: Vec<String>,
    /// Places where something is mounted.
    pub mounted: Vec<String>,
    /// The client.
    pub client: ContainerClient,
    /// How the client is told as whom actions run, and what they may take.
    pub of_user: Vec<String>,
}

/// Returns how a client is told as whom actions run. `limits` are those of this process, by name.
pub fn of_user(client: ContainerClient, user: GateUser, limits: &[(&str, String)]) -> Vec<String> {
    let GateUser { uid, gid } = user;
    let mut flags = vec!["--user".to_owned(), format!("{uid}:{gid}")];
    if client == ContainerClient::Podman {
        // By itself it asks for more than this process may have, and puts directories of its own into the container.
        flags.push("--read-only-tmpfs=false".to_owned());
        flags.extend(
            limits.iter().flat_map(|(name, limit)| ["--ulimit".to_owned(), format!("{name}={limit}")]),
        );
    }
    flags
}

/// Returns the options of `docker run` that carry a plan out, without the image.
pub fn container_flags(plan: &Plan, facts: &MountFacts) -> Vec<String> {
    let network = if plan.has_own_net { "none" } else { "host" };
    let mut flags: Vec<String> = [
        "run",
        "--rm",
        "--interactive",
        "--pull",
        "never",
        "--read-only",
        "--ipc",
        "private",
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges",
        // Docker would keep what actions print in files of its own, for as long as the container is there.
        "--log-driver",
        "none",
        "--network",
        network,
    ]
    .map(str::to_owned)
    .to_vec();
    flags.extend(facts.of_user.iter().cloned());
    for mount in settled(plan, facts) {
        flags.extend(["--mount".to_owned(), spelled(&mount, facts.client)]);
    }
    flags
}

/// Writes everything out that a mount of a plan brings along, each place once.
fn settled(plan: &Plan, facts: &MountFacts) -> Vec<Mount> {
    let mut settled: Vec<Mount> = Vec::new();
    for mount in &plan.mounts {
        for one in with_what_is_below(mount, facts) {
            settled.retain(|earlier| !is_below(earlier.place(), one.place()));
            settled.push(one);
        }
    }
    settled
}

fn with_what_is_below(mount: &Mount, facts: &MountFacts) -> Vec<Mount> {
    let is_own = |path: &str| MADE.iter().any(|made| is_below(path, made));
    let below = |path: &str, of: fn(String) -> Mount| {
        let is_in = |place: &&String| place.as_str() != path && is_below(place, path) && !is_own(place);
        let places = facts.mounted.iter().filter(is_in).cloned().map(of);
        std::iter::once(of(path.to_owned())).chain(places).collect()
    };
    match mount {
        Mount::Read(path) if path == "/" => {
            let is_root = facts.user.is_some_and(|user| user.uid == 0);
            let is_seen = |top: &&String| !is_own(top) && (!is_root || OF_SYSTEM.contains(&top.as_str()));
            facts.top.iter().filter(is_seen).flat_map(|top| below(top, Mount::Read)).collect::<Vec<Mount>>()
        }
        Mount::Read(path) => below(path, Mount::Read),
        Mount::Write(path) => below(path, Mount::Write),
        Mount::Devices | Mount::Processes => Vec::new(),
        Mount::ReadAs { .. }
        | Mount::WriteAs { .. }
        | Mount::Empty(_)
        | Mount::Nothing(_)
        | Mount::Mask(_) => {
            vec![mount.clone()]
        }
    }
}

/// Writes a mount as docker reads it: fields of CSV.
fn spelled(mount: &Mount, client: ContainerClient) -> String {
    let alone = match client {
        ContainerClient::Docker => "bind-recursive=disabled",
        ContainerClient::OldDocker | ContainerClient::Podman => "bind-nonrecursive=true",
    };
    let bind = |from: &str, to: &str, is_read: bool| {
        let mut fields =
            vec!["type=bind".to_owned(), format!("source={from}"), format!("target={to}"), alone.to_owned()];
        fields.extend(is_read.then(|| "readonly".to_owned()));
        fields
    };
    let empty = |at: &str, mode: &str| {
        let mut fields = vec!["type=tmpfs".to_owned(), format!("target={at}"), format!("tmpfs-mode={mode}")];
        // By itself it copies what is hidden there into the empty directory.
        fields.extend((client == ContainerClient::Podman).then(|| "notmpcopyup".to_owned()));
        fields
    };
    let fields = match mount {
        Mount::Read(path) => bind(path, path, true),
        Mount::Write(path) => bind(path, path, false),
        Mount::ReadAs { from, to } => bind(from, to, true),
        Mount::WriteAs { from, to } => bind(from, to, false),
        // Root owns it, and the action is somebody else or has no capabilities.
        Mount::Empty(path) | Mount::Nothing(path) | Mount::Mask(path) => empty(path, "0555"),
        Mount::Devices | Mount::Processes => Vec::new(),
    };
    let quoted = |field: &String| {
        if field.contains([',', '"', '\n']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field.clone()
        }
    };
    fields.iter().map(quoted).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(of: &[&str]) -> Vec<String> {
        of.iter().map(ToString::to_string).collect()
    }

    fn facts(uid: u32) -> MountFacts {
        MountFacts {
            user: Some(GateUser { uid, gid: 5 }),
            top: texts(&["/etc", "/home", "/proc", "/srv", "/usr", "/w"]),
            mounted: texts(&["/", "/proc", "/srv/data", "/w/cache", "/w/b/deep"]),
            client: if uid == 1 { ContainerClient::Docker } else { ContainerClient::OldDocker },
            of_user: of_user(ContainerClient::OldDocker, GateUser { uid, gid: 5 }, &[]),
        }
    }

    fn plan(mounts: &[Mount]) -> Plan {
        Plan { mounts: mounts.to_vec(), has_own_net: true }
    }

    fn mounts(flags: &[String]) -> Vec<&str> {
        flags
            .iter()
            .filter(|flag| flag.starts_with("type=") || flag.starts_with('"'))
            .map(String::as_str)
            .collect()
    }

    #[test]
    fn every_place_is_bound_once_and_what_is_mounted_below_for_itself() {
        let write = |path: &str| Mount::Write(path.to_owned());
        let plan = plan(&[
            Mount::Read("/".to_owned()),
            Mount::Devices,
            Mount::Processes,
            write("/w"),
            Mount::Read("/w/.git/hooks".to_owned()),
            Mount::Nothing("/w/b".to_owned()),
        ]);
        let flags = container_flags(&plan, &facts(1000));
        let bind =
            |at: &str, more: &str| format!("type=bind,source={at},target={at},bind-nonrecursive=true{more}");
        let expected = [
            bind("/etc", ",readonly"),
            bind("/home", ",readonly"),
            bind("/srv", ",readonly"),
            bind("/srv/data", ",readonly"),
            bind("/usr", ",readonly"),
            bind("/w", ""),
            bind("/w/cache", ""),
            bind("/w/.git/hooks", ",readonly"),
            "type=tmpfs,target=/w/b,tmpfs-mode=0555".to_owned(),
        ];
        assert_eq!(mounts(&flags), expected);
        assert!(flags.windows(2).any(|two| two == ["--network", "none"]));
        assert!(flags.windows(2).any(|two| two == ["--user", "1000:5"]));
    }

    #[test]
    fn podman_is_told_the_limits() {
        let flags = |client| {
            of_user(client, GateUser { uid: 1000, gid: 5 }, &[("nofile", "1024:4096".to_owned())]).join(" ")
        };
        assert_eq!(flags(ContainerClient::Docker), "--user 1000:5");
        let limits = "--read-only-tmpfs=false --ulimit nofile=1024:4096";
        assert_eq!(flags(ContainerClient::Podman), format!("--user 1000:5 {limits}"));
    }

    #[test]
    fn what_podman_hides_is_not_copied() {
        let facts = MountFacts { client: ContainerClient::Podman, ..facts(1000) };
        let flags = container_flags(&plan(&[Mount::Nothing("/w/b".to_owned())]), &facts);
        assert_eq!(mounts(&flags), ["type=tmpfs,target=/w/b,tmpfs-mode=0555,notmpcopyup"]);
    }

    #[test]
    fn root_sees_no_data_of_services() {
        let flags = container_flags(&plan(&[Mount::Read("/".to_owned())]), &facts(0));
        assert_eq!(mounts(&flags).len(), 2, "{flags:?}");
    }

    #[test]
    fn a_comma_in_a_path_is_no_new_field() {
        let odd = plan(&[Mount::WriteAs { from: "/a,readonly".to_owned(), to: "/t".to_owned() }]);
        let flags = container_flags(&odd, &facts(1));
        assert_eq!(mounts(&flags), ["type=bind,\"source=/a,readonly\",target=/t,bind-recursive=disabled"]);
    }
}
