//! What ll-loop asks git starts nothing, whatever an action plants: one row for each way to make git start a program.
//! Each row is planted by an action, while the run goes on; the run then hands off, is resumed, delivered and reported,
//! and another run begins on what is planted already. In the end plain git shows that the plant works.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::common::{Project, Ran, git};

/// One way to make git start a program.
struct Plant {
    name: &'static str,
    /// A script that plants it. `$E` is the program, `$W` the file that it writes, `clean` what most plants share: a
    /// filter, which is named in the configuration that the arguments say, for every file.
    script: &'static str,
    /// A script in which plain git falls for it; empty where that needs more than a test has.
    fires: &'static str,
}

const fn plant(name: &'static str, script: &'static str, fires: &'static str) -> Plant {
    Plant { name, script, fires }
}

const ADD: &str = "echo more >> a; git add a";

#[rustfmt::skip]
const FILTERS: &[Plant] = &[
    plant("clean", "git config filter.y.clean \"$E\"; echo '* filter=y' > .gitattributes", ADD),
    plant("clean, in info/attributes", "git config filter.y.clean \"$E\"; info", ADD),
    plant("clean, in core.attributesFile", "git config filter.y.clean \"$E\"; echo '* filter=y' > .x; git config core.attributesFile \"$PWD/.x\"", ADD),
    plant("clean, in attributes of the user", "git config filter.y.clean \"$E\"; mkdir -p ~/.config/git; echo '* filter=y' > ~/.config/git/attributes", ADD),
    plant("clean, by a macro", "git config filter.y.clean \"$E\"; mkdir -p .git/info; printf '[attr]m filter=y\\n* m\\n' > .git/info/attributes", ADD),
    plant("clean, in attributes of a directory", "git config filter.y.clean \"$E\"; echo '* filter=y' > sub/.gitattributes; echo x >> sub/c", "echo more >> sub/c; git add sub/c"),
    plant("clean, without a name", "printf '[filter \"\"]\\n\\tclean = %s\\n' \"$E\" >> .git/config; echo '* filter=' > .gitattributes", ADD),
    plant("clean, in a name with a backslash", "printf '[filter \"y\\\\\\\\z\"]\\n\\tclean = %s\\n' \"$E\" >> .git/config; printf '* filter=y\\\\z\\n' > .gitattributes", ADD),
    plant("clean, with a dot in its name", "git config filter.y.z.clean \"$E\"; echo '* filter=y.z' > .gitattributes", ADD),
    plant("clean, with another script in its name", "git config filter.ü.clean \"$E\"; echo '* filter=ü' > .gitattributes", ADD),
    plant("clean, in capitals", "printf '[FILTER \"Y\"]\\n\\tCLEAN = %s\\n' \"$E\" >> .git/config; echo '* filter=Y' > .gitattributes", ADD),
    plant("clean, in the old form of a section", "printf '[filter.y]\\n\\tclean = %s\\n' \"$E\" >> .git/config; info", ADD),
    plant("clean, in a name that no option can hold", "printf '[filter \"y=z\"]\\n\\tclean = %s\\n' \"$E\" >> .git/config; echo '* filter=y=z' > .gitattributes", ADD),
    plant("clean, required", "git config filter.y.clean \"$E\"; git config filter.y.required true; info", ADD),
    plant("smudge", "git config filter.y.smudge \"$E\"; info", "rm a; git checkout a"),
    plant("process", "git config filter.y.process \"$E\"; info", ADD),
    plant("process, required", "git config filter.y.process \"$E\"; git config filter.y.required true; info", ADD),
    plant("clean, in the configuration of the user", "git config --global filter.y.clean \"$E\"; info", ADD),
    plant("clean, in the other configuration of the user", "mkdir -p ~/.config/git; git config -f ~/.config/git/config filter.y.clean \"$E\"; info", ADD),
    plant("clean, in the configuration of the worktree", "git config extensions.worktreeConfig true; git config --worktree filter.y.clean \"$E\"; info", ADD),
    plant("clean, in an included file", "git config -f .inc filter.y.clean \"$E\"; git config include.path ../.inc; info", ADD),
    plant("clean, in a file that an included one includes", "git config -f .inc filter.y.clean \"$E\"; git config -f .by include.path \"$PWD/.inc\"; git config include.path ../.by; info", ADD),
    plant("clean, included for a directory", "git config -f .inc filter.y.clean \"$E\"; git config \"includeIf.gitdir:$PWD/.path\" \"$PWD/.inc\"; info", ADD),
    plant("clean, included for a branch", "git config -f .inc filter.y.clean \"$E\"; git config 'includeIf.onbranch:**.path' \"$PWD/.inc\"; info", ADD),
    plant("clean, included for a remote", "git config -f .inc filter.y.clean \"$E\"; git config remote.o.url https://x.invalid/y; git config 'includeIf.hasconfig:remote.*.url:https://x.invalid/**.path' \"$PWD/.inc\"; info", ADD),
    plant("clean, included by the user's configuration", "git config -f .inc filter.y.clean \"$E\"; git config --global include.path \"$PWD/.inc\"; info", ADD),
    plant("clean, in another common directory", "cp -R .git .common; git config -f .common/config filter.y.clean \"$E\"; mkdir -p .common/info; echo '* filter=y' > .common/info/attributes; echo ../.common > .git/commondir", ADD),
    plant("clean, in a directory that a file named .git leads to", "git config filter.y.clean \"$E\"; info; mv .git .elsewhere; echo 'gitdir: .elsewhere' > .git", ADD),
];

