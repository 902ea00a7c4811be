//! What tree snapshots cost: one of them on 500 changed files, and a run of 500 steps with and without them.
//! `cargo bench --profile dist --bench snapshots`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints figures, and fails when it cannot"
)]
#![expect(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const FILES: usize = 500;
const ROUNDS: usize = 5;

/// What a run does in each step, how many steps it has, and what people know it by.
const KINDS: [(&str, u32, &str); 3] = [
    ("true", 500, "nothing changes"),
    ("echo $LL_STEP > src/0", 500, "each step changes one file"),
    ("for file in src/*; do echo $LL_STEP.$$ > $file; done", 20, "each step changes all of them"),
];

fn main() {
    for (action, steps, what) in KINDS {
        let directory = tempfile::TempDir::new().unwrap();
        let root = directory.path();
        repository(root, action, steps);
        let mut ratios = Vec::new();
        let mut each = Vec::new();
        // In turn, so that a machine that gets slower or faster does so for both.
        for _ in 0..ROUNDS {
            let with = timed(|| ll_loop(root, "--snapshots"));
            let without = timed(|| ll_loop(root, "--no-snapshots"));
            ratios.push(with.as_secs_f64() / without.as_secs_f64());
            each.push((with.as_secs_f64() - without.as_secs_f64()) * 1000.0 / f64::from(steps));
        }
        ratios.sort_by(f64::total_cmp);
        each.sort_by(f64::total_cmp);
        println!(
            "snapshots: {FILES} changed files, {steps} steps, {what}: {:.1} ms each, ratio {:.2} (median of {ROUNDS}; {:.2} to {:.2})",
            each[ROUNDS / 2],
            ratios[ROUNDS / 2],
            ratios[0],
            ratios[ROUNDS - 1],
        );
    }
}

/// Makes a repository in which all files differ from the commit.
fn repository(root: &Path, action: &str, steps: u32) {
    let text = format!(
        "name: main\ndescription: d\ninitial: a\nmax_iterations: {steps}\nstates:\n  a: {{action: '{action}; test $LL_STEP -ge {steps}', on_yes: done, on_no: a}}\n  done: {{terminal: true}}\n"
    );
    fs::create_dir_all(root.join(".loops")).unwrap();
    fs::create_dir(root.join("src")).unwrap();
    fs::write(root.join(".loops/main.yaml"), text).unwrap();
    let fill = |content: &str| {
        for file in 0..FILES {
            fs::write(root.join(format!("src/{file}")), format!("{content} {file}\n")).unwrap();
        }
    };
    fill("committed");
    git(root, &["init", "-q"]);
    git(root, &["add", "-A"]);
    git(root, &["-c", "user.name=n", "-c", "user.email=e@example.com", "commit", "-q", "-m", "first"]);
    fill("changed");
}

fn git(root: &Path, arguments: &[&str]) {
    assert!(Command::new("git").args(arguments).current_dir(root).status().unwrap().success());
}

fn ll_loop(root: &Path, snapshots: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ll-loop"));
    let command =
        command.args(["run", "main", "--quiet", "--no-ci", "--no-strict", snapshots]).current_dir(root);
    assert!(command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
}

fn timed(what: impl FnOnce()) -> Duration {
    let started = Instant::now();
    what();
    started.elapsed()
}
