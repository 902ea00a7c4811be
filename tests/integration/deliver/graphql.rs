//! The model's GraphQL: mutations with variables. What goes wrong stands in `errors`, under status 200.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::model::{Desk, Level, Move, REPOSITORY};
use crate::forge::web::{Answer, Asked};

/// What went wrong: GitHub's type for it, and its words.
type Fault = (&'static str, String);

fn fault<T>(kind: &'static str, message: impl Into<String>) -> Result<T, Fault> {
    Err((kind, message.into()))
}

impl Desk<'_> {
    pub(super) fn graphql(&mut self, asked: &Asked) -> Answer {
        let body = asked.json();
        let (Some(query), "POST") = (body["query"].as_str(), asked.method.as_str()) else {
            return super::model::error(400, "Problems parsing JSON");
        };
        // GitHub takes fields by their names; ours are unlike each other.
        let field = ["createCommitOnBranch", "updateRefs", "markPullRequestReadyForReview"]
            .into_iter()
            .find(|field| query.contains(field));
        let Some(field) = field else {
            return Answer::json(200, &json!({"data": self.looked_up(query, &body)}));
        };
        let input = body["variables"].as_object().and_then(|variables| {
            variables.get("input").or_else(|| variables.values().find(|one| one.is_object()))
        });
        let done = match input {
            None => fault("UNPROCESSABLE", "Variable $input of type Input! was provided invalid value"),
            Some(input) => match field {
                "createCommitOnBranch" => self.create_commit(input),
                "updateRefs" => self.update_refs(input),
                _ => self.mark_ready(input),
            },
        };
        let answer = match done {
            Ok(value) => json!({"data": {field: value}}),
            Err((kind, message)) => json!({
                "data": {field: null},
                "errors": [{"type": kind, "path": [field], "locations": [{"line": 1, "column": 2}], "message": message}],
            }),
        };
        Answer::json(200, &answer)
    }

    fn looked_up(&self, query: &str, body: &Value) -> Value {
        let mut data = json!({});
        if query.contains("viewer") {
            data["viewer"] = json!({"login": self.token.login()});
        }
        if query.contains("repository") {
            let text = |name: &str| body["variables"][name].as_str().unwrap_or_default();
            let names = format!("{}/{}", text("owner"), text("name"));
            let is_it = names == REPOSITORY || query.contains("octo");
            data["repository"] =
                if is_it { json!({"id": "R_1", "nameWithOwner": REPOSITORY}) } else { Value::Null };
        }
        data
    }

    fn may(&self, permission: &str) -> Result<(), Fault> {
        if self.token.has(permission, Level::Write) {
            return Ok(());
        }
        fault("FORBIDDEN", "Resource not accessible by integration")
    }

    fn create_commit(&mut self, input: &Value) -> Result<Value, Fault> {
        self.may("contents")?;
        let branch = &input["branch"];
        let is_here = branch["repositoryNameWithOwner"].as_str() == Some(REPOSITORY);
        let Some(name) = branch["branchName"].as_str().filter(|_| is_here) else {
            return fault("NOT_FOUND", "Could not resolve to a Repository with the name.");
        };
        let (Some(expected), Some(headline)) =
            (input["expectedHeadOid"].as_str(), input["message"]["headline"].as_str())
        else {
            return fault("UNPROCESSABLE", "Variable $input was provided invalid value");
        };
        let name = format!("refs/heads/{}", name.strip_prefix("refs/heads/").unwrap_or(name));
        let Some(tip) = self.tip(&name) else {
            return fault("NOT_FOUND", format!("No such branch: {name}"));
        };
        if tip != expected {
            let message =
                format!("Expected branch to point to \"{expected}\" but it did not.  Pull and try again.");
            return fault("STALE_DATA", message);
        }
        let files = &input["fileChanges"];
        let list = |key: &str| files[key].as_array().cloned().unwrap_or_default();
        let mut lines = String::new();
        for file in list("deletions") {
            let path = path_of(&file)?;
            if self.bare.ask(&["cat-file", "-e", &format!("{tip}:{path}")]).is_err() {
                let message = format!(
                    "A path was requested for deletion which does not exist as of commit oid `{tip}`. Path: {path}"
                );
                return fault("UNPROCESSABLE", message);
            }
            lines.push_str(&format!("0 {}\t{path}\0", "0".repeat(40)));
        }
        for file in list("additions") {
            let path = path_of(&file)?;
            if path.starts_with(".github/workflows/") && !self.token.has("workflows", Level::Write) {
                return fault(
                    "FORBIDDEN",
                    "refusing to create or update workflow without `workflows` permission",
                );
            }
            let Some(bytes) = file["contents"].as_str().and_then(|text| STANDARD.decode(text).ok()) else {
                return fault("UNPROCESSABLE", format!("contents of {path} are not Base64"));
            };
            let id = self.bare.feed(&["hash-object", "-w", "--stdin"], &[], &bytes).unwrap();
            // Whatever stood there before: there is no other mode in this mutation.
            lines.push_str(&format!("100644 {id}\t{path}\0"));
        }
        let tree = self.tree(Some(&tip), &lines).map_err(|error| ("UNPROCESSABLE", error))?;
        let body = input["message"]["body"].as_str().unwrap_or_default();
        let message = if body.is_empty() { headline.to_owned() } else { format!("{headline}\n\n{body}") };
        let id = self.commits(&tree, std::slice::from_ref(&tip), &message, None, true);
        self.moves(&[Move { name: name.clone(), before: Some(tip), after: id.clone(), is_forced: false }])
            .map_err(|error| ("UNPROCESSABLE", error))?;
        let signature =
            self.state.signs.then(|| json!({"isValid": true, "state": "VALID", "wasSignedByGitHub": true}));
        Ok(json!({
            "clientMutationId": input["clientMutationId"],
            "commit": {"oid": id, "url": format!("{}/{REPOSITORY}/commit/{id}", self.core.url),
                       "tree": {"oid": tree}, "signature": signature},
            "ref": {"name": name, "target": {"oid": id}},
        }))
    }

    fn update_refs(&mut self, input: &Value) -> Result<Value, Fault> {
        if input["repositoryId"].as_str() != Some("R_1") {
            return fault("NOT_FOUND", "Could not resolve to a node with the global id");
        }
        self.may("contents")?;
        let mut moves: Vec<Move> = Vec::new();
        for one in input["refUpdates"].as_array().cloned().unwrap_or_default() {
            let text = |name: &str| one[name].as_str().map(str::to_owned);
            let (Some(name), Some(after)) = (text("name"), text("afterOid")) else {
                return fault("UNPROCESSABLE", "Variable $input was provided invalid value for refUpdates");
            };
            if moves.iter().any(|known| known.name == name) {
                return fault("UNPROCESSABLE", format!("{name} is named twice"));
            }
            let is_forced = one["force"].as_bool().unwrap_or(false);
            moves.push(Move { name, before: text("beforeOid"), after, is_forced });
        }
        self.moves(&moves).map_err(|error| ("UNPROCESSABLE", error))?;
        Ok(json!({"clientMutationId": input["clientMutationId"]}))
    }

    fn mark_ready(&mut self, input: &Value) -> Result<Value, Fault> {
        let id = input["pullRequestId"].as_str().and_then(|id| id.strip_prefix("PR_"));
        let number: Option<u64> = id.and_then(|id| id.parse().ok());
        self.may("pull_requests")?;
        let pull = self.state.pulls.iter_mut().find(|pull| Some(pull.number) == number);
        let Some(pull) = pull else {
            return fault("NOT_FOUND", "Could not resolve to a node with the global id");
        };
        if !pull.is_draft {
            return fault("UNPROCESSABLE", "Pull request is not a draft");
        }
        pull.is_draft = false;
        Ok(json!({"pullRequest": {"isDraft": false, "number": pull.number}}))
    }
}

/// Reads the path of a change: no absolute one, and none with parts that git does not take.
fn path_of(file: &Value) -> Result<String, Fault> {
    let path = file["path"].as_str().unwrap_or_default();
    if !super::rest::is_path(path) {
        return fault("UNPROCESSABLE", format!("A path was invalid: `{path}`"));
    }
    Ok(path.to_owned())
}
