//! Names the files of a run, while it runs and in the history, and moves them there.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::{fault, reserve};
use crate::base::name::LoopName;
use crate::base::own::OF_RUNS;
use crate::base::time::Timestamp;
use crate::files::read::{self, Unread};
use crate::files::{gitdir, replace};

/// The names of a run's files.
#[derive(Clone, Debug)]
pub struct RunFiles {
    directory: PathBuf,
    history: PathBuf,
    instance: String,
}

/// The content of the `.gitignore` inside of each directory of runs. It ignores itself, so that `git add -A` takes nothing
/// of ours into a commit, and neither `git clean -d` nor `git stash -u` takes it away.
const IGNORE: &str = "# Written by ll-loop: files of runs are not part of the repository.\n*\n";

/// A file that keeps a tool out of a directory of runs. Most tools heed git; what they take with it, or read in every folder
/// below the one in which they are called, they can be told here.
struct KeepOut {
    name: &'static str,
    text: &'static str,
    /// Files beside `.loops`, one of which says that the tool is used. Without its own settings, this one is a mistake to it.
    beside: &'static [&'static str],
}

const KEEP_OUT: [KeepOut; 4] = [
    KeepOut { name: ".gitignore", text: IGNORE, beside: &[] },
    // Settings of no file: what an editor keeps to is not looked for above.
    KeepOut { name: ".editorconfig", text: "root = true\n", beside: &[".editorconfig"] },
    KeepOut {
        name: "biome.json",
        text: "{ \"root\": false, \"files\": { \"includes\": [] } }\n",
        beside: &["biome.json", "biome.jsonc"],
    },
    KeepOut { name: ".markdownlint-cli2.jsonc", text: "{ \"ignores\": [\"**\"] }\n", beside: &[] },
];

/// Writes into a directory of runs, below `loops`, what keeps others out of it.
fn keep_others_out(directory: &Path, loops: &Path) -> io::Result<()> {
    for KeepOut { name, text, beside } in KEEP_OUT {
        let is_used = beside.is_empty() || beside.iter().any(|file| loops.with_file_name(file).is_file());
        if is_used {
            replace::create(&directory.join(name), text)?;
        }
    }
    Ok(())
}

