//! Bundles that somebody else made: nothing in one is run, nothing is written outside of `.loops` before all of it was
//! checked, and one that is refused leaves nothing behind.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use crate::common::{Project, Ran, signal};

const LOOP: &str = r"
name: main
initial: change
on_change: report
states:
  change: {action: 'echo changed >> tracked; echo new > made; ln -s tracked link', next: wait}
  wait: {action: 'touch begun; while ! test -f ../go && test -d ../one; do sleep 0.02; done; rm -f begun', next: last}
  last: {action: 'test -f made', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}
";

/// Notes every call of git with its arguments, and calls it.
const GIT: &str = r#"#!/bin/sh
for word in "$@"; do printf '%s\037' "$word" >> "$MARKS/git"; done
printf '\n' >> "$MARKS/git"
exec "$REAL_GIT" "$@"
"#;

/// Notes that it was started at all.
const MARK: &str = "#!/bin/sh\necho \"$0 $*\" >> \"$MARKS/started\"\n";

/// What nobody may start while a bundle is looked at.
const PROGRAMS: [&str; 8] = ["evil", "ssh", "gpg", "less", "vi", "curl", "git-evil", "git-remote-evil"];

/// A run that was left in the checkout `one`, and the checkout `two` where it may go on. Around both lie a home, a
/// directory for temporary files, and programs that leave a mark.
pub(crate) struct Stage {
    project: Project,
    bundle: Vec<u8>,
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    String::from_utf8_lossy(&git_fed(directory, arguments, b"")).trim().to_owned()
}

fn git_fed(directory: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

impl Stage {
    pub(crate) fn new() -> Self {
        let project = Project::new();
        for directory in ["one/.loops", "home", "tmp", "marks", "programs", "hooks"] {
            fs::create_dir_all(project.at(directory)).unwrap();
        }
        let real = Command::new("sh").args(["-c", "command -v git"]).output().unwrap();
        let real = String::from_utf8(real.stdout).unwrap().trim().to_owned();
        program(&project.at("programs/git"), GIT);
        for name in PROGRAMS {
            program(&project.at(&format!("programs/{name}")), MARK);
        }
        let at = |path: &str| project.at(path).to_string_lossy().into_owned();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", at("programs"));
        let (home, tmp, marks) = (at("home"), at("tmp"), at("marks"));
        let project = project
            .env("PATH", path)
            .env("HOME", home)
            .env("TMPDIR", tmp)
            .env("MARKS", marks)
            .env("REAL_GIT", real);
        let one = project.at("one");
        git(&one, &["init", "-q"]);
        for (path, text) in [
            (".loops/main.yaml", LOOP),
            ("tracked", "as it was\n"),
            ("docs/page", "text\n"),
            (".gitattributes", "* filter=evil diff=evil merge=evil\n"),
        ] {
            project.write(&format!("one/{path}"), text);
        }
        git(&one, &["add", "-A"]);
        git(&one, &["commit", "-q", "-m", "first"]);
        git(project.path(), &["clone", "-q", "one", "two"]);
        git(&one, &["remote", "add", "origin", "https://github.com/o/r"]);
        git(&project.at("two"), &["remote", "set-url", "origin", "git@github.com:o/r.git"]);
        let mut this = Self { project, bundle: Vec::new() };
        this.leave();
        this.arm();
        this
    }

    /// Leaves a run in the first checkout.
    fn leave(&mut self) {
        let mut command = self.command("one", &["run", "--ci=plain", "main"]);
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        crate::common::wait_for(|| self.project.exists("one/begun"));
        signal(&child, Signal::TERM);
        let _ended = child.wait_with_output().unwrap();
        self.project.write("go", "");
        let bundle = find(&self.project.at("one/.loops/.running"), ".llz").unwrap();
        self.bundle = fs::read(bundle).unwrap();
    }

    /// Configures everything that git would start in the second checkout, were it not told otherwise.
    fn arm(&self) {
        let two = self.project.at("two");
        let hooks = self.project.at("hooks");
        for hook in
            ["post-checkout", "post-index-change", "reference-transaction", "post-rewrite", "fsmonitor"]
        {
            program(&hooks.join(hook), MARK);
        }
        let hooks = hooks.to_string_lossy().into_owned();
        for (key, value) in [
            ("core.hooksPath", hooks.as_str()),
            ("core.fsmonitor", "evil fsmonitor"),
            ("core.pager", "evil pager"),
            ("core.editor", "evil editor"),
            ("core.sshCommand", "evil ssh"),
            ("credential.helper", "!evil credential"),
            ("gpg.program", "evil"),
            ("commit.gpgSign", "true"),
            ("log.showSignature", "true"),
            ("filter.evil.clean", "evil clean"),
            ("filter.evil.smudge", "evil smudge"),
            ("filter.evil.required", "true"),
            ("filter.pro.process", "evil process"),
            ("filter.pro.required", "true"),
            ("diff.external", "evil diff"),
            ("diff.evil.textconv", "evil textconv"),
            ("diff.evil.command", "evil diff"),
            ("merge.evil.driver", "evil merge"),
            ("submodule.recurse", "true"),
            ("protocol.allow", "always"),
            ("alias.diff", "!evil alias"),
        ] {
            git(&two, &["config", key, value]);
        }
    }

    fn command(&self, checkout: &str, arguments: &[&str]) -> Command {
        let mut command = self.project.command(arguments);
        command.current_dir(self.project.at(checkout));
        command
    }

    /// Goes on with the bundle that nobody touched, up to its last state. What a filter of the checkout would make of
    /// its files is not known, so that the success is not verified.
    fn takes_the_good_one(&self) {
        let ran = self.resume(&self.bundle).code(1);
        assert!(ran.stdout.contains("not verified (tree_unknown)"), "{}", ran.stdout);
        assert!(ran.stdout.contains("done"), "{}", ran.stdout);
    }

    fn resume(&self, bundle: &[u8]) -> Ran {
        fs::write(self.project.at("hostile.llz"), bundle).unwrap();
        let mut command = self.command("two", &["resume", "--ci=plain", "--from", "../hostile.llz"]);
        Ran::of(&command.output().unwrap())
    }

    /// Everything around the run, but for what a run keeps in `.loops`: names, kinds, modes and contents.
    fn everything(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        list(self.project.path(), &mut found);
        let root = self.project.path();
        let own = [
            "marks",
            "hostile.llz",
            "two/.git/info/exclude",
            "two/.git/ll-loop",
            "two/.loops/.gitignore",
            "two/.loops/.running/.gitignore",
            "two/.loops/.running/.markdownlint-cli2.jsonc",
            "two/.loops/.running/biome.json",
        ];
        found.retain(|path, _| !own.iter().any(|own| path.starts_with(root.join(own))));
        // An empty directory of runs is not a run.
        found.remove(&root.join("two/.loops/.running"));
        found
    }

    /// Checks that a bundle is refused, that nothing was started or written, and that the good one can still be taken.
    #[track_caller]
    fn refuses(&self, bundle: &[u8], expected: &str) {
        let before = self.everything();
        let ran = self.resume(bundle).code(2).says(expected);
        self.is_untouched(&before, &ran.all());
    }

    #[track_caller]
    fn is_untouched(&self, before: &BTreeMap<PathBuf, String>, said: &str) {
        let after = self.everything();
        let changed = before.iter().find(|(path, what)| after.get(*path) != Some(what));
        assert!(changed.is_none(), "{changed:?} is {:?}\n{said}", changed.map(|(path, _)| after.get(path)));
        let made = after.iter().find(|(path, _)| !before.contains_key(*path));
        assert!(made.is_none(), "{made:?} was made\n{said}");
        let started = fs::read_to_string(self.project.at("marks/started")).unwrap_or_default();
        assert_eq!(started, "", "{said}");
    }

    fn spoilt(&self, change: impl FnOnce(&mut Parts)) -> Vec<u8> {
        let mut parts = Parts::of(&self.bundle);
        change(&mut parts);
        parts.sealed()
    }
}

fn find(directory: &Path, ending: &str) -> Option<PathBuf> {
    for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.to_string_lossy().ends_with(ending) {
            return Some(entry);
        }
        if let Some(found) = entry.is_dir().then(|| find(&entry, ending)).flatten() {
            return Some(found);
        }
    }
    None
}

