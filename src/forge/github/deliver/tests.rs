use std::collections::BTreeSet;

use serde_json::json;
use wiremock::ResponseTemplate;

use super::fake_repository::{Fake, Files, When, ZERO, files, id, said, tree_id, wrong};
use super::*;
use crate::base::explanation::Explanation;
use crate::engine::changes::FileMode;
use crate::forge::change::{FileChange, FileSide};

const STICKY: &str = "refs/heads/ll-loop/fix/main";
const DELIVERED: &str = "refs/ll-loop/delivered/fix/main";
const TEMPORARY: &str = "ll-loop-tmp/fix/main/";
const MESSAGE: &str = "fix: types\n\nWhat was wrong.\n\nLL-Loop: fix@1\n";

/// What a delivery is about: the files before and after it.
struct TestFix {
    before: Files,
    after: Files,
}

impl TestFix {
    fn plain() -> Self {
        Self {
            before: files(&[("a", "100644", "old"), ("gone", "100644", "x"), ("keep", "100755", "k")]),
            after: files(&[("a", "100644", "new"), ("dir/é b", "100644", "+"), ("keep", "100755", "k")]),
        }
    }

    /// One with modes that a branch cannot take.
    fn modes() -> Self {
        Self {
            before: files(&[("a", "100644", "old"), ("run", "100644", "r"), ("gone", "120000", "a")]),
            after: files(&[("a", "100644", "new"), ("run", "100755", "r"), ("link", "120000", "a")]),
        }
    }

    fn changes(&self) -> Vec<FileChange> {
        let side = |files: &Files, path: &String| {
            let (mode, content) = files.get(path)?;
            let id = ObjectId::parse(&id(content)).unwrap();
            Some(FileSide { mode: FileMode::parse(mode).unwrap(), id, size: content.len() as u64 })
        };
        let paths: BTreeSet<&String> = self.before.keys().chain(self.after.keys()).collect();
        let changes = paths.into_iter().map(|path| FileChange {
            path: path.clone(),
            old: side(&self.before, path),
            new: side(&self.after, path),
        });
        changes.filter(|change| change.old != change.new).collect()
    }
}

impl FileContents for TestFix {
    fn blob(&self, wanted: &ObjectId) -> Result<Vec<u8>, Explanation> {
        let found = self.after.values().find(|(_, content)| id(content) == wanted.as_str());
        found
            .map(|(_, content)| content.clone())
            .ok_or_else(|| Explanation::new(format!("no object {wanted}")))
    }
}

/// Delivers as far as refs: from where they stand now.
fn write(fake: &Fake, api: &Api, fix: &TestFix, require_signed: bool) -> Result<WrittenCommit, ForgeError> {
    let repository = RepositoryName::parse("o/r").unwrap();
    let forge = GithubForge::new(api, &repository);
    let found = |name: &str| fake.content().refs.get(name).map(|id| ObjectId::parse(id).unwrap());
    let moves = [STICKY, DELIVERED].map(|name| RefMove { name: name.to_owned(), from: found(name) });
    let commit = NewCommit {
        parent: &found("refs/heads/main").unwrap(),
        tree: &ObjectId::parse(&tree_id(&fix.after)).unwrap(),
        changes: &fix.changes(),
        message: MESSAGE,
        require_signed,
        pull: None,
    };
    forge.write(&commit, &moves, TEMPORARY, fix)
}

fn served(fix: &TestFix) -> (Fake, super::super::testing::TestServer, Api) {
    let fake = Fake::new(&fix.before);
    // Blobs of the base are there.
    for (_, content) in fix.before.values() {
        fake.content().blobs.insert(id(content), content.clone());
    }
    let (server, api, _) = fake.serve();
    (fake, server, api)
}

/// Nothing but the base is there.
#[track_caller]
fn check_untouched(fake: &Fake) {
    assert_eq!(fake.names(), ["refs/heads/main"]);
}

