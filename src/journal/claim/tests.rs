//! Claims in a directory, in one process: locks belong to open files, not to processes.

use super::*;
use crate::base::territory::{ScopePath, Territory};
use crate::base::time::Timestamp;

fn wanted(instance: &str, path: &str) -> ClaimRequest {
    let tree = ScopePath::from("/r".to_owned());
    let record = ClaimRecord {
        instance: instance.to_owned(),
        r#loop: "main".to_owned(),
        territory: Territory { paths: vec![tree.join(path)], tree },
        pid: 1,
        host: "here".to_owned(),
        since: Timestamp::from_millis(0),
        place: 0,
        ancestors: Vec::new(),
        secret: String::new(),
        policy: Vec::new(),
    };
    ClaimRequest { record, pass: None, queue: false }
}

fn queued(instance: &str, path: &str) -> ClaimRequest {
    ClaimRequest { queue: true, ..wanted(instance, path) }
}

fn inside(of: &Claim, instance: &str, path: &str) -> ClaimRequest {
    ClaimRequest { pass: Pass::parse(&of.pass().to_text()), ..wanted(instance, path) }
}

fn claim(directory: &Path, wanted: ClaimRequest) -> Claim {
    let Taken::Held(claim) = take(directory, wanted).unwrap() else { panic!("it is not free") };
    claim
}

fn ticket(directory: &Path, wanted: ClaimRequest) -> Ticket {
    let Taken::Queued(ticket) = take(directory, wanted).unwrap() else { panic!("it is free") };
    ticket
}

fn names(live: &[Live]) -> Vec<&str> {
    live.iter().map(|run| run.instance.as_str()).collect()
}

#[track_caller]
fn refused(directory: &Path, wanted: ClaimRequest, by: &[&str]) {
    let Taken::Refused(runs) = take(directory, wanted).unwrap() else { panic!("it is free") };
    assert_eq!(names(&runs), by);
}

fn files(directory: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_claim_holds_until_it_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let first = claim(directory, wanted("a", "src"));
    refused(directory, wanted("b", "src/api"), &["a"]);
    let other = claim(directory, wanted("b", "docs"));
    assert_eq!(names(&live(directory).unwrap()), ["a", "b"]);
    assert_eq!(find(directory, "a").unwrap().unwrap().standing, ClaimStanding::Holds);
    drop(first);
    assert_eq!(find(directory, "a").unwrap(), None);
    drop(other);
    assert_eq!(files(directory), [MUTEX]);
}

/// Between `fork` and `exec`, a child of a run has the lock as well, and a busy machine lets it wait there.
#[test]
fn a_child_of_a_killed_run_is_outlived() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut dead = std::process::Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let mut left = wanted("a", "src");
    left.record.pid = dead.id();
    left.record.host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    for of_next in [true, false] {
        let held = claim(directory, left.clone());
        let child = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            drop(held);
        });
        if of_next {
            drop(claim(directory, wanted("b", "src")));
        } else {
            outlive_children(directory).unwrap();
            assert_eq!(live(directory).unwrap(), []);
        }
        child.join().unwrap();
    }
}

#[test]
fn a_run_runs_once() {
    let directory = tempfile::tempdir().unwrap();
    let held = claim(directory.path(), wanted("a", "src"));
    assert!(
        matches!(take(directory.path(), wanted("a", "docs")).unwrap(), Taken::Runs(run) if run.instance == "a")
    );
    drop(held);
    drop(claim(directory.path(), wanted("a", "docs")));
}

#[test]
fn a_file_without_its_lock_is_nobodys_claim() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut text = serde_json::to_string(&wanted("a", ".").record).unwrap();
    for name in ["a.lock", "b.wait", "a.pid", ".claim-xyz", "a.events.jsonl"] {
        fs_err::write(directory.join(name), &text).unwrap();
        text.clear();
    }
    assert_eq!(live(directory).unwrap(), []);
    assert_eq!(dead(directory).unwrap().len(), 2);
    let held = claim(directory, wanted("c", "."));
    assert_eq!(files(directory), [MUTEX, "a.events.jsonl", "c.lock"]);
    drop(held);
}

#[test]
fn a_live_claim_that_cannot_be_read_is_respected() {
    let directory = tempfile::tempdir().unwrap();
    let file = File::create(directory.path().join("later.lock")).unwrap();
    file.try_lock().unwrap();
    refused(directory.path(), wanted("a", "src"), &["later"]);
    drop(file);
    drop(claim(directory.path(), wanted("a", "src")));
}

#[test]
fn turns_come_in_the_order_of_arrival() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let first = claim(directory, queued("z", "src"));
    let second = ticket(directory, queued("y", "."));
    let third = ticket(directory, queued("x", "docs"));
    refused(directory, wanted("w", "docs"), &["y", "x"]);
    let QueueTurn::Later(second, ahead) = second.look().unwrap() else { panic!() };
    assert_eq!(names(&ahead), ["z"]);
    let QueueTurn::Later(third, ahead) = third.look().unwrap() else { panic!() };
    assert_eq!(names(&ahead), ["y"]);
    drop(first);
    let QueueTurn::Now(second) = second.look().unwrap() else { panic!() };
    assert_eq!(find(directory, "y").unwrap().unwrap().standing, ClaimStanding::Holds);
    let QueueTurn::Later(third, _) = third.look().unwrap() else { panic!() };
    drop(second);
    let QueueTurn::Now(third) = third.look().unwrap() else { panic!() };
    assert_eq!(files(directory), [MUTEX, "x.lock"]);
    drop(third);
}

