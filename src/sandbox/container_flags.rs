//! A plan as flags of docker: the same file system, network and processes, in a container whose image is empty.
//!
//! Docker puts mounts together from the outside in, whatever their order, and an older one makes only the top of a bind
//! read-only. So no bind brings along what is mounted below it: each place that was mounted is bound for itself.

use super::order::GateUser;
use super::plan::{Mount, Plan, is_below};

/// What of the machine root's actions see: what everybody may read, and no data of services.
const OF_SYSTEM: [&str; 9] = ["/bin", "/etc", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/sbin", "/usr"];

/// Places that docker makes itself.
const MADE: [&str; 3] = ["/dev", "/proc", "/sys"];

/// What is known of the machine.
#[derive(Clone, Debug, Default)]
pub struct MountFacts {
    /// As whom actions run.
    pub user: Option<GateUser>,
    /// Directories at the root that are no links.
    pub top: Vec<String>,
    /// Places where something is mounted.
    pub mounted: Vec<String>,
    /// Whether the client is of 25 or later, where a flag has another name.
    pub is_recent: bool,
}

/// Returns the options of `docker run` that carry a plan out, without the image.
pub fn container_flags(plan: &Plan, facts: &MountFacts) -> Vec<String> {
    let user = facts.user.unwrap_or(GateUser { uid: 65534, gid: 65534 });
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
        "--log-driver",
        "none",
        "--network",
        network,
        "--user",
    ]
    .map(str::to_owned)
    .to_vec();
    flags.push(format!("{}:{}", user.uid, user.gid));
    for mount in settled(plan, facts) {
        flags.extend(["--mount".to_owned(), spelled(&mount, facts.is_recent)]);
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
fn spelled(mount: &Mount, is_recent: bool) -> String {
    let alone = if is_recent { "bind-recursive=disabled" } else { "bind-nonrecursive=true" };
    let bind = |from: &str, to: &str, is_read: bool| {
        let mut fields =
            vec!["type=bind".to_owned(), format!("source={from}"), format!("target={to}"), alone.to_owned()];
        fields.extend(is_read.then(|| "readonly".to_owned()));
        fields
    };
    let empty = |at: &str, mode: &str| {
        ["type=tmpfs".to_owned(), format!("target={at}"), format!("tmpfs-mode={mode}")].to_vec()
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
            is_recent: uid == 1,
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
