//! What roles may do: what a loop says reaches the host, or is refused before the run.

use super::*;

/// Returns how a host was called the first time for a call.
fn called(project: &Project, call: &str) -> String {
    let index = project.asked().iter().position(|asked| asked == call).unwrap();
    project.read(&format!("calls/{}.argv", index + 1))
}

#[test]
fn tools_of_a_role_reach_its_host() {
    let project = one(
        "roles: {planner: {tools: [Read]}, coder: {tools: [Read, Edit]}, supervisor: {tools: [Grep, Bash]}}",
    );
    project.works(0);
    for (call, tools) in [
        ("plan", "Read"),
        ("implement one", "Read,Edit"),
        ("verify_step one", "Grep,Bash"),
        ("verify_goal", "Grep,Bash"),
    ] {
        let argv = called(&project, call);
        assert!(argv.contains(&format!("\n--tools\n{tools}\n")), "{call}: {argv}");
    }
}

#[test]
fn what_a_host_cannot_do_is_refused_where_it_was_asked_for() {
    for (host, role, is_fine) in [
        ("claude", "coder: {sandbox: read-only}", true),
        ("claude", "supervisor: {sandbox: 'off'}", true),
        ("claude", "supervisor: {sandbox: off}", true),
        ("codex", "coder: {sandbox: workspace}", true),
        ("codex", "planner: {sandbox: read-only}", true),
        ("codex", "tester: {sandbox: read-only}", false),
        ("gemini", "tester: {sandbox: read-only}", true),
        ("codex", "planner: {tools: [Read]}", false),
        ("gemini", "tester: {model: m}", true),
        ("qwen", "supervisor: {sandbox: off}", true),
    ] {
        let project = one(&format!("roles: {{{role}}}\nlimits: {{call_retries: 0}}"));
        fake_host::program(&project, &format!("bin/{host}"), HOST);
        let ran = project.run(&["run", "main", "--no-ci", "--yes", "--host", host]);
        assert_eq!(ran.code == Some(2), !is_fine, "{host} {role}: {}", ran.all());
        if !is_fine {
            assert!(project.asked().is_empty() && ran.stderr.contains(host), "{}", ran.stderr);
        }
    }
}

#[test]
fn a_sandbox_is_a_word_or_says_more() {
    agents("roles: {coder: {sandbox: tight}}").run(&["validate", "main"]).code(2).says("cannot be `tight`");
    agents("roles: {coder: {sandbox: {mode: strict, net: [api.example.com]}}}")
        .run(&["validate", "main"])
        .code(0);
    agents("roles: {tester: {check: 'true', sandbox: read-only}}")
        .run(&["validate", "main"])
        .code(0)
        .says("`sandbox` has no effect beside `check`");
    let project = one("roles: {planner: {sandbox: off}, supervisor: {sandbox: read-only}}");
    let compiled = project.run(&["compile", "main"]).code(0).stdout;
    project.write(".loops/main.yaml", &compiled);
    project.run(&["validate", "main"]).code(0);
    assert_eq!(compiled.matches("sandbox: read-only").count(), 3, "{compiled}");
    project.works(0);
    assert_eq!(project.asked(), ONE);
}

#[test]
fn who_only_looks_edits_nothing_by_default_and_who_works_may() {
    let project = one("");
    project.works(0);
    let (edits, reads) = ("--disallowedTools=", "--tools=");
    for (call, flag) in [
        ("plan", None),
        ("implement one", None),
        ("test one", Some(edits)),
        ("verify_step one", Some(reads)),
        ("verify_goal", Some(reads)),
    ] {
        let argv = called(&project, call);
        for known in [edits, reads] {
            assert_eq!(argv.contains(known), flag == Some(known), "{call}: {argv}");
        }
    }
    let project =
        one("roles: {coder: {sandbox: read-only}, tester: {sandbox: off}, supervisor: {tools: [Bash]}}");
    project.works(0);
    assert!(called(&project, "implement one").contains(reads));
    assert!(
        !called(&project, "test one").contains(edits) && !called(&project, "verify_goal").contains(reads)
    );
}