#[test]
fn who_leaves_the_queue_is_waited_for_no_longer() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let first = claim(directory, wanted("a", "src"));
    let second = ticket(directory, queued("b", "."));
    let third = ticket(directory, queued("c", "docs"));
    drop(second);
    let QueueTurn::Now(third) = third.look().unwrap() else { panic!() };
    drop((first, third));
}

#[test]
fn the_descendants_of_a_run_share_its_scope() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let outer = claim(directory, wanted("a", "."));
    let inner = claim(directory, inside(&outer, "b", "src"));
    let innermost = claim(directory, inside(&inner, "c", "src"));
    assert_eq!(find(directory, "c").unwrap().unwrap().record.unwrap().ancestors, ["a", "b"]);
    refused(directory, inside(&outer, "d", "src"), &["b", "c"]);
    drop((inner, innermost));
    let ended = inside(&outer, "e", "src");
    drop(outer);
    let stranger = claim(directory, wanted("f", "."));
    refused(directory, ended, &["f"]);
    drop(stranger);
}

#[test]
fn a_pass_that_nobody_gave_out_is_worth_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let outer = claim(directory, wanted("a", "."));
    for forged in ["a:", "a:0123", "a", ":", ""] {
        refused(directory, ClaimRequest { pass: Pass::parse(forged), ..wanted("b", "src") }, &["a"]);
    }
    let Pass { secret, .. } = outer.pass().clone();
    refused(
        directory,
        ClaimRequest { pass: Some(Pass { instance: "x".into(), secret }), ..wanted("b", "src") },
        &["a"],
    );
    drop(outer);
}

#[test]
fn inner_runs_that_would_wait_for_each_other_do_not_wait() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let (one, other) = (claim(directory, wanted("a", "src")), claim(directory, wanted("b", "docs")));
    let waits = ticket(directory, ClaimRequest { queue: true, ..inside(&one, "a1", "docs") });
    let taken = take(directory, ClaimRequest { queue: true, ..inside(&other, "b1", "src") }).unwrap();
    assert!(matches!(taken, Taken::Circle(ahead) if names(&ahead) == ["a"]));
    drop((one, other, waits));
}

#[test]
fn a_watch_ends_with_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let held = claim(directory.path(), wanted("a", "src"));
    let run = find(directory.path(), "a").unwrap().unwrap();
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch(directory.path(), &run));
        assert!(!watching.is_finished());
        drop(held);
        watching.join().unwrap();
    });
    watch(directory.path(), &run);
}

#[test]
fn where_no_run_ever_was_nobody_is_alive() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(live(&directory.path().join("none")).unwrap(), []);
}

#[test]
fn the_lock_of_the_claims_is_not_waited_for_for_ever() {
    let directory = tempfile::tempdir().unwrap();
    let kept = lock(directory.path()).unwrap();
    let error = lock_within(directory.path(), Duration::from_millis(5)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
    drop(kept);
    drop(lock(directory.path()).unwrap());
}

/// Makes a working tree of git, with the directory for runs of a `.loops` in it.
fn working_tree() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let git = directory.path().join(".git");
    fs_err::create_dir_all(git.join("objects")).unwrap();
    fs_err::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let running = directory.path().join(".loops/.running");
    fs_err::create_dir_all(&running).unwrap();
    (directory, running)
}

#[test]
fn cleaning_the_working_tree_removes_no_claim() {
    let (tree, running) = working_tree();
    let held = claim(&running, wanted("a", "src"));
    let waiting = ticket(&running, queued("b", "src"));
    assert_eq!(files(&running), [""; 0]);
    fs_err::remove_dir_all(tree.path().join(".loops")).unwrap();
    fs_err::create_dir_all(&running).unwrap();
    refused(&running, wanted("c", "src"), &["a", "b"]);
    let run = find(&running, "a").unwrap().unwrap();
    assert!(file(&running, &run).starts_with(tree.path().join(".git/ll-loop")));
    drop(held);
    let QueueTurn::Now(waiting) = waiting.look().unwrap() else { panic!() };
    drop(waiting);
    assert_eq!(live(&running).unwrap(), []);
}

#[test]
fn a_claim_from_before_there_was_a_repository_counts() {
    let (tree, running) = working_tree();
    let git = tree.path().join(".git");
    fs_err::rename(&git, tree.path().join("git")).unwrap();
    let held = claim(&running, wanted("a", "src"));
    fs_err::rename(tree.path().join("git"), &git).unwrap();
    refused(&running, wanted("b", "src"), &["a"]);
    assert_eq!(file(&running, &find(&running, "a").unwrap().unwrap()), running.join("a.lock"));
    drop(held);
    drop(claim(&running, wanted("b", "src")));
}

#[test]
fn two_projects_of_a_repository_do_not_list_each_other() {
    let (tree, running) = working_tree();
    let other = tree.path().join("packages/one/.loops/.running");
    fs_err::create_dir_all(&other).unwrap();
    let held = claim(&running, wanted("a", "src"));
    assert_eq!(live(&other).unwrap(), []);
    drop(held);
}

#[test]
fn who_waits_for_a_lock_that_was_removed_takes_the_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let first = lock(directory).unwrap();
    fs_err::remove_file(directory.join(MUTEX)).unwrap();
    let second = lock(directory).unwrap();
    assert!(!is_at(&first, &directory.join(MUTEX)) && is_at(&second, &directory.join(MUTEX)));
    drop(first);
    assert!(lock_within(directory, Duration::ZERO).is_err());
}
