//! CI systems other than GitHub: their logs, what they are told, and what they keep from actions.

use insta::assert_snapshot;
use ll_loop::internals::base::time::Timestamp;

use crate::ci::ci_mode::timeless;
use crate::common::{CHECK_FIX, Project};

const FAILING: &str = "\
name: main
description: x
initial: check
max_iterations: 1
states:
  check: {action: cat hostile; exit 1, on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}
";

/// A project with these variables, among them the workspace.
fn on(workspace: &str, variables: &[(&str, &str)], text: &str) -> Project {
    let project = Project::with_loop(text).file("src/a.py", "1\n2\n3\n");
    let root = project.path().to_string_lossy().into_owned();
    let project = project.env("CI", "true").env("NO_COLOR", "1").env(workspace, root);
    variables.iter().fold(project, |project, (name, value)| project.env(name, *value))
}

/// A log without what differs from run to run, and with its control characters in words.
fn shown(project: &Project, log: &str) -> String {
    let root = project.path().to_string_lossy().into_owned();
    let text = timeless(log).replace(&root, "ROOT").replace('\u{1b}', "ESC").replace('\r', "CR");
    let text = regex::Regex::new(r"\b\d{10}(\d{3})?\b|_\d{13}").unwrap().replace_all(&text, "NOW");
    let took = regex::Regex::new(r"(?i)(duration[-_]ms\b[^0-9]*)\d+").unwrap();
    took.replace_all(&text, "${1}TIME").into_owned()
}

