//! How calls of git are put together: their words, their settings and their environment. [`super::runner`] makes them and
//! waits, [`super::in_run`] makes them while a run goes on.
//!
//! Nothing is started by what we ask git: no hook, filter, pager, editor, helper or other program that a repository or
//! its configuration names; and no server is reached but through [`Git::connected`](super::runner::Git::connected). And nothing that comes from data can
//! become an option: a word of ours is `'static`, an id is an [`ObjectId`], a path stands behind `--`, and any other text
//! behind `--end-of-options`.
//!
//! Most of that is turned off for every repository alike. Filters can only be turned off by their names, so each call
//! that may read files of a working tree ([`Call::reads_files`]) is preceded by a look at the names that are configured
//! at that moment: an action may have configured another one since the last call. Calls that follow one another while no
//! action runs share a look. A process that an action left behind may configure a filter after it, which nothing
//! prevents. That is why the environment of these calls holds neither a token nor a file of the runner: such a filter
//! gets nothing that the action did not have, and what it prints is a tree that the process could have written itself.

use std::collections::BTreeMap;

use crate::base::object::ObjectId;

/// Options of every call, which take precedence over the configuration.
const SETTINGS: [&str; 27] = [
    // Hooks are programs of the repository, and `reset`, `update-ref` and `worktree add` would start some.
    "core.hooksPath=/dev/null",
    // Empty means none, for every version: an old one would start a program called `false`.
    "core.fsmonitor=",
    // Writing the cache would change the index of the user, and dropping it would make their next `git status` slow.
    "core.untrackedCache=keep",
    // An index that is split has a part in the repository itself, and nobody checks what that holds.
    "core.splitIndex=false",
    // These would let a file change unseen: with its time put back, or beside one whose name differs in case alone.
    "core.checkStat=default",
    "core.trustctime=true",
    "core.ignoreCase=false",
    // It may name other parents and trees than the commits themselves, and nobody compares them.
    "core.commitGraph=false",
    // Files of more than 8 MiB go through in pieces.
    "core.bigFileThreshold=8m",
    // All of these name programs. A repository may set them, and whoever cloned it has not read its configuration.
    "core.pager=cat",
    "core.editor=:",
    "core.askPass=",
    "core.sshCommand=",
    "core.gitProxy=",
    // A tree from a bundle may hold `.GIT` or a name that a file system of macOS or Windows takes for `.git`: a checkout
    // there would write the configuration of the repository.
    "core.protectHFS=true",
    "core.protectNTFS=true",
    // Each helper is a program; the empty value clears those that other files of the configuration
    // name.
    "credential.helper=",
    // Signing and showing signatures start a program, which may ask for a passphrase that nobody is there to give.
    "commit.gpgSign=false",
    "log.showSignature=false",
    // It is a file of the tree, which may be a pipe.
    "log.mailmap=false",
    // Checking a signature would start this program.
    "gpg.program=",
    // A partial clone or a submodule would be fetched in the middle of a call that is meant to read what is here.
    "protocol.allow=never",
    // With it, `reset` and `read-tree -u` would write into submodules, which are repositories of their own.
    "submodule.recurse=false",
    // Both go on in the background after the call, and hold files of a worktree that is removed next.
    "gc.auto=0",
    "maintenance.auto=false",
    // A program that lists the refs of alternates: a fetch or a push would start it.
    "core.alternateRefsCommand=",
    // What it says about `GIT_GRAFT_FILE` would stand before every reason.
    "advice.graftFileDeprecated=false",
];

/// Options of calls that reach a server as the user does: their hooks have nothing to do with a scratch repository, and
/// nobody answers a question.
const OWN_SETTINGS: [&str; 3] =
    ["core.hooksPath=/dev/null", "push.gpgSign=false", "core.alternateRefsCommand="];

/// Variables that would start a program, hide what is there, or change how words are read.
const UNSET: [&str; 23] = [
    // Programs that a call would start.
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_PAGER",
    "PAGER",
    "GIT_EXTERNAL_DIFF",
    // Options for every `diff`: a patch would have other lines around its changes than we ask for.
    "GIT_DIFF_OPTS",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_PROXY_COMMAND",
    // With it, `git config` lists that file alone, and the look for filters misses those that other calls start.
    "GIT_CONFIG",
    // These give a commit other parents or another tree than its id says, and files other attributes.
    "GIT_GRAFT_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_ATTR_SOURCE",
    // These change what a path means that stands behind `--`. We say `--literal-pathspecs` where it is meant.
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    // Set in a hook that runs us: objects of a push that may still be refused would count as there.
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
    // Where git looks for its own commands, and what it puts into each new repository: hooks among it.
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
];

/// Commands that neither read nor write files of the working tree, as we use them: no filter has to do with them. Those
/// that write the index are not among them: git then looks into files that changed in the same moment.
const WITHOUT_FILES: [&str; 26] = [
    "branch",
    "cat-file",
    "check-attr",
    "check-ignore",
    "commit-tree",
    "config",
    "diff-tree",
    "fetch",
    "for-each-ref",
    "index-pack",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge-base",
    "mktree",
    "pack-objects",
    "patch-id",
    "push",
    "remote",
    "rev-list",
    "rev-parse",
    "symbolic-ref",
    "update-ref",
    "version",
];