/// Base, branch and delivered ref are there, and nothing else; the last two are at a commit with the fix.
#[track_caller]
fn check_written(fake: &Fake, fix: &TestFix, written: &WrittenCommit) {
    assert_eq!(fake.names(), [STICKY, "refs/heads/main", DELIVERED]);
    assert_eq!([fake.head(STICKY), fake.head(DELIVERED)], [written.id.as_str(), written.id.as_str()]);
    let made = fake.content().commits[written.id.as_str()].clone();
    assert_eq!((made.tree, made.parents), (tree_id(&fix.after), vec![fake.head("refs/heads/main")]));
    assert_eq!((made.message.trim_end(), made.verified), (MESSAGE.trim_end(), written.signed));
}

#[test]
fn a_fix_of_plain_files_is_a_commit_that_github_signs_and_no_branch_is_left() {
    let fix = TestFix::plain();
    let (fake, server, api) = served(&fix);
    let written = write(&fake, &api, &fix, true).unwrap();
    assert!(written.signed);
    check_written(&fake, &fix, &written);
    let changes = server.changes();
    let names: Vec<&str> = changes.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["POST /repos/o/r/git/refs", "POST /graphql", "POST /graphql"]);
    let main = fake.head("refs/heads/main");
    let temporary = changes[0].1["ref"].as_str().unwrap().to_owned();
    assert!(temporary.starts_with("refs/heads/ll-loop-tmp/fix/main/"), "{temporary}");
    assert_eq!(changes[0].1["sha"], main);
    assert_eq!(
        changes[1].1["variables"]["input"],
        json!({
            "branch": {
                "repositoryNameWithOwner": "o/r", "branchName": temporary.strip_prefix("refs/heads/").unwrap(),
            },
            "expectedHeadOid": main,
            "message": {"headline": "fix: types", "body": "What was wrong.\n\nLL-Loop: fix@1"},
            "fileChanges": {
                "additions": [{"path": "a", "contents": "bmV3"}, {"path": "dir/é b", "contents": "Kw=="}],
                "deletions": [{"path": "gone"}],
            },
        })
    );
    let new = written.id.as_str();
    assert_eq!(
        changes[2].1["variables"]["input"],
        json!({"repositoryId": "R_1", "refUpdates": [
            {"name": STICKY, "beforeOid": ZERO, "afterOid": new, "force": true},
            {"name": DELIVERED, "beforeOid": ZERO, "afterOid": new, "force": true},
            {"name": temporary, "beforeOid": new, "afterOid": ZERO, "force": true},
        ]})
    );
    // The next one moves them from there.
    let again = write(&fake, &api, &fix, true).unwrap();
    check_written(&fake, &fix, &again);
    assert_eq!(server.changes()[5].1["variables"]["input"]["refUpdates"][0]["beforeOid"], new);
}

#[test]
fn modes_and_links_are_a_commit_of_objects_and_there_is_no_branch_for_it() {
    let fix = TestFix::modes();
    let (fake, server, api) = served(&fix);
    let written = write(&fake, &api, &fix, true).unwrap();
    check_written(&fake, &fix, &written);
    let changes = server.changes();
    let names: Vec<&str> = changes.iter().map(|(name, _)| name.as_str()).collect();
    let git = |what: &str| format!("POST /repos/o/r/git/{what}");
    // The content of the executable and of the link were there before.
    assert_eq!(names, [&git("blobs"), &git("trees"), &git("commits"), "POST /graphql"]);
    assert_eq!(changes[0].1, json!({"content": "bmV3", "encoding": "base64"}));
    assert_eq!(
        changes[1].1,
        json!({"base_tree": tree_id(&fix.before), "tree": [
            {"path": "a", "mode": "100644", "type": "blob", "sha": id(b"new")},
            {"path": "gone", "mode": "120000", "type": "blob", "sha": null},
            {"path": "link", "mode": "120000", "type": "blob", "sha": id(b"a")},
            {"path": "run", "mode": "100755", "type": "blob", "sha": id(b"r")},
        ]})
    );
    assert_eq!(
        changes[2].1,
        json!({"message": MESSAGE, "tree": tree_id(&fix.after), "parents": [fake.head("refs/heads/main")]})
    );
}