#[rustfmt::skip]
const HOOKS: &[Plant] = &[
    plant("post-index-change", "hook .git/hooks/post-index-change", "echo x > n; git add n"),
    plant("reference-transaction", "hook .git/hooks/reference-transaction", "git update-ref refs/x HEAD"),
    plant("pre-commit", "hook .git/hooks/pre-commit", "git commit --allow-empty -m x"),
    plant("prepare-commit-msg", "hook .git/hooks/prepare-commit-msg", "git commit --allow-empty -m x"),
    plant("commit-msg", "hook .git/hooks/commit-msg", "git commit --allow-empty -m x"),
    plant("post-commit", "hook .git/hooks/post-commit", "git commit --allow-empty -m x"),
    plant("post-checkout", "hook .git/hooks/post-checkout", "git checkout -b x"),
    plant("post-rewrite", "hook .git/hooks/post-rewrite", "git commit --allow-empty --amend -m x"),
    plant("post-merge", "hook .git/hooks/post-merge", "git merge HEAD; git commit --allow-empty -m x; git checkout -q -b o HEAD~1; git merge -q -"),
    plant("pre-push", "hook .git/hooks/pre-push", "git init -q --bare ../bare.git 2>&1; git init -q --bare .bare; git push ./.bare HEAD:refs/heads/x"),
    plant("pre-rebase", "hook .git/hooks/pre-rebase", "git stash -q; git rebase --force-rebase HEAD"),
    plant("pre-applypatch", "hook .git/hooks/applypatch-msg", "git add -A; git commit -qm x; git format-patch -1 --stdout > .p; git reset -q --hard HEAD~1; git am .p"),
    plant("core.hooksPath", "hook .there/post-index-change; git config core.hooksPath .there", "echo x > n; git add n"),
    plant("core.hooksPath of the user", "hook .there/post-index-change; git config --global core.hooksPath \"$PWD/.there\"", "echo x > n; git add n"),
    plant("core.hooksPath of the worktree", "hook .there/reference-transaction; git config extensions.worktreeConfig true; git config --worktree core.hooksPath \"$PWD/.there\"", "git update-ref refs/x HEAD"),
    plant("init.templateDir", "hook .t/hooks/pre-commit; git config --global init.templateDir \"$PWD/.t\"", "git init -q n; git -C n commit --allow-empty -m x"),
    plant("core.fsmonitor", "git config core.fsmonitor \"$E\"", "git status"),
    plant("core.fsmonitor of the user", "git config --global core.fsmonitor \"$E\"", "git status"),
    plant("core.fsmonitor of version 1", "git config core.fsmonitorHookVersion 1; git config core.fsmonitor \"$E\"", "git status"),
];