/// Variables that keep git from writing down what it does and which variables it has: they win over `trace2.*` of the
/// user's configuration.
pub(super) const SILENT: [(&str, &str); 3] =
    [("GIT_TRACE2", "0"), ("GIT_TRACE2_EVENT", "0"), ("GIT_TRACE2_PERF", "0")];

/// Variables that every call has.
const SET: [(&str, &str); 9] = [
    // Git must not translate its messages, nor prompt for a password.
    ("LC_ALL", "C"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // `git status` would refresh the index in passing, and so hold its lock against somebody's
    // commit.
    ("GIT_OPTIONAL_LOCKS", "0"),
    // What the system configures may name filters and hooks. Which directories it trusts is asked
    // for, and handed over as a setting.
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    // Wins over `protocol.<name>.allow`, which wins over `protocol.allow`.
    ("GIT_ALLOW_PROTOCOL", "none"),
    // In a partial clone, the look at an object that is missing would start a fetch.
    ("GIT_NO_LAZY_FETCH", "1"),
    // What an id names is what it was made of.
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_GRAFT_FILE", "/dev/null"),
];

/// The name of the program.
pub const PROGRAM: &str = "git";

/// Variables that name a repository. A hook of git sets them, and everything would work in the checkout again.
pub const REPOSITORY: [&str; 7] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
];

/// Who our own commits of working trees are by: their ids depend on nothing but the tree and the commit that they stand
/// on.
pub const AUTHOR: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "ll-loop"),
    ("GIT_COMMITTER_NAME", "ll-loop"),
    ("GIT_AUTHOR_EMAIL", "ll-loop@localhost"),
    ("GIT_COMMITTER_EMAIL", "ll-loop@localhost"),
    ("GIT_AUTHOR_DATE", "@0 +0000"),
    ("GIT_COMMITTER_DATE", "@0 +0000"),
];

/// Returns an environment in which git finds the repository by its directory alone.
pub fn without_repository(mut env: BTreeMap<String, String>) -> BTreeMap<String, String> {
    env.retain(|name, _| !REPOSITORY.contains(&name.as_str()));
    env
}

/// One call of git.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Call {
    command: &'static str,
    options: Vec<String>,
    revisions: Vec<String>,
    paths: Option<Vec<String>>,
    is_literal: bool,
}

impl Call {
    /// Begins with a command of git.
    pub fn new(command: &'static str) -> Self {
        Self { command, options: Vec::new(), revisions: Vec::new(), paths: None, is_literal: false }
    }

    /// Returns the word that people know the call by.
    pub fn command(&self) -> &'static str {
        self.command
    }

    /// Tells whether git may read or write files of the working tree for it, and so might start a filter.
    pub fn reads_files(&self) -> bool {
        !WITHOUT_FILES.contains(&self.command)
    }

    /// Adds options, or the word for what a command does: words of this program.
    pub fn with(mut self, options: &[&'static str]) -> Self {
        self.options.extend(options.iter().map(|option| (*option).to_owned()));
        self
    }

    /// Adds an option, and an id as its value.
    pub fn option_id(mut self, option: &'static str, id: &ObjectId) -> Self {
        self.options.extend([option.to_owned(), id.to_string()]);
        self
    }

    /// Adds an option, and a value for it that begins with a word of ours.
    pub fn option_name(mut self, option: &'static str, begin: &'static str, rest: &str) -> Self {
        debug_assert!(!begin.is_empty() && !begin.starts_with('-'), "{begin}");
        self.options.extend([option.to_owned(), format!("{begin}{rest}")]);
        self
    }

    /// Adds an option of ours together with a value: one word.
    pub fn option_value(mut self, option: &'static str, value: &str) -> Self {
        debug_assert!(option.starts_with("--") && option.ends_with('='), "{option}");
        self.options.push(format!("{option}{value}"));
        self
    }

    /// Adds an object.
    pub fn id(self, id: &ObjectId) -> Self {
        self.ids("", id, "")
    }

    /// Adds an object with something of ours before and after its id, such as `^` or `^{tree}`.
    pub fn ids(mut self, before: &'static str, id: &ObjectId, after: &'static str) -> Self {
        self.revisions.push(format!("{before}{id}{after}"));
        self
    }

    /// Adds a revision that stands in this program.
    pub fn revision(mut self, revision: &'static str) -> Self {
        self.revisions.push(revision.to_owned());
        self
    }

    /// Adds a revision, or another name, that somebody else chose.
    pub fn named(mut self, name: &str, after: &'static str) -> Self {
        self.revisions.push(format!("{name}{after}"));
        self
    }

    /// Adds a path, or a pattern for paths.
    pub fn path(self, path: impl Into<String>) -> Self {
        self.paths([path])
    }

    /// Adds paths, or patterns for paths. The list is ended even when it is empty, so that nothing behind it becomes a
    /// path.
    pub fn paths(mut self, paths: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.paths.get_or_insert_default().extend(paths.into_iter().map(Into::into));
        self
    }

    /// Takes every path as it is, and none as a pattern.
    pub fn literal(mut self) -> Self {
        self.is_literal = true;
        self
    }

    /// Returns the whole command line, with what the repository adds to the settings.
    pub fn words(&self, directory: Option<&str>, more: impl Iterator<Item = String>) -> Vec<String> {
        let settings = SETTINGS.iter().map(|setting| (*setting).to_owned());
        self.words_with(directory, settings.chain(more))
    }

    /// Returns the command line of a call that reaches a server as the user does.
    pub(super) fn words_as_user(&self, directory: Option<&str>) -> Vec<String> {
        self.words_with(directory, OWN_SETTINGS.iter().map(|setting| (*setting).to_owned()))
    }

    fn words_with(&self, directory: Option<&str>, settings: impl Iterator<Item = String>) -> Vec<String> {
        let mut words = vec![PROGRAM.to_owned()];
        let mut add = |some: &[&str]| words.extend(some.iter().map(|word| (*word).to_owned()));
        if let Some(directory) = directory {
            add(&["-C", directory]);
        }
        add(&["--no-pager"]);
        if self.is_literal {
            add(&["--literal-pathspecs"]);
        }
        for setting in settings {
            add(&["-c", &setting]);
        }
        add(&[self.command]);
        // An attribute of the tree chooses a diff driver, for which the configuration may name a
        // program.
        if self.command.starts_with("diff") {
            // What the repository says of its submodules hides none that moved, also where two trees are compared.
            add(&["--no-ext-diff", "--no-textconv", "--ignore-submodules=none"]);
        }
        words.extend(self.options.iter().cloned());
        if !self.revisions.is_empty() {
            words.push("--end-of-options".to_owned());
            words.extend(self.revisions.iter().cloned());
        }
        if let Some(paths) = &self.paths {
            words.push("--".to_owned());
            words.extend(paths.iter().cloned());
        }
        words
    }
}