fn list(directory: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        let metadata = path.symlink_metadata().unwrap();
        let mode = metadata.permissions().mode();
        let what = if metadata.is_dir() {
            list(&path, found);
            String::from("a directory")
        } else if metadata.is_symlink() {
            format!("a link to {}", path.read_link().unwrap().display())
        } else {
            format!("a file of {:x?}", Sha256::digest(fs::read(&path).unwrap()))
        };
        found.insert(path, format!("{what} ({mode:o})"));
    }
}

/// A bundle taken apart.
pub(crate) struct Parts {
    pub(crate) manifest: Value,
    files: Vec<(String, Vec<u8>)>,
}

impl Parts {
    pub(crate) fn of(bundle: &[u8]) -> Self {
        let mut archive = ZipArchive::new(Cursor::new(bundle)).unwrap();
        let mut files = Vec::new();
        for index in 0..archive.len() {
            let mut file = archive.by_index(index).unwrap();
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            files.push((file.name().unwrap().into_owned(), bytes));
        }
        let at = files.iter().position(|(name, _)| name == "manifest.json").unwrap();
        let (_, manifest) = files.remove(at);
        Self { manifest: serde_json::from_slice(&manifest).unwrap(), files }
    }

    pub(crate) fn file(&mut self, name: &str) -> &mut Vec<u8> {
        let found = self.files.iter_mut().find(|(found, _)| found == name);
        &mut found.unwrap_or_else(|| panic!("no {name}")).1
    }

    /// Writes the digests down and puts it together again.
    pub(crate) fn sealed(mut self) -> Vec<u8> {
        let entry = |(name, bytes): &(String, Vec<u8>)| {
            let sha256 = ll_loop::internals::base::text::hex(&Sha256::digest(bytes));
            json!({"name": name, "size": bytes.len(), "sha256": sha256})
        };
        self.manifest["files"] = self.files.iter().map(entry).collect();
        self.zipped()
    }