#[rustfmt::skip]
const PROGRAMS: &[Plant] = &[
    plant("diff.external", "git config diff.external \"$E\"", "echo more >> a; git diff"),
    plant("diff.<driver>.command", "git config diff.y.command \"$E\"; echo '* diff=y' > .gitattributes", "echo more >> a; git diff"),
    plant("diff.<driver>.textconv", "git config diff.y.textconv \"$E\"; echo '* diff=y' > .gitattributes", "echo more >> a; git diff"),
    plant("diff.<driver>.textconv that is kept", "git config diff.y.textconv \"$E\"; git config diff.y.cachetextconv true; echo '* diff=y' > .gitattributes", "git log -p"),
    plant("merge.<driver>.driver", "git config merge.y.driver \"$E\"; echo '* merge=y' > .gitattributes", "git add -A; git commit -qm x; git checkout -qb o; echo o > a; git commit -qam o; git checkout -q -; echo p > a; git commit -qam p; git merge o"),
    plant("core.pager", "git config core.pager \"$E\"", ""),
    plant("pager.<command>", "git config pager.status \"$E\"; git config pager.diff \"$E\"", ""),
    plant("core.editor", "git config core.editor \"$E\"", "git commit --amend --allow-empty"),
    plant("sequence.editor", "git config sequence.editor \"$E\"", "git stash -q; git commit -q --allow-empty -m x; git rebase -i HEAD~1"),
    plant("core.askPass", "git config core.askPass \"$E\"", "printf 'url=https://x.invalid\\n' | git credential fill"),
    plant("credential.helper", "git config credential.helper \"!$E\"", "printf 'url=https://x.invalid\\n' | git credential fill"),
    plant("credential.helper of the user", "git config --global credential.helper \"!$E\"", "printf 'url=https://x.invalid\\n' | git credential fill"),
    plant("credential.<url>.helper", "git config credential.https://x.invalid.helper \"!$E\"", "printf 'url=https://x.invalid\\n' | git credential fill"),
    plant("core.sshCommand", "git config core.sshCommand \"$E\"; git config remote.origin.url ssh://x.invalid/y", "git ls-remote origin"),
    plant("core.gitProxy", "git config core.gitProxy \"$E\"; git config remote.origin.url git://x.invalid/y", "git ls-remote origin"),
    plant("remote.<name>.uploadpack", "git config remote.origin.url \"$PWD\"; git config remote.origin.uploadpack \"$E\"", "git ls-remote origin"),
    plant("remote.<name>.receivepack", "git config remote.origin.url \"$PWD\"; git config remote.origin.receivepack \"$E\"", "git push origin HEAD:refs/heads/x"),
    plant("ext::", "git config protocol.ext.allow always; git config remote.origin.url \"ext::$E\"", "git ls-remote origin"),
    plant("insteadOf", "git config protocol.ext.allow always; git config \"url.ext::$E .insteadOf\" https://github.com/; git config remote.origin.url https://github.com/o/r", "git ls-remote origin"),
    plant("pushInsteadOf", "git config protocol.ext.allow always; git config \"url.ext::$E .pushInsteadOf\" https://github.com/; git config remote.origin.url https://github.com/o/r", "git push origin HEAD"),
    plant("remote.<name>.vcs", "git config protocol.allow always; git config remote.origin.vcs ext; git config remote.origin.url \"$E\"", "git ls-remote origin"),
    plant("a blob that is fetched when it is needed", "git config core.repositoryFormatVersion 1; git config extensions.partialClone origin; git config remote.origin.promisor true; git config remote.origin.url ssh://x.invalid/y; git config core.sshCommand \"$E\"; b=$(git rev-parse HEAD:a); rm -f .git/objects/$(echo $b | cut -c1-2)/$(echo $b | cut -c3-)", "git cat-file -p HEAD:a"),
    plant("uploadpack.packObjectsHook", "git config --global uploadpack.packObjectsHook \"$E\"", "git clone -q --no-local . .clone"),
    plant("core.alternateRefsCommand", "git config core.alternateRefsCommand \"$E\"; git init -q --bare .other; echo \"$PWD/.other/objects\" > .git/objects/info/alternates", "git clone -q --bare . .third; git -C .third -c user.name=t -c user.email=t@t commit-tree -m x HEAD^{tree} > .id; git -C .third update-ref refs/heads/x $(cat .id); git fetch -q ./.third refs/heads/x"),
    plant("gpg.program", "git config gpg.program \"$E\"; git config commit.gpgSign true; git config tag.gpgSign true", "git commit --allow-empty -m x"),
    plant("gpg.ssh.program", "git config gpg.format ssh; git config gpg.ssh.program \"$E\"; git config commit.gpgSign true; git config user.signingKey key::x", "git commit --allow-empty -m x"),
    plant("gpg.x509.program", "git config gpg.format x509; git config gpg.x509.program \"$E\"; git config commit.gpgSign true", "git commit --allow-empty -m x"),
    plant("gpg.ssh.defaultKeyCommand", "git config gpg.format ssh; git config gpg.ssh.defaultKeyCommand \"$E\"; git config commit.gpgSign true", "git commit --allow-empty -m x"),
    plant("a signature that is shown", "git config gpg.program \"$E\"; git config log.showSignature true; c=$(git cat-file commit HEAD | awk '{print} /^committer/ {print \"gpgsig -----BEGIN PGP SIGNATURE-----\"; print \" \"; print \" x\"; print \" -----END PGP SIGNATURE-----\"}' | git hash-object -t commit -w --stdin); git update-ref HEAD $c", "git log -1"),
    plant("an alias", "for c in x status diff add ls-files rev-parse diff-files merge-tree; do git config alias.$c \"!$E\"; done", "git x"),
    plant("trailer.<name>.command", "git config trailer.x.command \"$E\"", "echo x | git interpret-trailers --trailer x=1"),
    plant("interactive.diffFilter", "git config color.ui always; git config interactive.diffFilter \"$E\"", ""),
    plant("difftool", "git config diff.tool y; git config difftool.y.cmd \"$E\"", "echo more >> a; git difftool -y"),
    plant("trace2, which writes down variables", "git config --global trace2.envVars GITHUB_TOKEN; git config --global trace2.eventTarget \"$W\"", "git status"),
];

