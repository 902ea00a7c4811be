//! Fuzzes on stable, without coverage: every target for a time, each in a process of its own.
//!
//! ```text
//! driver [TARGET…]               fuzz them, or all; LL_FUZZ_SECONDS, LL_FUZZ_SEED and LL_FUZZ_JOBS say how
//! driver --reproduce TARGET FILE try one input
//! driver --minimise TARGET FILE  make an input shorter that panics
//! driver --seeds DIRECTORY       write what is begun with, for cargo-fuzz
//! ```
//!
//! A panic, an execution that takes too long, and one that takes too much memory are findings. Each is written to
//! `fuzz/artifacts/TARGET/`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ll_loop::internals::base::text::hex;
use ll_loop_fuzz::mutate::{LONGEST, Random, minimise, mutate};
use ll_loop_fuzz::{TARGETS, Target, by_name, repository, take_notes};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use sha2::{Digest as _, Sha256};

/// Time of the processor that an execution may take. Other work on the machine does not count.
const SLOWEST: Duration = Duration::from_secs(5);

/// Time that an execution may take, whatever it waits for.
const LONGEST_WAIT: Duration = Duration::from_mins(2);

/// Memory that a target may take, all executions together: nothing that they take is kept.
const MOST_MEMORY: u64 = 1 << 30;

/// How a process ends that found something, and that took too long.
const FOUND: u8 = 1;
const TOO_SLOW: i32 = 3;

/// How many different findings of one target are enough.
const ENOUGH: usize = 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["--worker", name] => return named(name).map_or_else(|why| refused(&why), work),
        ["--reproduce", name, file] => named(name).and_then(|target| reproduce(target, Path::new(file))),
        ["--minimise", name, file] => named(name).and_then(|target| shorten(target, Path::new(file))),
        ["--seeds", directory] => write_seeds(Path::new(directory)),
        names => names.iter().map(|name| named(name)).collect::<Result<Vec<_>, _>>().and_then(|targets| {
            let targets = if targets.is_empty() { TARGETS.iter().collect() } else { targets };
            fuzz(&targets)
        }),
    };
    done.unwrap_or_else(|why| refused(&why))
}

fn refused(why: &str) -> ExitCode {
    eprintln!("driver: {why}");
    ExitCode::from(2)
}

fn named(name: &str) -> Result<&'static Target, String> {
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    by_name(name).ok_or_else(|| format!("no target `{name}`; there are: {}", names.join(" ")))
}

/// Reads a number of the environment.
fn number(name: &str, default: u64) -> Result<u64, String> {
    match std::env::var(name) {
        Ok(text) => text.parse().map_err(|_| format!("{name} is no number: `{text}`")),
        Err(_) => Ok(default),
    }
}

/// Returns where findings of a target go.
fn artifacts(name: &str) -> PathBuf {
    repository::root().join("fuzz/artifacts").join(name)
}

/// Writes a finding down, and says where it is.
fn keep(name: &str, kind: &str, data: &[u8]) -> PathBuf {
    let digest = hex(&Sha256::digest(data)[..6]);
    let path = artifacts(name).join(format!("{kind}-{digest}"));
    let written = fs::create_dir_all(artifacts(name)).and_then(|()| fs::write(&path, data));
    if let Err(error) = written {
        eprintln!("driver: {} cannot be written: {error}", path.display());
    }
    path
}

// --- All targets ---

/// A target at work.
struct Worker {
    target: &'static Target,
    child: Child,
    current: PathBuf,
}

/// Fuzzes targets, as many at a time as there are processors.
fn fuzz(targets: &[&'static Target]) -> Result<ExitCode, String> {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let jobs = usize::try_from(number("LL_FUZZ_JOBS", processors)?.max(1)).unwrap_or(1);
    let (seconds, seed) = (number("LL_FUZZ_SECONDS", 20)?, number("LL_FUZZ_SEED", 0)?);
    println!("{} targets, {seconds} s each, {jobs} at a time, seed {seed}", targets.len());
    let scratch = scratch().map_err(|error| error.to_string())?;
    let (mut waiting, mut working, mut bad) = (targets.to_vec(), Vec::new(), Vec::new());
    waiting.reverse();
    while !(waiting.is_empty() && working.is_empty()) {
        while working.len() < jobs
            && let Some(target) = waiting.pop()
        {
            working.push(start(target, scratch.path())?);
        }
        let mut still = Vec::new();
        for mut worker in working {
            match worker.child.try_wait().map_err(|error| error.to_string())? {
                None => still.push(worker),
                Some(status) if status.success() => {}
                Some(status) => {
                    bad.push(worker.target.name);
                    if status.code() != Some(FOUND.into()) {
                        died(&worker, status);
                    }
                }
            }
        }
        working = still;
        std::thread::sleep(Duration::from_millis(20));
    }
    if bad.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("findings in: {}. Each is a file in fuzz/artifacts; to try it again:", bad.join(", "));
    println!("  fuzz/run --reproduce TARGET FILE");
    Ok(ExitCode::FAILURE)
}

/// Makes a directory for what is written meanwhile; in memory, where there is a place for that.
fn scratch() -> std::io::Result<tempfile::TempDir> {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())
}

