//! What fan-out costs: planning up to 10,000 items, and merging bundles, of which four times as many should take four times as
//! long. `cargo bench --profile dist --bench fan_out`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints figures, and fails when it cannot"
)]
#![expect(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;

/// The steps of each run that is merged.
const STEPS: usize = 200;

fn main() {
    let directory = tempfile::TempDir::new().unwrap();
    let root = directory.path();
    fs::create_dir(root.join(".loops")).unwrap();
    fs::write(root.join(".loops/steps.yaml"), loop_file()).unwrap();
    fs::write(root.join(".gitignore"), "out*\n").unwrap();
    let identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"];
    run(root, "git", &["init", "-q"]);
    run(root, "git", &["add", "-A"]);
    run(root, "git", &[&identity[..], &["commit", "-q", "-m", "bench"]].concat());

    let [few, many] = [2_500, 10_000].map(|items| planning(root, items));
    println!(
        "plan: 2,500 items {:.0} ms, 10,000 items {:.0} ms, ratio {:.1}",
        millis(few),
        millis(many),
        many.as_secs_f64() / few.as_secs_f64()
    );
    let [few, many] = [16, 64].map(|legs| merging(root, legs));
    println!(
        "merge: 16 bundles of {STEPS} steps {:.0} ms, 64 bundles {:.0} ms, ratio {:.1}",
        millis(few),
        millis(many),
        many.as_secs_f64() / few.as_secs_f64()
    );
}

fn planning(root: &Path, items: usize) -> Duration {
    values(root, items);
    median(|| plan(root, "200"))
}

/// Runs each leg once, and merges them again and again.
fn merging(root: &Path, legs: usize) -> Duration {
    values(root, legs);
    plan(root, &legs.to_string());
    let out = format!("out-{legs}");
    for index in 0..legs {
        let (leg, to) = (format!("index:{index}"), format!("{out}/{index}"));
        ll_loop(root, &["run", "--plan", "out.json", "--leg", &leg, "--quiet", "--report-dir", &to]);
    }
    median(|| ll_loop(root, &["merge", "--plan", "out.json", &out, "--report-dir", "out-merged"]))
}

fn values(root: &Path, count: usize) {
    let mut text = String::new();
    for number in 0..count {
        writeln!(text, "item-{number}").unwrap();
    }
    fs::write(root.join("out-values"), text).unwrap();
}

fn plan(root: &Path, legs: &str) {
    ll_loop(root, &["plan", "steps", "--each", "item=@out-values", "--legs", legs, "-o", "out.json"]);
}

fn loop_file() -> String {
    format!(
        "name: steps\ndescription: nothing, many times\ninitial: count\nmax_iterations: {STEPS}\n\
         parameters: {{item: {{type: string}}}}\nscope: ['${{context.item}}']\nstates:\n  \
         count: {{action: 'true', on_yes: count, on_no: count}}\n  done: {{terminal: true}}\n"
    )
}

fn ll_loop(root: &Path, arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ll-loop"));
    // The runs end at the limit of their loop, and so do their merges.
    command.args(arguments).current_dir(root).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
}

fn run(root: &Path, program: &str, arguments: &[&str]) {
    assert!(Command::new(program).args(arguments).current_dir(root).status().unwrap().success());
}

fn median(mut act: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begun = Instant::now();
            act();
            begun.elapsed()
        })
        .collect();
    times.sort();
    times[ROUNDS / 2]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