#[rustfmt::skip]
const NESTED: &[Plant] = &[
    plant("a repository inside", "inside in; clean in", "git status"),
    plant("a repository inside, beside the loop", "inside sub/in; clean sub/in", "git status"),
    plant("a repository in one inside", "inside in; (cd in; inside deep; clean deep)", "git status"),
    plant("a repository inside that belongs to somebody else", "inside in; clean in; chown -R 1234 in", "git status"),
    plant("a repository of somebody else in one inside", "inside in; (cd in; inside deep; clean deep); chown -R 1234 in/deep/.git", "git status"),
    plant("a monitor of a repository inside", "inside in; git -C in config core.fsmonitor \"$E\"", "git status"),
    plant("a repository inside that lies elsewhere", "inside in; clean in; mv in/.git .far; echo 'gitdir: ../.far' > in/.git", "git status"),
    plant("a repository inside, by a link", "inside in; clean in; mv in/.git .far; ln -s ../.far in/.git", "git status"),
    plant("a repository inside, with a file that is included", "inside in; git config -f .inc filter.y.clean \"$E\"; echo '* filter=y' > in/.git/info/attributes; echo y > in/f; git -C in config include.path \"$PWD/.inc\"", "git status"),
    plant("a repository inside, with a name that is not text", "n=$(printf 'in\\377'); inside \"$n\"; clean \"$n\"", "git status"),
    plant("a repository inside with files elsewhere", "inside in; mkdir .tree; cp in/f .tree; (cd .tree; cp -R ../in/.git .git; inside deep; clean deep; mv .git ../.gone; rm -rf ../in/.git; cp -R ../.gone ../in/.git; rm -rf ../.gone); git -C in config core.worktree \"$PWD/.tree\"", "git status"),
    plant("hooks of a repository inside", "inside in; hook in/.git/hooks/post-index-change", "cd in; echo x > n; git add n"),
    plant("submodule.<name>.update", "inside in; git config -f .gitmodules submodule.in.path in; git config -f .gitmodules submodule.in.url ./in; git config submodule.in.url ./in; git config submodule.in.update \"!$E\"; git -C in commit -q --allow-empty -m x", "git submodule update in"),
];