#[test]
fn a_commit_with_other_files_than_the_fix_is_not_delivered() {
    let fix = TestFix::plain();
    let (fake, _server, api) = served(&fix);
    fake.content().adds_to_commits = true;
    let written = write(&fake, &api, &fix, false).unwrap();
    check_written(&fake, &fix, &written);

    let (fake, _server, api) = served(&fix);
    fake.content().adds_to_commits = true;
    fake.content().adds_to_trees = true;
    let error = write(&fake, &api, &fix, false).unwrap_err();
    assert_eq!(error.kind, ForgeErrorKind::Failed);
    assert!(error.message.starts_with("GitHub made a commit with other files: tree "), "{error}");
    check_untouched(&fake);
}

#[test]
fn a_commit_without_a_signature_is_delivered_unless_one_is_required() {
    for fix in [TestFix::plain(), TestFix::modes()] {
        let (fake, _server, api) = served(&fix);
        fake.content().signs = false;
        let error = write(&fake, &api, &fix, true).unwrap_err();
        assert_eq!(error.kind, ForgeErrorKind::Declined);
        check_untouched(&fake);
        let written = write(&fake, &api, &fix, false).unwrap();
        assert!(!written.signed);
        check_written(&fake, &fix, &written);
    }
}

#[test]
fn whoever_was_faster_keeps_what_he_wrote() {
    for fix in [TestFix::plain(), TestFix::modes()] {
        for name in [STICKY, DELIVERED] {
            let (fake, _server, api) = served(&fix);
            let theirs = "c".repeat(40);
            fake.content().raced = Some((name.to_owned(), Some(theirs.clone())));
            let error = write(&fake, &api, &fix, false).unwrap_err();
            assert_eq!(error.kind, ForgeErrorKind::Raced, "{error}");
            assert_eq!(fake.head(name), theirs);
            assert_eq!(fake.names().len(), 2, "{:?}", fake.names());
        }
        // One that was there goes.
        let (fake, _server, api) = served(&fix);
        write(&fake, &api, &fix, false).unwrap();
        fake.content().raced = Some((STICKY.to_owned(), None));
        assert_eq!(write(&fake, &api, &fix, false).unwrap_err().kind, ForgeErrorKind::Raced);
        assert_eq!(fake.names(), ["refs/heads/main", DELIVERED]);
    }
}

#[test]
fn two_deliveries_that_make_the_same_commit_leave_no_branch() {
    for fix in [TestFix::plain(), TestFix::modes()] {
        let (fake, _server, api) = served(&fix);
        fake.content().twin = true;
        let written = write(&fake, &api, &fix, false).unwrap();
        check_written(&fake, &fix, &written);
    }
}

#[test]
fn a_branch_in_the_way_is_named() {
    let check = |fix: &TestFix, other: &str, expect: &str| {
        let (fake, _server, api) = served(fix);
        let main = fake.head("refs/heads/main");
        fake.content().refs.insert(other.to_owned(), main);
        let error = write(&fake, &api, fix, false).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ForgeErrorKind::Failed, expect));
        assert!(error.help.unwrap().starts_with("rename or delete the "));
        assert_eq!(fake.names().len(), 2, "{:?}", fake.names());
    };
    for fix in [TestFix::plain(), TestFix::modes()] {
        let sticky = "the branch `ll-loop/fix/main` cannot exist beside it";
        for (other, name) in [
            ("refs/heads/ll-loop", "ll-loop"),
            ("refs/heads/ll-loop/fix", "ll-loop/fix"),
            ("refs/heads/ll-loop/fix/main/more", "ll-loop/fix/main/more"),
        ] {
            check(&fix, other, &format!("the branch `{name}` is in the way: {sticky}"));
        }
        check(
            &fix,
            "refs/ll-loop/delivered/fix",
            "the ref `refs/ll-loop/delivered/fix` is in the way: \
             the ref `refs/ll-loop/delivered/fix/main` cannot exist beside it",
        );
    }
    let (fake, _server, api) = served(&TestFix::plain());
    fake.content().refs.insert("refs/heads/ll-loop-tmp".to_owned(), ZERO.to_owned());
    let error = write(&fake, &api, &TestFix::plain(), false).unwrap_err();
    assert!(error.message.starts_with("the branch `ll-loop-tmp` is in the way: "), "{error}");
}

