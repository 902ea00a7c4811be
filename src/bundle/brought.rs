//! What the changes of a working tree may bring to another checkout: never a loop, or what a loop pulls in, never a
//! file of git's own, and no link that leads to one or out of the repository. Whoever packs a tree leaves these out, so
//! that whoever takes one over can refuse it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::base::gitpath;
use crate::base::object::ObjectId;
use crate::base::relative::is_like;
use crate::base::text::{one_line, up_to};
use crate::git::blobs;
use crate::git::call::Call;
use crate::git::error::TreeError;
use crate::git::runner::Git;

/// The longest target of a link: Linux takes none that is longer.
const MOST_TARGET: u64 = 4096;

/// The most that the changed files may hold together.
const MOST_UNPACKED: u64 = 4 << 30;

/// The longest list of changes, in bytes: a few trees that hold each other many times make one of billions.
const MOST_CHANGES: usize = 256 << 20;

/// The most that the targets of all links may hold together, and the most that is remembered of the ways that they lead.
/// Each way has the names of all directories above it.
const MOST_TARGETS: u64 = 64 << 20;
const MOST_WAYS: usize = 128 << 20;

/// Directories of our own in `.loops`.
const OURS: [&str; 4] = [".running", ".history", ".worktrees", ".gitignore"];

/// The files of a definition, as git names them.
#[derive(Clone, Debug, Default)]
pub(super) struct Protected(BTreeSet<String>);

impl Protected {
    /// Names files below the top of a repository, by their own paths and by those that links lead to.
    pub(super) fn new(top: &Path, files: &[PathBuf]) -> Self {
        // The system may name the checkout by a link, as macOS does with `/tmp`.
        let tops = [Some(top.to_owned()), top.canonicalize().ok()];
        let paths = files.iter().flat_map(|file| [Some(file.clone()), file.canonicalize().ok()]).flatten();
        let below = |path: PathBuf| {
            let below =
                tops.iter().flatten().find_map(|top| path.strip_prefix(top).ok().map(Path::to_owned))?;
            gitpath::folded("", below.to_str()?)
        };
        // On file systems that ignore case, `LOOPS/a.yaml` is the same file.
        Self(paths.filter_map(below).map(|path| path.to_lowercase()).collect())
    }

    /// Tells whether a path is one of the files, or a directory that one of them is in.
    fn touches(&self, path: &str) -> bool {
        let path = path.to_lowercase();
        let is_in = |file: &String| {
            *file == path || file.strip_prefix(&path).is_some_and(|rest| rest.starts_with('/'))
        };
        self.0.iter().any(is_in)
    }
}

/// The mode that git writes where nothing stands.
const NO_MODE: &str = "000000";

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileKind {
    Nothing,
    File,
    Link,
    Repository,
}

impl FileKind {
    fn of(mode: &str) -> Option<Self> {
        match mode {
            NO_MODE => Some(Self::Nothing),
            "100644" | "100755" => Some(Self::File),
            "120000" => Some(Self::Link),
            "160000" => Some(Self::Repository),
            _ => None,
        }
    }
}

/// A difference between two trees at one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreeChange {
    old: (String, ObjectId),
    kind: FileKind,
    id: ObjectId,
    path: Vec<u8>,
}

impl TreeChange {
    /// Returns the path, as git has it.
    pub(super) fn path(&self) -> &[u8] {
        &self.path
    }

    /// Returns the path as text, for people.
    pub(super) fn shown(&self) -> String {
        one_line(&String::from_utf8_lossy(&self.path), 200)
    }

    /// Tells whether something stood there before.
    pub(super) fn was_there(&self) -> bool {
        self.old.0 != NO_MODE
    }

    /// Tells whether nothing stands there any more.
    pub(super) fn is_gone(&self) -> bool {
        self.kind == FileKind::Nothing
    }

    /// Returns the line for `git update-index -z --index-info` that takes the change back.
    pub(super) fn taken_back(&self) -> Vec<u8> {
        let (mode, id) = &self.old;
        // `update-index --index-info` removes an entry by mode `0`.
        let mode = if mode == NO_MODE { "0" } else { mode };
        [format!("{mode} {id}\t").as_bytes(), &self.path, b"\0"].concat()
    }

    /// Returns the path in a directory.
    pub(super) fn below(&self, directory: &Path) -> PathBuf {
        use std::os::unix::ffi::OsStrExt as _;
        directory.join(std::ffi::OsStr::from_bytes(&self.path))
    }
}