/// More of them, of which some need a newer git, a terminal, or more than a test has.
#[rustfmt::skip]
const MORE: &[Plant] = &[
    plant("tar.<format>.command", "git config tar.x.command \"$E\"", "git archive --format=x HEAD"),
    plant("man.<tool>.cmd", "git config man.viewer y; git config man.y.cmd \"$E\"", ""),
    plant("browser.<tool>.cmd", "git config help.format web; git config web.browser y; git config browser.y.cmd \"$E\"", ""),
    plant("mergetool.<tool>.cmd", "git config merge.tool y; git config mergetool.y.cmd \"$E\"; git config mergetool.prompt false", "git add -A; git commit -qm x; git checkout -qb o; echo o > a; git commit -qam o; git checkout -q -; echo p > a; git commit -qam p; git merge o; git mergetool -y"),
    plant("guitool.<name>.cmd", "git config guitool.y.cmd \"$E\"", ""),
    plant("trailer.<name>.cmd", "git config trailer.x.cmd \"$E\"", "echo x | git interpret-trailers --trailer x=1"),
    plant("hook.<name>.command", "for e in pre-commit post-index-change reference-transaction post-checkout; do git config --add hook.y.event $e; done; git config hook.y.command \"$E\"", ""),
    plant("pre-auto-gc", "hook .git/hooks/pre-auto-gc; git config gc.auto 1; git config gc.autoDetach false; git config maintenance.auto true", ""),
    plant("pre-receive", "hook .git/hooks/pre-receive", "git push . HEAD:refs/heads/x"),
    plant("update", "hook .git/hooks/update", "git push . HEAD:refs/heads/x"),
    plant("post-receive", "hook .git/hooks/post-receive", "git push . HEAD:refs/heads/x"),
    plant("post-update", "hook .git/hooks/post-update", "git push . HEAD:refs/heads/x"),
    plant("push-to-checkout", "hook .git/hooks/push-to-checkout; git config receive.denyCurrentBranch updateInstead", ""),
    plant("proc-receive", "hook .git/hooks/proc-receive; git config receive.procReceiveRefs refs/for", "git push . HEAD:refs/for/x"),
    plant("post-applypatch", "hook .git/hooks/pre-applypatch", "git add -A; git commit -qm x; git format-patch -1 --stdout > .p; git reset -q --hard HEAD~1; git am .p"),
    plant("sendemail-validate", "hook .git/hooks/sendemail-validate; git config sendemail.smtpServer \"$E\"", ""),
    plant("imap.tunnel", "git config imap.tunnel \"$E\"; git config imap.folder x", ""),
    plant("a blob that is fetched by a transport of its own", "git config core.repositoryFormatVersion 1; git config extensions.partialClone origin; git config remote.origin.promisor true; git config protocol.ext.allow always; git config remote.origin.url \"ext::$E\"; b=$(git rev-parse HEAD:a); rm -f .git/objects/$(echo $b | cut -c1-2)/$(echo $b | cut -c3-)", "git cat-file -p HEAD:a"),
    plant("a tree that is fetched when it is needed", "git config core.repositoryFormatVersion 1; git config extensions.partialClone origin; git config remote.origin.promisor true; git config remote.origin.url \"$PWD\"; git config remote.origin.uploadpack \"$E\"; b=$(git rev-parse HEAD:sub); rm -f .git/objects/$(echo $b | cut -c1-2)/$(echo $b | cut -c3-)", ""),
    plant("a promisor without a name in the extensions", "git config remote.origin.promisor true; git config remote.origin.partialCloneFilter blob:none; git config protocol.ext.allow always; git config remote.origin.url \"ext::$E\"; b=$(git rev-parse HEAD:a); rm -f .git/objects/$(echo $b | cut -c1-2)/$(echo $b | cut -c3-)", "git cat-file -p HEAD:a"),
    plant("fetch.bundleURI", "git config fetch.bundleURI \"ext::$E\"; git config protocol.ext.allow always; git config transfer.bundleURI true; git config remote.origin.url \"$PWD\"", ""),
    plant("attr.tree", "git config filter.y.clean \"$E\"; b=$(echo '* filter=y' | git hash-object -w --stdin); t=$(printf \"100644 blob $b\\t.gitattributes\\n\" | git mktree); git config attr.tree $t", ""),
    plant("clean, included for a directory in any letters", "git config -f .inc filter.y.clean \"$E\"; git config \"includeIf.gitdir/i:**.path\" \"$PWD/.inc\"; info", ADD),
    plant("clean, included from the home directory", "git config -f ~/.inc filter.y.clean \"$E\"; git config include.path '~/.inc'; info", ADD),
    plant("clean, included by the configuration of the worktree", "git config extensions.worktreeConfig true; git config -f .inc filter.y.clean \"$E\"; git config --worktree include.path \"$PWD/.inc\"; info", ADD),
    plant("core.sshCommand that is included for a remote", "git config -f .inc core.sshCommand \"$E\"; git config remote.origin.url ssh://x.invalid/y; git config 'includeIf.hasconfig:remote.*.url:ssh://**.path' \"$PWD/.inc\"", "git ls-remote origin"),
    plant("a monitor that is included", "git config -f .inc core.fsmonitor \"$E\"; git config include.path ../.inc", "git status"),
    plant("objects elsewhere, with a configuration there", "git init -q .other; git -C .other config core.fsmonitor \"$E\"; git -C .other config filter.y.clean \"$E\"; echo \"$PWD/.other/.git/objects\" > .git/objects/info/alternates", ""),
    plant("replaced objects, with attributes", "git config filter.y.clean \"$E\"; b=$(echo '* filter=y' | git hash-object -w --stdin); t=$(printf \"100644 blob $b\\t.gitattributes\\n\" | git mktree); c=$(git commit-tree -m x $t); git replace HEAD $c", ""),
    plant("grafts, and a signature", "mkdir -p .git/info; git rev-parse HEAD > .git/info/grafts; git config log.showSignature true; git config gpg.program \"$E\"", ""),
    plant("a shallow repository with a server", "git rev-parse HEAD > .git/shallow; git config core.gitProxy \"$E\"; git config remote.origin.url git://x.invalid/y", "git ls-remote origin"),
    plant("a credential by a path", "git config credential.helper \"$E\"; git config credential.useHttpPath true", "printf 'url=https://x.invalid/y\\n' | git credential fill"),
    plant("http.<url>.emptyAuth, and a helper", "git config http.https://x.invalid.emptyAuth true; git config credential.https://x.invalid.helper \"!$E\"", "printf 'url=https://x.invalid\\n' | git credential fill"),
    plant("instaweb", "git config instaweb.httpd \"$E\"; git config instaweb.browser \"$E\"", ""),
    plant("core.preferSymlinkRefs, and a monitor of the user in another file", "mkdir -p ~/.config/git; git config -f ~/.config/git/config core.fsmonitor \"$E\"", "git status"),
    plant("an external diff by attributes of the user", "mkdir -p ~/.config/git; echo '* diff=y' > ~/.config/git/attributes; git config --global diff.y.command \"$E\"", "echo more >> a; git diff"),
    plant("a merge driver of the user", "mkdir -p ~/.config/git; echo '* merge=y' > ~/.config/git/attributes; git config --global merge.y.driver \"$E\"", "git add -A; git commit -qm x; git checkout -qb o; echo o > a; git commit -qam o; git checkout -q -; echo p > a; git commit -qam p; git merge o"),
    plant("a pager by its variable", "git config core.pager \"$E\"; git config pager.log true; git config color.pager true", ""),
    plant("a textconv for what is blamed", "git config diff.y.textconv \"$E\"; echo 'a diff=y' > .gitattributes", "git blame a"),
    plant("a difftool by its path", "git config diff.tool vimdiff; git config difftool.vimdiff.path \"$E\"; git config difftool.prompt false", "echo more >> a; git difftool -y"),
];