/// What a delivery comes to that was broken off: all refs are moved, or none.
#[track_caller]
fn check_whole(fake: &Fake) {
    let content = fake.content();
    assert_eq!(content.refs.get(STICKY), content.refs.get(DELIVERED));
}

#[test]
fn no_trouble_of_the_server_leaves_half_a_delivery() {
    for fix in [TestFix::plain(), TestFix::modes()] {
        let (fake, _server, api) = served(&fix);
        write(&fake, &api, &fix, true).unwrap();
        let requests = fake.content().asked;
        for at in 0..requests {
            for when in [When::Before, When::After] {
                // Once: nobody notices.
                let (fake, _server, api) = served(&fix);
                fake.content().trouble = Some((at, at + 1, when));
                let written = write(&fake, &api, &fix, true);
                let written = written.unwrap_or_else(|error| panic!("{at} {when:?}: {error}"));
                check_written(&fake, &fix, &written);
                // For good: the next delivery finishes it, or clears it away.
                let (fake, _server, api) = served(&fix);
                fake.content().trouble = Some((at, usize::MAX, when));
                let ended = write(&fake, &api, &fix, true);
                fake.content().trouble = None;
                let Err(error) = ended else {
                    // The last request looks for what others left, and is not worth a failure.
                    assert_eq!(at, requests - 1);
                    check_written(&fake, &fix, &ended.unwrap());
                    continue;
                };
                assert_eq!(error.kind, ForgeErrorKind::Unavailable, "{at} {when:?}: {error}");
                check_whole(&fake);
                let written = write(&fake, &api, &fix, true).unwrap();
                check_written(&fake, &fix, &written);
                // For a while, in which a delivery gives up.
                let (fake, _server, api) = served(&fix);
                fake.content().trouble = Some((at, at + 5, when));
                match write(&fake, &api, &fix, true) {
                    Ok(written) => check_written(&fake, &fix, &written),
                    Err(error) => {
                        assert_eq!(error.kind, ForgeErrorKind::Unavailable, "{at} {when:?}: {error}");
                        check_whole(&fake);
                    }
                }
            }
        }
    }
}

#[test]
fn a_limit_is_waited_for_or_ends_the_delivery_whole() {
    for fix in [TestFix::plain(), TestFix::modes()] {
        let (fake, _server, api) = served(&fix);
        write(&fake, &api, &fix, true).unwrap();
        let requests = fake.content().asked;
        for at in 0..requests {
            let (fake, _server, api) = served(&fix);
            let secondary =
                said(403, "You have exceeded a secondary rate limit.").insert_header("retry-after", "30");
            fake.content().limited = Some((at, secondary));
            check_written(&fake, &fix, &write(&fake, &api, &fix, true).unwrap());
            let (fake, _server, api) = served(&fix);
            let primary = said(403, "API rate limit exceeded").insert_header("retry-after", "3000");
            fake.content().limited = Some((at, primary));
            match write(&fake, &api, &fix, true) {
                // The last request looks for what others left, and is not worth a failure.
                Ok(written) if at == requests - 1 => check_written(&fake, &fix, &written),
                ended => {
                    let error = ended.unwrap_err();
                    assert_eq!(error.kind, ForgeErrorKind::Unavailable, "{at}: {error}");
                    check_untouched(&fake);
                }
            }
        }
    }
}

/// What a delivery says when the server has an answer of its own to some requests, and that nothing is left of it.
#[track_caller]
fn check_refused(
    fix: &TestFix,
    on: &'static str,
    answer: ResponseTemplate,
    message: &str,
    help: Option<&str>,
) {
    let (fake, _server, api) = served(fix);
    fake.content().answers.push((on, answer));
    let error = write(&fake, &api, fix, false).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ForgeErrorKind::Failed, message));
    assert_eq!(error.help.as_deref(), help);
    check_untouched(&fake);
}