    fn zipped(&self) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default();
        zip.start_file("manifest.json", options).unwrap();
        zip.write_all(self.manifest.to_string().as_bytes()).unwrap();
        for (name, bytes) in &self.files {
            zip.start_file(name.as_str(), options).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }
}

#[test]
fn no_value_of_a_manifest_is_an_option_of_git() {
    let stage = Stage::new();
    let victim = stage.project.at("home/precious");
    fs::write(&victim, "mine").unwrap();
    for key in ["base", "head", "commit", "tree", "index"] {
        for value in
            [format!("--output={}", victim.display()), "-h".to_owned(), "HEAD".to_owned(), String::new()]
        {
            let bundle = stage.spoilt(|parts| parts.manifest["tree"][key] = json!(value));
            stage.refuses(&bundle, "it is damaged or was changed");
        }
    }
    stage.takes_the_good_one();
}

#[test]
fn a_bundle_whose_journal_cannot_be_folded_leaves_no_run_behind() {
    let stage = Stage::new();
    let bundle = stage.spoilt(|parts| {
        let journal = parts.file("events.jsonl");
        let text = String::from_utf8(journal.clone()).unwrap();
        *journal = text.replace("\"seq\":3", "\"seq\":7").into_bytes();
    });
    stage.refuses(&bundle, "has the number 7 where 3 comes next");
    stage.takes_the_good_one();
}

#[test]
fn a_good_bundle_starts_nothing_either() {
    let stage = Stage::new();
    stage.takes_the_good_one();
    let started = fs::read_to_string(stage.project.at("marks/started")).unwrap_or_default();
    assert_eq!(started, "");
    assert_eq!(stage.project.read("two/tracked"), "as it was\nchanged\n");
}

#[test]
fn the_good_bundle_is_taken_after_each_kind_of_bad_one() {
    let stage = Stage::new();
    let forge = Forge::of(&stage);
    let other = forge.file("evil", b"EVIL\n");
    let brings = |path: &[&str], mode: &str, id: &str| forge.bundle(&stage, &forge.with(path, mode, id));
    stage.refuses(&brings(&[".loops", "main.yaml"], "100644", &other), "`.loops/main.yaml`: it is a loop");
    stage.refuses(&brings(&[".loops", "new.yml"], "100644", &other), "`.loops/new.yml`: it is a loop");
    stage.refuses(&brings(&[".LOOPS", "main.yaml"], "100644", &other), "it is a loop");
    let link = forge.file("link", b"docs");
    stage.refuses(&brings(&[".loops"], "120000", &link), "it is a loop");
    let out = forge.file("out", b"../home");
    stage.refuses(&brings(&["out"], "120000", &out), "it is a link that may lead out of the repository");
    stage.takes_the_good_one();
}

/// Makes objects that no git would make by itself.
struct Forge {
    directory: PathBuf,
    base: String,
}

impl Forge {
    fn of(stage: &Stage) -> Self {
        let directory = stage.project.at("forge");
        git(stage.project.path(), &["clone", "-q", "one", "forge"]);
        let base = git(&directory, &["rev-parse", "HEAD"]);
        Self { directory, base }
    }

    fn write(&self, kind: &str, bytes: &[u8]) -> String {
        let arguments = ["hash-object", "-t", kind, "-w", "--literally", "--stdin"];
        String::from_utf8(git_fed(&self.directory, &arguments, bytes)).unwrap().trim().to_owned()
    }

    fn file(&self, _name: &str, bytes: &[u8]) -> String {
        self.write("blob", bytes)
    }

    /// The entries of a tree of the base.
    fn entries(&self, path: &str) -> Vec<(String, Vec<u8>, String)> {
        let listed = git(&self.directory, &["ls-tree", &format!("{}:{path}", self.base)]);
        let entry = |line: &str| {
            let (head, name) = line.split_once('\t').unwrap();
            let words: Vec<&str> = head.split(' ').collect();
            (words[0].trim_start_matches('0').to_owned(), name.as_bytes().to_vec(), words[2].to_owned())
        };
        listed.lines().map(entry).collect()
    }