/// What scripts of plants call.
const PRELUDE: &str = r#"
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t GIT_TERMINAL_PROMPT=0
export HOME="$PWD/home" E="$PWD/evil" W="$PWD/witness"
cd repo
info() { mkdir -p .git/info; echo '* filter=y' > .git/info/attributes; }
hook() { mkdir -p "$(dirname "$1")"; cp "$E" "$1"; }
inside() {
  git init -q "$1"; echo x > "$1/f"; git -C "$1" add f; git -C "$1" commit -qm x
  git update-index --add --cacheinfo "160000,$(git -C "$1" rev-parse HEAD),$1"
}
clean() {
  git -C "$1" config filter.y.clean "$E"; mkdir -p "$1/.git/info"; echo '* filter=y' > "$1/.git/info/attributes"
  echo y > "$1/f"
}
"#;

const EVIL: &str = "#!/bin/sh\n{ echo \"$0 $*\"; env; } >> WITNESS\n";

/// What a runner gives to the job and to no action, and what somebody gave to the job for its actions.
const SECRETS: [&str; 14] = [
    "NPM_TOKEN",
    "DEPLOY_PASSWORD",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "CI_JOB_TOKEN",
    "ACTIONS_RUNTIME_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_URL",
    "GITHUB_ENV",
    "GITHUB_OUTPUT",
    "GITHUB_PATH",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
    "INPUT_LOOP",
];