/// Reads what `git diff-tree -r -z --no-renames` or `git diff-index -z` prints.
pub(super) fn changes(raw: &[u8]) -> Result<Vec<TreeChange>, TreeError> {
    let mut fields = raw.split(|byte| *byte == 0);
    let mut found = Vec::new();
    while let Some(head) = fields.next().filter(|head| !head.is_empty()) {
        let unread = || {
            let line = one_line(&String::from_utf8_lossy(head), 200);
            TreeError::unfit(format!("git printed a change that cannot be read: {line}"))
        };
        let path = fields.next().ok_or_else(unread)?.to_vec();
        let head = std::str::from_utf8(head).map_err(|_| unread())?;
        let words: Vec<&str> = head.strip_prefix(':').ok_or_else(unread)?.split(' ').collect();
        let [old_mode, mode, old, new, _status] = words.as_slice() else { return Err(unread()) };
        let (old, id) =
            (ObjectId::parse(old).map_err(|_| unread())?, ObjectId::parse(new).map_err(|_| unread())?);
        let kind = FileKind::of(mode).ok_or_else(|| {
            let path = one_line(&String::from_utf8_lossy(&path), 200);
            TreeError::unfit(format!("`{path}` is of a kind that no file has"))
        })?;
        found.push(TreeChange { old: ((*old_mode).to_owned(), old), kind, id, path });
    }
    Ok(found)
}

/// A change that no bundle may bring, and why.
#[derive(Debug)]
pub(super) struct UnfitChange {
    pub(super) change: TreeChange,
    pub(super) why: &'static str,
}

/// Returns the changes from one tree to another that no bundle may bring.
pub(super) fn unfit(
    git: &Git,
    from: &ObjectId,
    to: &ObjectId,
    protected: &Protected,
) -> Result<Vec<UnfitChange>, TreeError> {
    let diff =
        Call::new("diff-tree").with(&["-r", "-z", "--raw", "--no-renames", "--no-abbrev"]).id(from).id(to);
    let raw = git.bytes(&diff, &[])?;
    if raw.len() > MOST_CHANGES {
        return Err(TreeError::unfit("it changes too many files"));
    }
    let all = changes(&raw)?;
    let targets = targets(git, &all)?;
    let links = links(git, to, &all, &targets)?;
    let changed: BTreeSet<String> =
        all.iter().filter_map(|change| String::from_utf8(change.path.clone()).ok()).collect();
    let mut unfit = Vec::new();
    for change in all {
        let why = refusal(&change, protected).or_else(|| {
            let target = targets.get(&change.id).filter(|_| change.kind == FileKind::Link)?;
            of_link(&change.path, target, &links, &changed, protected)
        });
        if let Some(why) = why {
            unfit.push(UnfitChange { change, why });
        }
    }
    Ok(unfit)
}

/// Says why a change may not come from elsewhere, whatever the file holds.
fn refusal(change: &TreeChange, protected: &Protected) -> Option<&'static str> {
    of_path(&change.path, change.kind).or_else(|| {
        // A definition is text, and so are the names of its files.
        let path = std::str::from_utf8(&change.path).ok()?;
        protected.touches(path).then_some("the loop pulls it in, and a loop comes from the checkout")
    })
}

fn of_path(path: &[u8], kind: FileKind) -> Option<&'static str> {
    const LOOP: Option<&str> = Some(super::IS_A_LOOP);
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    if parts.iter().any(|part| part.is_empty() || *part == b"." || *part == b".." || is_like(part, ".git")) {
        return Some("it is not the path of a file in a repository");
    }
    let (at, _) = parts.iter().enumerate().find(|(_, part)| is_like(part, ".loops"))?;
    let below = &parts[at + 1..];
    let is_ours = below.first().is_some_and(|first| OURS.iter().any(|ours| is_like(first, ours)));
    // NTFS drops dots and spaces at the end of a name, and takes what follows a colon for a stream
    // of the file.
    let name = String::from_utf8_lossy(parts.last().copied().unwrap_or(&[])).to_lowercase();
    let name = up_to(&name, &[':']).trim_end_matches(['.', ' ']);
    let is_loop = name.rsplit_once('.').is_some_and(|(_, ending)| matches!(ending, "yaml" | "yml"));
    match kind {
        _ if below.is_empty() || is_loop => LOOP,
        _ if is_ours => Some("it is a file of runs"),
        FileKind::Link | FileKind::Repository => LOOP,
        FileKind::Nothing | FileKind::File => None,
    }
}

/// Says why a link may not come from elsewhere. Where it leads is read from the path alone: upwards first, then down,
/// through nothing that is a link itself.
fn of_link(
    path: &[u8],
    target: &[u8],
    links: &BTreeSet<String>,
    changed: &BTreeSet<String>,
    protected: &Protected,
) -> Option<&'static str> {
    const OUT: Option<&str> = Some("it is a link that may lead out of the repository");
    let Some(target) = resolved(path, target) else { return OUT };
    let through = prefixes(&target).any(|prefix| links.contains(prefix));
    // A link may also lead to a link that stays as it is, and where that leads was never looked at.
    if through || (links.contains(&target) && !changed.contains(&target)) {
        return OUT;
    }
    if target.is_empty() {
        return None;
    }
    let leads_to =
        of_path(target.as_bytes(), FileKind::Link).is_some() || protected.0.contains(&target.to_lowercase());
    leads_to.then_some("it is a link to a loop, or to a file of git")
}

