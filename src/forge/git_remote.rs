//! How git itself reaches a repository: its address, and the header by which it is let in.

use http::Uri;

use super::github::api::Api;
use super::github::github_server::{Flavour, is_of_github};
use super::github::repository::RepositoryName;
use crate::base::lookup::Lookup;
use crate::forge::github::workflow_job::WorkflowJob;

/// Where git reaches a repository, and the header by which it is let in.
pub struct GitRemote {
    /// The address, without a credential.
    pub url: String,
    /// The header, which is a secret.
    pub header: String,
}

impl GitRemote {
    /// Returns how `git push` makes the refs of a repository; nothing where the API does.
    pub fn of(api: &Api, repository: &RepositoryName, env: Lookup<'_>) -> Option<Self> {
        match api.server().flavour() {
            Flavour::Github => None,
            Flavour::Gitea | Flavour::Forgejo => Self::with_token(api, repository, env),
        }
    }

    /// Returns how git reaches a repository with the token of the API; nothing where there is no token, or the address
    /// cannot be told.
    pub fn with_token(api: &Api, repository: &RepositoryName, env: Lookup<'_>) -> Option<Self> {
        // A job names its site; outside of one it follows from the address of the API.
        let site = WorkflowJob::read(env).server_url.or_else(|| site(api))?;
        Self::at(&site, &repository.to_string(), api.basic()?)
    }

    /// Returns how git reaches a repository of a site; nothing where the site's address is invalid or holds a credential.
    pub fn at(site: &str, repository: &str, header: String) -> Option<Self> {
        let uri: Uri = site.parse().ok()?;
        let (scheme, authority) = (uri.scheme_str()?, uri.authority()?.as_str());
        // Whatever stands before an `@` is a credential.
        let is_plain = matches!(scheme, "http" | "https") && !authority.contains('@');
        let path = uri.path().trim_end_matches('/');
        let url = format!("{scheme}://{authority}{path}/{repository}.git");
        is_plain.then_some(Self { url, header })
    }
}

/// Returns where people find what an API is of.
fn site(api: &Api) -> Option<String> {
    let base = api.base();
    if let Some(site) = ["/api/v1", "/api/v3"].iter().find_map(|end| base.strip_suffix(end)) {
        return Some(site.to_owned());
    }
    // `api.github.com`, and `api.NAME.ghe.com`.
    let host = base.strip_prefix("https://api.")?;
    is_of_github(host).then(|| format!("https://{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::github::http::Transport;

    #[test]
    fn git_reaches_github_with_the_token() {
        let of = |env: &[(&str, &str)]| {
            let lookup =
                |key: &str| env.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).to_owned());
            let api = Api::from_env(&lookup, Some("geheim".to_owned())).unwrap();
            GitRemote::with_token(&api, &RepositoryName::parse("o/r").unwrap(), &lookup)
        };
        let found = of(&[]).unwrap();
        assert_eq!(found.url, "https://github.com/o/r.git");
        assert_eq!(found.header, "Authorization: Basic eC1hY2Nlc3MtdG9rZW46Z2VoZWlt");
        let url = |name: &str, value: &str| of(&[(name, value)]).map(|remote| remote.url);
        assert_eq!(
            url("GITHUB_SERVER_URL", "https://git.example").as_deref(),
            Some("https://git.example/o/r.git")
        );
        let api = |base: &str| url("GITHUB_API_URL", base);
        assert_eq!(api("https://git.example/api/v3/").as_deref(), Some("https://git.example/o/r.git"));
        assert_eq!(api("https://api.corp.ghe.com").as_deref(), Some("https://corp.ghe.com/o/r.git"));
        assert_eq!(api("https://api.evil.example"), None);
        assert_eq!(api("https://api.github.com@evil.example"), None);
        let api = Api::new("https://api.github.com", None, Transport::default());
        let without = GitRemote::with_token(&api, &RepositoryName::parse("o/r").unwrap(), &|_| None);
        assert!(without.is_none(), "there is no token");
    }

    #[test]
    fn git_reaches_a_server_that_takes_refs_from_it_alone_and_no_address_holds_the_token() {
        let of = |env: &[(&str, &str)]| {
            let lookup =
                |key: &str| env.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).to_owned());
            let api = Api::from_env(&lookup, Some("geheim".to_owned())).unwrap();
            GitRemote::of(&api, &RepositoryName::parse("o/r").unwrap(), &lookup)
        };
        let url = |env: &[(&str, &str)]| of(env).map(|remote| remote.url);
        let gitea = ("GITEA_ACTIONS", "true");
        assert_eq!(url(&[("GITHUB_SERVER_URL", "https://github.com")]), None);
        let found = of(&[gitea, ("GITHUB_SERVER_URL", "https://git.example/sub/")]).unwrap();
        assert_eq!(found.url, "https://git.example/sub/o/r.git");
        assert_eq!(found.header, "Authorization: Basic eC1hY2Nlc3MtdG9rZW46Z2VoZWlt");
        let api = ("GITHUB_API_URL", "http://git.example:3000/api/v1");
        assert_eq!(url(&[api]).as_deref(), Some("http://git.example:3000/o/r.git"));
        for odd in ["ssh://git.example", "--upload-pack=x", "https://a:b@git.example", "ext::sh", ""] {
            assert_eq!(url(&[gitea, ("GITHUB_SERVER_URL", odd)]), None, "{odd}");
        }
    }
}
