//! The server that a job speaks to: GitHub, an Enterprise Server of it, or one that imitates it; and where they differ.

use std::fmt;

use http::Uri;

use super::workflow_job::WorkflowJob;
use crate::base::lookup::Lookup;

/// Whose software it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// GitHub's, wherever it runs.
    Github,
    /// Gitea.
    Gitea,
    /// Forgejo, which began as Gitea.
    Forgejo,
}

/// A server, and the name that people know it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GithubServer {
    flavour: Flavour,
    name: String,
}

impl Default for GithubServer {
    fn default() -> Self {
        Self { flavour: Flavour::Github, name: "GitHub".to_owned() }
    }
}

impl GithubServer {
    /// Finds out which server the environment names: that of the job, or the one whose API is given.
    pub fn of(env: Lookup<'_>) -> Self {
        let is_on =
            |name: &str| env(name).is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "true"));
        let job = WorkflowJob::read(env);
        let api = job.api_url.unwrap_or_default();
        // Forgejo's runner sets the variable of Gitea's as well.
        if is_on("FORGEJO_ACTIONS") {
            return Self { flavour: Flavour::Forgejo, name: "Forgejo".to_owned() };
        }
        if is_on("GITEA_ACTIONS") {
            return Self { flavour: Flavour::Gitea, name: "Gitea".to_owned() };
        }
        let address = job.server_url.unwrap_or_else(|| api.clone());
        let host = address.parse::<Uri>().ok().and_then(|uri| Some(uri.host()?.to_ascii_lowercase()));
        let name = match host {
            Some(host) if !is_of_github(&host) => host,
            Some(_) | None => return Self::default(),
        };
        // Outside of a job its API tells, which no version of GitHub has there.
        let imitates = api.trim_end_matches('/').ends_with("/api/v1");
        Self { flavour: if imitates { Flavour::Gitea } else { Flavour::Github }, name }
    }

    /// Makes a server with this name whose lists have the pages of GitHub's.
    pub fn named(name: &str) -> Self {
        Self { flavour: Flavour::Github, name: name.to_owned() }
    }

    /// Returns whose software it is.
    pub fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// Returns the permission that this server asks for where GitHub asks for that one.
    pub fn permission<'p>(&self, github: &'p str) -> &'p str {
        match (self.flavour, github) {
            (Flavour::Gitea | Flavour::Forgejo, "statuses: write") => "contents: write",
            _ => github,
        }
    }

    /// Returns the parameter for the size of a page, and the largest size that every server of the kind gives.
    pub(crate) fn page_size(&self) -> (&'static str, usize) {
        match self.flavour {
            Flavour::Github => ("per_page", 100),
            Flavour::Gitea | Flavour::Forgejo => ("limit", 50),
        }
    }

    /// Tells whether lists begin with what is newest, whatever they are asked for.
    pub(crate) fn lists_newest_first(&self) -> bool {
        self.flavour == Flavour::Github
    }

    /// Tells whether a page that is not full is the last one. Who runs Gitea may allow fewer items than are asked for.
    pub(crate) fn fills_pages(&self) -> bool {
        self.flavour == Flavour::Github
    }
}

impl fmt::Display for GithubServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Tells whether GitHub itself runs a host, as its own clients ask.
pub(crate) fn is_of_github(host: &str) -> bool {
    let is_below = |domain: &str| host.strip_suffix(domain).is_some_and(|name| name.ends_with('.'));
    // The list of hosts that GitHub's own artifact client takes for GitHub.
    host == "github.com" || is_below("github.com") || is_below("ghe.com") || is_below("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(env: &[(&str, &str)], flavour: Flavour, name: &str) {
        let lookup =
            |key: &str| env.iter().find(|(known, _)| *known == key).map(|(_, value)| (*value).to_owned());
        let server = GithubServer::of(&lookup);
        assert_eq!((server.flavour(), server.to_string().as_str()), (flavour, name), "{env:?}");
    }

    #[test]
    fn a_server_is_known_by_its_runner_or_by_its_api() {
        let url = "GITHUB_SERVER_URL";
        check(&[], Flavour::Github, "GitHub");
        check(&[(url, "https://github.com")], Flavour::Github, "GitHub");
        check(&[(url, "https://corp.ghe.com")], Flavour::Github, "GitHub");
        check(&[(url, "https://notgithub.com")], Flavour::Github, "notgithub.com");
        check(&[("GITHUB_API_URL", "https://api.github.com")], Flavour::Github, "GitHub");
        check(&[(url, "https://github.corp.example:8443/")], Flavour::Github, "github.corp.example");
        let gitea = [(url, "https://git.example"), ("GITEA_ACTIONS", "true")];
        check(&gitea, Flavour::Gitea, "Gitea");
        check(&[("GITEA_ACTIONS", "true"), ("FORGEJO_ACTIONS", "true")], Flavour::Forgejo, "Forgejo");
        check(&[("GITHUB_API_URL", "https://git.example/api/v1/")], Flavour::Gitea, "git.example");
        check(&[("GITHUB_API_URL", "https://ghes.example/api/v3")], Flavour::Github, "ghes.example");
    }

    #[test]
    fn a_status_needs_another_permission_on_gitea() {
        let server = |flavour| GithubServer { flavour, name: String::new() };
        assert_eq!(server(Flavour::Github).permission("statuses: write"), "statuses: write");
        assert_eq!(server(Flavour::Gitea).permission("statuses: write"), "contents: write");
        assert_eq!(server(Flavour::Forgejo).permission("actions: read"), "actions: read");
    }
}
