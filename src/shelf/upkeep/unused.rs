//! What `init` has seen of a repository and left out, each with the reason: nothing that may check something is passed over in silence.

use std::fmt;

use super::found_repository::Evidence;

/// A command that the repository runs, or may run, and that is no check of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedCommand {
    /// The command, as far as it is known.
    pub command: String,
    /// The directory in which it is called, relative to the repository; empty for its top.
    pub directory: String,
    /// Where it stands, or what speaks for it.
    pub evidence: Evidence,
    /// Why it is no check.
    pub why: Reason,
}

/// A package that is in no loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedPackage {
    /// Its directory.
    pub package: String,
    /// Why.
    pub why: Reason,
}

macro_rules! reasons {
    ($($(#[doc = $says:literal])* $name:ident = $text:literal;)*) => {
        /// Why something is no check of a loop. Each is shown behind a "because", or by itself.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Reason {
            $($(#[doc = $says])* $name,)*
        }

        impl fmt::Display for Reason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$name => $text,)* })
            }
        }

        /// All of them.
        #[cfg(test)]
        const ALL: &[Reason] = &[$(Reason::$name),*];
    };
}

reasons! {
    /// A tool that nothing calls.
    OnlyConfigured = "only its configuration is there";
    /// A tool that a workflow names, but not by a check.
    OnlyNamed = "a workflow names it, in no line that is a check by itself";
    /// Tests that an option switches on.
    TestsAreOff = "its tests are off by default, and no workflow is known to switch them on";
    /// What is more than a loop has room for.
    Many = "there are many checks of its kind before it";
    /// One of several that differ in properties.
    OtherProperties = "a check does the same with other properties";
    /// Tests of the toolchain that the CI calls with something beside them.
    OnlyBesideOthers = "the CI calls these tests only on another machine, or behind a server";
    /// Tests of the toolchain where the CI makes its own in a way that is not known.
    TestedOtherwise = "the CI runs its tests in another way, in a line that is no check by itself";
    /// The format of the toolchain, without a try.
    FormatNotTried = "whether the files have this format was not tried";
    /// The same, which the files do not have.
    FormatNotThere = "the files do not have this format";
    /// The same, where the try did not work.
    FormatCouldNotBeTried = "whether the files have this format could not be tried";
    /// Hooks that nobody calls, without a try.
    HooksNotTried = "no workflow calls it, and whether the files pass was not tried";
    /// The same, which the files do not pass.
    HooksFail = "no workflow calls it, and the files do not pass";
    /// The same, where the try did not work.
    HooksCouldNotBeTried = "no workflow calls it, and it could not be tried";

    /// A package whose name no loop can hold.
    OddName = "its name has characters that a loop's parameter and a workflow cannot hold";
    /// A package without checks.
    SaysNothing = "nothing says how it is checked";
    /// A package with checks that the top does not call.
    HasOwnTasks = "it has tasks of its own, which nothing at the top calls";

    /// What may fail.
    MayFail = "its job goes on where it fails";
    /// A machine that no loop runs on.
    NeedsMacos = "it runs on macOS alone";
    /// The same of another one.
    NeedsWindows = "it runs on Windows alone";
    /// A script of another language.
    OtherShell = "it is written for another shell";
    /// A part of a statement.
    InStatement = "it stands in a condition, a loop or a function of its script";
    /// What stands in a value.
    OnlyJobKnows = "only its job knows the values in it";
    /// Values of other commands.
    AsksCommand = "it takes a value from another command";
    /// Signs of the shell.
    Joined = "it joins commands by more than `&&`";
    /// A directory with a value.
    DirectoryUnknown = "only its job knows in which directory it runs";
    /// A directory of something else.
    Elsewhere = "it runs outside of the files of this repository";
    /// A directory that is made.
    DirectoryIsMade = "its directory is not in the repository";
    /// A path of a runner.
    OfOneMachine = "it names a place of the machine of its job";
    /// A file that is made.
    NamesBuilt = "it names what an earlier line of its job has made or fetched";
    /// A lock file that is made.
    LacksLock = "it holds to a lock file that is not in the repository";
    /// A Makefile that is made.
    LacksMakefile = "an earlier line of its job makes the Makefile that it needs";
    /// A question to git.
    AsksOfOthers = "it asks git what the lines before it have changed";
    /// A part of a build.
    PartOfBuild = "it is one of the steps of a build, and needs what those before it have made";
    /// Versions of a matrix.
    VersionsOfMatrix = "of its matrix, the values that name versions are left to the tool, and no more than six are taken";
    /// A known tool in an unknown way.
    NotACheckOfTool = "it is not known to check anything in the way it is called";
    /// Tasks whose names say nothing.
    NamesSayNothing = "by the names of its tasks it is not known to check anything";
    /// Tests that a stranger cannot run.
    HasSecrets = "its job gives it secrets";
    /// A step that follows others.
    AsksEarlier = "it runs only where an earlier step has found something";
    /// An unknown program.
    Unknown = "it is not known what it checks";
    /// A script of the repository that says nothing.
    UnknownScript = "neither its name nor its place says that the script checks something";
    /// A script that writes.
    ScriptAlters = "its script changes files of the repository";
    /// A script for others.
    Prepares = "by its name it makes ready for others, or looks after them";
    /// Late.
    AfterMerge = "it runs after a merge, where others run before";
    /// A label.
    AsksForLabel = "it runs only for changes that have a label";
    /// Variables of a job.
    FedBySteps = "earlier steps of its job say what its variables are";
    /// Variables of an event.
    FedByEvent = "its variables are those of one event, such as a proposed change";
    /// Another commit than that of the change.
    OtherState = "its job has checked another state of the repository out, such as its main branch";
    /// A changed checkout.
    AltersCheckout = "its job has changed before what it had checked out";
    /// A toolchain.
    OtherToolchain = "it is called with a toolchain of its own";
    /// A server.
    BesideOthers = "its job has started something before that still runs";
    /// An artifact.
    FetchesBuilt = "its job has fetched before what another job made";
    /// An install of a build.
    HandsOn = "an earlier line of its job has put a build where it finds it";
    /// A line of several commands.
    BehindUnknown = "it stands in a line behind a command that is not known";
    /// A service.
    LacksService = "the jobs that call it have a service of which only they know all";
    /// The same with a measure.
    OnlyMeasures = "a check calls the same, and differs in what it measures or writes alone";
    /// The same after other installs.
    OtherInstalls = "a check calls the same; its job has installed something else before";
    /// A part of tests.
    PartOfTests = "it runs some of the tests of another check";
    /// A longer call.
    HasPlainer = "another line calls the same tool in a plainer way";
    /// A call of other versions.
    OtherVersion = "only jobs with another version call its tool in this way";
    /// A step that only another job of its matrix takes.
    OtherInterpreter = "only jobs of its matrix with another interpreter run it";
    /// A manager of packages.
    OtherManager = "it is called by another manager of packages than that of the repository";
    /// What writes.
    Mends = "it writes what a check would find";
    /// A task that writes.
    TaskAlters = "it changes files of the repository";
    /// An action.
    UnknownAction = "it is not known what its action does";
    /// An action that only reports.
    OnlyReports = "its action only reports what it finds";
    /// An action with values.
    InputsUnknown = "only its job knows the inputs of its action";
    /// An action of the repository.
    OwnAction = "it is an action of this repository, which is not followed";
    /// A workflow of others.
    WorkflowOfOthers = "it is a workflow of others, which is not followed";
    /// A workflow that publishes.
    OfPublishing = "its workflow publishes";
    /// A scanner.
    OfScanners = "its workflow needs a service of others";
    /// A file of another CI.
    OtherCi = "this CI is not read";

    /// A task that the CI does without.
    CiDoesOtherwise = "the CI checks the same kind of thing, and does not call it";
    /// A task in an image.
    OnlyInImage = "the CI calls it only in an image, which has what it needs";
    /// What compares with another branch.
    NeedsBase = "it looks at no more than a change touches, and needs the branch that this is for";
    /// A task of one of several runners.
    OtherTasks = "other tasks of its kind count before it";
}

