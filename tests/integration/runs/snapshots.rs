//! Tree snapshots: what they hold, what they leave alone, and when they go. With real repositories.

use std::fs;
use std::process::Command;

use crate::common::{Project, Ran};

const IDENTITY: [&str; 4] = ["-c", "user.name=n", "-c", "user.email=e@example.com"];

fn git(project: &Project, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(IDENTITY).args(arguments).current_dir(project.path());
    let ran = Ran::of(&command.env("HOME", project.path()).output().unwrap());
    assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.all());
    ran.stdout.trim_end().to_owned()
}

/// A repository with one commit of `file`, `.gitignore` and this loop.
fn repository(text: &str) -> Project {
    let project = Project::with_loop(text).file("file", "0\n").file(".gitignore", "*.log\n");
    git(&project, &["init", "-q", "-b", "trunk"]);
    git(&project, &["add", "file", ".gitignore", ".loops/main.yaml"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    project
}

/// Returns the snapshots of steps that there are, by the last part of their names, in the order of git.
fn snapshots(project: &Project) -> Vec<String> {
    let refs = git(project, &["for-each-ref", "--format=%(refname)", "refs/ll-loop/snap/"]);
    let names = refs.lines().map(|name| name.rsplit('/').next().unwrap());
    names.filter(|name| *name != "start").map(str::to_owned).collect()
}

/// Returns the ref of the snapshot before a step.
fn snapshot(project: &Project, step: &str) -> String {
    let refs = git(project, &["for-each-ref", "--format=%(refname)", "refs/ll-loop/snap/"]);
    let found = refs.lines().find(|name| name.ends_with(&format!("/{step}")));
    found.unwrap_or_else(|| panic!("{step}: {refs}")).to_owned()
}

fn content(project: &Project, step: &str, path: &str) -> String {
    git(project, &["cat-file", "-p", &format!("{}:{path}", snapshot(project, step))])
}

const THREE: &str = "name: main\ndescription: d\ninitial: a\nstates:
  a: {action: 'echo 1 > file; echo new > other; echo no > x.log', next: b}
  b: {next: c}
  c: {action: 'rm file; git add -A file other; git -c user.name=n -c user.email=e@x commit -qm more; exit 1', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}\n";

#[test]
fn every_step_has_the_tree_before_it() {
    let project = repository(THREE);
    let first = git(&project, &["rev-parse", "HEAD"]);
    project.run(&["run", "main", "--snapshots"]).code(1);
    assert_eq!(snapshots(&project), ["1", "2", "3", "end"]);
    assert_eq!(content(&project, "1", "file"), "0");
    for step in ["2", "3"] {
        assert_eq!(content(&project, step, "file"), "1");
        assert_eq!(content(&project, step, "other"), "new");
        assert_eq!(git(&project, &["rev-parse", &format!("{}^", snapshot(&project, step))]), first);
    }
    let files = git(&project, &["ls-tree", "-r", "--name-only", &snapshot(&project, "3")]);
    assert_eq!(files, ".gitignore\n.loops/main.yaml\nfile\nother");
    let files = git(&project, &["ls-tree", "-r", "--name-only", &snapshot(&project, "end")]);
    assert_eq!(files, ".gitignore\n.loops/main.yaml\nother");
    let parent = git(&project, &["rev-parse", &format!("{}^", snapshot(&project, "end"))]);
    assert_eq!(parent, git(&project, &["rev-parse", "HEAD"]));
    project.run(&["history", "--prune", "--keep", "0"]).code(0);
    assert!(snapshots(&project).is_empty());
}

#[test]
fn index_head_and_stash_of_the_user_stay_as_they_are() {
    let text = "name: main\ndescription: d\ninitial: a\nstates:
  a: {action: 'echo 1 > file', next: b}
  b: {action: 'echo 2 > file', on_yes: done}
  done: {terminal: true}\n";
    let project = repository(text);
    project.write("file", "stashed\n");
    git(&project, &["stash", "-q"]);
    project.write("staged", "staged\n");
    git(&project, &["add", "staged"]);
    let index = || {
        let path = project.at(".git/index");
        (fs::read(&path).unwrap(), path.metadata().unwrap().modified().unwrap())
    };
    let heads = || git(&project, &["for-each-ref", "refs/heads", "refs/stash"]);
    let before = (index(), heads(), project.read(".git/HEAD"));
    project.run(&["run", "main", "--snapshots"]).code(0);
    assert_eq!(before, (index(), heads(), project.read(".git/HEAD")));
    assert_eq!(content(&project, "2", "staged"), "staged");
}

#[test]
fn a_change_of_the_same_length_in_the_same_second_is_seen() {
    let text = "name: main\ndescription: d\ninitial: a\nmax_iterations: 100\nstates:
  a: {action: 'n=$(($(cat count) + 1)); echo $n > count; echo $n > file; test $n -ge 1100', on_yes: done, on_no: a}
  done: {terminal: true}\n";
    let project = repository(text).file("count", "1000\n");
    project.write("file", "1000\n");
    project.run(&["run", "main", "--snapshots"]).code(0);
    for step in 1..=100 {
        assert_eq!(content(&project, &step.to_string(), "file"), (999 + step).to_string());
    }
}

#[test]
fn what_a_step_only_stages_or_removes_is_seen() {
    let text = "name: main\ndescription: d\ninitial: a\nstates:
  a: {action: 'echo 1 > new; git add new', next: b}
  b: {action: 'rm new; git rm -q --cached new', next: c}
  c: {action: 'true', on_yes: done}
  done: {terminal: true}\n";
    let project = repository(text);
    project.run(&["run", "main", "--snapshots"]).code(0);
    let has = |step: &str| {
        git(&project, &["ls-tree", "-r", "--name-only", &snapshot(&project, step)]).contains("new")
    };
    assert_eq!(["1", "2", "3", "end"].map(has), [false, true, false, false]);
}

#[test]
fn steps_of_sub_loops_have_their_own() {
    let text = "name: main\ndescription: d\ninitial: a\nstates:
  a: {action: 'echo 1 > file', next: b}
  b: {loop: inner, on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}\n";
    let inner = "name: inner\ndescription: d\ninitial: x\nstates:
  x: {action: 'echo 2 > file', next: y}
  y: {action: 'echo 3 > file', on_yes: done}
  done: {terminal: true}\n";
    let project = repository(text).file(".loops/inner.yaml", inner);
    project.run(&["run", "main", "--snapshots"]).code(0);
    assert_eq!(snapshots(&project), ["1", "2", "2.1", "2.2", "end"]);
    let seen = ["1", "2", "2.1", "2.2", "end"].map(|step| content(&project, step, "file"));
    assert_eq!(seen, ["0", "1", "1", "2", "3"]);
}

#[test]
fn without_a_repository_or_a_commit_they_are_refused() {
    let project = Project::with_loop(THREE);
    project.run(&["run", "main", "--snapshots"]).code(2).says("needs a git repository");
    git(&project, &["init", "-q"]);
    project.run(&["run", "main", "--snapshots"]).code(2).says("there is none yet");
    assert!(project.run_files(".events.jsonl").is_empty());
    let project = repository(THREE);
    project.run(&["run", "main"]).code(1);
    assert!(snapshots(&project).is_empty());
}

#[test]
fn a_run_that_goes_on_keeps_them_as_before() {
    let text = "name: main\ndescription: d\ninitial: a\nstates:
  a: {action: 'echo 1 > file', next: b}
  b: {action: 'test -e go || kill -9 $PPID', on_yes: done, on_no: failed, on_error: failed}
  done: {terminal: true}
  failed: {terminal: true}\n";
    let project = repository(text);
    let _killed = project.run(&["run", "main", "--snapshots"]);
    assert_eq!(snapshots(&project), ["1", "2"]);
    project.write("go", "");
    project.run(&["resume", "main"]).code(0);
    assert_eq!(snapshots(&project), ["1", "2", "end"]);
    assert_eq!(content(&project, "2", "go"), "");
}

#[test]
fn what_cannot_be_kept_is_a_warning_and_a_repository_inside_is_none() {
    let text = "name: main\ndescription: d\ninitial: a\nstates:
  a: {action: 'git init -q inner; echo 1 > file; git merge -q side || true', next: b}
  b: {action: 'rm -rf .git', on_yes: done}
  done: {terminal: true}\n";
    let project = repository(text);
    git(&project, &["switch", "-q", "-c", "side"]);
    project.write("file", "side\n");
    git(&project, &["commit", "-q", "-a", "-m", "side"]);
    git(&project, &["switch", "-q", "trunk"]);
    let copy = project.at("copy.git");
    project.write(".git/info/exclude", "copy.git\n");
    let ran = project.run(&["run", "main", "--snapshots"]).code(0);
    assert!(!copy.exists());
    assert!(!ran.all().contains("panicked"));
}

const FAILS: &str = "name: main\ndescription: d\ninitial: a\nstates:
  a: {action: 'printf \"it''s\\n1\\n\" > file; printf \"\\000\\001\" > bin; chmod +x bin; echo $((6 * 7))', capture: answer, next: b}
  b: {action: 'echo deploying; test \"$(cat file)\" = ok && test -n \"$API_TOKEN\" || exit 7', env: {SEEN: '${captured.answer.output} of ${context.who}'}, evaluate: {type: exit_code}, on_yes: done, on_error: failed}
  done: {terminal: true}
  failed: {terminal: true}
context: {who: \"o'neil\"}\n";

/// A shell as a script runs it, with nothing of ours.
fn sh(project: &Project, directory: &std::path::Path, script: &str, env: &[(&str, &str)]) -> Ran {
    project.write("script.sh", script);
    let mut command = project.program("sh", &[&project.at("script.sh").to_string_lossy()]);
    Ran::of(&command.current_dir(directory).envs(env.iter().copied()).output().unwrap())
}

#[test]
fn a_script_makes_the_step_again_in_a_clean_clone() {
    let project = repository(FAILS);
    let clone = project.at("clone");
    git(&project, &["clone", "-q", ".", "clone"]);
    project.write(".git/info/exclude", "clone\nscript.sh\n");
    project.run(&["run", "main", "--snapshots"]).code(1);
    let script = project.run(&["repro", "main", "--script"]).code(0).stdout;
    assert!(script.contains("set -eu"), "{script}");
    assert!(script.contains(": \"${API_TOKEN:?}\""), "{script}");
    assert!(script.contains("export SEEN="), "{script}");
    assert!(script.contains("exit code 7") && script.contains("git version"), "{script}");
    let ran = sh(&project, &clone, &script, &[]);
    assert_ne!(ran.code, Some(7), "{}", ran.all());
    assert!(ran.all().contains("API_TOKEN"), "{}", ran.all());
    let ran = sh(&project, &clone, &script, &[("API_TOKEN", "x")]).code(7);
    assert!(ran.stdout.contains("deploying"), "{}", ran.all());
    let inside = |arguments: &[&str]| git(&project, &[&["-C", "clone"], arguments].concat());
    assert_eq!(inside(&["status", "--porcelain"]), "");
    assert_eq!(inside(&["worktree", "list"]).lines().count(), 1, "it leaves nothing behind");
    let looks =
        script.replace("status=0", "cat file; test -x bin; od -An -tx1 bin; echo \"$SEEN\"; status=0");
    let ran = sh(&project, &clone, &looks, &[("API_TOKEN", "x")]).code(7);
    assert!(ran.stdout.starts_with("it's\n1\n 00 01\n42 of o'neil\n"), "{}", ran.all());
}

#[test]
fn a_worktree_stands_where_the_step_stood_and_is_never_taken_from_who_changed_it() {
    let project = repository(FAILS);
    project.run(&["run", "main", "--snapshots"]).code(1);
    let first = project.run(&["repro", "main"]).code(0).stdout.trim().to_owned();
    let inside = |arguments: &[&str]| git(&project, &[&["-C", &first], arguments].concat());
    assert_eq!(inside(&["rev-parse", "HEAD"]), git(&project, &["rev-parse", "HEAD"]));
    assert_eq!(inside(&["status", "--porcelain"]), " M file\n?? bin");
    assert_eq!(project.run(&["repro", "main", "--step", "2"]).code(0).stdout.trim(), first);
    fs::write(format!("{first}/x.log"), "an ignored file is a change, too").unwrap();
    let second = project.run(&["repro", "main"]).code(0).stdout.trim().to_owned();
    assert_ne!(first, second);
    fs::write(format!("{second}/file"), "same\n").unwrap();
    let third = project.run(&["repro", "main"]).code(0).stdout.trim().to_owned();
    assert!(third != first && third != second);
    assert_eq!(fs::read_to_string(format!("{second}/file")).unwrap(), "same\n");
    assert_eq!(fs::read_to_string(format!("{third}/file")).unwrap(), "it's\n1\n");
    let checkout = git(&project, &["status", "--porcelain", "--", "file", "bin"]);
    assert_eq!(checkout, " M file\n?? bin", "the checkout is as it was");
}

#[test]
fn a_step_without_a_snapshot_names_the_nearest() {
    let project = repository(THREE);
    project.run(&["run", "main", "--snapshots"]).code(1);
    git(&project, &["update-ref", "-d", &snapshot(&project, "2")]);
    let ran = project.run(&["repro", "main", "--step", "2"]).code(2);
    ran.says("no tree snapshot of step 2").says("`--step 1` and `--step 3`");
    project.run(&["repro", "main", "--step", "9"]).code(2).says("has no step 9");
    project.run(&["repro", "main", "--step", "x"]).code(2);
    project.run(&["repro", "nothing"]).code(2);
    let project = repository(THREE);
    project.run(&["run", "main"]).code(1);
    project.run(&["repro", "main"]).code(2).says("a run with `--snapshots` has one of every step");
}

#[test]
fn a_step_of_a_sub_loop_is_made_again() {
    let text = "name: main\ndescription: d\ninitial: a\nstates:
  a: {action: 'echo 1 > file', next: b}
  b: {loop: inner, with: {who: you}, on_yes: done, on_no: failed, on_error: failed}
  done: {terminal: true}
  failed: {terminal: true}\n";
    let inner = "name: inner\ndescription: d\ninitial: x\nparameters: {who: {type: string}}\nstates:
  x: {action: 'echo 2 > file; echo hello ${context.who:shell}', capture: said, next: y}
  y: {action: 'echo ${captured.said.output:shell}; cat file; exit 1', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}\n";
    let project = repository(text).file(".loops/inner.yaml", inner);
    project.run(&["run", "main", "--snapshots"]).code(1);
    project.run(&["repro", "main", "--script"]).code(2).says("runs another loop");
    let script = project.run(&["repro", "main", "--script", "--step", "2.2"]).code(0).stdout;
    let ran = sh(&project, project.path(), &script, &[]).code(1);
    assert!(ran.stdout.ends_with("hello you\n2\n"), "{}", ran.all());
}

/// Copies the one bundle of a report directory into a clone of the repository.
fn bundled(project: &Project, reports: &str) -> Project {
    let mut found = fs::read_dir(project.at(reports)).unwrap().map(|entry| entry.unwrap().path());
    let bundle = found.find(|path| path.extension().is_some_and(|ending| ending == "llz")).unwrap();
    let clone = Project::new();
    fs::remove_dir(clone.at(".loops")).unwrap();
    git(&clone, &["clone", "-q", &project.path().to_string_lossy(), "clone"]);
    fs::rename(clone.at("clone/.git"), clone.at(".git")).unwrap();
    git(&clone, &["reset", "-q", "--hard"]);
    fs::copy(bundle, clone.at("run.llz")).unwrap();
    clone
}

#[test]
fn a_bundle_carries_them_to_another_clone() {
    let project = repository(FAILS);
    project.write(".loops/other.yaml", "name: other\n");
    project.run(&["run", "main", "--snapshots", "--report-dir", "out"]).code(1);
    let clone = bundled(&project, "out");
    assert!(snapshots(&clone).is_empty());
    let script = clone.run(&["repro", "run.llz", "--script"]).code(0).stdout;
    assert!(sh(&clone, clone.path(), &script, &[("API_TOKEN", "x")]).code(7).stdout.contains("deploying"));
    let tree = clone.run(&["repro", "run.llz"]).code(0).stdout.trim().to_owned();
    assert_eq!(fs::read_to_string(format!("{tree}/file")).unwrap(), "it's\n1\n");
    assert!(!fs::exists(format!("{tree}/.loops/other.yaml")).unwrap(), "loops come from the checkout");
}

#[test]
fn a_run_that_goes_on_elsewhere_has_the_snapshots_of_all_its_steps() {
    let text = "name: main\ndescription: d\ninitial: a\nstates:
  a: {action: 'echo 1 > file', next: b}
  b: {action: 'test -e go && exit 0; echo HANDOFF: later', signals: {handoff: 'HANDOFF:'}, on_yes: done, on_no: failed, on_error: failed}
  done: {terminal: true}
  failed: {terminal: true}\n";
    let text = text.replace("signals: {handoff: 'HANDOFF:'}, ", "");
    let project = repository(&text);
    let ran = project.run(&["run", "main", "--snapshots", "--report-dir", "out", "--deadline", "1ms"]);
    assert_eq!(ran.code, Some(75), "{}", ran.all());
    let before = snapshots(&project);
    let clone = bundled(&project, "out");
    clone.write("go", "");
    clone.run(&["resume", "--from", "run.llz"]).code(0);
    let after = snapshots(&clone);
    assert!(before.iter().all(|name| after.contains(name)) && after.contains(&"2".to_owned()), "{after:?}");
}

#[test]
fn a_snapshot_with_a_secret_stays_where_it_is() {
    let text = "name: main\ndescription: d\ninitial: a\nstates:
  a: {action: 'echo \"$MY_TOKEN\" > leaked', next: b}
  b: {action: 'rm leaked; echo 2 > file', next: c}
  c: {action: 'exit 1', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}\n";
    let project = repository(text).env("MY_TOKEN", "geheimes-wort-12345");
    project.run(&["run", "main", "--snapshots", "--report-dir", "out"]).code(1);
    project.run(&["repro", "main", "--step", "2", "--script"]).code(2).says("holds a secret");
    let clone = bundled(&project, "out");
    clone.run(&["repro", "run.llz", "--step", "2"]).code(2).says("no tree snapshot of step 2");
    clone.run(&["repro", "run.llz", "--step", "3"]).code(0);
    // Nor is a path to it one to a loop.
    clone.run(&["repro", "./run.llz", "--step", "3", "--script"]).code(0);
}

#[test]
fn snapshots_of_a_stranger_are_not_believed() {
    let project = repository(FAILS);
    project.run(&["run", "main", "--snapshots", "--report-dir", "out"]).code(1);
    let clone = bundled(&project, "out");
    let refs = git(&clone, &["for-each-ref"]);
    let spoil = |how: &str| {
        let script = format!(
            "import hashlib, json, zipfile\nold = zipfile.ZipFile('run.llz')\nfiles = {{name: old.read(name) for name in old.namelist()}}\nm = json.loads(files['manifest.json'])\nb = files['snapshots.bundle']\n{how}\nfiles['snapshots.bundle'] = b\nfor f in m['files']:\n    if f['name'] == 'snapshots.bundle':\n        f['size'], f['sha256'] = len(b), hashlib.sha256(b).hexdigest()\nfiles['manifest.json'] = json.dumps(m).encode()\nnew = zipfile.ZipFile('spoilt.llz', 'w')\n[new.writestr(name, data) for name, data in files.items()]\nnew.close()\n"
        );
        let made = Ran::of(&clone.program("python3", &["-c", &script]).output().unwrap());
        assert_eq!(made.code, Some(0), "{}", made.all());
        clone.run(&["repro", "spoilt.llz"])
    };
    spoil("pass").code(0);
    let first = "name = sorted(m['snapshots']['refs'])[0]";
    for (how, why) in [
        ("b = b[:-30]", "cannot be used"),
        (
            "b = b.replace(b'refs/ll-loop/snap/2', b'refs/heads/trunk#2')",
            "not the ones that its manifest names",
        ),
        (
            "m['snapshots']['refs']['../../heads/x'] = m['snapshots']['base']",
            "not the name of a tree snapshot",
        ),
        ("m['snapshots']['refs']['2'] = '--upload-pack=x'", "not the id of a git object"),
        (
            &format!(
                "{first}\nold = m['snapshots']['refs'][name]\nbase = m['snapshots']['base']\nm['snapshots']['refs'] = {{k: base for k in m['snapshots']['refs']}}\nb = b.split(b'PACK', 1)\nb = b'# v2 git bundle\\n-' + base.encode() + b' where the run began\\n' + b''.join(base.encode() + b' refs/ll-loop/snap/' + k.encode() + b'\\n' for k in sorted(m['snapshots']['refs'])) + b'\\nPACK' + b[1]"
            ),
            "does not stand on",
        ),
        (
            "b = b.replace(m['snapshots']['base'].encode(), b'1' * 40)\nm['snapshots']['base'] = '1' * 40",
            "not in this clone",
        ),
    ] {
        let ran = spoil(how).code(2);
        assert!(ran.all().contains(why), "{how}: {}", ran.all());
    }
    assert_eq!(git(&clone, &["for-each-ref"]), refs, "repro makes no refs");
}