#[test]
fn what_a_token_may_not_is_named() {
    let not = "Resource not accessible by integration";
    let help = Some("give the job `permissions: { contents: write }`, or use another token");
    let named =
        |answer: ResponseTemplate| answer.insert_header("x-accepted-github-permissions", "contents=write");
    let (plain, modes) = (TestFix::plain(), TestFix::modes());
    for (fix, on, name) in [
        (&plain, "POST /repos/o/r/git/refs", "POST /repos/o/r/git/refs"),
        (&modes, "/git/blobs", "POST /repos/o/r/git/blobs"),
        (&modes, "/git/trees", "POST /repos/o/r/git/trees"),
        (&modes, "POST /repos/o/r/git/commits", "POST /repos/o/r/git/commits"),
    ] {
        for answer in [said(403, not), named(said(403, not))] {
            check_refused(fix, on, answer, &format!("the token may not do {name}: {not}"), help);
        }
    }
    for on in ["createCommitOnBranch", "updateRefs"] {
        let message = format!("the token may not do {on}: {not}");
        check_refused(&plain, on, wrong("FORBIDDEN", not), &message, help);
    }
    let workflow = "refusing to allow a GitHub App to create or update workflow `.github/workflows/a.yml` without \
         `workflows` permission";
    check_refused(
        &plain,
        "createCommitOnBranch",
        wrong("FORBIDDEN", workflow),
        &format!("the token may not do createCommitOnBranch: {workflow}"),
        Some(
            "use the token of an app or a person with the permission `workflows`: the token of a job cannot have it",
        ),
    );
    let absent = "GitHub finds nothing for POST /repos/o/r/git/blobs: Not Found";
    let help = Some("look whether the token may see `o/r`, and has `contents: write`");
    check_refused(&modes, "/git/blobs", said(404, "Not Found"), absent, help);
}

#[test]
fn what_a_rule_forbids_is_said_in_the_words_of_the_server() {
    let rule = "Repository rule violations found: Cannot update this protected ref.";
    let fix = TestFix::plain();
    let message = format!("GitHub refuses updateRefs: {rule}");
    check_refused(&fix, "updateRefs", wrong("UNPROCESSABLE", rule), &message, None);
    let message = format!("GitHub answers POST /repos/o/r/git/refs with 422: {rule}");
    check_refused(&fix, "POST /repos/o/r/git/refs", said(422, rule), &message, None);
}

#[test]
fn a_server_that_moves_one_ref_at_a_time_is_too_old() {
    let unknown = json!({"errors": [{
        "message": "Field 'updateRefs' doesn't exist on type 'Mutation'",
        "extensions": {"code": "undefinedField", "typeName": "Mutation", "fieldName": "updateRefs"},
    }]});
    check_refused(
        &TestFix::plain(),
        "updateRefs",
        ResponseTemplate::new(200).set_body_json(unknown),
        "GitHub cannot move several refs at once",
        Some("use a newer version of GitHub Enterprise Server, or `--to patch`"),
    );
}

#[test]
fn what_cannot_be_read_of_the_bundle_is_not_delivered() {
    struct Nothing;
    impl FileContents for Nothing {
        fn blob(&self, id: &ObjectId) -> Result<Vec<u8>, Explanation> {
            Err(Explanation::new(format!("the object {id} is missing")))
        }
    }
    let fix = TestFix::plain();
    let (fake, _server, api) = served(&fix);
    let repository = RepositoryName::parse("o/r").unwrap();
    let commit = NewCommit {
        parent: &ObjectId::parse(&fake.head("refs/heads/main")).unwrap(),
        tree: &ObjectId::parse(&tree_id(&fix.after)).unwrap(),
        changes: &fix.changes(),
        message: MESSAGE,
        require_signed: false,
        pull: None,
    };
    let error = GithubForge::new(&api, &repository).write(&commit, &[], TEMPORARY, &Nothing).unwrap_err();
    assert_eq!(error.message, format!("the object {} is missing", id(b"new")));
    check_untouched(&fake);
}

