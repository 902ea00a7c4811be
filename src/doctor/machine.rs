//! What the system offers to keep agents in: the kernel, Landlock, user namespaces, seccomp, bubblewrap.

use super::program_answers::{self, ToolAnswer};
use super::row::{DoctorRow, RowState};
use crate::base::sandbox::SandboxEngine;
use crate::base::text::one_line;
use crate::context::Session;
use crate::files::links;
use crate::sandbox::engines::{Engines, LandlockReady, ReadyEngine};

const AREA: &str = "machine";

/// The kernels that brought a new version of Landlock's interface.
const LANDLOCK: [((u32, u32), u32); 7] =
    [((6, 15), 7), ((6, 12), 6), ((6, 10), 5), ((6, 7), 4), ((6, 2), 3), ((5, 19), 2), ((5, 13), 1)];

pub(super) fn rows(session: &Session<'_>) -> Vec<DoctorRow> {
    let uname = rustix::system::uname();
    let (system, release) = (uname.sysname().to_string_lossy(), uname.release().to_string_lossy());
    let kernel = format!("{system} {release} {}", uname.machine().to_string_lossy());
    let mut rows = vec![DoctorRow::new(AREA, "kernel", RowState::Fact, one_line(&kernel, 100))];
    if system != "Linux" {
        rows.push(
            DoctorRow::new(
                AREA,
                "sandboxes",
                RowState::Absent,
                "Landlock, user namespaces and seccomp are Linux's",
            )
            .fix("run agents in a container, where they need to be kept in"),
        );
        return rows;
    }
    // By doing it: a container may forbid namespaces by a filter of system calls, which no setting shows.
    let [namespaces, bwrap, confined] = program_answers::all(
        [
            &["unshare", "--user", "--map-root-user", "true"],
            &["bwrap", "--version"],
            &["bwrap", "--unshare-user", "--ro-bind", "/", "/", "true"],
        ],
        session,
    );
    rows.push(landlock(&release, fs_err::read_to_string("/sys/kernel/security/lsm").ok().as_deref()));
    rows.push(user_namespaces(&namespaces));
    rows.push(seccomp());
    rows.push(bubblewrap(bwrap, confined));
    rows.extend(sandboxes(session));
    rows
}

/// Tells which version of Landlock there is: the kernel's list says whether it is on, and its release which version.
fn landlock(release: &str, modules: Option<&str>) -> DoctorRow {
    let row = |state, said: String| DoctorRow::new(AREA, "landlock", state, said);
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    // The newest stands first, so that the first that fits is the latest version.
    let abi = LANDLOCK.iter().find(|(since, _)| version >= *since).map(|(_, abi)| abi);
    let Some(abi) = abi else {
        return row(RowState::Absent, "the kernel is older than 5.13".to_owned())
            .fix("use a kernel of 5.13 or later");
    };
    match modules.map(|modules| modules.trim().split(',').any(|module| module == "landlock")) {
        Some(true) => row(RowState::Works, format!("ABI {abi}, going by the kernel's release")),
        Some(false) => row(RowState::Absent, "the kernel was started without it".to_owned())
            .fix("add `landlock` to `lsm=` on the kernel's command line"),
        None => row(
            RowState::Fact,
            format!("ABI {abi} if it is on; /sys/kernel/security/lsm, which says so, cannot be read here"),
        ),
    }
}

/// Tells whether processes without privileges may make user namespaces, by making one where that is possible.
fn user_namespaces(tried: &ToolAnswer) -> DoctorRow {
    let row = |state, said: String| DoctorRow::new(AREA, "user namespaces", state, said);
    let setting = |name: &str| {
        fs_err::read_to_string(format!("/proc/sys/{name}")).ok().map(|text| text.trim().to_owned())
    };
    let forbidding = [
        ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
        ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or a profile of AppArmor for bwrap",
        ),
    ];
    let forbidden = forbidding.into_iter().find(|(name, value, _)| setting(name).as_deref() == Some(value));
    match (tried, forbidden) {
        // One that was made counts for more than a setting, which may not bind this user.
        (ToolAnswer::Said(_), _) => row(RowState::Works, "one was made".to_owned()),
        (ToolAnswer::Failed(why), None) => row(RowState::Fails, why.clone())
            .fix("in a container, start it with a seccomp profile that allows `unshare`"),
        (ToolAnswer::Failed(_) | ToolAnswer::Absent, Some((name, value, fix))) => {
            row(RowState::Fails, format!("/proc/sys/{name} is {value}")).fix(fix)
        }
        (ToolAnswer::Absent, None) => {
            row(RowState::Fact, "no setting forbids them; without `unshare`, none was made to see".to_owned())
        }
    }
}