    fn tree(&self, mut entries: Vec<(String, Vec<u8>, String)>) -> String {
        let key = |(mode, name, _): &(String, Vec<u8>, String)| {
            let slash = if mode == "40000" { &b"/"[..] } else { b"" };
            [name.as_slice(), slash].concat()
        };
        entries.sort_by_key(key);
        let mut bytes = Vec::new();
        for (mode, name, id) in entries {
            bytes.extend_from_slice(mode.as_bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(&name);
            bytes.push(0);
            let digit = |at: usize| u8::from_str_radix(&id[at..at + 2], 16).unwrap();
            bytes.extend((0..id.len()).step_by(2).map(digit));
        }
        self.write("tree", &bytes)
    }

    /// The tree of the base with one more entry, or another one in its place.
    fn with(&self, path: &[&str], mode: &str, id: &str) -> String {
        let path: Vec<&[u8]> = path.iter().map(|part| part.as_bytes()).collect();
        self.with_bytes(&path, mode, id, true)
    }

    fn with_bytes(&self, path: &[&[u8]], mode: &str, id: &str, replaces: bool) -> String {
        let [parents @ .., last] = path else { panic!("no path") };
        let mut entry = (mode.trim_start_matches('0').to_owned(), last.to_vec(), id.to_owned());
        for depth in (0..=parents.len()).rev() {
            let place = parents[..depth].join(&b'/');
            let known = String::from_utf8(place).ok().filter(|place| {
                let object = format!("{}:{place}", self.base);
                let arguments = ["cat-file", "-t", &object];
                let ended =
                    Command::new("git").args(arguments).current_dir(&self.directory).output().unwrap();
                ended.stdout == b"tree\n"
            });
            let mut entries = known.map(|place| self.entries(&place)).unwrap_or_default();
            if replaces {
                entries.retain(|(_, name, _)| *name != entry.1);
            }
            entries.push(entry);
            let tree = self.tree(entries);
            let Some(name) = depth.checked_sub(1).map(|at| parents[at]) else { return tree };
            entry = ("40000".to_owned(), name.to_vec(), tree);
        }
        unreachable!("the top has no name")
    }

    fn commit(&self, tree: &str, parent: Option<&str>) -> String {
        let parent = parent.map(|parent| format!("parent {parent}\n")).unwrap_or_default();
        let who = "ll-loop <ll-loop@localhost> 0 +0000";
        let text =
            format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\nThe working tree of a run\n");
        self.write("commit", text.as_bytes())
    }

    /// A pack of all objects that were made here.
    fn pack(&self) -> Vec<u8> {
        let all = git(&self.directory, &["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
        git_fed(&self.directory, &["pack-objects", "--stdout", "-q"], format!("{all}\n").as_bytes())
    }

    /// A bundle whose working tree is this one.
    fn bundle(&self, stage: &Stage, tree: &str) -> Vec<u8> {
        let commit = self.commit(tree, Some(&self.base));
        self.told(stage, &commit, tree, &self.base, None)
    }

    fn told(&self, stage: &Stage, commit: &str, tree: &str, head: &str, index: Option<&str>) -> Vec<u8> {
        let base = &self.base;
        let staged = index.map(|index| format!("{index} refs/ll-loop/index\n")).unwrap_or_default();
        let header =
            format!("# v2 git bundle\n-{base} where the run began\n{commit} refs/ll-loop/tree\n{staged}\n");
        let objects = [header.into_bytes(), self.pack()].concat();
        stage.spoilt(|parts| {
            *parts.file("tree.bundle") = objects;
            parts.manifest["tree"] = json!({
                "base": base, "head": head, "commit": commit, "tree": tree, "index": index, "changed": true, "missing": null,
            });
        })
    }
}

/// A generator of numbers that are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }

    fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.roll(from.len())]
    }
}

/// One bundle that somebody made.
struct Case {
    what: String,
    bytes: Vec<u8>,
    /// Whether it is clear from the start that nobody may take it.
    hostile: bool,
}

/// Values that no field of a bundle expects. Each has a word in it by which it is known on a command line.
fn values(dice: &mut Dice, outside: &Path) -> Value {
    let outside = outside.display();
    let texts = [
        format!("--output={outside}/EVIL"),
        format!("--upload-pack=EVIL {outside}"),
        "-c core.fsmonitor=evil EVIL".to_owned(),
        format!("{outside}/EVIL"),
        format!("../{}EVIL", "../".repeat(dice.roll(12))),
        "$(evil EVIL)".to_owned(),
        "`evil EVIL`; evil".to_owned(),
        "EVIL\nevil\n".to_owned(),
        "\u{1b}]0;EVIL\u{7}\u{1b}[2J".to_owned(),
        "\u{202e}EVIL".to_owned(),
        "EVIL\u{0}".to_owned(),
        ".git/hooks/EVIL".to_owned(),
        "EVIL".repeat(1 << dice.roll(12)),
        "ext::evil EVIL".to_owned(),
        "HEAD@{EVIL}".to_owned(),
        format!("{}EVIL", "a".repeat(36)),
    ];
    let others = [
        json!(null),
        json!(-1),
        json!(u64::MAX),
        json!(1e308),
        json!([["EVIL"]]),
        json!({"EVIL": "--output=x"}),
        json!(true),
        (0..dice.roll(100)).fold(json!("EVIL"), |inner, _| json!([inner])),
    ];
    if dice.roll(4) > 0 { json!(dice.pick(&texts)) } else { dice.pick(&others).clone() }
}