fn start(target: &'static Target, scratch: &Path) -> Result<Worker, String> {
    let current = scratch.join(target.name);
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["--worker", target.name]).env("LL_FUZZ_CURRENT", &current).stdin(Stdio::null());
    // What a process leaves that dies goes with the directory.
    let own = scratch.join(format!("{}-files", target.name));
    fs::create_dir(&own).map_err(|error| error.to_string())?;
    command.env("TMPDIR", own);
    let child = command.spawn().map_err(|error| error.to_string())?;
    Ok(Worker { target, child, current })
}

/// A process that died has said nothing; its input is the one that it tried last.
fn died(worker: &Worker, status: std::process::ExitStatus) {
    let name = worker.target.name;
    let kind = if status.code() == Some(TOO_SLOW) { "slow" } else { "abort" };
    match Current::read(&worker.current) {
        Ok(data) => println!("{name}: {status}: {}", keep(name, kind, &data).display()),
        Err(error) => println!("{name}: {status}, and its input cannot be read: {error}"),
    }
}

// --- One target ---

/// The input that is being tried, in a file that outlives the process.
struct Current(File);

impl Current {
    fn new(path: &Path) -> std::io::Result<Self> {
        File::create(path).map(Self)
    }

    fn write(&self, data: &[u8]) {
        let length = (data.len() as u64).to_le_bytes();
        // Without it a death is only harder to look into.
        let _lost = self.0.write_all_at(&[&length, data].concat(), 0);
    }

    fn read(path: &Path) -> std::io::Result<Vec<u8>> {
        let (mut file, mut length, mut data) = (File::open(path)?, [0; 8], Vec::new());
        file.read_exact(&mut length)?;
        file.take(u64::from_le_bytes(length)).read_to_end(&mut data)?;
        Ok(data)
    }
}

/// When the execution began that is under way, by the clock of the processor and by that on the wall, in ms.
static BEGAN: (AtomicU64, AtomicU64) = (AtomicU64::new(0), AtomicU64::new(0));

/// What the last panic said, and where.
static PANIC: Mutex<Option<(String, String)>> = Mutex::new(None);

fn processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs().try_into().unwrap_or(0))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Tries inputs until the time is over.
fn work(target: &'static Target) -> ExitCode {
    let parameters = || Some((number("LL_FUZZ_SECONDS", 20).ok()?, number("LL_FUZZ_SEED", 0).ok()?));
    let (Some((seconds, seed)), Some(path)) = (parameters(), std::env::var_os("LL_FUZZ_CURRENT")) else {
        return refused("a worker is started by the driver");
    };
    let current = match Current::new(Path::new(&path)) {
        Ok(current) => current,
        Err(error) => return refused(&error.to_string()),
    };
    // Who takes more dies, and the input is known.
    let limit = Rlimit { current: Some(MOST_MEMORY), maximum: Some(MOST_MEMORY) };
    let _unlimited = setrlimit(Resource::As, limit);
    panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("a panic without words").to_owned();
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        *PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some((message, place));
    }));
    let begun = Instant::now();
    std::thread::spawn(move || watch(begun));
    let found = Fuzzing::new(target, current, begun).go(seed, Duration::from_secs(seconds));
    if found { ExitCode::from(FOUND) } else { ExitCode::SUCCESS }
}

/// Ends the process when an execution takes too long.
#[expect(clippy::exit, reason = "the other thread cannot be asked to end")]
fn watch(begun: Instant) {
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let spent = millis(processor()).saturating_sub(BEGAN.0.load(Ordering::Relaxed));
        let waited = millis(begun.elapsed()).saturating_sub(BEGAN.1.load(Ordering::Relaxed));
        if spent > millis(SLOWEST) || waited > millis(LONGEST_WAIT) {
            std::process::exit(TOO_SLOW);
        }
    }
}

