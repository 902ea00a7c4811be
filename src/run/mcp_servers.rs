//! `.mcp.json`: which MCP servers there are, and how each is started.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::base::diagnostic::nearest;
use crate::files::read::{self, Unread};

/// Where servers are listed, in the directory of the run.
pub(super) const FILE: &str = ".mcp.json";

/// The largest list that is read, in bytes.
const MAX_FILE: u64 = 4 * read::MIB;

/// How a server is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerCommand {
    pub(super) argv: Vec<String>,
    pub(super) env: Vec<(String, String)>,
}

/// Why a server cannot be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerProblem {
    /// It is not listed.
    Absent(String),
    /// What is listed cannot be used.
    Unusable(String),
}

/// Finds a server in the list of a directory.
pub(super) fn find(
    root: &Path,
    name: &str,
    env: &BTreeMap<String, String>,
) -> Result<ServerCommand, ServerProblem> {
    match read::text(&root.join(FILE), MAX_FILE) {
        Ok(text) => listed(&text, name, env),
        Err(Unread::Absent) => {
            Err(ServerProblem::Absent(format!("there is no {FILE} that lists the server `{name}`")))
        }
        Err(error) => Err(ServerProblem::Unusable(format!("cannot read {FILE}: {error}"))),
    }
}

fn listed(text: &str, name: &str, env: &BTreeMap<String, String>) -> Result<ServerCommand, ServerProblem> {
    let list: Value = serde_json::from_str(text)
        .map_err(|error| ServerProblem::Unusable(format!("{FILE} is not JSON: {error}")))?;
    let Some(servers) = list.get("mcpServers").and_then(Value::as_object) else {
        return Err(ServerProblem::Unusable(format!("{FILE} has no `mcpServers`")));
    };
    let Some(server) = servers.get(name) else {
        let near = nearest(name, servers.keys().map(String::as_str));
        let help = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return Err(ServerProblem::Absent(format!("{FILE} lists no server `{name}`{help}")));
    };
    // Without a `type`, the file means a program.
    let kind = server.get("type").and_then(Value::as_str).unwrap_or("stdio");
    let command = server.get("command").and_then(Value::as_str);
    let Some(command) = command.filter(|_| kind == "stdio") else {
        let why =
            format!("the server `{name}` in {FILE} is not started by a `command`; only that works here");
        return Err(ServerProblem::Unusable(why));
    };
    let arguments = server.get("args").and_then(Value::as_array).into_iter().flatten();
    let arguments = arguments.filter_map(Value::as_str);
    let argv = std::iter::once(command).chain(arguments).map(|word| expanded(word, env)).collect();
    let variables = server.get("env").and_then(Value::as_object).into_iter().flatten();
    let variables =
        variables.filter_map(|(name, value)| Some((name.clone(), expanded(value.as_str()?, env))));
    Ok(ServerCommand { argv, env: variables.collect() })
}

/// Fills in `${NAME}` and `${NAME:-default}`, as other readers of this file do. A variable that is not set stays.
fn expanded(text: &str, env: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        // Text that is not closed is no variable.
        let Some(end) = rest[start..].find('}').map(|end| start + end) else { break };
        let inside = &rest[start + 2..end];
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        out.push_str(&rest[..start]);
        let value = env.get(name).map(String::as_str).or(default);
        // As other readers of the file do, so that an error names the variable that is missing.
        out.push_str(value.unwrap_or(&rest[start..=end]));
        rest = &rest[end + 1..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env() -> BTreeMap<String, String> {
        BTreeMap::from([("TOKEN".to_owned(), "t".to_owned())])
    }

    #[test]
    fn a_server_is_found_with_its_variables() {
        let text = r#"{"mcpServers": {"a": {"command": "npx", "args": ["-y", "${PKG:-x}"], "env": {"K": "${TOKEN}-${NONE}"}}}}"#;
        let server = listed(text, "a", &env()).unwrap();
        assert_eq!(server.argv, ["npx", "-y", "x"]);
        assert_eq!(server.env, [("K".to_owned(), "t-${NONE}".to_owned())]);
    }

    #[test]
    fn a_server_that_cannot_be_started_is_said() {
        let absent = |text: &str| match listed(text, "github", &env()) {
            Err(ServerProblem::Absent(why)) => why,
            other => panic!("{other:?}"),
        };
        let unusable = |text: &str| match listed(text, "github", &env()) {
            Err(ServerProblem::Unusable(why)) => why,
            other => panic!("{other:?}"),
        };
        let help = ".mcp.json lists no server `github`; did you mean `githup`?";
        assert_eq!(absent(r#"{"mcpServers": {"githup": {}}}"#), help);
        assert!(unusable("{").starts_with(".mcp.json is not JSON"));
        assert_eq!(unusable("[]"), ".mcp.json has no `mcpServers`");
        assert!(
            unusable(r#"{"mcpServers": {"github": {"type": "http", "url": "u"}}}"#).contains("`command`")
        );
        let nowhere = tempfile::TempDir::with_prefix("ll-mcp-").unwrap();
        assert!(matches!(find(nowhere.path(), "github", &env()), Err(ServerProblem::Absent(_))));
    }
}