impl UnusedCommand {
    /// Returns it as somebody would call it at the top.
    pub fn call(&self) -> String {
        if self.directory.is_empty() {
            return self.command.clone();
        }
        format!("cd {} && {}", self.directory, self.command)
    }
}

/// Returns these with the same reason together, in the order in which the first of each stands.
pub fn by_reason(all: &[UnusedCommand]) -> Vec<(Reason, Vec<&UnusedCommand>)> {
    let mut found: Vec<(Reason, Vec<&UnusedCommand>)> = Vec::new();
    for one in all {
        match found.iter_mut().find(|(why, _)| *why == one.why) {
            Some((_, known)) => known.push(one),
            None => found.push((one.why, vec![one])),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_stands_behind_a_because() {
        for reason in ALL {
            let text = reason.to_string();
            let is_fragment = text.starts_with(|c: char| c.is_ascii_lowercase()) && !text.ends_with('.');
            assert!(is_fragment && !text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn what_has_one_reason_stands_together() {
        let one = |command: &str, why: Reason| UnusedCommand {
            command: command.to_owned(),
            directory: String::new(),
            evidence: Evidence { file: "x".to_owned(), line: 1, task: None },
            why,
        };
        let all = [one("a", Reason::Joined), one("b", Reason::Unknown), one("c", Reason::Joined)];
        let found: Vec<_> = by_reason(&all).iter().map(|(why, commands)| (*why, commands.len())).collect();
        assert_eq!(found, [(Reason::Joined, 2), (Reason::Unknown, 1)]);
    }
}