struct Fuzzing {
    target: &'static Target,
    current: Current,
    begun: Instant,
    executions: u64,
    slowest: Duration,
    corpus: Vec<Vec<u8>>,
    notes: BTreeSet<u64>,
    /// What was found, by the place where it panicked.
    found: BTreeMap<String, PathBuf>,
}

impl Fuzzing {
    fn new(target: &'static Target, current: Current, begun: Instant) -> Self {
        let (corpus, notes, found) = (Vec::new(), BTreeSet::new(), BTreeMap::new());
        Self { target, current, begun, executions: 0, slowest: Duration::ZERO, corpus, notes, found }
    }

    fn go(mut self, seed: u64, time: Duration) -> bool {
        let seeds = (self.target.seeds)();
        for seed in seeds.iter().filter(|seed| seed.len() <= LONGEST) {
            self.take(seed.clone());
            self.corpus.push(seed.clone());
        }
        let mut random = Random::new(seed);
        while self.begun.elapsed() < time && self.found.len() < ENOUGH {
            let input = mutate(&self.corpus, self.target.words, &mut random);
            self.take(input);
        }
        let (name, found) = (self.target.name, self.found.len());
        let rate = self.executions / self.begun.elapsed().as_secs().max(1);
        println!(
            "{name:<10} {:>9} executions {found:>3} findings  {rate:>6}/s  {:>5} inputs kept  slowest {} ms",
            self.executions,
            self.corpus.len(),
            self.slowest.as_millis(),
        );
        found > 0
    }

    /// Tries an input, and keeps it when it led to something new.
    fn take(&mut self, input: Vec<u8>) {
        let began = processor();
        let panicked = self.try_one(&input);
        self.slowest = self.slowest.max(processor().saturating_sub(began));
        let notes = take_notes();
        let known = self.notes.len();
        self.notes.extend(notes);
        match panicked {
            Some((message, place)) if !self.found.contains_key(&place) => {
                let short =
                    minimise(input, |data| self.try_one(data).is_some_and(|(_, again)| again == place));
                let path = keep(self.target.name, "crash", &short);
                println!("{}: panicked at {place}: {message}\n  {}", self.target.name, path.display());
                let _flushed = std::io::stdout().flush();
                self.found.insert(place, path);
            }
            None if self.notes.len() > known => self.corpus.push(input),
            Some(_) | None => {}
        }
    }

    /// Tries an input, and returns what panicked, and where.
    fn try_one(&mut self, input: &[u8]) -> Option<(String, String)> {
        self.executions += 1;
        self.current.write(input);
        BEGAN.0.store(millis(processor()), Ordering::Relaxed);
        BEGAN.1.store(millis(self.begun.elapsed()), Ordering::Relaxed);
        let run = self.target.run;
        panic::catch_unwind(AssertUnwindSafe(|| run(input))).err()?;
        let said = PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        Some(said.unwrap_or_default())
    }
}

// --- One input ---

fn read(file: &Path) -> Result<Vec<u8>, String> {
    fs::read(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn reproduce(target: &Target, file: &Path) -> Result<ExitCode, String> {
    let (data, began) = (read(file)?, processor());
    (target.run)(&data);
    println!("{}: no finding ({} ms)", target.name, processor().saturating_sub(began).as_millis());
    Ok(ExitCode::SUCCESS)
}

fn shorten(target: &Target, file: &Path) -> Result<ExitCode, String> {
    let data = read(file)?;
    panic::set_hook(Box::new(|_| {}));
    let panics = |data: &[u8]| panic::catch_unwind(AssertUnwindSafe(|| (target.run)(data))).is_err();
    if !panics(&data) {
        return Err(format!("{} does not panic", file.display()));
    }
    println!("{}", keep(target.name, "short", &minimise(data, panics)).display());
    Ok(ExitCode::SUCCESS)
}

fn write_seeds(directory: &Path) -> Result<ExitCode, String> {
    for target in TARGETS {
        let directory = directory.join(target.name);
        fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        for (at, seed) in (target.seeds)().iter().enumerate() {
            fs::write(directory.join(format!("seed-{at:04}")), seed).map_err(|error| error.to_string())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