/// Manifests with another value in one place.
fn manifests(stage: &Stage, dice: &mut Dice, count: usize) -> Vec<Case> {
    let outside = stage.project.at("home");
    let make = |_| {
        let mut parts = Parts::of(&stage.bundle);
        let keys: Vec<String> = parts.manifest.as_object().unwrap().keys().cloned().collect();
        let of_tree = ["base", "head", "commit", "tree", "index", "changed", "missing"];
        let value = values(dice, &outside);
        let (what, seal) = match dice.roll(4) {
            0 => {
                let key = dice.pick(&keys).clone();
                parts.manifest[&key] = value.clone();
                (format!("{key} = {value}"), key != "files")
            }
            1 | 2 => {
                let key = *dice.pick(&of_tree);
                parts.manifest["tree"][key] = value.clone();
                (format!("tree.{key} = {value}"), true)
            }
            _ => {
                let entry = dice.roll(parts.files.len());
                let key = *dice.pick(&["name", "size", "sha256"]);
                parts.manifest["files"][entry][key] = value.clone();
                (format!("files[{entry}].{key} = {value}"), false)
            }
        };
        let bytes = if seal { parts.sealed() } else { parts.zipped() };
        Case { what, bytes, hostile: false }
    };
    (0..count).map(make).collect()
}

/// Archives that are none, or not what they say.
fn archives(stage: &Stage, dice: &mut Dice, count: usize) -> Vec<Case> {
    let names = [
        "../EVIL",
        "/EVIL",
        "run-dir/../../EVIL",
        "run-dir/EVIL\\..\\x",
        ".git/hooks/EVIL",
        "run-dir/.git/EVIL",
        "EVENTS.JSONL",
        "run-dir/EVIL\u{0}",
        "run-dir/\u{1b}[2JEVIL",
        "streams/..",
        "run-dir/",
        "report/./EVIL",
        "two/.loops/EVIL.yaml",
        "run-dir/.GIT/EVIL",
        "loops/../EVIL",
        "--output=EVIL",
        "run-dir//EVIL",
    ];
    let make = |number: usize| {
        let kind = number % 9;
        let mut bytes = stage.bundle.clone();
        let spoil = |bytes: &mut Vec<u8>, find: &[u8], at: usize, value: &[u8], dice: &mut Dice| {
            let places: Vec<usize> = bytes
                .windows(find.len())
                .enumerate()
                .filter(|(_, part)| *part == find)
                .map(|(at, _)| at)
                .collect();
            if let Some(place) = places.get(dice.roll(places.len().max(1))) {
                let range = place + at..(place + at + value.len()).min(bytes.len());
                let length = range.len();
                bytes[range].copy_from_slice(&value[..length]);
            }
        };
        let mut hostile = false;
        let what = match kind {
            0 => {
                bytes.truncate(dice.roll(bytes.len()));
                hostile = true;
                "cut short"
            }
            1 => {
                for _ in 0..=dice.roll(4) {
                    let at = dice.roll(bytes.len());
                    bytes[at] ^= 1 << dice.roll(8);
                }
                "turned bits"
            }
            // In the list at the end: flags, method, sizes, the place of the file, its kind.
            2 => {
                let fields: [(usize, &[u8]); 7] = [
                    (8, b"\x01\x00"),
                    (10, b"\x63\x00"),
                    (20, b"\xff\xff\xff\xff"),
                    (24, b"\xff\xff\xff\xff"),
                    (24, b"\x00\x00\x00\x00"),
                    (42, b"\x00\x00\x00\x00"),
                    (38, b"\x00\x00\xff\xa1"),
                ];
                let (at, value) = *dice.pick(&fields);
                spoil(&mut bytes, b"PK\x01\x02", at, value, dice);
                "a lie in the list"
            }
            3 => {
                let (at, value) = *dice.pick(&[
                    (8, b"\xff\xff\xff\xff"),
                    (12, b"\xff\xff\xff\x7f"),
                    (16, b"\x01\x00\x00\x00"),
                ]);
                spoil(&mut bytes, b"PK\x05\x06", at, value, dice);
                "a lie at the end"
            }
            4 => {
                let name: &[u8] =
                    dice.pick::<&[u8]>(&[b"events.jsonl", b"manifest.json", b"output.log", b"tree.bundle"]);
                let other: &[u8] = dice.pick::<&[u8]>(&[
                    b"../../../../../",
                    b"/\xff\xfe/EVIL",
                    b"run-dir/\x00x",
                    b"manifest.json",
                ]);
                let length = other.len().min(name.len());
                spoil(&mut bytes, name, 0, &other[..length], dice);
                "another name"
            }
            5 => {
                let mut parts = Parts::of(&bytes);
                let name = *dice.pick(&names);
                parts.files.push((name.to_owned(), b"EVIL\n".to_vec()));
                bytes = parts.sealed();
                hostile = true;
                name
            }
            6 => {
                let mut parts = Parts::of(&bytes);
                let at = dice.roll(parts.files.len());
                let entry = parts.files[at].clone();
                if dice.roll(2) == 0 {
                    parts.files.remove(at);
                    bytes = parts.zipped();
                    hostile = true;
                } else {
                    parts.files.push((format!("run-dir/{}", entry.0), entry.1));
                    parts.files.push((format!("run-dir/{}/x", entry.0), vec![]));
                    bytes = parts.sealed();
                    hostile = true;
                }
                "a file too many or too few"
            }
            7 => {
                let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
                let options = SimpleFileOptions::default();
                let parts = Parts::of(&bytes);
                zip.start_file("manifest.json", options).unwrap();
                zip.write_all(parts.manifest.to_string().as_bytes()).unwrap();
                for (at, (name, text)) in parts.files.iter().enumerate() {
                    match (at + number) % 3 {
                        0 => zip.add_symlink(name.as_str(), "../../EVIL", options).unwrap(),
                        1 => zip.add_directory(name.as_str(), options).unwrap(),
                        _ => {
                            zip.start_file(name.as_str(), options).unwrap();
                            zip.write_all(text).unwrap();
                        }
                    }
                }
                bytes = zip.finish().unwrap().into_inner();
                hostile = true;
                "links and directories"
            }
            _ => {
                let mut parts = Parts::of(&bytes);
                parts.files.push(("run-dir/bomb".to_owned(), vec![0; 1 << 20]));
                let mut sealed = Parts::of(&parts.sealed());
                let last = sealed.files.len() - 1;
                sealed.manifest["files"][last]["size"] = json!(1_u64 << (20 + dice.roll(44)));
                bytes = sealed.zipped();
                "a bomb"
            }
        };
        Case { what: format!("archive: {what}"), bytes, hostile }
    };
    (0..count).map(make).collect()
}