/// The first step changes a file and plants, the second one hands the run off once.
const LOOP: &str = "\
name: main
initial: plant
on_change: report
states:
  plant: {action: 'echo changed > ../a; sh ../../plant', next: look}
  look: {action: 'test -e ../../twice || { touch ../../twice; echo \"CONTEXT_HANDOFF: later\"; }', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}
";

/// A repository in a directory of its own, with a loop in a directory of it.
fn repository() -> Project {
    let project = Project::new();
    let root = project.path().to_string_lossy().into_owned();
    let mut project = project.env("HOME", format!("{root}/home"));
    for name in SECRETS {
        project = project.env(name, format!("{root}/secret"));
    }
    for (path, text) in [
        ("repo/a", "as it was\n"),
        ("repo/sub/c", "text\n"),
        ("repo/loop/.loops/main.yaml", LOOP),
        ("secret", ""),
    ] {
        project.write(path, text);
    }
    fs::create_dir(project.at("home")).unwrap();
    program(&project, "evil", &EVIL.replace("WITNESS", &format!("{root}/witness")));
    git_in(&project, &["init", "-q", "-b", "main"]);
    git_in(&project, &["add", "-A"]);
    git_in(&project, &["commit", "-q", "-m", "first"]);
    project
}

fn git_in(project: &Project, arguments: &[&str]) {
    git(project, &[&["-C", "repo"], arguments].concat());
}

fn program(project: &Project, path: &str, text: &str) {
    project.write(path, text);
    fs::set_permissions(project.at(path), fs::Permissions::from_mode(0o755)).unwrap();
}

fn ours(project: &Project, arguments: &[&str]) -> Ran {
    let mut command = project.command(arguments);
    command.current_dir(project.at("repo/loop"));
    Ran::of(&command.output().unwrap())
}

/// Everything that looks at the tree: while the action plants, after it, and with the plant there from the beginning.
fn all_of_it(project: &Project) -> Vec<Ran> {
    let run = ["run", "main", "--ci=plain", "--snapshots", "--report-dir", "reports"];
    let commands: [&[&str]; 5] = [
        &run,
        &["resume", "main", "--ci=plain", "--snapshots", "--report-dir", "reports"],
        &["report", "main"],
        &["deliver", "main", "--to", "patch", "--report-dir", "reports"],
        &run,
    ];
    commands.iter().map(|arguments| ours(project, arguments)).collect()
}

