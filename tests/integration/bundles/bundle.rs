//! A run that goes on in another checkout: its files and its tree come along, and nothing is taken on trust.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::ci::reported::Github;
use crate::common::{Project, Ran, signal};

/// Changes the tree in every way there is, waits in the middle, and goes on.
const LOOP: &str = r#"
name: main
initial: change
on_change: report
states:
  change:
    action: |
      echo changed >> tracked
      git rm -q gone
      mkdir -p "new dir"; printf '\000\001binary' > "new dir/ünïcode"
      ln -s tracked link
      echo '#!/bin/sh' > tool; chmod +x tool
      echo staged > staged; git add staged; echo more >> staged
      echo secret-free > "$LL_RUN_DIR/mine"
      echo ignored > x.tmp
      echo kept
    capture: kept
    next: wait
  wait: {action: 'echo "$LL_STEP_KEY" >> keys; touch begun; while ! test -f ../go && test -d "$PWD"; do sleep 0.02; done; rm -f begun', next: last}
  last:
    action: 'cat "$LL_RUN_DIR/mine"; echo "${captured.kept.output}"; test -x tool && test -L link && test ! -e gone'
    check: true
    on_yes: done
    on_no: failed
  done: {terminal: true}
  failed: {terminal: true}
"#;

/// Two checkouts of one commit, below one directory.
pub(crate) struct Checkouts(Project);

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Checkouts {
    fn of(text: &str) -> Self {
        let project = Project::new();
        fs::create_dir_all(project.at("one/.loops")).unwrap();
        git(&project.at("one"), &["init", "-q"]);
        for (path, text) in
            [(".loops/main.yaml", text), ("tracked", "as it was\n"), ("gone", ""), (".gitignore", "*.tmp\n")]
        {
            project.write(&format!("one/{path}"), text);
        }
        git(&project.at("one"), &["add", "-A"]);
        git(&project.at("one"), &["commit", "-q", "-m", "first"]);
        git(project.path(), &["clone", "-q", "one", "two"]);
        // As in CI, where the checkout has a server to come from.
        git(&project.at("one"), &["remote", "add", "origin", "https://github.com/o/r"]);
        git(&project.at("two"), &["remote", "set-url", "origin", "git@github.com:o/r.git"]);
        Self(project)
    }

    fn command(&self, checkout: &str, arguments: &[&str]) -> Command {
        let mut command = self.0.command(arguments);
        command.current_dir(self.0.at(checkout));
        command
    }

    fn run(&self, checkout: &str, arguments: &[&str]) -> Ran {
        Ran::of(&self.command(checkout, arguments).output().unwrap())
    }

    /// Runs in the first checkout until the loop waits, and ends it there.
    fn left(&self, with: Signal) {
        let child = self
            .command("one", &["run", "--ci=plain", "main"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        crate::common::wait_for(|| self.0.exists("one/begun"));
        signal(&child, with);
        let _ended = child.wait_with_output().unwrap();
        self.0.write("go", "");
    }

    fn bundle(&self) -> PathBuf {
        let running =
            fs::read_dir(self.0.at("one/.loops/.running")).unwrap().map(|entry| entry.unwrap().path());
        let report =
            running.into_iter().find(|path| path.extension().is_some_and(|end| end == "report")).unwrap();
        let mut files = fs::read_dir(report).unwrap().map(|entry| entry.unwrap().path());
        files.find(|path| path.extension().is_some_and(|end| end == "llz")).unwrap()
    }

    fn resume(&self, more: &[&str]) -> Ran {
        let bundle = self.bundle();
        self.run("two", &[&["resume", "--ci=plain", "--from", bundle.to_str().unwrap()], more].concat())
    }

    fn status(&self, checkout: &str) -> String {
        let all = git(&self.0.at(checkout), &["status", "--porcelain", "--untracked-files=all"]);
        all.lines().filter(|line| !line.contains(".loops")).fold(String::new(), |all, line| all + line + "\n")
    }
}

#[test]
fn a_run_goes_on_in_another_checkout_with_its_tree() {
    let both = Checkouts::of(LOOP);
    both.left(Signal::TERM);
    let at_the_end = both.status("one").replace("?? begun\n", "");
    let ran = both.resume(&[]).code(0);
    assert!(ran.stderr.contains("took over main-"), "{}", ran.all());
    assert!(ran.stdout.contains("secret-free\n│ kept\n"), "{}", ran.stdout);
    assert_eq!(both.status("two"), at_the_end);
    assert_eq!(at_the_end.lines().count(), 7, "{at_the_end}");
    assert_eq!(both.0.read("two/staged"), "staged\nmore\n");
    assert_eq!(git(&both.0.at("two"), &["show", ":staged"]), "staged\n");
    assert!(!both.0.exists("two/x.tmp"), "an ignored file is not part of the work");
    // The step that was cut short ran once more, under the same name.
    let keys: Vec<_> = both.0.read("two/keys").lines().map(str::to_owned).collect();
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
}

#[test]
fn the_name_of_a_checkout_may_have_a_colon() {
    let both = Checkouts::of(LOOP);
    both.left(Signal::TERM);
    fs::rename(both.0.at("two"), both.0.at("t:wo")).unwrap();
    let bundle = both.bundle();
    let _ran = both.run("t:wo", &["resume", "--ci=plain", "--from", bundle.to_str().unwrap()]).code(0);
}

#[test]
fn a_run_that_was_killed_is_put_into_a_file_later() {
    let both = Checkouts::of(LOOP);
    both.left(Signal::KILL);
    let target = both.0.at("later.llz");
    let ran = both.run("one", &["bundle", "main", "--output", target.to_str().unwrap()]).code(0);
    assert_eq!(ran.stdout, format!("{}\n", target.display()));
    let ran = both.run("two", &["resume", "--ci=plain", "--from", target.to_str().unwrap()]).code(0);
    assert!(ran.stderr.contains("which was killed, in wait"), "{}", ran.stderr);
}

#[test]
fn commits_of_the_run_come_along() {
    let text = LOOP.replace(
        "      echo secret-free",
        "      git -c user.name=t -c user.email=t@t commit -qam of-the-loop\n      echo secret-free",
    );
    let both = Checkouts::of(&text);
    both.left(Signal::INT);
    assert_eq!(both.resume(&[]).code(0).code, Some(0));
    assert_eq!(git(&both.0.at("two"), &["log", "--format=%s"]), "of-the-loop\nfirst\n");
    assert_eq!(
        git(&both.0.at("two"), &["rev-parse", "HEAD"]),
        git(&both.0.at("one"), &["rev-parse", "HEAD"])
    );
    assert_eq!(git(&both.0.at("two"), &["symbolic-ref", "HEAD"]), "refs/heads/main\n");
}

#[test]
fn a_shallow_checkout_of_the_commit_is_enough() {
    let both = Checkouts::of(LOOP);
    both.left(Signal::TERM);
    fs::remove_dir_all(both.0.at("two")).unwrap();
    let source = format!("file://{}", both.0.at("one").display());
    git(both.0.path(), &["clone", "-q", "--depth=1", &source, "two"]);
    git(&both.0.at("two"), &["checkout", "-q", "--detach"]);
    git(&both.0.at("two"), &["remote", "set-url", "origin", "https://github.com/o/r"]);
    assert_eq!(both.resume(&[]).code(0).code, Some(0));
    assert_eq!(both.0.read("two/tracked"), "as it was\nchanged\n");
}

#[test]
fn a_checkout_whose_files_are_only_newer_is_no_changed_one() {
    let both = Checkouts::of(LOOP);
    both.left(Signal::TERM);
    let tracked = fs::File::options().append(true).open(both.0.at("two/tracked")).unwrap();
    tracked.set_modified(std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_hours(24)).unwrap();
    both.resume(&[]).code(0);
    assert_eq!(both.0.read("two/tracked"), "as it was\nchanged\n");
}

/// Checks that a resume is refused, and that it left nothing behind.
#[track_caller]
fn refused(both: &Checkouts, code: i32, expected: &str) {
    let before = both.status("two");
    let ran = both.resume(&[]).code(code);
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    assert_eq!(both.status("two"), before);
    let left = fs::read_dir(both.0.at("two/.loops/.running")).map_or(0, |entries| {
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| name.contains(".events.") || name.starts_with(".incoming")).count()
    });
    assert_eq!(left, 0);
}

#[test]
fn a_checkout_that_is_not_the_one_is_refused_and_left_alone() {
    let both = Checkouts::of(LOOP);
    both.left(Signal::TERM);
    let two = both.0.at("two");
    both.0.write("two/tracked", "mine\n");
    refused(&both, 2, "the checkout has changes of its own");
    git(&two, &["checkout", "-q", "--", "tracked"]);
    both.0.write("two/tool", "mine\n");
    refused(&both, 2, "the checkout has changes of its own");
    fs::remove_file(two.join("tool")).unwrap();
    git(&two, &["commit", "-q", "--allow-empty", "-m", "second"]);
    refused(&both, 2, "the run began at commit");
    git(&two, &["reset", "-q", "--hard", "HEAD~1"]);
    git(&two, &["remote", "set-url", "origin", "https://github.com/somebody/fork"]);
    refused(
        &both,
        2,
        "the bundle is of the repository github.com/o/r, and this one is github.com/somebody/fork",
    );
    git(&two, &["remote", "remove", "origin"]);
    both.0.write("two/.loops/main.yaml", &format!("{LOOP}\n# changed\n"));
    refused(&both, 2, "the definition of `main` is not what it was");
    fs::remove_file(two.join(".loops/main.yaml")).unwrap();
    refused(&both, 2, "the loop file `.loops/main.yaml` of the bundle is not in this checkout");
    git(&two, &["checkout", "-q", "--", ".loops"]);
    // A file of the checkout's own that nobody asks for is no reason.
    both.0.write("two/notes", "mine\n");
    assert_eq!(both.resume(&[]).code(0).code, Some(0));
    assert_eq!(both.0.read("two/notes"), "mine\n");
}

#[test]
fn the_run_of_another_loop_than_was_named_is_refused() {
    let both = Checkouts::of(LOOP);
    both.left(Signal::TERM);
    let ran = both.resume(&["other"]).code(2);
    assert!(ran.stderr.contains("the bundle is of a run of `main`, and not of `other`"), "{}", ran.stderr);
    assert_eq!(both.resume(&[".loops/main.yaml"]).code(0).code, Some(0));
}

#[test]
fn a_run_that_cannot_go_on_ends_the_status_of_its_hand_off() {
    let both = Checkouts::of(LOOP);
    both.left(Signal::TERM);
    let (bundle, two) = (both.bundle(), both.0.at("two"));
    let head = || git(&two, &["rev-parse", "HEAD"]).trim().to_owned();
    let began = head();
    both.0.write("two/.loops/main.yaml", &format!("{LOOP}\n# changed\n"));
    git(&two, &["commit", "-q", "-a", "-m", "second"]);
    let github = Github::willing();
    // As every log says it, without the name of the loop.
    let mut command = both.command("two", &["resume", "--ci=github", "--from", bundle.to_str().unwrap()]);
    command.env("GITHUB_API_URL", github.address()).env("GITHUB_SERVER_URL", "https://github.com");
    command.env("GITHUB_REPOSITORY", "o/r").env("GITHUB_EVENT_NAME", "push").env("GITHUB_SHA", head());
    command.env("GITHUB_ACTIONS", "true").env("GITHUB_RUN_ID", "8").env("GITHUB_TOKEN", "ghs_geheim");
    let ran = Ran::of(&command.env("LL_RETRY_WAIT", "1ms").output().unwrap()).code(2);
    assert!(ran.all().contains("title=main%3A invalid"), "{}", ran.all());
    let told: Vec<_> =
        github.changes().into_iter().filter(|(request, _)| request.contains("/statuses/")).collect();
    let [(request, body)] = &told[..] else { panic!("{told:?}") };
    assert!(request.ends_with(&began), "{request}");
    assert_eq!(body["state"], "error");
    assert_eq!(body["context"], "ll-loop/main");
}

#[test]
fn a_bundle_is_taken_over_once() {
    let both = Checkouts::of(LOOP);
    both.left(Signal::TERM);
    assert_eq!(both.resume(&[]).code(0).code, Some(0));
    let ran = both.resume(&[]).code(73);
    assert!(ran.stderr.contains("has ended here since"), "{}", ran.stderr);
}

#[test]
fn of_two_that_take_a_run_over_one_wins() {
    let both = Checkouts::of(LOOP);
    both.left(Signal::TERM);
    fs::remove_file(both.0.at("go")).unwrap();
    let bundle = both.bundle();
    let arguments = ["resume", "--ci=plain", "--from", bundle.to_str().unwrap()];
    let winner = both.command("two", &arguments).stdout(std::process::Stdio::null()).spawn().unwrap();
    crate::common::wait_for(|| both.0.exists("two/keys") && both.0.read("two/keys").lines().count() == 2);
    let loser = both.resume(&[]).code(73);
    assert!(
        loser.stderr.contains("main-") && loser.stderr.contains(&winner.id().to_string()),
        "{}",
        loser.stderr
    );
    both.0.write("go", "");
    assert_eq!(winner.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn a_damaged_bundle_changes_nothing() {
    let both = Checkouts::of(LOOP);
    both.left(Signal::TERM);
    let bundle = both.bundle();
    let mut bytes = fs::read(&bundle).unwrap();
    // In what the journal became; other places of a zip mean nothing, such as the time of a file.
    let name = b"events.jsonl";
    let at = bytes.windows(name.len()).position(|found| found == name).unwrap();
    bytes[at + name.len() + 64] ^= 1;
    fs::write(&bundle, &bytes).unwrap();
    refused(&both, 2, "cannot use the bundle");
    fs::write(&bundle, "no zip").unwrap();
    refused(&both, 2, "it is not a bundle");
}

#[test]
fn a_secret_in_a_file_does_not_leave_the_machine() {
    let secret = "planted/+secret=value";
    let text = LOOP.replace(
        "      echo secret-free",
        "      printf %s \"$SECRET_OF_MINE\" > leaked; printf %s \"$SECRET_OF_MINE\" > \"$LL_RUN_DIR/leaked\"; echo \"$SECRET_OF_MINE\" >> tracked; git add leaked; mkdir planted; touch \"$SECRET_OF_MINE\"\n      echo secret-free",
    );
    let both = Checkouts::of(&text);
    let both = Checkouts(both.0.env("SECRET_OF_MINE", secret));
    both.left(Signal::TERM);
    let unpacked = both.0.at("unpacked");
    let status = Command::new("python3")
        .args(["-m", "zipfile", "-e", both.bundle().to_str().unwrap(), unpacked.to_str().unwrap()])
        .status()
        .unwrap();
    assert!(status.success());
    git(&both.0.at("two"), &["bundle", "unbundle", unpacked.join("tree.bundle").to_str().unwrap()]);
    let objects = git(
        &both.0.at("two"),
        &["cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)"],
    );
    for object in objects.lines().filter_map(|line| line.strip_suffix(" blob")) {
        assert!(!git(&both.0.at("two"), &["cat-file", "blob", object]).contains(secret));
    }
    assert!(!fs::read_to_string(unpacked.join("manifest.json")).unwrap().contains(secret));
    assert!(!unpacked.join("run-dir/leaked").exists() && unpacked.join("run-dir/mine").exists());
    let ran = both.resume(&[]).code(0);
    assert!(ran.stderr.contains("not carried over: tracked: it holds a secret"), "{}", ran.stderr);
    assert!(ran.stderr.contains("not carried over: leaked: it holds a secret"), "{}", ran.stderr);
    assert!(ran.stderr.contains("not carried over: ***: it holds a secret"), "{}", ran.stderr);
}

#[test]
fn a_check_that_misses_what_was_not_carried_over_says_so() {
    let both = Checkouts::of(&HANDED_ON.replace("echo mended", "echo \"mended $SECRET_OF_MINE\""));
    let both = Checkouts(both.0.env("SECRET_OF_MINE", "planted/+secret=value"));
    drop(both.run("one", &["run", "--ci=plain", "main"]).code(75));
    let ran = both.resume(&[]).code(1);
    let said = "not carried over from where the run was left: `tracked: it holds a secret`";
    assert!(ran.stdout.contains(said), "{}", ran.stdout);
    assert!(!ran.stdout.contains("the commit's own check"), "{}", ran.stdout);
}

#[test]
fn after_a_signal_what_takes_long_to_search_is_left_out_and_said() {
    let text = LOOP.replace(
        "      echo secret-free",
        "      head -c 17000000 /dev/zero > large; echo small > small\n      echo secret-free",
    );
    let both = Checkouts::of(&text);
    let both = Checkouts(both.0.env("SECRET_OF_MINE", "planted/+secret=value"));
    both.left(Signal::TERM);
    let why = "not carried over: large: there was no time to search it for secrets";
    let ran = both.resume(&[]).code(0);
    assert!(ran.stderr.contains(why) && !ran.stderr.contains("small"), "{}", ran.stderr);
    assert!(both.0.exists("two/small") && !both.0.exists("two/large"));
}

#[cfg(target_os = "linux")]
#[test]
fn what_an_action_keeps_and_cannot_go_along_leaves_the_rest_of_the_bundle_alone() {
    let text = LOOP.replace(
        "      echo secret-free",
        "      cd \"$LL_RUN_DIR\"; touch \"$(printf 'odd\\376')\" \"$(printf 'odd\\377')\"; mkfifo pipe; cd \"$OLDPWD\"\n      echo secret-free",
    );
    let both = Checkouts::of(&text);
    both.left(Signal::TERM);
    let ran = both.resume(&[]).code(0);
    assert!(ran.stderr.contains("run-dir/pipe: it is not a regular file"), "{}", ran.stderr);
    assert!(ran.stderr.contains("run-dir/odd\u{fffd}: its name is not UTF-8"), "{}", ran.stderr);
}

#[test]
fn without_git_the_files_of_the_run_come_along() {
    let text = "name: main\ninitial: one\nstates:\n  one: {action: 'touch begun; while ! test -f ../go; do sleep 0.02; done', on_yes: done}\n  done: {terminal: true}\n";
    let project = Project::new();
    for checkout in ["one", "two"] {
        project.write(&format!("{checkout}/.loops/main.yaml"), text);
    }
    let both = Checkouts(project);
    both.left(Signal::TERM);
    assert_eq!(both.resume(&[]).code(0).code, Some(0));
}

/// A check that passes, a hand-off, and nothing that looks at the work again.
const HANDED_ON: &str = "name: main
initial: fix
on_change: report
states:
  fix: {action: 'echo mended > tracked; echo new > new', next: check}
  check: {action: 'grep -q mended tracked', check: true, on_yes: last, on_no: failed}
  last: {action: 'test -e \"$LL_RUN_DIR/once\" || { touch \"$LL_RUN_DIR/once\"; echo CONTEXT_HANDOFF: rest; }', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}
";

#[test]
fn a_run_whose_tree_is_not_in_its_bundle_goes_on_elsewhere_only_if_somebody_agrees() {
    let both = Checkouts::of(HANDED_ON);
    // All that the actions need, and no git.
    let programs = both.0.at("programs");
    fs::create_dir(&programs).unwrap();
    for name in ["sh", "bash", "grep", "touch", "test", "echo", "cat", "env"] {
        for place in ["/usr/bin", "/bin"].map(|place| Path::new(place).join(name)) {
            if place.exists() && !programs.join(name).exists() {
                std::os::unix::fs::symlink(&place, programs.join(name)).unwrap();
            }
        }
    }
    let mut first = both.command("one", &["run", "--ci=plain", "main"]);
    let first = Ran::of(&first.env("PATH", programs).output().unwrap()).code(75);
    assert!(first.stderr.contains("not in the bundle: .: the working tree"), "{}", first.all());
    let before = both.status("two");
    let ran = both.resume(&[]).code(2);
    assert!(ran.stderr.contains("the bundle does not carry what the run changed"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--accept-changes"), "{}", ran.stderr);
    assert_eq!(both.status("two"), before);
    // What was checked there is not what is here.
    let ran = both.resume(&["--accept-changes"]).code(1);
    assert!(ran.stdout.contains("tree_unknown"), "{}", ran.stdout);
}

#[test]
fn a_run_goes_on_where_its_temporary_files_cannot_lie() {
    let both = Checkouts::of(HANDED_ON);
    let nowhere = "/nonexistent/temporary";
    let mut first = both.command("one", &["run", "--ci=plain", "main"]);
    let first = Ran::of(&first.env("TMPDIR", nowhere).output().unwrap()).code(75);
    assert!(!first.all().contains(nowhere), "{}", first.all());
    let bundle = both.bundle();
    let mut second = both.command("two", &["resume", "--ci=plain", "--from", bundle.to_str().unwrap()]);
    let second = Ran::of(&second.env("TMPDIR", nowhere).output().unwrap()).code(0);
    assert!(!second.all().contains(nowhere), "{}", second.all());
    assert_eq!(both.0.read("two/tracked"), "mended\n");
}

#[test]
fn a_hand_off_whose_bundle_cannot_be_written_has_failed_in_ci() {
    let both = Checkouts::of(HANDED_ON);
    // A directory stands where the bundle has to be.
    let text = HANDED_ON.replace(
        "echo mended",
        "mkdir -p \"../reports/$(basename \"$LL_RUN_DIR\" .dir).llz/in the way\"; echo mended",
    );
    for checkout in ["one", "two"] {
        both.0.write(&format!("{checkout}/.loops/main.yaml"), &text);
    }
    let reports = both.0.at("reports").display().to_string();
    let ran = both.run("one", &["run", "--ci=plain", "main", "--report-dir", &reports]).code(4);
    let said =
        "cannot write a bundle, so only this machine can go on with the run, with `ll-loop resume main-";
    assert!(ran.stderr.contains(said), "{}", ran.all());
    let summary = both.0.read("reports/summary.md");
    assert!(!summary.contains("--from"), "{summary}");
    // For a person it stays what it is: this machine goes on.
    let ran = both.run("two", &["run", "--no-ci", "main", "--report-dir", &reports]).code(75);
    assert!(ran.stderr.contains("cannot write a bundle"), "{}", ran.all());
    let _ran = both.run("two", &["resume", "main", "--no-ci"]).code(0);
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_not_deleted_by_a_run() {
    // A new file may lie outside of the patterns.
    for (staged, patterns) in [
        ("", &["/.loops/", "/.gitignore", "/tracked", "/new"][..]),
        ("git add tracked; ", &["/.loops/", "/.gitignore", "/tracked", "/new"]),
        ("", &["/.loops/", "/.gitignore", "/tracked"]),
    ] {
        let both = Checkouts::of(&HANDED_ON.replace("echo new", &format!("{staged}echo new")));
        for checkout in ["one", "two"] {
            git(&both.0.at(checkout), &[&["sparse-checkout", "set", "--no-cone"][..], patterns].concat());
            assert!(!both.0.exists(&format!("{checkout}/gone")));
        }
        let first = both.run("one", &["run", "--ci=plain", "main"]).code(75);
        let second = both.resume(&[]).code(0);
        for ran in [first, second] {
            assert!(ran.stdout.contains("modified tracked"), "{staged}: {}", ran.stdout);
            assert!(!ran.stdout.contains("deleted"), "{staged}: {}", ran.stdout);
        }
        assert_eq!(both.0.read("two/new"), "new\n", "{patterns:?}");
    }
}

#[test]
fn a_checkpoint_is_there_when_the_process_is_not() {
    let both = Checkouts::of(LOOP);
    let arguments = ["run", "--ci=plain", "--checkpoint-every", "1ms", "main"];
    let child = both.command("one", &arguments).stdout(std::process::Stdio::piped()).spawn().unwrap();
    crate::common::wait_for(|| both.0.exists("one/begun"));
    signal(&child, Signal::KILL);
    let _ended = child.wait_with_output().unwrap();
    both.0.write("go", "");
    let ran = both.resume(&[]).code(0);
    assert!(ran.stderr.contains("which was killed, in wait (iteration 1, step 2)"), "{}", ran.stderr);
    assert_eq!(both.0.read("two/keys").lines().count(), 1, "what the lost step did is not there");
}

#[test]
fn a_report_is_made_again_from_a_bundle_or_a_run() {
    let both = Checkouts::of(LOOP);
    both.left(Signal::TERM);
    let bundle = both.bundle();
    let report = bundle.parent().unwrap().to_owned();
    for (format, file) in [("junit", "junit.xml"), ("summary", "summary.md"), ("text", "summary.txt")] {
        let of_bundle = both.run("two", &["report", bundle.to_str().unwrap(), "--format", format]).code(0);
        // Each says how to go on from where it is read.
        let but_advice = |text: &str| {
            text.lines()
                .filter(|line| !line.contains("ll-loop resume"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let written = fs::read_to_string(report.join(file)).unwrap();
        assert_eq!(but_advice(&of_bundle.stdout), but_advice(&written), "{format}");
        let of_run = both.run("one", &["report", "main", "--format", format]).code(0);
        assert_eq!(of_run.stdout, written, "{format}");
    }
    let commands = both.run("one", &["report", "main", "--format", "github"]).code(0).stdout;
    assert!(commands.starts_with("::error file=.loops/main.yaml"), "{commands}");
    both.run("two", &["report", "main"]).code(2).says("no run of `main`");
    both.run("two", &["report", "."]).code(2).says("it is not a bundle");
}

/// GitHub with one artifact of run 7: the bundle.
fn github(bundle: &Path, head: u64) -> Github {
    let github = Github::silent();
    with_artifact(&github, bundle, head);
    github
}

/// Gives GitHub one artifact of run 7: the bundle.
pub(crate) fn with_artifact(github: &Github, bundle: &Path, head: u64) {
    use wiremock::matchers::{method, path};
    use wiremock::{Mock, ResponseTemplate};

    let address = github.address();
    let row = serde_json::json!({
        "id": 5, "name": "ll-loop-main-fix-r7-a1", "expired": false,
        "workflow_run": {"id": 7, "repository_id": 1, "head_repository_id": head},
    });
    let answer = |status: u16, body: serde_json::Value| ResponseTemplate::new(status).set_body_json(body);
    let get = |at: &str| Mock::given(method("GET")).and(path(format!("/repos/o/r{at}")));
    github.mount(
        get("/actions/runs/7/artifacts").respond_with(answer(200, serde_json::json!({"artifacts": [row]}))),
    );
    github
        .mount(get("/actions/artifacts").respond_with(answer(200, serde_json::json!({"artifacts": [row]}))));
    let location =
        ResponseTemplate::new(302).insert_header("location", format!("{address}/blob?sig=geheim%2b"));
    github.mount(get("/actions/artifacts/5/zip").respond_with(location));
    let blob = ResponseTemplate::new(200).set_body_bytes(fs::read(bundle).unwrap());
    github.mount(Mock::given(method("GET")).and(path("/blob")).respond_with(blob));
    let post = |at: &str| Mock::given(method("POST")).and(path(format!("/repos/o/r{at}")));
    github.mount(post("/git/tags").respond_with(answer(201, serde_json::json!({"sha": "70"}))));
    github.mount(get("").respond_with(answer(200, serde_json::json!({"id": 1}))));
}

impl Checkouts {
    /// Resumes in the second checkout as a job of run 8 does.
    fn resume_in_job(&self, github: &Github, from: &[&str]) -> Ran {
        let mut command = self.command("two", &[&["resume", "--ci", "--no-status"], from].concat());
        command.env("GITHUB_API_URL", github.address()).env("GITHUB_REPOSITORY", "o/r");
        command.env("GITHUB_SERVER_URL", "https://github.com").env("GITHUB_REPOSITORY_ID", "1");
        command
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_RUN_ID", "8")
            .env("GITHUB_TOKEN", "ghs_geheim")
            .env("LL_RETRY_WAIT", "1ms");
        Ran::of(&command.output().unwrap())
    }
}

#[test]
fn a_run_is_taken_over_from_github_by_one_job() {
    use wiremock::matchers::{method, path, path_regex};
    use wiremock::{Mock, ResponseTemplate};

    let both = Checkouts::of(LOOP);
    both.left(Signal::TERM);
    let taken = Mock::given(method("POST")).and(path("/repos/o/r/git/refs"));
    let refs = Mock::given(method("GET")).and(path_regex("/repos/o/r/git/ref/ll-loop/main-.*"));
    let first = github(&both.bundle(), 1);
    first
        .mount(taken.respond_with(
            ResponseTemplate::new(422).set_body_json(serde_json::json!({"message": "exists"})),
        ));
    let answer = |body| ResponseTemplate::new(200).set_body_json(body);
    first.mount(refs.respond_with(answer(serde_json::json!({"object": {"sha": "71"}}))));
    let holder = serde_json::json!({"run": "9", "attempt": 1, "url": "https://github.com/o/r/actions/runs/9", "mark": "x"});
    let tag = Mock::given(method("GET")).and(path("/repos/o/r/git/tags/71"));
    first.mount(tag.respond_with(answer(serde_json::json!({"message": holder.to_string()}))));
    let run = Mock::given(method("GET")).and(path("/repos/o/r/actions/runs/9"));
    first.mount(run.respond_with(answer(serde_json::json!({"status": "in_progress", "run_attempt": 1}))));
    let before = both.status("two");
    let ran = both.resume_in_job(&first, &["--from", "run:7"]).code(73);
    assert!(
        ran.stderr.contains("has taken the run main-") && ran.stderr.contains("actions/runs/9"),
        "{}",
        ran.stderr
    );
    assert_eq!(both.status("two"), before);

    let second = github(&both.bundle(), 1);
    let taken = Mock::given(method("POST")).and(path("/repos/o/r/git/refs"));
    second.mount(taken.respond_with(ResponseTemplate::new(201).set_body_json(serde_json::json!({}))));
    let ran = both.resume_in_job(&second, &["main", "--from", "run:latest"]).code(0);
    assert!(ran.stderr.contains("took over main-"), "{}", ran.stderr);
    assert!(ran.stdout.contains("::add-mask::geheim"), "{}", ran.stdout);
    assert_eq!(both.0.read("two/tracked"), "as it was\nchanged\n");
}

#[test]
fn a_token_that_may_take_nothing_costs_a_warning() {
    let both = Checkouts::of(LOOP);
    both.left(Signal::TERM);
    // There is nobody who makes refs.
    let ran = both
        .resume_in_job(&github(&both.bundle(), 1), &["--from", "artifact:ll-loop-main-fix-r7-a1"])
        .code(0);
    assert!(ran.stderr.contains("nothing keeps another job from going on with this run"), "{}", ran.stderr);
}

#[test]
fn what_a_stranger_made_is_not_gone_on_with() {
    let both = Checkouts::of(LOOP);
    both.left(Signal::TERM);
    let before = both.status("two");
    let github = github(&both.bundle(), 666);
    let ran = both.resume_in_job(&github, &["--from", "run:7"]).code(2);
    assert!(ran.stderr.contains("made by code that is not that of `o/r`"), "{}", ran.stderr);
    both.resume_in_job(&github, &["other", "--from", "run:7"]).code(1).says("begins with `ll-loop-other-`");
    assert_eq!(both.status("two"), before);
    let ran = both.resume_in_job(&github, &["--from", "run:7", "--allow-untrusted"]).code(0);
    assert!(ran.stderr.contains("took over main-"), "{}", ran.stderr);
}

#[test]
fn a_kill_while_a_run_is_taken_over_loses_nothing() {
    let both = Checkouts::of(LOOP);
    both.left(Signal::TERM);
    let bundle = both.bundle();
    let arguments = ["resume", "--ci=plain", "--from", bundle.to_str().unwrap()];
    let source = both.0.at("one").display().to_string();
    let mut killed = 0;
    for point in 1..60 {
        fs::remove_dir_all(both.0.at("two")).unwrap();
        git(both.0.path(), &["clone", "-q", &source, "two"]);
        git(&both.0.at("two"), &["remote", "set-url", "origin", "https://github.com/o/r"]);
        let first = both.command("two", &arguments).env("LL_FAULT", point.to_string()).output().unwrap();
        if first.status.success() {
            break;
        }
        assert_eq!(first.status.code(), None, "{}", Ran::of(&first).all());
        killed += 1;
        // Where it was here already and went on, it is resumed as any run that was killed here.
        let again = both.run("two", &arguments);
        if again.code != Some(0) {
            let again = again.code(73);
            assert!(again.stderr.contains("since"), "{}", again.all());
            if !again.stderr.contains("has ended here") {
                both.run("two", &["resume", "--ci=plain", "main"]).code(0);
            }
        }
        assert_eq!(both.0.read("two/tracked"), "as it was\nchanged\n", "point {point}");
        assert_eq!(both.0.read("two/staged"), "staged\nmore\n", "point {point}");
        let keys: std::collections::BTreeSet<_> =
            both.0.read("two/keys").lines().map(str::to_owned).collect();
        assert_eq!(keys.len(), 1, "point {point}: the step keeps its name");
    }
    assert!(killed > 20, "{killed} kills");
}