/// Journals, logs and streams that no run of ours writes.
fn journals(stage: &Stage, dice: &mut Dice, count: usize) -> Vec<Case> {
    let outside = stage.project.at("home");
    let make = |number: usize| {
        let mut parts = Parts::of(&stage.bundle);
        let text = String::from_utf8(parts.file("events.jsonl").clone()).unwrap();
        let mut lines: Vec<Vec<u8>> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
        let at = dice.roll(lines.len());
        let what = match number % 6 {
            0..=2 => {
                let mut event: Value = serde_json::from_slice(&lines[at]).unwrap();
                let keys: Vec<String> = event.as_object().unwrap().keys().cloned().collect();
                let key = dice.pick(&keys).clone();
                let value = values(dice, &outside);
                let nested = event[&key].as_object().and_then(|inner| inner.keys().next().cloned());
                match nested {
                    Some(inner) => event[&key][&inner] = value.clone(),
                    None => event[&key] = value.clone(),
                }
                lines[at] = event.to_string().into_bytes();
                format!("{key} of line {at} = {value}")
            }
            3 => {
                let mut event: Value = serde_json::from_slice(&lines[0]).unwrap();
                let key = *dice.pick(&["commit", "run_id", "definition_sha256", "loop"]);
                event[key] = json!(format!("--output={}/EVIL", outside.display()));
                event["source"]["file"] =
                    json!(*dice.pick(&["/etc/EVIL", "../EVIL.yaml", ".loops/main.yaml"]));
                lines[0] = event.to_string().into_bytes();
                format!("the start says another {key}")
            }
            4 => {
                let odd: [Vec<u8>; 5] = [
                    b"[".repeat(100_000),
                    vec![0; 4096],
                    b"\xff\xfe\n".to_vec(),
                    br#"{"event":"teleport","ts":"2026-01-01T00:00:00.000Z","seq":2}"#.to_vec(),
                    Vec::new(),
                ];
                lines[at].clone_from(dice.pick(&odd));
                format!("line {at} is none")
            }
            _ => {
                let name = *dice.pick(&[
                    "output.log",
                    "streams/000001.stdout",
                    "run-dir/x",
                    "state.json",
                    "report/x.html",
                ]);
                parts.files.retain(|(found, _)| found != name);
                parts.files.push((name.to_owned(), b"\x1b]0;EVIL\x07\x1b[2J\xff\x00".repeat(100)));
                lines.truncate(at);
                format!("{name} holds anything, and the journal has {at} lines")
            }
        };
        *parts.file("events.jsonl") =
            lines.iter().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect();
        Case { what: format!("journal: {what}"), bytes: parts.sealed(), hostile: false }
    };
    (0..count).map(make).collect()
}