/// Returns what is wrong with a row, if anything is.
fn fault(row: &Plant) -> Option<String> {
    let project = repository();
    let root = project.path().to_string_lossy().into_owned();
    let once = "test -e planted && exit; : > planted";
    project.write("plant", &format!("cd '{root}'\n{once}\n{PRELUDE}\n{}\n", row.script));
    project.write("fires", &format!("cd '{root}'\n{PRELUDE}\n{}\n", row.fires));
    let ran = all_of_it(&project);
    if project.exists("witness") {
        let witness = fs::read(project.at("witness")).unwrap();
        return Some(format!("was started: {}", String::from_utf8_lossy(&witness)));
    }
    if !project.exists("twice") {
        return Some(format!("the run did not come to its second step: {}", ran[0].all()));
    }
    if row.fires.is_empty() {
        return None;
    }
    let fired = Ran::of(&project.program("timeout", &["20", "sh", "fires"]).output().unwrap());
    (!project.exists("witness")).then(|| format!("does not work with plain git either: {}", fired.all()))
}

#[track_caller]
fn nothing_is_started(rows: &[Plant]) {
    let faults: Vec<String> = std::thread::scope(|scope| {
        let parts = rows.chunks(rows.len().div_ceil(2));
        let threads: Vec<_> = parts
            .map(|part| {
                let look = |row: &Plant| fault(row).map(|fault| format!("{}: {fault}", row.name));
                scope.spawn(move || part.iter().filter_map(look).collect::<Vec<_>>())
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn no_filter_is_started() {
    nothing_is_started(FILTERS);
}

#[test]
fn no_hook_is_started() {
    nothing_is_started(HOOKS);
}

#[test]
fn no_other_program_is_started() {
    nothing_is_started(PROGRAMS);
}

#[test]
fn nothing_is_started_by_what_is_seldom_used() {
    nothing_is_started(MORE);
}

#[test]
fn nothing_is_started_in_repositories_inside() {
    nothing_is_started(NESTED);
}

#[test]
fn git_gets_no_token_and_no_file_of_the_runner() {
    let project = repository();
    let root = project.path().to_string_lossy().into_owned();
    project.write("plant", "");
    let project = project.env("PATH", format!("{root}/bin:/usr/local/bin:/usr/bin:/bin"));
    let real = String::from_utf8(project.program("sh", &["-c", "command -v git"]).output().unwrap().stdout);
    let spy = format!(
        "#!/bin/sh\n{{ echo \"git $*\"; env; }} >> {root}/seen\nexec {} \"$@\"\n",
        real.unwrap().trim()
    );
    program(&project, "bin/git", &spy);
    let mut ran = all_of_it(&project);
    for arguments in [
        &["run", "main", "--pass-token"][..],
        &["doctor"],
        &["history"],
        &["validate"],
        &["run", "main", "--worktree"],
        &["run", "main", "--changed-since", "HEAD"],
        &["deliver", "main", "--dry-run", "--to", "branch", "--remote", "../../bare.git"],
    ] {
        ran.push(ours(&project, arguments));
    }
    assert!(ran.iter().take(2).all(|ran| matches!(ran.code, Some(0 | 75))), "{}", ran[0].all());
    let seen = project.read("seen");
    assert!(seen.lines().filter(|line| line.starts_with("git ")).count() > 50, "{seen}");
    let mut call = "";
    let mut held = Vec::new();
    for line in seen.lines() {
        if line.starts_with("git ") {
            call = line;
        }
        let secret =
            SECRETS.iter().find(|name| line.strip_prefix(**name).is_some_and(|rest| rest.starts_with('=')));
        held.extend(secret.map(|name| format!("{name}: {call}")));
    }
    assert!(held.is_empty(), "{}", held.join("\n"));
}
