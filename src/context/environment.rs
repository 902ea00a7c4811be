//! A copy of the environment, which separates what ll-loop reads from what actions may see.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::secrets;
use crate::base::redact::{MIN_SECRET, Redactor};
use crate::forge::github::workflow_job::TOKENS;
use crate::{broker, ci};

/// Variables of ll-loop itself that actions do not inherit.
const WITHHELD: &[&str] = &[SUPERVISED, DETACHED, "LL_FAULT"];

/// Set for the child of [`crate::process::container_init`], so that the child does not start another one.
pub(crate) const SUPERVISED: &str = "LL_LOOP_SUPERVISED";

/// Set for the process that `--background` starts.
pub(crate) const DETACHED: &str = "LL_LOOP_DETACHED";

/// Names the run whose action started this process.
pub(crate) const PARENT: &str = "LL_LOOP_PARENT";

/// The token with which ll-loop reports and continues runs: as a variable, and as the action's input, which the
/// runner passes to containers as `INPUT_*`. No action and no template sees it.
const OWN_TOKEN: [&str; 2] = ["LL_TOKEN", "INPUT_TOKEN"];

/// The token that may read the members of teams, named in the same two ways.
const TEAM_TOKEN: [&str; 2] = ["LL_TEAM_TOKEN", "INPUT_TEAM-TOKEN"];

/// The token that may add to the ledger of what models take.
const LEDGER_TOKEN: [&str; 1] = ["LL_LEDGER_TOKEN"];

/// A copy of the environment.
#[derive(Clone)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    token: Option<String>,
    team_token: Option<String>,
    ledger_token: Option<String>,
    /// Variables that nothing of a run sees, because the broker holds what is in them.
    brokered: OnceLock<BTreeSet<&'static str>>,
    redactor: OnceLock<Redactor>,
    /// What the tokens of the calls of agents begin with.
    call_tokens: OnceLock<String>,
}

impl Environment {
    /// Makes an environment of these variables.
    pub fn of(mut variables: BTreeMap<String, String>) -> Self {
        let mut take_out = |names: &[&str]| {
            let tokens =
                names.iter().map(|name| variables.remove(*name).map(|token| token.trim().to_owned()));
            // All of them are removed, whichever counts.
            let tokens: Vec<String> = tokens.flatten().collect();
            tokens.into_iter().find(|token| !token.is_empty())
        };
        let (token, team_token) = (take_out(&OWN_TOKEN), take_out(&TEAM_TOKEN));
        let ledger_token = take_out(&LEDGER_TOKEN);
        let (brokered, redactor, call_tokens) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { variables, token, team_token, ledger_token, brokered, redactor, call_tokens }
    }