/// Objects that would write where nothing may be written, or bring what only a checkout has.
fn objects(stage: &Stage, forge: &Forge, dice: &mut Dice, count: usize) -> Vec<Case> {
    let evil = forge.file("evil", b"#!/bin/sh\nevil\n");
    let blob = |text: &str| forge.file("text", text.as_bytes());
    let names: [&[u8]; 18] = [
        b".git",
        b".GIT",
        b".Git ",
        b"git~1",
        b"GIT~1",
        b".git.",
        b".g\xe2\x80\x8cit",
        b".git::$INDEX_ALLOCATION",
        b"..",
        b".",
        b"",
        b".loops",
        b".LOOPS",
        b".lo\xe2\x80\x8dops",
        b"loops~1",
        b".loops.",
        b".gitmodules",
        b"a/b",
    ];
    let below: [&[u8]; 6] = [b"config", b"main.yaml", b"hooks", b"x.yml", b"MAIN.YAML", b"post-checkout"];
    let targets = [
        "/etc/passwd",
        "../../home/EVIL",
        "..",
        ".git/config",
        ".git/hooks",
        ".loops/main.yaml",
        ".loops",
        "docs/../../x",
        "",
        "docs/../..",
        ".LOOPS/x",
        "./../EVIL",
        "a//../../EVIL",
    ];
    let make = |number: usize| {
        let kind = number % 10;
        let (what, bytes) = match kind {
            0..=2 => {
                let (name, file) = (*dice.pick(&names), *dice.pick(&below));
                // `.loops/hooks` and the like are not loops, and a file of modules is one as any other.
                let is_file = dice.roll(2) == 0;
                let path: Vec<&[u8]> = if is_file { vec![name] } else { vec![name, file] };
                let deeper: Vec<&[u8]> = if dice.roll(2) == 0 {
                    path
                } else {
                    std::iter::once(&b"docs"[..]).chain(path).collect()
                };
                let mode = *dice.pick(&["100644", "100755", "120000"]);
                let tree = forge.with_bytes(&deeper, mode, &evil, true);
                (
                    format!("{mode} at {:?}", String::from_utf8_lossy(&deeper.join(&b'/'))),
                    forge.bundle(stage, &tree),
                )
            }
            3 | 4 => {
                let target = *dice.pick(&targets);
                let name = *dice.pick(&["tracked", "link", "docs", ".loops", ".gitattributes"]);
                let tree = forge.with(&[name], "120000", &blob(target));
                (format!("{name} leads to {target:?}"), forge.bundle(stage, &tree))
            }
            5 => {
                // The same name twice: a link, and a directory behind it.
                let inner = forge.tree(vec![("100644".to_owned(), b"EVIL".to_vec(), evil.clone())]);
                let mut entries = forge.entries("");
                entries.push(("120000".to_owned(), b"out".to_vec(), blob("../home")));
                entries.push(("40000".to_owned(), b"out".to_vec(), inner));
                (format!("a link and a directory ({number})"), forge.bundle(stage, &forge.tree(entries)))
            }
            6 => {
                let mode = *dice.pick(&["140000", "100777", "170000", "777", "1000000000644"]);
                let tree = forge.with(&["tracked"], mode, &evil);
                (format!("a file of the mode {mode}"), forge.bundle(stage, &tree))
            }
            7 => {
                let modules =
                    blob("[submodule \"../x\"]\n\tpath = -x\n\turl = --upload-pack=EVIL\n\tupdate = !evil\n");
                let tree = forge.with(&[".gitmodules"], "100644", &modules);
                let commit = forge.commit(&tree, Some(&forge.base));
                (format!("modules ({number})"), forge.told(stage, &commit, &tree, &forge.base, None))
            }
            8 => {
                let tree = forge.with(&["docs", "page"], "100644", &evil);
                let head =
                    forge.commit(&forge.with(&[".loops", "main.yaml"], "100644", &evil), Some(&forge.base));
                let orphan = forge.commit(&tree, None);
                let good = forge.commit(&tree, Some(&forge.base));
                let on_head = forge.commit(&tree, Some(&head));
                let id = "1".repeat(40);
                let (commit, tree, head, index) = *dice.pick(&[
                    (&orphan, &tree, &forge.base, None),
                    (&good, &id, &forge.base, None),
                    (&good, &tree, &head, None),
                    (&on_head, &tree, &head, None),
                    (&good, &tree, &forge.base, Some(&head)),
                    (&good, &tree, &forge.base, Some(&orphan)),
                    (&good, &tree, &orphan, None),
                    (&id, &tree, &forge.base, None),
                    (&good, &good, &forge.base, None),
                    (&tree, &tree, &forge.base, None),
                ]);
                let index = index.map(String::as_str);
                (format!("unrelated commits ({number})"), forge.told(stage, commit, tree, head, index))
            }
            _ => {
                let good = stage.spoilt(|_| {});
                let mut parts = Parts::of(&good);
                let objects = parts.file("tree.bundle");
                let at = objects.windows(2).position(|part| part == b"\n\n").unwrap();
                let (header, pack) =
                    (String::from_utf8(objects[..at].to_vec()).unwrap(), objects[at..].to_vec());
                let spoilt = match dice.roll(8) {
                    0 => header.replace("v2", "v3").replacen('\n', "\n@filter=blob:none\n", 1),
                    1 => header.replace("v2", "v3").replacen('\n', "\n@object-format=EVIL\n", 1),
                    2 => format!("{header}\n{} refs/heads/main", "1".repeat(40)),
                    3 => header.replace("refs/ll-loop/tree", "--output=EVIL"),
                    4 => header.replacen('-', "--upload-pack=EVIL", 1),
                    5 => header.replacen(" where", "\n-1111111111111111111111111111111111111111 where", 1),
                    6 => header.replace("# v2", "# v9"),
                    _ => header.clone(),
                };
                let mut pack = pack;
                if spoilt == header {
                    let at = 14 + dice.roll(pack.len() - 14);
                    pack[at] ^= 0x55;
                }
                *objects = [spoilt.as_bytes(), &pack].concat();
                (format!("header or pack ({number})"), parts.sealed())
            }
        };
        Case { what: format!("objects: {what}"), bytes, hostile: kind != 0 && kind != 1 && kind != 2 }
    };
    (0..count).map(make).collect()
}