#[test]
fn who_moves_the_refs_clears_what_other_deliveries_left() {
    for fix in [&TestFix::plain(), &TestFix::modes()] {
        let (fake, _server, api) = served(fix);
        let left = "refs/heads/ll-loop-tmp/fix/main/abc".to_owned();
        let of_another = "refs/heads/ll-loop-tmp/fix/main2/abc".to_owned();
        for name in [&left, &of_another] {
            fake.content().refs.insert(name.clone(), "d".repeat(40));
        }
        write(&fake, &api, fix, false).unwrap();
        let names = fake.names();
        assert!(names.contains(&of_another) && !names.contains(&left), "{names:?}");
        assert_eq!(names.len(), 4, "{names:?}");
        // What cannot be removed hinders nobody.
        let (fake, _server, api) = served(fix);
        fake.content().refs.insert(left, "d".repeat(40));
        fake.content().answers.push(("DELETE", said(422, "Cannot delete this branch")));
        write(&fake, &api, fix, false).unwrap();
    }
}

#[test]
fn refs_and_commits_are_read_by_their_exact_names() {
    let fix = TestFix::plain();
    let (fake, server, api) = served(&fix);
    let repository = RepositoryName::parse("o/r").unwrap();
    let forge = GithubForge::new(&api, &repository);
    let main = fake.head("refs/heads/main");
    fake.content().refs.insert("refs/heads/ll-loop/fix/a#b%é".to_owned(), main.clone());
    let found = forge.refs(&["refs/heads/main", STICKY, "refs/heads/ll-loop/fix/a#b%é"]).unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(found["refs/heads/ll-loop/fix/a#b%é"].as_str(), main);
    assert_eq!(server.received()[2].0, "GET /repos/o/r/git/ref/heads/ll-loop/fix/a%23b%25%C3%A9");
    let commit = forge.commit(&found["refs/heads/main"]).unwrap();
    assert_eq!((commit.tree.as_str(), commit.parents.len()), (tree_id(&fix.before).as_str(), 0));
    assert_eq!(commit.message, "begin");
    let missing = forge.commit(&ObjectId::parse(&"e".repeat(40)).unwrap()).unwrap_err();
    assert_eq!(missing.kind, ForgeErrorKind::Failed);
    assert_eq!(forge.name(), "GitHub");
    // A repository without commits has no refs, and a server that answers with another ref has not this one.
    fake.content().answers.push(("/git/ref/heads/main", said(409, "Git Repository is empty.")));
    assert!(forge.refs(&["refs/heads/main"]).unwrap().is_empty());
    let other = json!({"ref": "refs/heads/main2", "object": {"sha": main}});
    fake.content().answers = vec![("/git/ref/", ResponseTemplate::new(200).set_body_json(other))];
    assert!(forge.refs(&["refs/heads/main"]).unwrap().is_empty());
    let odd = json!({"ref": "refs/heads/main", "object": {"sha": "--upload-pack=x"}});
    fake.content().answers = vec![("/git/ref/", ResponseTemplate::new(200).set_body_json(odd))];
    assert_eq!(forge.refs(&["refs/heads/main"]).unwrap_err().kind, ForgeErrorKind::Failed);
}

#[test]
fn the_server_says_whose_token_it_is() {
    let fake = Fake::new(&Files::new());
    let (_server, api, _) = fake.serve();
    let repository = RepositoryName::parse("o/r").unwrap();
    let forge = GithubForge::new(&api, &repository);
    for (login, expect) in [("github-actions[bot]", false), ("helper[bot]", true), ("ann", true)] {
        fake.content().login = login;
        assert_eq!(forge.starts_checks(), Ok(expect), "{login}");
    }
    fake.content().answers.push(("viewer", said(401, "Bad credentials")));
    assert_eq!(forge.starts_checks().unwrap_err().kind, ForgeErrorKind::Failed);
}