    /// Returns a variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        // An empty variable is how CI systems hand on an input that was not given.
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns the token for GitHub: ll-loop's own, or else the job's.
    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref().or_else(|| TOKENS.iter().find_map(|name| self.get(name)))
    }

    /// Returns ll-loop's own token: on servers other than GitHub, the job's has another name.
    pub(crate) fn own_token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Returns the token that may read the members of teams.
    pub(crate) fn team_token(&self) -> Option<&str> {
        self.team_token.as_deref()
    }

    /// Returns the token that may add to the ledger of what models take.
    pub(crate) fn ledger_token(&self) -> Option<&str> {
        self.ledger_token.as_deref()
    }

    /// Returns the directory in which programs keep for this user what is neither settings nor data.
    pub(crate) fn state_home(&self) -> Option<PathBuf> {
        let home = || Some(Path::new(self.get("HOME")?).join(".local/state"));
        self.get("XDG_STATE_HOME").map(PathBuf::from).or_else(home)
    }

    /// Returns this environment as it is without ll-loop's own token, where the job has one: what somebody gave for
    /// writing need not be allowed to read artifacts, or to set statuses.
    pub(crate) fn with_token_of_job(&self) -> Self {
        let token = self.token.clone().filter(|_| self.get(TOKENS[0]).is_none());
        Self { token, ..self.clone() }
    }

    /// Sets the point at which a test makes this process die.
    pub(crate) fn arm_fault(&self) {
        #[cfg(debug_assertions)]
        if let Some(fault) = self.get("LL_FAULT") {
            crate::journal::fault::arm(fault);
        }
    }

    /// Returns a lookup for layers that take the environment as a value.
    pub(crate) fn lookup(&self) -> impl Fn(&str) -> Option<String> + '_ {
        |name| self.get(name).map(str::to_owned)
    }

    /// Tells whether a variable is set to anything but `0`, `false`, `no` or `off`.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|value| !matches!(value.to_ascii_lowercase().as_str(), "0" | "false" | "no" | "off"))
    }

    /// Tells whether this process is PID 1 of a container, which has to reap orphans and pass on signals.
    pub(crate) fn is_container_init(&self) -> bool {
        crate::process::container_init::is_first_process() && self.get(SUPERVISED).is_none()
    }

    /// Takes variables out of everything that a run sees from now on: the broker holds what is in them.
    pub(crate) fn withhold(&self, names: impl Iterator<Item = &'static str>) {
        // The second time, it is for the same run.
        self.brokered.get_or_init(|| names.collect());
    }

    /// Returns the variables for templates, whose values end in actions: what no action sees is none of them. A token that an
    /// action may have where the job says so is one, because a loop has to name it.
    pub(crate) fn for_templates(&self) -> BTreeMap<String, String> {
        self.for_actions(true)
    }

    /// Tells whether some variable has this value.
    pub(crate) fn has_value(&self, value: &str) -> bool {
        self.variables.values().any(|known| known == value)
    }

    fn is_brokered(&self, name: &str) -> bool {
        self.brokered.get().is_some_and(|names| names.contains(name))
    }

    /// Returns what an action inherits.
    pub(crate) fn for_actions(&self, pass_token: bool) -> BTreeMap<String, String> {
        let mut env = self.variables.clone();
        env.retain(|name, _| {
            !WITHHELD.contains(&name.as_str())
                && !ci::is_withheld(name, pass_token)
                && !self.is_brokered(name)
        });
        env
    }

    /// Returns the environment of what ll-loop starts for itself, such as git: it holds no token and no file of the
    /// runner, and no other secret that somebody gave to the job for its actions. What a repository or an action could
    /// make git start gets nothing.
    pub(crate) fn for_ourselves(&self) -> BTreeMap<String, String> {
        let mut env = self.for_actions(false);
        env.retain(|name, value| {
            is_needed(name) || secrets::of(name, value, self.is_masked(name)).is_empty()
        });
        env
    }

    /// Returns the environment in which git reaches a server as the user does, without a token of ours. At a terminal, a
    /// credential helper may need the token that the user has set; in CI an action may have named the helper, and the
    /// servers that know the job's token are reached by [`crate::git::runner::Git::connected`].
    pub(crate) fn for_users_git(&self) -> BTreeMap<String, String> {
        self.for_actions(!ci::is_ci(&self.lookup()))
    }

    /// Returns the values that must not be shown: those of variables that are named like secrets or in `LL_MASK`,
    /// and passwords in URLs.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let held = self.variables.iter().filter(|(_, value)| value.len() >= MIN_SECRET);
        let named = held.flat_map(|(name, value)| secrets::of(name, value, self.is_masked(name)));
        self.token.iter().chain(&self.team_token).chain(&self.ledger_token).cloned().chain(named).collect()
    }

    /// Returns what hides the secrets. All copies are one, so that what is made later is hidden everywhere.
    pub(crate) fn redactor(&self) -> Redactor {
        self.redactor.get_or_init(|| Redactor::new(self.secrets())).clone()
    }

    /// Returns what every token begins with that the broker gives to a call of an agent. It is made with the first call of
    /// this, and hidden from then on.
    pub(crate) fn call_tokens(&self) -> &str {
        self.call_tokens.get_or_init(|| {
            let beginning = format!("ll-{}", uuid::Uuid::new_v4().simple());
            self.redactor().learn(&beginning);
            beginning
        })
    }

    /// Returns the variables that hold secrets.
    pub(crate) fn secret_variables(&self) -> Vec<(String, String)> {
        let is_secret = |name: &str, value: &str| {
            let is_key = broker::credentials().any(|credential| credential == name);
            is_key || !secrets::of(name, value, self.is_masked(name)).is_empty()
        };
        let of = self.variables.iter().filter(|(name, value)| is_secret(name, value));
        let own = OWN_TOKEN.map(|name| (name, &self.token));
        let taken = own.into_iter().chain(TEAM_TOKEN.map(|name| (name, &self.team_token)));
        let taken = taken.chain(LEDGER_TOKEN.map(|name| (name, &self.ledger_token)));
        let own = taken.filter_map(|(name, token)| Some((name.to_owned(), token.clone()?)));
        of.map(|(name, value)| (name.clone(), value.clone())).chain(own).collect()
    }

    /// Tells whether somebody said that a variable holds a secret.
    fn is_masked(&self, name: &str) -> bool {
        self.get("LL_MASK").is_some_and(|list| list.split([',', ' ']).any(|listed| listed == name))
    }
}