/// Returns where a link leads, as seen from the top.
fn resolved(path: &[u8], target: &[u8]) -> Option<String> {
    let (path, target) = (std::str::from_utf8(path).ok()?, std::str::from_utf8(target).ok()?);
    // An absolute target means another file on every machine.
    if target.starts_with('/') || target.is_empty() {
        return None;
    }
    let down = target.split('/').skip_while(|part| matches!(*part, ".." | "." | ""));
    // `a/../b` depends on whether `a` is a link, which the path does not tell.
    if down.clone().any(|part| part == "..") {
        return None;
    }
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    gitpath::folded("", &format!("{directory}/{target}"))
}

/// Returns the directories that a path leads through.
fn prefixes(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// Reads the targets of all links among some changes, and checks that every object is of its kind and size.
fn targets(git: &Git, changes: &[TreeChange]) -> Result<BTreeMap<ObjectId, Vec<u8>>, TreeError> {
    let blobs = changes.iter().filter(|change| matches!(change.kind, FileKind::File | FileKind::Link));
    let blobs: Vec<&TreeChange> = blobs.collect();
    if blobs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let asked: String = blobs.iter().flat_map(|change| [change.id.as_str(), "\n"]).collect();
    let check = Call::new("cat-file").with(&["--batch-check=%(objecttype) %(objectsize)"]);
    let sizes = String::from_utf8_lossy(&git.bytes(&check, asked.as_bytes())?).into_owned();
    let (mut total, mut of_links) = (0u64, 0u64);
    let mut found = BTreeMap::new();
    let mut asked = BTreeSet::new();
    let mut lines = sizes.lines();
    for change in blobs {
        let size =
            lines.next().and_then(|line| line.strip_prefix("blob ")).and_then(|size| size.parse().ok());
        let size: u64 = size.ok_or_else(|| TreeError::unfit(format!("`{}` is not there", change.shown())))?;
        total = total.saturating_add(size);
        if total > MOST_UNPACKED {
            return Err(TreeError::unfit("the files that it changes are too large"));
        }
        if change.kind == FileKind::Link && size > MOST_TARGET {
            // No target, and refused as such.
            found.insert(change.id.clone(), Vec::new());
        } else if change.kind == FileKind::Link && asked.insert(&change.id) {
            of_links = of_links.saturating_add(size);
        }
    }
    if of_links > MOST_TARGETS {
        return Err(TreeError::unfit("the links that it changes are too large"));
    }
    // In one call, for a tree may have a link for each of its packages.
    let asked: Vec<&ObjectId> = asked.into_iter().collect();
    let contents = blobs::contents(git, &asked)?;
    found.extend(asked.into_iter().cloned().zip(contents));
    Ok(found)
}

/// Returns which of the paths that links lead to, or through, are links in a tree.
fn links(
    git: &Git,
    tree: &ObjectId,
    changes: &[TreeChange],
    targets: &BTreeMap<ObjectId, Vec<u8>>,
) -> Result<BTreeSet<String>, TreeError> {
    let links = changes.iter().filter(|change| change.kind == FileKind::Link);
    let led = links.filter_map(|change| resolved(&change.path, targets.get(&change.id)?));
    let asked: Vec<String> = ways(led)?.into_iter().collect();
    let mut found = BTreeSet::new();
    // A command line holds only so many bytes, on Linux about 2 MiB in all.
    for some in asked.chunks(500) {
        let list =
            Call::new("ls-tree").with(&["--full-tree", "-z"]).id(tree).paths(some.iter().cloned()).literal();
        let printed = git.bytes(&list, &[])?;
        let printed = printed.split(|byte| *byte == 0).filter(|entry| entry.starts_with(b"120000 "));
        found.extend(printed.filter_map(|entry| {
            let at = entry.iter().position(|byte| *byte == b'\t')?;
            String::from_utf8(entry[at + 1..].to_vec()).ok()
        }));
    }
    Ok(found)
}

/// Returns these paths and all directories that they lead through.
fn ways(led: impl Iterator<Item = String>) -> Result<BTreeSet<String>, TreeError> {
    // About what a path takes beside its letters.
    const OF_EACH: usize = 64;
    let mut ways = BTreeSet::new();
    let mut taken = 0;
    for path in led {
        for way in prefixes(&path).chain([path.as_str()]).filter(|way| !way.is_empty()) {
            taken += way.len() + OF_EACH;
            if taken > MOST_WAYS {
                return Err(TreeError::unfit("the links that it changes lead through too many directories"));
            }
            if !ways.contains(way) {
                ways.insert(way.to_owned());
            }
        }
    }
    Ok(ways)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_known_however_its_path_is_written() {
        for path in [
            ".loops",
            ".loops/main.yaml",
            ".LOOPS/Main.YAML",
            ".loops/deep/er/x.yml",
            "sub/.loops/x.yaml",
            ".lo\u{200c}ops/x.yaml",
            "loops~1/x.yaml",
            ".loops./x.yaml",
            ".loops/x.yaml.",
            ".loops/.running/main.events.jsonl",
            ".loops/.History/x",
            ".git/hooks/post-checkout",
            "a/.Git/config",
            "a/../b",
            "a//b",
        ] {
            assert!(of_path(path.as_bytes(), FileKind::File).is_some(), "{path}");
        }
        for path in [
            "src/main.rs",
            ".loops/tmp/x.json",
            "loops/x.yaml",
            ".github/workflows/ci.yml",
            ".gitattributes",
            "a.yaml",
        ] {
            assert_eq!(of_path(path.as_bytes(), FileKind::File), None, "{path}");
        }
        assert!(
            of_path(b".loops/tmp", FileKind::Link).is_some()
                && of_path(b".loops/tmp", FileKind::Repository).is_some()
        );
    }

    #[test]
    fn what_a_definition_pulls_in_is_protected_with_its_directories() {
        let protected = Protected::new(
            Path::new("/r"),
            &["/r/prompts/a.md".into(), "/r/./x/../b.txt".into(), "/q/c".into()],
        );
        for (path, expected) in [
            ("prompts/a.md", true),
            ("prompts", true),
            ("Prompts/A.md", true),
            ("prompts/b.md", false),
            ("b.txt", true),
            ("c", false),
            ("prompt", false),
        ] {
            assert_eq!(protected.touches(path), expected, "{path}");
        }
    }

    #[test]
    fn a_link_leads_down_from_where_it_is_and_through_no_other() {
        let links = BTreeSet::from(["old".to_owned(), "new".to_owned(), "d".to_owned()]);
        let changed = BTreeSet::from(["new".to_owned()]);
        let protected = Protected::new(Path::new("/r"), &["/r/prompts/a.md".into()]);
        let check = |path: &str, target: &str, fits: bool| {
            let why = of_link(path.as_bytes(), target.as_bytes(), &links, &changed, &protected);
            assert_eq!(why.is_none(), fits, "{path} -> {target}: {why:?}");
        };
        check("link", "tracked", true);
        check("a/b/link", "../../tracked", true);
        check("link", "./a/b", true);
        check("a/link", "..", true);
        check("link", "new", true);
        for target in [
            "/etc/passwd",
            "../x",
            "a/../b",
            "a/../../b",
            "old",
            "d/x",
            "",
            ".git/config",
            ".loops/main.yaml",
            ".loops",
            "prompts/a.md",
            "PROMPTS/a.md",
        ] {
            check("link", target, false);
        }
        check("a/link", "../../x", false);
        check("a/b/link", "../../../etc", false);
    }

    #[test]
    fn links_lead_no_longer_ways_than_can_be_remembered() {
        let led = ["a/b/c", "a", ""].map(str::to_owned);
        assert_eq!(ways(led.into_iter()).unwrap(), BTreeSet::from(["a", "a/b", "a/b/c"].map(str::to_owned)));
        // Each has two thousand directories above it.
        let long = (0..1_000).map(|number| format!("{number}{}", "/a".repeat(2_000)));
        assert!(ways(long).unwrap_err().to_string().contains("too many directories"));
    }

    #[test]
    fn changes_are_read_as_git_prints_them() {
        let (zero, id) = ("0".repeat(40), "1".repeat(40));
        let raw = format!(":000000 120000 {zero} {id} A\0a\nb\0:100644 000000 {id} {zero} D\0c\0");
        let found = changes(raw.as_bytes()).unwrap();
        assert_eq!((found[0].kind, found[0].path.as_slice()), (FileKind::Link, &b"a\nb"[..]));
        assert_eq!(found[0].taken_back(), format!("0 {zero}\ta\nb\0").as_bytes());
        assert_eq!(found[1].taken_back(), format!("100644 {id}\tc\0").as_bytes());
        for raw in ["x", ":100644 100644 x y M\0a\0", &format!(":000000 140000 {zero} {id} A\0a\0"), ":1 2\0"]
        {
            assert!(changes(raw.as_bytes()).is_err(), "{raw:?}");
        }
        assert_eq!(changes(b"").unwrap(), []);
    }
}