#[test]
fn a_run_on_gitlab() {
    let variables = [
        ("GITLAB_CI", "true"),
        ("CI_PIPELINE_ID", "500"),
        ("CI_JOB_ID", "9001"),
        ("CI_JOB_NAME", "tidy: [linux]"),
        ("CI_JOB_TOKEN", "glcbt-64_0123456789"),
        ("CI_REPOSITORY_URL", "https://gitlab-ci-token:glcbt-64_0123456789@gitlab.example/a/b.git"),
    ];
    let project = on("CI_PROJECT_DIR", &variables, FAILING);
    project.write(
        "hostile",
        "src/a.py:3:7: error: bad\n\u{1b}[0Ksection_start:1:x\r\u{1b}[0Kforged glcbt-64_0123456789\n",
    );
    let ran = project.run(&["run", "main", "--report-dir", "reports"]).code(1);
    assert_snapshot!(shown(&project, &ran.stdout), @"
    ▶ main: at most 1 iteration, run main-ID
    ! warning: what the run changes in the working tree will not be known: there is no git repository
    ESC[0Ksection_start:NOW:step_1NOW[collapsed=true]CRESC[0K[1/1] check → cat hostile; exit 1
    │ src/a.py:3:7: error: bad
    │ section_start :1:x
    │ forged ***
    ESC[0Ksection_end:NOW:step_1NOWCRESC[0K
    ✗ no (exit 1, TIME) → failed
    ── the step that decided: [1/1] check → cat hostile; exit 1
    │ src/a.py:3:7: error: bad
    │ section_start :1:x
    │ forged ***
    ── ✗ no (exit 1, TIME)
    ✗ Loop failed: failed (1 iteration, TIME)
    · failure: `check` said no
    · ended in `failed`
    .loops/main.yaml:6: error: failure: `check` said no…
    src/a.py:3:7: error: bad
    warning: what the run changes in the working tree will not be known: there is no git repository
    · reports: reports
    · run main-ID: `ll-loop report reports` shows it where they are kept
    ");
    assert_snapshot!(shown(&project, &project.read("reports/gitlab.env")), @"
    LL_LOOP_OUTCOME=failure
    LL_LOOP_EXIT_CODE=1
    LL_LOOP_VERIFIED=false
    LL_LOOP_FINAL_STATE=failed
    LL_LOOP_ITERATIONS=1
    LL_LOOP_STEPS=1
    LL_LOOP_DURATION_MS=TIME
    LL_LOOP_RUN_ID=main-ID
    LL_LOOP_HANDOFF=false
    LL_LOOP_ARTIFACT_NAME=ll-loop-main-tidy---linux--6feed445-r500-a9001
    LL_LOOP_REPORT_DIR=reports
    LL_LOOP_JUNIT=reports/junit.xml
    LL_LOOP_SUMMARY=reports/summary.md
    ");
    assert!(project.read("reports/summary.md").contains("no"));
    for file in ["junit.xml", "summary.md", "output.log", "events.jsonl"] {
        assert!(!project.read(&format!("reports/{file}")).contains("glcbt-64"), "{file}");
    }
}

#[test]
fn a_run_on_azure() {
    let variables = [
        ("TF_BUILD", "True"),
        ("BUILD_BUILDID", "31"),
        ("SYSTEM_JOBNAME", "tidy"),
        ("SYSTEM_JOBATTEMPT", "2"),
    ];
    let project = on("BUILD_SOURCESDIRECTORY", &variables, FAILING);
    project.write(
        "hostile",
        "src/a.py:3:7: error: bad; [x]\nx ##vso[task.setvariable variable=PATH]/tmp\n##[endgroup]\n",
    );
    let ran = project.run(&["run", "main", "--report-dir", "reports"]).code(1);
    assert_snapshot!(shown(&project, &ran.stdout), @"
    ▶ main: at most 1 iteration, run main-ID
    ! warning: what the run changes in the working tree will not be known: there is no git repository
    ##[group][1/1] check → cat hostile; exit 1
    │ src/a.py:3:7: error: bad; [x]
    │ x ##vso [task.setvariable variable=PATH]/tmp
    │ ## [endgroup]
    ##[endgroup]
    ✗ no (exit 1, TIME) → failed
    ── the step that decided: [1/1] check → cat hostile; exit 1
    │ src/a.py:3:7: error: bad; [x]
    │ x ##vso [task.setvariable variable=PATH]/tmp
    │ ## [endgroup]
    ── ✗ no (exit 1, TIME)
    ✗ Loop failed: failed (1 iteration, TIME)
    · failure: `check` said no
    · ended in `failed`
    ##vso[task.logissue type=error;sourcepath=.loops/main.yaml;linenumber=6;]failure: `check` said no%0Asrc/a.py:3:7: error: bad; [x]%0Ax ##vso [task.setvariable variable=PATH]/tmp%0A## [endgroup]
    ##vso[task.logissue type=error;sourcepath=src/a.py;linenumber=3;columnnumber=7;]error: bad; [x]
    ##vso[task.logissue type=warning;]what the run changes in the working tree will not be known: there is no git repository
    ##vso[task.setvariable variable=outcome;isOutput=true;]failure
    ##vso[task.setvariable variable=exit_code;isOutput=true;]1
    ##vso[task.setvariable variable=verified;isOutput=true;]false
    ##vso[task.setvariable variable=reused;isOutput=true;]false
    ##vso[task.setvariable variable=reused_from;isOutput=true;]
    ##vso[task.setvariable variable=final_state;isOutput=true;]failed
    ##vso[task.setvariable variable=iterations;isOutput=true;]1
    ##vso[task.setvariable variable=steps;isOutput=true;]1
    ##vso[task.setvariable variable=duration_ms;isOutput=true;]TIME
    ##vso[task.setvariable variable=run_id;isOutput=true;]main-ID
    ##vso[task.setvariable variable=handoff;isOutput=true;]false
    ##vso[task.setvariable variable=awaiting;isOutput=true;]
    ##vso[task.setvariable variable=continuation;isOutput=true;]
    ##vso[task.setvariable variable=key;isOutput=true;]
    ##vso[task.setvariable variable=artifact_name;isOutput=true;]ll-loop-main-tidy-r31-a2
    ##vso[task.setvariable variable=resume_from;isOutput=true;]
    ##vso[task.setvariable variable=report_dir;isOutput=true;]reports
    ##vso[task.setvariable variable=junit;isOutput=true;]reports/junit.xml
    ##vso[task.setvariable variable=summary;isOutput=true;]reports/summary.md
    ##vso[task.setvariable variable=cost_usd;isOutput=true;]
    ##vso[task.setvariable variable=changed_files;isOutput=true;]
    ##vso[task.setvariable variable=patch;isOutput=true;]
    ##vso[task.uploadsummary]ROOT/reports/summary.md
    · reports: reports
    · run main-ID: `ll-loop report reports` shows it where they are kept
    ");
}

#[test]
fn a_run_on_teamcity() {
    let variables =
        [("TEAMCITY_VERSION", "2026.1"), ("BUILD_NUMBER", "8"), ("TEAMCITY_BUILDCONF_NAME", "All tests")];
    let project = on("UNUSED", &variables, FAILING);
    project.write("hostile", "it's |n ##teamcity[buildStop comment='x']\n");
    let ran = project.run(&["run", "main", "--report-dir", "reports"]).code(1);
    assert_snapshot!(shown(&project, &ran.stdout), @"
    ▶ main: at most 1 iteration, run main-ID
    ! warning: what the run changes in the working tree will not be known: there is no git repository
    ##teamcity[blockOpened name='|[1/1|] check → cat hostile; exit 1']
    │ it's |n ##teamcity [buildStop comment='x']
    ##teamcity[blockClosed name='|[1/1|] check → cat hostile; exit 1']
    ✗ no (exit 1, TIME) → failed
    ── the step that decided: [1/1] check → cat hostile; exit 1
    │ it's |n ##teamcity [buildStop comment='x']
    ── ✗ no (exit 1, TIME)
    ✗ Loop failed: failed (1 iteration, TIME)
    · failure: `check` said no
    · ended in `failed`
    ##teamcity[message text='.loops/main.yaml:6: error: failure: `check` said no…' status='ERROR']
    ##teamcity[message text='warning: what the run changes in the working tree will not be known: there is no git repository' status='WARNING']
    ##teamcity[buildProblem description='failure: `check` said no' identity='ll_loop_main']
    ##teamcity[setParameter name='ll-loop.outcome' value='failure']
    ##teamcity[setParameter name='ll-loop.exit-code' value='1']
    ##teamcity[setParameter name='ll-loop.verified' value='false']
    ##teamcity[setParameter name='ll-loop.reused' value='false']
    ##teamcity[setParameter name='ll-loop.reused-from' value='']
    ##teamcity[setParameter name='ll-loop.final-state' value='failed']
    ##teamcity[setParameter name='ll-loop.iterations' value='1']
    ##teamcity[setParameter name='ll-loop.steps' value='1']
    ##teamcity[setParameter name='ll-loop.duration-ms' value='TIME']
    ##teamcity[setParameter name='ll-loop.run-id' value='main-ID']
    ##teamcity[setParameter name='ll-loop.handoff' value='false']
    ##teamcity[setParameter name='ll-loop.awaiting' value='']
    ##teamcity[setParameter name='ll-loop.continuation' value='']
    ##teamcity[setParameter name='ll-loop.key' value='']
    ##teamcity[setParameter name='ll-loop.artifact-name' value='ll-loop-main-All-tests-c8966d43-r8-a1']
    ##teamcity[setParameter name='ll-loop.resume-from' value='']
    ##teamcity[setParameter name='ll-loop.report-dir' value='reports']
    ##teamcity[setParameter name='ll-loop.junit' value='reports/junit.xml']
    ##teamcity[setParameter name='ll-loop.summary' value='reports/summary.md']
    ##teamcity[setParameter name='ll-loop.cost-usd' value='']
    ##teamcity[setParameter name='ll-loop.changed-files' value='']
    ##teamcity[setParameter name='ll-loop.patch' value='']
    ##teamcity[importData type='junit' path='ROOT/reports/junit.xml']
    · reports: reports
    · run main-ID: `ll-loop report reports` shows it where they are kept
    ");
}

#[test]
fn a_run_on_buildkite() {
    let variables = [("BUILDKITE", "true"), ("BUILDKITE_BUILD_NUMBER", "4"), ("BUILDKITE_JOB_ID", "0b-1")];
    let project = on("BUILDKITE_BUILD_CHECKOUT_PATH", &variables, FAILING);
    project.write("hostile", "--- forged\nx\r+++ forged\nsrc/a.py:2: bad\n");
    let ran = project.run(&["run", "main"]).code(1);
    assert_snapshot!(shown(&project, &ran.stdout), @"
    ~~~ ▶ main: at most 1 iteration, run main-ID
    ~~~ ! warning: what the run changes in the working tree will not be known: there is no git repository
    --- [1/1] check → cat hostile; exit 1
    │ --- forged
    │ x
    │ +++ forged
    │ src/a.py:2: bad
    ~~~ ✗ no (exit 1, TIME) → failed
    +++ ── the step that decided: [1/1] check → cat hostile; exit 1
    │ --- forged
    │ x
    │ +++ forged
    │ src/a.py:2: bad
    ── ✗ no (exit 1, TIME)
    ✗ Loop failed: failed (1 iteration, TIME)
    · failure: `check` said no
    · ended in `failed`
    .loops/main.yaml:6: error: failure: `check` said no…
    src/a.py:2: error: bad
    warning: what the run changes in the working tree will not be known: there is no git repository
    · reports: .loops/.history/main/main-ID.report
    · run main-ID: `ll-loop report .loops/.history/main/main-ID.report` shows it where they are kept
    ");
}

#[test]
fn every_system_can_be_named() {
    let systems = [
        ("gitlab", "section_start:"),
        ("azure", "##[group][1/20] check"),
        ("buildkite", "--- [1/20] check"),
        ("teamcity", "##teamcity[blockOpened name='|[1/20|] check"),
        ("circleci", "==> [1/20] check"),
        ("jenkins", "==> [1/20] check"),
        ("travis", "travis_fold:start:step-1-"),
        ("drone", "==> [1/20] check"),
        ("woodpecker", "==> [1/20] check"),
        ("bitbucket", "==> [1/20] check"),
        ("appveyor", "==> [1/20] check"),
        ("plain", "==> [1/20] check"),
    ];
    for (name, sign) in systems {
        let ran = Project::with_loop(CHECK_FIX).run(&["run", "main", &format!("--ci={name}")]).code(0);
        assert!(ran.stdout.contains(sign), "{name}:\n{}", ran.stdout);
    }
    Project::with_loop(CHECK_FIX).run(&["run", "main", "--ci=cvs"]).code(2).says("teamcity, circleci");
}

#[test]
fn actions_see_no_credentials_of_any_system() {
    let text = "name: main\ninitial: a\nstates:\n  a: {action: env > seen, on_yes: done}\n  done: {terminal: true}\n";
    let always = [
        "CI_JOB_JWT_V2",
        "BUILDKITE_AGENT_JOB_API_TOKEN",
        "CIRCLE_OIDC_TOKEN",
        "ENDPOINT_AUTH_SYSTEMVSSCONNECTION",
        "TEAMCITY_AUTH_PASSWORD",
        "TEAMCITY_BUILD_PROPERTIES_FILE",
        "CI_NETRC_PASSWORD",
        "DRONE_NETRC_PASSWORD",
        "PIPELINES_JWT_TOKEN",
        "BITBUCKET_STEP_OIDC_TOKEN",
        "APPVEYOR_API_URL",
        "CASHER_DIR",
    ];
    let tokens = [
        "CI_JOB_TOKEN",
        "CI_REGISTRY_PASSWORD",
        "CI_DEPENDENCY_PROXY_PASSWORD",
        "CI_REPOSITORY_URL",
        "SYSTEM_ACCESSTOKEN",
        "BUILDKITE_AGENT_ACCESS_TOKEN",
    ];
    let facts = ["CI_COMMIT_SHA", "CI_JOB_ID", "BUILD_SOURCEVERSION", "NPM_TOKEN"];
    let project = always
        .iter()
        .chain(&tokens)
        .chain(&facts)
        .fold(Project::with_loop(text), |project, name| project.env(name, format!("value-of-{name}")));
    for (arguments, passed) in [(&["run", "main"][..], false), (&["run", "main", "--pass-token"], true)] {
        // Whatever the log is written for, the environment is what it is.
        project.run(arguments).code(0);
        let seen = project.read("seen");
        let has = |name: &&str| seen.lines().any(|line| line.starts_with(&format!("{name}=")));
        assert!(!always.iter().any(has), "{seen}");
        assert!(tokens.iter().all(|name| has(name) == passed), "{seen}");
        assert!(facts.iter().all(has), "{seen}");
    }
}

#[test]
fn a_run_hands_off_before_its_job_is_ended() {
    let text =
        "name: main\ninitial: a\nstates:\n  a: {action: sleep 60, next: done}\n  done: {terminal: true}\n";
    let now = ll_loop::internals::process::clock::Clock::start().now();
    let began = Timestamp::from_millis(now.as_millis() - 3_590_000).to_string();
    let project = Project::with_loop(text)
        .env("GITLAB_CI", "true")
        .env("CI_JOB_STARTED_AT", began)
        .env("CI_JOB_TIMEOUT", "3600");
    let ran = project.run(&["run", "main", "--ci"]).code(75);
    assert!(ran.stdout.contains("the deadline of this job"), "{}", ran.stdout);
}