/// Tells whether git works in another way without a variable, though it may hold a password: the way to a server, and
/// settings, which are numbered.
fn is_needed(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with("_proxy") || name.starts_with("GIT_CONFIG_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Environment {
        Environment::of(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn actions_see_neither_credentials_nor_side_channels() {
        let full = env(&[
            ("PATH", "/bin"),
            ("CI", "true"),
            ("GITHUB_SHA", "abc"),
            ("GITHUB_TOKEN", "t"),
            ("GITHUB_OUTPUT", "/f"),
            ("INPUT_LOOP", "x"),
            ("ACTIONS_RUNTIME_TOKEN", "t"),
            ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "t"),
        ]);
        let names = |pass| full.for_actions(pass).into_keys().collect::<Vec<_>>();
        assert_eq!(names(false), ["CI", "GITHUB_SHA", "PATH"]);
        assert_eq!(names(true), ["CI", "GITHUB_SHA", "GITHUB_TOKEN", "PATH"]);
    }

    #[test]
    fn what_we_start_for_ourselves_gets_no_secret_of_the_job() {
        let full = env(&[
            ("PATH", "/bin"),
            ("NPM_TOKEN", "t"),
            ("DATABASE_URL", "postgres://me:geheim@db/x"),
            ("MINE", "x"),
            ("LL_MASK", "OTHER,MINE"),
            ("https_proxy", "http://me:geheim@proxy:3128"),
            ("GIT_CONFIG_VALUE_0", "https://me:geheim@host/"),
            ("SSH_AUTH_SOCK", "/run/agent"),
            ("GITHUB_OUTPUT", "/f"),
        ]);
        let ours: Vec<_> = full.for_ourselves().into_keys().collect();
        assert_eq!(ours, ["GIT_CONFIG_VALUE_0", "LL_MASK", "PATH", "SSH_AUTH_SOCK", "https_proxy"]);
        assert!(full.for_actions(false).contains_key("NPM_TOKEN"));
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        let named = [
            ("NPM_TOKEN", "first1"),
            ("db_password", "second"),
            ("PATH", "third3"),
            ("X", "fourth"),
            ("LL_MASK", "X,Y"),
        ];
        assert_eq!(env(&named).secrets(), ["first1", "fourth", "second"]);
    }

    #[test]
    fn the_token_for_us_is_seen_by_nobody_else() {
        let full = env(&[("LL_TOKEN", " ours "), ("GITHUB_TOKEN", "the job's"), ("INPUT_TOKEN", "other")]);
        assert_eq!(full.token(), Some("ours"));
        assert_eq!(full.secrets(), ["ours", "the job's"]);
        assert_eq!(full.get("LL_TOKEN"), None);
        assert_eq!(full.for_templates().keys().collect::<Vec<_>>(), ["GITHUB_TOKEN"]);
        assert_eq!(env(&[("INPUT_TOKEN", "other")]).token(), Some("other"));
        assert_eq!(env(&[("LL_TOKEN", " "), ("GITHUB_TOKEN", "job's")]).token(), Some("job's"));
        for name in TEAM_TOKEN {
            let teams = env(&[(name, "teams")]);
            assert_eq!((teams.team_token(), teams.token(), teams.get(name)), (Some("teams"), None, None));
            assert_eq!(teams.for_actions(true), BTreeMap::new());
        }
        assert_eq!(env(&[]).token(), None);
    }

    #[test]
    fn the_token_of_the_job_takes_the_place_of_ours_where_there_is_one() {
        let both = env(&[("LL_TOKEN", "ours"), ("GITHUB_TOKEN", "the job's")]).with_token_of_job();
        assert_eq!((both.token(), both.own_token()), (Some("the job's"), None));
        let ours = env(&[("LL_TOKEN", "ours"), ("GITHUB_TOKEN", "")]).with_token_of_job();
        assert_eq!(ours.token(), Some("ours"));
    }

    #[test]
    fn an_empty_variable_is_not_set() {
        assert!(!env(&[("CI", "")]).is_on("CI"));
        assert!(!env(&[("CI", "false")]).is_on("CI"));
        assert!(env(&[("CI", "1")]).is_on("CI"));
    }
}