fn seccomp() -> DoctorRow {
    match fs_err::read_to_string("/proc/sys/kernel/seccomp/actions_avail") {
        Ok(actions) => DoctorRow::new(AREA, "seccomp", RowState::Works, one_line(&actions, 100)),
        Err(_) => DoctorRow::new(AREA, "seccomp", RowState::Absent, "the kernel names no actions of seccomp")
            .fix("use a kernel with CONFIG_SECCOMP_FILTER"),
    }
}

fn bubblewrap(version: ToolAnswer, confined: ToolAnswer) -> DoctorRow {
    let row = |state, said| DoctorRow::new(AREA, "bwrap", state, said);
    match (version, confined) {
        (ToolAnswer::Said(version), ToolAnswer::Said(_)) => row(RowState::Works, version),
        (ToolAnswer::Said(version), ToolAnswer::Failed(why)) => {
            row(RowState::Fails, format!("{version}, but {why}"))
                .fix("bwrap needs user namespaces, see above")
        }
        (ToolAnswer::Failed(why), _) => row(RowState::Fails, why).fix("install bubblewrap anew"),
        (ToolAnswer::Absent, _) | (_, ToolAnswer::Absent) => {
            row(RowState::Absent, "not on PATH".to_owned()).fix("install the package `bubblewrap`")
        }
    }
}

/// The engines of `sandbox`, but for the host's own, which is tried with the host.
const ENGINES: [SandboxEngine; 3] = [SandboxEngine::Bwrap, SandboxEngine::Container, SandboxEngine::Landlock];

/// Tells which modes of `sandbox` can be had for the loops here, and by which engine, by having each of them: one row for
/// what a loop gets that names none, and one for each engine.
fn sandboxes(session: &Session<'_>) -> Vec<DoctorRow> {
    let root = links::repository(&session.cwd, None);
    let engines = Engines::new(&root, &|name| session.env.get(name).map(str::to_owned));
    let chosen = match engines.ready(SandboxEngine::Auto) {
        Ok(ready) => {
            let said =
                format!("`workspace` and `strict`, by `engine: {}`{}", ready.word().word(), as_whom(&ready));
            DoctorRow::new(AREA, "sandbox", RowState::Works, said)
        }
        Err(lack) => DoctorRow::new(AREA, "sandbox", RowState::Fails, format!("no mode but `off`: {lack}"))
            .fix(lack.remedy()),
    };
    let each = ENGINES.into_iter().map(|engine| {
        let name = format!("engine: {}", engine.word());
        match engines.ready(engine) {
            Ok(ready) => DoctorRow::new(
                AREA,
                name,
                RowState::Works,
                format!("{}{}", enforces(&ready), as_whom(&ready)),
            ),
            Err(lack) => DoctorRow::new(AREA, name, RowState::Absent, lack.to_string()).fix(lack.remedy()),
        }
    });
    std::iter::once(chosen).chain(each).collect()
}

fn as_whom(ready: &ReadyEngine) -> String {
    ready.other_user().map(|user| format!(", as the user {}", user.uid)).unwrap_or_default()
}

/// Says what an engine enforces, and what it leaves open.
fn enforces(ready: &ReadyEngine) -> &'static str {
    match ready {
        ReadyEngine::Bwrap(_) | ReadyEngine::Container(_) => "all of `workspace` and `strict`",
        ReadyEngine::Landlock(LandlockReady { is_scoped: true, .. }) => {
            "`workspace` in part: protected files, the network and sockets stay open; only where a loop names it"
        }
        ReadyEngine::Landlock(LandlockReady { is_scoped: false, .. }) => {
            "`workspace` in part: protected files, the network, sockets and signals stay open; only where a loop names it"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn landlock_goes_by_the_kernel_and_its_list() {
        let lists = Some("lockdown,capability,landlock,yama\n");
        for (release, modules, expected) in [
            ("6.8.0-45-generic", lists, "works ABI 4, going by the kernel's release"),
            ("6.15.1", lists, "works ABI 7, going by the kernel's release"),
            ("5.13", lists, "works ABI 1, going by the kernel's release"),
            ("5.10.0", lists, "absent the kernel is older than 5.13"),
            ("", None, "absent the kernel is older than 5.13"),
            ("6.1.0", Some("capability,yama"), "absent the kernel was started without it"),
        ] {
            let row = landlock(release, modules);
            assert_eq!(format!("{} {}", row.state.word(), row.said), expected, "{release}");
        }
        assert_eq!(landlock("6.1.0", None).state, RowState::Fact);
    }
}