/// Adds the directories of runs to those that this clone ignores, in `info/exclude`, which no action commits or cleans.
fn exclude(loops: &Path) -> io::Result<()> {
    let Some(git) = gitdir::around(loops) else { return Ok(()) };
    let name = loops.file_name().and_then(|name| name.to_str()).ok_or(io::ErrorKind::InvalidInput)?;
    let path = git.shared.join("info/exclude");
    let present = match read::bytes(&path, read::MIB) {
        Ok(bytes) => bytes,
        Err(Unread::Absent) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let lines = OF_RUNS.map(|directory| format!("**/{name}/{directory}/"));
    let is_there =
        |line: &str| present.split(|byte| *byte == b'\n').any(|present| present == line.as_bytes());
    let missing: Vec<_> = lines.iter().filter(|line| !is_there(line)).map(String::as_str).collect();
    if missing.is_empty() {
        return Ok(());
    }
    // The file is the user's, and its last line may have no end.
    let start = if present.last().is_none_or(|last| *last == b'\n') { "" } else { "\n" };
    fs_err::create_dir_all(git.shared.join("info"))?;
    // One write at the end of the file: of two runs that begin at once, neither undoes what the other wrote.
    let options = &mut fs_err::OpenOptions::new();
    let mut file = read::open_with(&path, options.append(true).create(true), rustix::fs::OFlags::NOFOLLOW)?;
    file.write_all(format!("{start}# Written by ll-loop\n{}\n", missing.join("\n")).as_bytes())
}

impl RunFiles {
    /// Names the files of a new run below `loops` (`.loops`); `random` keeps two runs of one second apart.
    pub fn new(loops: &Path, name: &LoopName, at: Timestamp, random: u32) -> Self {
        let stem = name.file_stem();
        Self {
            directory: Self::running(loops),
            history: Self::archive_of_all(loops).join(&stem),
            instance: format!("{stem}-{}-{:06x}", at.compact(), random & 0x00FF_FFFF),
        }
    }

    /// The directory of the worktrees of runs, in `.loops`.
    pub const WORKTREES: &str = ".worktrees";

    /// Names the files of a run that is to begin now. Two of the same second differ.
    pub fn fresh(loops: &Path, name: &LoopName, now: Timestamp) -> Self {
        Self::new(loops, name, now, uuid::Uuid::new_v4().as_fields().0)
    }

    /// Names the files of a run that began earlier and is not in the history.
    pub fn of(loops: &Path, instance: &str) -> Option<Self> {
        // From the end, because the name of a loop may have hyphens, too.
        let mut parts = instance.rsplitn(3, '-');
        let (_random, _time, stem) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self {
            directory: Self::running(loops),
            history: Self::archive_of_all(loops).join(stem),
            instance: instance.to_owned(),
        })
    }

    /// Names the same files in a directory of the history.
    #[must_use]
    pub fn archived_in(self, directory: &Path) -> Self {
        Self { directory: directory.to_owned(), ..self }
    }

    /// The files of all runs that are not in the history.
    pub fn running(loops: &Path) -> PathBuf {
        loops.join(".running")
    }

    /// The directories of all loops in the history.
    pub fn archive_of_all(loops: &Path) -> PathBuf {
        loops.join(".history")
    }

    /// Returns the name of the loop as it stands in file names.
    pub fn stem(&self) -> &str {
        self.instance.rsplitn(3, '-').nth(2).unwrap_or(&self.instance)
    }

    /// Returns the instance id.
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// Returns the directory of all runs that are not in the history.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes the directory of all runs, and on first use what keeps git from taking files of runs for the user's.
    pub fn make_directory(&self) -> io::Result<()> {
        fs_err::create_dir_all(&self.directory)?;
        keep_others_out(&self.directory, self.loops())?;
        if let Some(loops) = self.directory.parent() {
            // Where `.git` cannot be written, the file above has to do.
            let _best_effort = exclude(loops);
        }
        Ok(())
    }

    /// Makes the run's own directory.
    pub fn make_scratch(&self) -> io::Result<()> {
        fs_err::create_dir_all(self.scratch())
    }

    /// The append-only journal.
    pub fn journal(&self) -> PathBuf {
        self.with("events.jsonl")
    }

    /// `state.json`, for people and other tools.
    pub fn state(&self) -> PathBuf {
        self.with("state.json")
    }

    /// The previous `state.json`, which the next one overwrites.
    pub fn spare_state(&self) -> PathBuf {
        self.with("state.json.new")
    }

    /// Everything the actions printed.
    pub fn log(&self) -> PathBuf {
        self.with("log")
    }

    /// The list of what is still to do after the end of the run; removed when all of it is done.
    pub fn unreported(&self) -> PathBuf {
        self.with("unreported")
    }

    /// Disk space that is reserved for the end of the run.
    pub fn reserve(&self) -> PathBuf {
        self.with("reserve")
    }

    /// The process id, while it runs.
    pub fn pid(&self) -> PathBuf {
        self.with("pid")
    }

    /// The output of the agent's session that continues the run.
    pub fn session(&self) -> PathBuf {
        self.with("session.log")
    }

    /// The reports.
    pub fn report(&self) -> PathBuf {
        self.with("report")
    }

    /// The nights of the loop, of one series where jobs have several. The file belongs to all of these runs, and stays
    /// when runs are deleted.
    pub fn nights(&self, series: Option<&str>) -> PathBuf {
        match series {
            Some(series) => self.history.join(format!("nights-{series}.json")),
            None => self.history.join("nights.json"),
        }
    }

    /// Where the closing pass puts files aside.
    pub fn aside(&self) -> PathBuf {
        self.with("aside")
    }

    /// What the run changed in the working tree, as a patch.
    pub fn patch(&self) -> PathBuf {
        self.with("patch")
    }

    /// Objects of git for trees that the repository does not have.
    pub fn objects(&self) -> PathBuf {
        self.with("objects")
    }

    /// The index of the repository as it was when the run began.
    pub fn start_index(&self) -> PathBuf {
        self.objects().join("start-index")
    }

    /// Streams that are too long for the journal.
    pub fn streams(&self) -> PathBuf {
        self.with("streams")
    }

    /// The directory for files of the loop's actions.
    pub fn scratch(&self) -> PathBuf {
        self.with("dir")
    }

    /// The git worktree in which the run works, if it has one. It stays where it is when the other files move.
    pub fn worktree(&self) -> PathBuf {
        self.loops().join(Self::WORKTREES).join(&self.instance)
    }

    /// Returns `.loops`.
    pub fn loops(&self) -> &Path {
        self.history.ancestors().nth(2).unwrap_or(&self.history)
    }

    /// Tells whether these are the files in the history.
    pub fn is_archived(&self) -> bool {
        self.directory == self.history
    }

    /// Removes the files that only a running run needs: the reserved space, the process id, the previous snapshot,
    /// an empty scratch directory.
    pub fn release(&self) {
        reserve::release(&self.reserve());
        for file in [self.pid(), self.spare_state()] {
            fault::point();
            let _absent = fs_err::remove_file(file);
        }
        // Fails if the loop wrote files there, which are then kept.
        let _in_use = std::fs::remove_dir(self.scratch());
    }

    /// Names the files where they are once they were moved to the history.
    #[must_use]
    pub fn archived(&self) -> Self {
        Self { directory: self.history.clone(), ..self.clone() }
    }

    /// Names the files where they are while the run is not in the history.
    #[must_use]
    pub fn taken_back(&self) -> Self {
        Self { directory: Self::running(self.loops()), ..self.clone() }
    }

    /// Moves the files of a run that cannot be resumed to the history. Returns the files at their new place. If
    /// one cannot be moved, none is; if this process is killed meanwhile, the next command moves the rest.
    pub fn archive(&self) -> io::Result<Self> {
        fault::write(1)?;
        fs_err::create_dir_all(&self.history)?;
        keep_others_out(&Self::archive_of_all(self.loops()), self.loops())?;
        let archived = self.archived();
        self.move_to(&archived)?;
        fault::point();
        // The patch is made, and nothing else needs them.
        let _absent = std::fs::remove_dir_all(self.objects());
        Ok(archived)
    }

    /// Moves the files of a run that is taken up again back from the history, in the same way.
    pub fn take_back(&self) -> io::Result<Self> {
        let taken = self.taken_back();
        self.move_to(&taken)?;
        Ok(taken)
    }

    fn move_to(&self, target: &Self) -> io::Result<()> {
        // The journal goes last, because the listing finds runs by their journals.
        let moves = [
            (self.log(), target.log()),
            (self.session(), target.session()),
            (self.streams(), target.streams()),
            (self.scratch(), target.scratch()),
            (self.report(), target.report()),
            (self.patch(), target.patch()),
            (self.state(), target.state()),
            (self.unreported(), target.unreported()),
            (self.journal(), target.journal()),
        ];
        let mut done: Vec<(PathBuf, PathBuf)> = Vec::new();
        for (from, to) in moves {
            if !from.exists() {
                continue;
            }
            fault::point();
            if let Err(error) = fault::write(1).and_then(|()| fs_err::rename(&from, &to)) {
                for (from, to) in done.iter().rev() {
                    let _best_effort = fs_err::rename(to, from);
                }
                return Err(error);
            }
            done.push((from, to));
        }
        Ok(())
    }

    fn with(&self, extension: &str) -> PathBuf {
        self.directory.join(format!("{}.{extension}", self.instance))
    }
}