/// Returns the environment of every call, made from that of this process.
pub fn environment(mut env: BTreeMap<String, String>) -> BTreeMap<String, String> {
    // `GIT_TRACE` and its kin name files that git then writes, with arguments and headers in them.
    env.retain(|name, _| !UNSET.contains(&name.as_str()) && !name.starts_with("GIT_TRACE"));
    env.extend(SET.into_iter().chain(SILENT).map(|(name, value)| (name.to_owned(), value.to_owned())));
    env
}

/// Writes a directory for `GIT_ALTERNATE_OBJECT_DIRECTORIES`, in which a colon separates two.
pub fn alternate(path: &str) -> String {
    // Git removes quotes only from an entry that begins with one, so a plain path must stay plain.
    if !path.contains([':', '"', '\\']) {
        return path.to_owned();
    }
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env() -> BTreeMap<String, String> {
        let path = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin".to_owned();
        BTreeMap::from([("PATH".to_owned(), path), ("HOME".to_owned(), "/nonexistent".to_owned())])
    }

    fn id() -> ObjectId {
        ObjectId::parse("78981922613b2afb6025042ff6bd878ac1994e85").unwrap()
    }

    #[test]
    fn what_is_no_word_of_ours_stands_where_options_have_ended() {
        let call = Call::new("diff")
            .with(&["--quiet"])
            .id(&id())
            .named("--output=x", "^{commit}")
            .path("-p")
            .literal();
        let words = call.words(Some("/x"), std::iter::empty());
        assert_eq!(&words[..5], ["git", "-C", "/x", "--no-pager", "--literal-pathspecs"]);
        let at = words.iter().position(|word| word == "diff").unwrap();
        assert_eq!(
            words[at..],
            [
                "diff",
                "--no-ext-diff",
                "--no-textconv",
                "--ignore-submodules=none",
                "--quiet",
                "--end-of-options",
                id().as_str(),
                "--output=x^{commit}",
                "--",
                "-p"
            ]
        );
        assert_eq!(words[5..at].len(), 2 * SETTINGS.len());
    }

    #[test]
    fn a_directory_with_a_colon_is_one_directory() {
        assert_eq!(alternate("/a b/objects"), "/a b/objects");
        assert_eq!(alternate("/a:b/\"c\"\\d"), r#""/a:b/\"c\"\\d""#);
    }

    #[test]
    fn the_environment_starts_nothing() {
        let mut given = env();
        for name in [
            "GIT_EXTERNAL_DIFF",
            "GIT_SSH_COMMAND",
            "GIT_TRACE2_EVENT",
            "GIT_GRAFT_FILE",
            "GIT_CONFIG",
            "PAGER",
        ] {
            given.insert(name.to_owned(), "evil".to_owned());
        }
        given.insert("GIT_CONFIG_COUNT".to_owned(), "1".to_owned());
        let made = environment(given);
        assert!(!made.values().any(|value| value == "evil"), "{made:?}");
        assert_eq!(made["GIT_CONFIG_NOSYSTEM"], "1");
        assert_eq!(made["GIT_CONFIG_COUNT"], "1", "a container trusts its workspace in this way");
    }
}