/// What a call of git was told: its options before the place where they end, and the other words.
fn told(log: &str) -> Vec<Vec<String>> {
    log.lines().map(|line| line.split('\u{1f}').map(str::to_owned).collect()).collect()
}

#[test]
fn a_thousand_hostile_bundles_write_nothing_outside_start_nothing_and_leave_no_run() {
    use ll_loop::internals::bundle::open::{Bundle, locate};
    use ll_loop::internals::files::unzip::UnzipLimits;

    const CASES: usize = 1000;
    let stage = Stage::new();
    let forge = Forge::of(&stage);
    let mut dice = Dice(0x5eed_1234_5678_9abc);
    let mut cases = manifests(&stage, &mut dice, 350);
    cases.extend(archives(&stage, &mut dice, 300));
    cases.extend(journals(&stage, &mut dice, 150));
    cases.extend(objects(&stage, &forge, &mut dice, 200));
    assert_eq!(cases.len(), CASES);
    fs::remove_dir_all(&forge.directory).unwrap();

    // What git is asked when all is well.
    let two = stage.project.at("two");
    let kept = stage.project.at("kept");
    let copy = |from: &Path, to: &Path| {
        let ended = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
        assert!(ended.success());
    };
    copy(&two, &kept);
    stage.takes_the_good_one();
    let again = || {
        fs::remove_dir_all(&two).unwrap();
        copy(&kept, &two);
    };
    again();
    let log = || fs::read_to_string(stage.project.at("marks/git")).unwrap_or_default();
    let options = |call: &[String]| -> Vec<String> {
        let end =
            call.iter().position(|word| word == "--end-of-options" || word == "--").unwrap_or(call.len());
        call[..end].iter().filter(|word| word.starts_with('-')).cloned().collect()
    };
    let known: std::collections::BTreeSet<String> =
        told(&log()).iter().flat_map(|call| options(call)).collect();
    fs::remove_file(stage.project.at("marks/git")).unwrap();

    let before = stage.everything();
    let (mut refused, mut taken, mut not_opened, mut opened_only) = (0, 0, 0, 0);
    for (number, case) in cases.iter().enumerate() {
        let what = &case.what;
        let needs_program = what.starts_with("objects") || number % 5 == 0;
        let file = stage.project.at("hostile.llz");
        fs::write(&file, &case.bytes).unwrap();
        // As the program begins.
        let place = tempfile::tempdir_in(stage.project.at("tmp")).unwrap();
        let (scratch, target) = (place.path().join("scratch"), place.path().join("target"));
        fs::create_dir(&scratch).unwrap();
        fs::create_dir(&target).unwrap();
        let limits = UnzipLimits { entries: 1000, bytes: 64 << 20 };
        let opened = locate(&file, &scratch, limits).and_then(|file| Bundle::open(&file, limits));
        let opened = opened.and_then(|bundle| bundle.extract(&target));
        let mut found = BTreeMap::new();
        list(&target, &mut found);
        assert!(!found.values().any(|what| what.starts_with("a link")), "{what}: {found:?}");
        drop(place);
        if !needs_program {
            stage.is_untouched(&before, what);
            not_opened += usize::from(opened.is_err());
            opened_only += usize::from(opened.is_ok());
            continue;
        }
        let mut command = stage.command("two", &["resume", "--ci=plain", "--from", "../hostile.llz"]);
        let ran = Ran::of(&command.output().unwrap());
        let said = format!("{what}\n{}", ran.all());
        assert!(!ran.stderr.contains("panicked") && !ran.all().contains('\u{1b}'), "{said}");
        if ran.code == Some(2) {
            refused += 1;
            stage.is_untouched(&before, &said);
        } else {
            taken += 1;
            assert!(!case.hostile && opened.is_ok(), "it was taken: {said}");
            // What it brought is in the checkout, and nowhere else.
            let config = [".git/config", ".git/hooks", ".loops/main.yaml"].map(|path| two.join(path));
            let mut after = stage.everything();
            let mut before = before.clone();
            for paths in [&mut before, &mut after] {
                paths.retain(|path, _| {
                    !path.starts_with(&two) || config.iter().any(|own| path.starts_with(own))
                });
            }
            assert_eq!(before, after, "{said}");
            let started = fs::read_to_string(stage.project.at("marks/started")).unwrap_or_default();
            assert_eq!(started, "", "{said}");
            again();
        }
    }
    for call in told(&log()) {
        for option in options(&call) {
            assert!(known.contains(&option) && !option.contains("EVIL"), "`{option}` in {call:?}");
        }
    }
    println!(
        "{CASES} bundles: the program refused {refused} and took {taken} with nothing in them to refuse; of the others, \
         {not_opened} were refused as they were opened, and {opened_only} were unpacked and not looked at further"
    );
    assert_eq!(refused + taken + not_opened + opened_only, CASES);
    assert!(refused > 250 && not_opened > 300, "{refused} and {not_opened} refused");
    stage.takes_the_good_one();
}
