//! Actions that Landlock alone confines: what it prevents, what is found afterwards, and that the rest is said. Where the
//! kernel has no Landlock, this says so and passes.

use std::fmt::Write as _;
use std::net::TcpListener;

use super::{As, Outside, confined, give_away, one, output_of, possible, project, run_as};
use crate::common::{Project, Ran, git};

const ENGINE: &str = "{engine: landlock}";

/// Runs one action; nothing where the kernel has no Landlock that is new enough.
#[allow(
    clippy::print_stderr,
    reason = "whoever reads the log of the tests has to see that these tried nothing"
)]
fn ran(project: &Project, who: As) -> Option<Ran> {
    give_away(project);
    let ran = run_as(project.command(&["run", "main", "--no-ci"]), who);
    if ran.all().contains("Landlock cannot confine actions here") {
        eprintln!("SKIPPED: THE KERNEL HAS NO LANDLOCK OF 6.7 OR LATER, SO NOTHING OF IT IS TESTED");
        return None;
    }
    Some(ran)
}

#[test]
fn landlock_keeps_writes_and_connections_in_and_says_what_it_leaves() {
    for who in possible() {
        let server = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        let mut outside = Outside::new();
        let out = outside.path().to_string_lossy().into_owned();
        let tries = [
            format!("echo x > {out}/new"),
            format!("echo x > {out}/file"),
            format!("rm {out}/file"),
            format!("mv {out}/file {out}/other"),
            format!("ln {out}/file src/linked && echo x > src/linked"),
            format!("truncate -s 0 {out}/file"),
            "echo x > /tmp/of-others".to_owned(),
            "echo x > /etc/of-others".to_owned(),
            format!("cat {out}/home/.ssh/id"),
            format!("exec 3<> /dev/tcp/127.0.0.1/{port}"),
            format!("kill -0 {}", std::process::id()),
            "unshare -U true".to_owned(),
            "cat /run/* /root/.bash_history".to_owned(),
        ];
        let mut script = String::new();
        for attempt in &tries {
            writeln!(
                script,
                "if ({attempt}) > /dev/null 2>&1; then echo 'OPEN {attempt}'; else echo denied; fi"
            )
            .unwrap();
        }
        script.push_str("echo more >> src/work.txt; git add -A; git commit -qm one; echo of-tmp > $TMPDIR/x; cat $TMPDIR/x\n");
        script.push_str(
            "setsid sh -c 'while :; do date > alive; sleep 0.1; done' > /dev/null 2>&1 &\nsleep 0.3\n",
        );
        let project = project(&one(ENGINE, &script));
        give_away(&project);
        let mut command = project.command(&["run", "main", "--no-ci"]);
        command.env("HOME", format!("{out}/home"));
        let ran = run_as(command, who);
        if ran.all().contains("Landlock cannot confine actions here") {
            return;
        }
        let output = output_of(&project);
        let open: Vec<_> = output.lines().filter(|line| line.starts_with("OPEN")).collect();
        assert!(open.is_empty(), "{who:?}: {open:?}");
        assert!(output.contains("of-tmp"), "{output}");
        assert!(git(&project, &["-c", "safe.directory=*", "log", "--oneline"]).contains("one"), "{output}");
        assert!(outside.is_as_it_was(), "{who:?}");
        let before = project.read("alive");
        std::thread::sleep(std::time::Duration::from_millis(1500));
        assert_eq!(project.read("alive"), before, "a daemon outlives its action");
        let [event] = &confined(&project)[..] else { panic!("{:?}", confined(&project)) };
        assert_eq!(event["engine"], "landlock");
        let missing = event["missing"].to_string();
        assert!(missing.contains("Docker") && missing.contains("UDP"), "{missing}");
    }
}

#[test]
fn a_protected_file_that_landlock_cannot_protect_is_put_back() {
    for who in possible() {
        let attack = "echo evil > .github/workflows/ci.yml; rm -r .git/hooks; git config core.fsmonitor evil; mkdir -p a/.claude; echo x > a/.claude/x";
        let project = project(&one(ENGINE, attack));
        project.write(".git/hooks/pre-commit", "kept\n");
        let Some(ran) = ran(&project, who) else { return };
        assert_eq!(project.end()["final_state"], "broken", "{}", ran.all());
        assert_eq!(project.read(".github/workflows/ci.yml"), "on: push\n");
        assert_eq!(project.read(".git/hooks/pre-commit"), "kept\n");
        assert!(!project.read(".git/config").contains("fsmonitor") && !project.exists("a/.claude"));
    }
}

#[test]
fn landlock_hides_nothing_and_does_not_begin_where_it_should() {
    let project = project(&one("{engine: landlock, hide: [secrets]}", "touch ran"));
    project.run(&["run", "main", "--no-ci"]).code(69).says("hides paths, which Landlock cannot do");
    assert!(!project.exists("ran"));
}
