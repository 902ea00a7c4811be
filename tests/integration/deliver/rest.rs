//! The model's REST API.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::model::{Desk, Level, Move, Owner, Pull, REPOSITORY, Stands, error};
use crate::forge::web::{Answer, Asked};

/// An answer, or the refusal that came in between.
type Reply = Result<Answer, Answer>;

/// A 422 that says what is wrong with which field.
fn invalid(field: &str, code: &str, message: Option<&str>) -> Answer {
    let mut one = json!({"resource": "PullRequest", "code": code});
    match message {
        Some(message) => one["message"] = json!(message),
        None => one["field"] = json!(field),
    }
    Answer::json(422, &json!({"message": "Validation Failed", "errors": [one]}))
}

fn missing() -> Answer {
    error(404, "Not Found")
}

/// Tells whether a tree may have a path.
pub(super) fn is_path(path: &str) -> bool {
    let is_part = |part: &str| {
        let folded = part.to_ascii_lowercase();
        !matches!(folded.as_str(), "" | "." | ".." | ".git" | "git~1") && !part.contains(['\0', '\n'])
    };
    path.split('/').all(is_part)
}

impl Desk<'_> {
    pub(super) fn rest(&mut self, asked: &Asked) -> Answer {
        let path = asked.path.strip_prefix("/api/v3").unwrap_or(&asked.path);
        let decoded = percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned();
        let body = asked.json();
        if !asked.body.is_empty() && body.is_null() {
            return error(400, "Problems parsing JSON");
        }
        let done = match decoded.strip_prefix(&format!("/repos/{REPOSITORY}")) {
            Some(at) => self.below(asked, at, &body),
            None if decoded == "/user" && self.token.owner() == Owner::Person => {
                Ok(Answer::json(200, &json!({"login": self.token.login()})))
            }
            None if decoded == "/user" => Err(error(403, "Resource not accessible by integration")),
            None => Err(missing()),
        };
        done.unwrap_or_else(|refusal| refusal)
    }

    fn below(&mut self, asked: &Asked, at: &str, body: &Value) -> Reply {
        let method = asked.method.as_str();
        let git =
            |rest: &str| at.strip_prefix("/git/").and_then(|at| at.strip_prefix(rest)).map(str::to_owned);
        if let Some(what) = at.strip_prefix("/git/") {
            self.needs("contents", if method == "GET" { Level::Read } else { Level::Write })?;
            return match (method, what) {
                ("POST", "refs") => self.make_ref(body),
                ("POST", "blobs") => self.make_blob(body),
                ("POST", "trees") => self.make_tree(body),
                ("POST", "commits") => self.make_commit(body),
                ("GET", _) if git("ref/").is_some() => self.get_ref(&git("ref/").unwrap()),
                ("GET", _) if git("matching-refs/").is_some() => {
                    self.matching(asked, &git("matching-refs/").unwrap())
                }
                ("GET", _) if git("commits/").is_some() => self.get_commit(&git("commits/").unwrap()),
                ("PATCH" | "DELETE", _) if git("refs/").is_some() => {
                    self.move_ref(method, &format!("refs/{}", git("refs/").unwrap()), body)
                }
                _ => Err(missing()),
            };
        }
        if let Some((branch, commit)) = at.strip_prefix("/compare/").and_then(|at| at.split_once("...")) {
            self.needs("contents", Level::Read)?;
            let between = format!("refs/heads/{}..{commit}", branch.replace("%2F", "/"));
            let count = self.bare.ask(&["rev-list", "--count", &between]).map_err(|_| missing())?;
            return Ok(Answer::json(200, &json!({"total_commits": count.trim().parse::<u64>().unwrap()})));
        }
        if let Some(branch) = at.strip_prefix("/branches/") {
            self.needs("contents", Level::Read)?;
            let name = format!("refs/heads/{branch}");
            let tip = self.tip(&name).ok_or_else(|| error(404, "Branch not found"))?;
            let shown =
                json!({"name": branch, "commit": {"sha": tip}, "protected": self.is_protected(&name)});
            return Ok(Answer::json(200, &shown));
        }
        let write = if method == "GET" { Level::Read } else { Level::Write };
        let parts: Vec<&str> = at.split('/').skip(1).collect();
        match (method, parts.as_slice()) {
            ("GET", []) => Ok(Answer::json(
                200,
                &json!({"id": 1, "node_id": "R_1", "full_name": REPOSITORY, "default_branch": "main",
                        "private": true, "fork": false, "archived": false}),
            )),
            (_, ["pulls", ..]) => {
                self.needs("pull_requests", write)?;
                self.pulls(asked, &parts[1..], body)
            }
            (_, ["issues", number, "comments"]) => {
                self.needs("pull_requests", write)?;
                let token = self.token.login();
                let pull = self.pull(number)?;
                if method == "GET" {
                    return Ok(page(asked, pull.comments.clone()));
                }
                let id = pull.number * 1000 + pull.comments.len() as u64;
                let comment = json!({"id": id, "body": body["body"], "user": {"login": token}});
                pull.comments.push(comment.clone());
                Ok(Answer::json(201, &comment))
            }
            _ => Err(missing()),
        }
    }

    fn shown_ref(&self, name: &str, id: &str) -> Value {
        let url = format!("{}/api/v3/repos/{REPOSITORY}/git/{name}", self.core.url);
        json!({"ref": name, "node_id": "REF_1", "url": url, "object": {"type": "commit", "sha": id}})
    }

    fn get_ref(&self, name: &str) -> Reply {
        let name = format!("refs/{name}");
        let refs = self.bare.refs();
        refs.get(&name).map(|id| Answer::json(200, &self.shown_ref(&name, id))).ok_or_else(missing)
    }

    fn matching(&self, asked: &Asked, begin: &str) -> Reply {
        let begin = format!("refs/{begin}");
        let refs = self.bare.refs().into_iter().filter(|(name, _)| name.starts_with(&begin));
        Ok(page(asked, refs.map(|(name, id)| self.shown_ref(&name, &id)).collect()))
    }

    fn make_ref(&self, body: &Value) -> Reply {
        let (Some(name), Some(id)) = (body["ref"].as_str(), body["sha"].as_str()) else {
            return Err(error(422, "Invalid request."));
        };
        if self.tip(name).is_some() {
            return Err(error(422, "Reference already exists"));
        }
        let made = Move { name: name.to_owned(), before: None, after: id.to_owned(), is_forced: false };
        self.moves(&[made]).map_err(|message| error(422, &message))?;
        Ok(Answer::json(201, &self.shown_ref(name, id)))
    }

    fn move_ref(&self, method: &str, name: &str, body: &Value) -> Reply {
        if self.tip(name).is_none() {
            return Err(error(422, "Reference does not exist"));
        }
        let after =
            if method == "DELETE" { "0".repeat(40) } else { body["sha"].as_str().unwrap_or("").to_owned() };
        let is_forced = body["force"].as_bool().unwrap_or(false);
        let moved = Move { name: name.to_owned(), before: None, after: after.clone(), is_forced };
        self.moves(&[moved]).map_err(|message| error(422, &message))?;
        if method == "DELETE" {
            return Ok(Answer::new(204, ""));
        }
        Ok(Answer::json(200, &self.shown_ref(name, &after)))
    }

    fn get_commit(&self, id: &str) -> Reply {
        if id.len() != 40 || !self.is_commit(id) {
            return Err(missing());
        }
        let read = |format: &str| self.bare.git(&["log", "-1", &format!("--format={format}"), id]);
        let parents = read("%P");
        let parents: Vec<Value> = parents.split_whitespace().map(|id| json!({"sha": id})).collect();
        let verified = self.state.signed.contains(id);
        let reason = if verified { "valid" } else { "unsigned" };
        Ok(Answer::json(
            200,
            &json!({
                "sha": id, "tree": {"sha": read("%T")}, "parents": parents, "message": read("%B").trim_end(),
                "author": {"name": read("%an"), "email": read("%ae")},
                "verification": {"verified": verified, "reason": reason, "signature": null, "payload": null},
            }),
        ))
    }

    fn make_blob(&self, body: &Value) -> Reply {
        let content = body["content"].as_str().ok_or_else(|| error(422, "Invalid request."))?;
        let bytes = match body["encoding"].as_str() {
            Some("base64") => {
                STANDARD.decode(content).map_err(|_| error(422, "Input should be valid Base64"))?
            }
            Some("utf-8") | None => content.as_bytes().to_vec(),
            Some(_) => return Err(error(422, "Invalid request.")),
        };
        let id = self.bare.feed(&["hash-object", "-w", "--stdin"], &[], &bytes).unwrap();
        Ok(Answer::json(201, &json!({"sha": id})))
    }

    /// Makes a tree of another and of lines for `git update-index -z --index-info`.
    pub(super) fn tree(&self, begin: Option<&str>, lines: &str) -> Result<String, String> {
        let directory = TempDir::with_prefix("ll-index-").unwrap();
        let index = directory.path().join("index");
        let env = [("GIT_INDEX_FILE", index.to_str().unwrap())];
        if let Some(begin) = begin {
            self.bare.feed(&["read-tree", begin], &env, b"")?;
        }
        self.bare.feed(&["update-index", "-z", "--index-info"], &env, lines.as_bytes())?;
        self.bare.feed(&["write-tree"], &env, b"")
    }

    fn make_tree(&self, body: &Value) -> Reply {
        let begin = body["base_tree"].as_str();
        if let Some(begin) = begin
            && self.bare.ask(&["rev-parse", "--verify", "-q", &format!("{begin}^{{tree}}")]).is_err()
        {
            return Err(missing());
        }
        let entries = body["tree"].as_array().filter(|entries| !entries.is_empty());
        let mut lines = String::new();
        for entry in entries.ok_or_else(|| error(422, "Invalid tree info"))? {
            let path = entry["path"].as_str().unwrap_or_default();
            if !is_path(path) {
                return Err(error(422, "tree.path contains a malformed path component"));
            }
            let mode = entry["mode"].as_str().unwrap_or_default();
            let (Some("blob" | "commit" | "tree") | None) = entry["type"].as_str() else {
                return Err(error(422, "Must supply a valid tree.type"));
            };
            if !["100644", "100755", "040000", "160000", "120000"].contains(&mode) {
                return Err(error(422, "Must supply a valid tree.mode"));
            }
            if path.starts_with(".github/workflows/") && !self.token.has("workflows", Level::Write) {
                return Err(super::model::denied("workflows", Level::Write));
            }
            let id = match (&entry["sha"], entry["content"].as_str()) {
                (Value::String(id), None) => id.clone(),
                (Value::Null, Some(content)) => {
                    self.bare.feed(&["hash-object", "-w", "--stdin"], &[], content.as_bytes()).unwrap()
                }
                (Value::Null, None) if entry.get("sha").is_some() => {
                    let there = begin.map(|begin| format!("{begin}:{path}"));
                    if there.is_none_or(|there| self.bare.ask(&["cat-file", "-e", &there]).is_err()) {
                        return Err(error(422, "GitRPC::BadObjectState"));
                    }
                    lines.push_str(&format!("0 {}\t{path}\0", "0".repeat(40)));
                    continue;
                }
                _ => return Err(error(422, "Must supply either tree.sha or tree.content")),
            };
            if mode != "160000" && self.bare.ask(&["cat-file", "-e", &id]).is_err() {
                return Err(error(422, &format!("tree.sha {id} is not a valid blob")));
            }
            lines.push_str(&format!("{mode} {id}\t{path}\0"));
        }
        let id = self.tree(begin, &lines).map_err(|_| error(422, "GitRPC::BadObjectState"))?;
        Ok(Answer::json(201, &json!({"sha": id, "tree": [], "truncated": false})))
    }

    fn make_commit(&mut self, body: &Value) -> Reply {
        let (Some(message), Some(tree)) = (body["message"].as_str(), body["tree"].as_str()) else {
            return Err(error(422, "Invalid request."));
        };
        let parents: Vec<String> = serde_json::from_value(body["parents"].clone()).unwrap_or_default();
        if self.bare.ask(&["cat-file", "-t", tree]).ok().as_deref() != Some("tree") {
            return Err(error(422, "Tree SHA does not exist"));
        }
        if parents.iter().any(|parent| !self.is_commit(parent)) {
            return Err(error(422, "Parent SHA does not exist or is not a commit object"));
        }
        let author = body.get("author").filter(|author| author.is_object());
        let is_plain = author.is_none() && !body["committer"].is_object();
        let signed = is_plain && self.token.owner() != Owner::Person;
        let id = self.commits(tree, &parents, message, author, signed);
        let shown = self.get_commit(&id)?;
        Ok(Answer { status: 201, ..shown })
    }

    fn pull(&mut self, number: &str) -> Result<&mut Pull, Answer> {
        let number: u64 = number.parse().map_err(|_| missing())?;
        self.state.pulls.iter_mut().find(|pull| pull.number == number).ok_or_else(missing)
    }

    fn shown(&self, pull: &Pull) -> Value {
        let owner = pull.from.split('/').next().unwrap();
        let base = self.tip(&format!("refs/heads/{}", pull.base));
        let merged_at = (pull.stands == Stands::Merged).then_some("2026-01-01T00:00:00Z");
        let id = if pull.from == REPOSITORY { 1 } else { 2 };
        json!({
            "number": pull.number, "id": pull.number, "node_id": format!("PR_{}", pull.number),
            "html_url": format!("{}/{REPOSITORY}/pull/{}", self.core.url, pull.number),
            "state": if pull.stands == Stands::Open { "open" } else { "closed" },
            "draft": pull.is_draft, "locked": pull.is_locked, "merged_at": merged_at,
            "auto_merge": pull.merges_itself.then(|| json!({"merge_method": "squash", "enabled_by": {"login": "ann"}})),
            "title": pull.title, "body": pull.body, "user": {"login": pull.by},
            "head": {"ref": pull.head, "sha": pull.sha, "label": format!("{owner}:{}", pull.head),
                     "repo": {"id": id, "full_name": pull.from, "fork": pull.from != REPOSITORY}},
            "base": {"ref": pull.base, "sha": base, "label": format!("octo:{}", pull.base),
                     "repo": {"id": 1, "full_name": REPOSITORY, "fork": false}},
        })
    }

    fn pulls(&mut self, asked: &Asked, at: &[&str], body: &Value) -> Reply {
        match (asked.method.as_str(), at) {
            ("GET", []) => Ok(self.listed(asked)),
            ("POST", []) => self.open(body),
            ("GET", [number]) => {
                let pull = self.pull(number)?.clone();
                let mut shown = self.shown(&pull);
                shown["merged"] = json!(pull.stands == Stands::Merged);
                Ok(Answer::json(200, &shown))
            }
            ("PATCH", [number]) => self.edit(number, body),
            ("GET", [number, "files"]) => {
                let pull = self.pull(number)?.clone();
                Ok(page(asked, self.files(&pull)))
            }
            ("GET", [number, "reviews"]) => Ok(page(asked, self.pull(number)?.reviews.clone())),
            ("POST", [number, "reviews"]) => self.review(number, body),
            _ => Err(missing()),
        }
    }

    fn listed(&self, asked: &Asked) -> Answer {
        let parameters = asked.parameters();
        let parameter = |name: &str| parameters.get(name).map(String::as_str);
        // A head without an owner is not a filter at all.
        let head = parameter("head").filter(|head| head.contains(':'));
        let state = parameter("state").unwrap_or("open");
        let fits = |pull: &&Pull| {
            let label = format!("{}:{}", pull.from.split('/').next().unwrap(), pull.head);
            let is_open = pull.stands == Stands::Open;
            head.is_none_or(|head| head == label)
                && parameter("base").is_none_or(|base| base == pull.base)
                && (state == "all" || (state == "open") == is_open)
        };
        let mut rows: Vec<Value> =
            self.state.pulls.iter().filter(fits).map(|pull| self.shown(pull)).collect();
        if parameter("direction") != Some("asc") {
            rows.reverse();
        }
        page(asked, rows)
    }

    fn open(&mut self, body: &Value) -> Reply {
        if self.token.owner() == Owner::Actions && !self.state.actions_may_open {
            return Err(error(403, "GitHub Actions is not permitted to create or approve pull requests."));
        }
        let text = |name: &str| body[name].as_str().map(str::to_owned);
        let title = text("title").filter(|title| !title.trim().is_empty());
        let title = title.ok_or_else(|| invalid("title", "missing_field", None))?;
        let (head, base) = (text("head").unwrap_or_default(), text("base").unwrap_or_default());
        let head = head.strip_prefix("octo:").unwrap_or(&head).to_owned();
        let Some(sha) = self.tip(&format!("refs/heads/{head}")) else {
            return Err(invalid("head", "invalid", None));
        };
        let Some(tip) = self.tip(&format!("refs/heads/{base}")) else {
            return Err(invalid("base", "invalid", None));
        };
        if self.bare.ask(&["merge-base", "--is-ancestor", &sha, &tip]).is_ok() {
            let message = format!("No commits between {base} and {head}");
            return Err(invalid("", "custom", Some(&message)));
        }
        let is_there = |pull: &Pull| {
            pull.stands == Stands::Open && pull.from == REPOSITORY && pull.head == head && pull.base == base
        };
        if self.state.pulls.iter().any(is_there) {
            let message = format!("A pull request already exists for octo:{head}.");
            return Err(invalid("", "custom", Some(&message)));
        }
        let is_draft = body["draft"].as_bool().unwrap_or(false);
        if is_draft && !self.state.has_drafts {
            return Err(error(422, "Draft pull requests are not supported in this repository."));
        }
        let text = text("body").unwrap_or_default();
        check_lengths(&title, &text)?;
        let number = self.state.pulls.len() as u64 + 1;
        let by = self.token.login();
        let pull = Pull { is_draft, title, body: text, sha, ..Pull::new(number, &head, &base, by) };
        self.state.pulls.push(pull.clone());
        self.bare.git(&["update-ref", &format!("refs/pull/{number}/head"), &pull.sha]);
        Ok(Answer::json(201, &self.shown(&pull)))
    }

    fn edit(&mut self, number: &str, body: &Value) -> Reply {
        let bare = self.bare.clone();
        let pull = self.pull(number)?;
        let text = |name: &str, old: &str| body[name].as_str().unwrap_or(old).to_owned();
        let (title, words) = (text("title", &pull.title), text("body", &pull.body));
        check_lengths(&title, &words)?;
        match body["state"].as_str() {
            Some("closed") if pull.stands == Stands::Open => pull.stands = Stands::Closed,
            Some("open") if pull.stands != Stands::Open => {
                let is_there = bare.refs().contains_key(&format!("refs/heads/{}", pull.head));
                if pull.is_dead || pull.stands == Stands::Merged || !is_there {
                    return Err(invalid("state", "invalid", None));
                }
                pull.stands = Stands::Open;
            }
            _ => {}
        }
        // Whether it is a draft cannot be changed here; that is not even an error.
        (pull.title, pull.body) = (title, words);
        let pull = pull.clone();
        Ok(Answer::json(200, &self.shown(&pull)))
    }

    fn diff(&self, pull: &Pull, more: &[&str]) -> String {
        let base = self.bare.git(&["merge-base", &format!("refs/heads/{}", pull.base), &pull.sha]);
        self.bare.git(&[&["diff", "-U3", "--no-color"], more, &[&base, &pull.sha]].concat())
    }

    fn files(&self, pull: &Pull) -> Vec<Value> {
        let names = self.diff(pull, &["--name-status", "-M"]);
        let row = |line: &str| {
            let mut words = line.split('\t');
            let kind = words.next().unwrap();
            let paths: Vec<&str> = words.collect();
            let status = match &kind[..1] {
                "A" => "added",
                "D" => "removed",
                "R" => "renamed",
                _ => "modified",
            };
            let path = *paths.last().unwrap();
            let patch = self.patch(pull, path);
            let mut row = json!({"filename": path, "status": status});
            let blob = self.bare.ask(&["rev-parse", "--verify", "-q", &format!("{}:{path}", pull.sha)]);
            row["sha"] = json!(blob.ok());
            if paths.len() > 1 {
                row["previous_filename"] = json!(paths[0]);
            }
            if let Some(patch) = patch {
                row["patch"] = json!(patch);
            }
            row
        };
        names.lines().map(row).collect()
    }

    /// Returns the hunks of a file, without what stands before them; nothing for a binary one.
    fn patch(&self, pull: &Pull, path: &str) -> Option<String> {
        let base = self.bare.git(&["merge-base", &format!("refs/heads/{}", pull.base), &pull.sha]);
        let whole = self.bare.git(&["diff", "-U3", "--no-color", &base, &pull.sha, "--", path]);
        let begin = whole.find("\n@@ ")?;
        Some(whole[begin + 1..].to_owned())
    }

    /// Returns the hunk in which a line of one side stands.
    fn hunk_of(&self, patch: &str, side: &str, line: u64) -> Option<usize> {
        let (mut hunk, mut old, mut new) = (0, 0_u64, 0_u64);
        for text in patch.lines() {
            if let Some(rest) = text.strip_prefix("@@ -") {
                let number = |text: &str| -> u64 {
                    text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
                };
                hunk += 1;
                old = number(rest);
                new = number(rest.split_once('+').unwrap().1);
                continue;
            }
            let (is_old, is_new) = match text.as_bytes().first() {
                Some(b'-') => (true, false),
                Some(b'+') => (false, true),
                Some(b'\\') => (false, false),
                _ => (true, true),
            };
            let (here, is_side) = if side == "LEFT" { (old, is_old) } else { (new, is_new) };
            if is_side && here == line {
                return Some(hunk);
            }
            old += u64::from(is_old);
            new += u64::from(is_new);
        }
        None
    }

    fn review(&mut self, number: &str, body: &Value) -> Reply {
        let kind = if self.token.owner() == Owner::Person { "User" } else { "Bot" };
        let author = json!({"login": self.token.login(), "type": kind});
        let pull = self.pull(number)?.clone();
        let unfit =
            |why: &str| Answer::json(422, &json!({"message": "Unprocessable Entity", "errors": [why]}));
        let event = body["event"].as_str().unwrap_or("PENDING");
        let comments = body["comments"].as_array().cloned().unwrap_or_default();
        let words = body["body"].as_str().unwrap_or_default();
        if words.is_empty() && comments.is_empty() || words.len() > 65_536 {
            return Err(unfit("Body can't be blank"));
        }
        if !["COMMENT", "PENDING", "REQUEST_CHANGES", "APPROVE"].contains(&event) {
            return Err(unfit("Event is invalid"));
        }
        let commit = body["commit_id"].as_str().unwrap_or(&pull.sha).to_owned();
        if commit != pull.sha && self.bare.ask(&["merge-base", "--is-ancestor", &commit, &pull.sha]).is_err()
        {
            return Err(unfit("Commit is not part of the pull request"));
        }
        for comment in &comments {
            let Some(patch) = comment["path"].as_str().and_then(|path| self.patch(&pull, path)) else {
                return Err(unfit("Path could not be resolved"));
            };
            if comment["body"].as_str().is_none_or(str::is_empty) {
                return Err(unfit("Body can't be blank"));
            }
            let side = comment["side"].as_str().unwrap_or("RIGHT");
            let line = comment["line"].as_u64();
            let Some(hunk) = line.and_then(|line| self.hunk_of(&patch, side, line)) else {
                return Err(unfit("Line could not be resolved"));
            };
            let Some(start) = comment["start_line"].as_u64() else { continue };
            if Some(start) >= line {
                return Err(unfit("Start line must precede the end line."));
            }
            let side = comment["start_side"].as_str().unwrap_or(side);
            if self.hunk_of(&patch, side, start) != Some(hunk) {
                return Err(unfit("Start line must be part of the same hunk as the line."));
            }
        }
        let id = pull.number * 1000 + pull.reviews.len() as u64;
        let state = if event == "COMMENT" { "COMMENTED" } else { event };
        let review = json!({
            "id": id, "state": state, "body": words, "commit_id": commit, "user": author,
            "html_url": format!("{}/{REPOSITORY}/pull/{number}#pullrequestreview-{id}", self.core.url),
        });
        let mut kept = review.clone();
        kept["comments"] = json!(comments);
        self.pull(number)?.reviews.push(kept);
        Ok(Answer::json(200, &review))
    }
}

fn check_lengths(title: &str, body: &str) -> Result<(), Answer> {
    if title.chars().count() > 256 {
        return Err(invalid("", "custom", Some("title is too long (maximum is 256 characters)")));
    }
    if body.chars().count() > 65_536 {
        return Err(invalid("", "custom", Some("body is too long (maximum is 65536 characters)")));
    }
    Ok(())
}

/// Returns the page of a list that is asked for: 30 items of it, where nothing else is said.
fn page(asked: &Asked, rows: Vec<Value>) -> Answer {
    let parameters = asked.parameters();
    let number = |name: &str, default: usize| {
        parameters.get(name).and_then(|text| text.parse().ok()).unwrap_or(default).max(1)
    };
    let (size, at) = (number("per_page", 30).min(100), number("page", 1));
    let rest = rows.len().saturating_sub(at * size);
    let rows: Vec<Value> = rows.into_iter().skip((at - 1) * size).take(size).collect();
    let answer = Answer::json(200, &json!(rows));
    if rest == 0 {
        return answer;
    }
    answer.with(
        "link",
        &format!("<http://{}{}?page={}>; rel=\"next\"", asked.header("host"), asked.path, at + 1),
    )
}
