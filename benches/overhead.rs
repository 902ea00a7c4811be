//! What ll-loop costs: its start, its steps against a bare loop of the same commands, and its memory. `cargo bench --profile dist`.
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

const STEPS: usize = 500;
const ROUNDS: usize = 7;

fn main() {
    let directory = tempfile::TempDir::new().unwrap();
    let root = directory.path();
    fs::create_dir(root.join(".loops")).unwrap();
    for (name, text) in [("small", SMALL), ("steps", LONG), ("flood", FLOOD)] {
        fs::write(root.join(format!(".loops/{name}.yaml")), text).unwrap();
    }

    let starts = repeated(50, || timed(|| ll_loop(root, &["validate", "small"])));
    println!("start: validate of a small loop: median {:.2} ms (of 50)", millis(median(starts)));

    validation(root);

    let mut ratios = Vec::new();
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    // In turn, so that a machine that gets slower or faster does so for both.
    for _ in 0..ROUNDS {
        let a = timed(|| ll_loop(root, &["run", "steps", "--quiet"]));
        let b = timed(|| (0..STEPS).for_each(|_| true_in_a_shell()));
        ratios.push(a.as_secs_f64() / b.as_secs_f64());
        ours.push(a);
        bare.push(b);
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "steps: {STEPS} steps of `true`: {:.0} ms, bare loop {:.0} ms, ratio {:.2} (median of {ROUNDS}; {:.2} to {:.2})",
        millis(median(ours)),
        millis(median(bare)),
        ratios[ROUNDS / 2],
        ratios[0],
        ratios[ROUNDS - 1],
    );

    ll_loop(root, &["run", "flood", "--quiet"]);
    let peak = |file: &str| {
        let text = fs::read_to_string(root.join(file)).unwrap();
        text.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
    };
    println!(
        "memory: {:.1} MiB before, {:.1} MiB at most while an action printed 1 GiB",
        peak("before"),
        peak("after")
    );
}

/// What one more file costs, from the difference between many and one.
fn validation(root: &Path) {
    const FILES: u16 = 1000;
    let directory = root.join("many");
    fs::create_dir_all(directory.join(".loops")).unwrap();
    for number in 0..FILES {
        fs::write(directory.join(format!(".loops/loop-{number}.yaml")), ten_states(number)).unwrap();
    }
    for deep in [&["validate"][..], &["validate", "--deep"]] {
        let one_file = [deep, &["loop-0"]].concat();
        let half: Vec<String> = (0..FILES / 2).map(|number| format!("loop-{number}")).collect();
        let half: Vec<&str> = deep.iter().copied().chain(half.iter().map(String::as_str)).collect();
        let one = median(repeated(ROUNDS, || timed(|| ll_loop(&directory, &one_file))));
        let half = median(repeated(ROUNDS, || timed(|| ll_loop(&directory, &half))));
        let all = median(repeated(ROUNDS, || timed(|| ll_loop(&directory, deep))));
        println!(
            "{}: 1 file of 10 states {:.2} ms, {} files {:.0} ms, {FILES} files {:.0} ms: {:.3} ms a file",
            deep.join(" "),
            millis(one),
            FILES / 2,
            millis(half),
            millis(all),
            (millis(all) - millis(one)) / f64::from(FILES - 1),
        );
    }
}

fn ten_states(number: u16) -> String {
    let mut text = format!("name: loop-{number}\ndescription: ten states\ninitial: check0\nstates:\n");
    for (pair, after) in ["check1", "check2", "check3", "done"].iter().enumerate() {
        let pair = format!(
            "  check{pair}:\n    action: make check-{pair} ARG=${{context.input?:shell}}\n    capture: out{pair}\n    \
             on_yes: {after}\n    on_no: fix{pair}\n    on_error: failed\n  \
             fix{pair}:\n    action: make fix-{pair} OUT=${{captured.out{pair}:shell}}\n    next: check{pair}\n",
        );
        text.push_str(&pair);
    }
    text + "  failed:\n    terminal: true\n    description: a tool is broken\n  done:\n    terminal: true\n"
}

const SMALL: &str = "\
name: small
description: check, fix, check again
initial: check
states:
  check: {action: test -f flag, on_yes: done, on_no: fix}
  fix: {action: touch flag, next: check}
  done: {terminal: true}
";

const LONG: &str = "\
name: steps
description: nothing, five hundred times
initial: count
max_iterations: 500
states:
  count: {action: 'true', on_yes: count, on_no: count}
  done: {terminal: true}
";

const FLOOD: &str = "\
name: flood
description: one gigabyte of output, and the most memory that ll-loop ever took
initial: before
states:
  before: {action: grep VmHWM /proc/$PPID/status > before, next: flood}
  flood: {action: yes 'a line of output as programs print them' | head -c 1073741824, capture: flood, next: after}
  after: {action: grep VmHWM /proc/$PPID/status > after, next: done}
  done: {terminal: true}
";

fn ll_loop(root: &Path, arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ll-loop"));
    command
        .args(arguments)
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().unwrap();
}

fn true_in_a_shell() {
    let mut command = Command::new("bash");
    command.args(["-c", "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().unwrap();
}

fn repeated(count: usize, mut each: impl FnMut() -> Duration) -> Vec<Duration> {
    (0..count).map(|_| each()).collect()
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
