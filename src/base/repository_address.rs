//! Which repository an address is of, whatever way leads to it.

/// Names a repository in one way, whatever way leads to it: `host/owner/name`. A path on this machine has no such name.
pub fn repository(url: &str) -> Option<String> {
    let url = url.trim();
    let rest = match url.split_once("://") {
        Some((_, rest)) => rest.to_owned(),
        // What git makes of `git@host:path`, as people clone over ssh.
        None => url.split_once(':').map(|(host, path)| format!("{host}/{path}"))?,
    };
    let (host, path) = rest.split_once('/')?;
    // The port and the name of the user depend on the way, not on the repository.
    let host = host.rsplit('@').next().unwrap_or(host).split(':').next().unwrap_or(host);
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let is_named = !host.is_empty() && !path.is_empty();
    // Hosts and forges take a name in any case.
    is_named.then(|| format!("{host}/{path}").to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: Option<&str>) {
        assert_eq!(repository(url).as_deref(), expected, "{url}");
    }

    #[test]
    fn a_repository_has_one_name_however_it_is_reached() {
        let name = Some("github.com/o/r");
        check("https://github.com/o/r", name);
        check("https://github.com/O/r.git/", name);
        check("https://x-access-token:secret@github.com/o/r.git", name);
        check("git@github.com:o/r.git", name);
        check("ssh://git@github.com:22/o/r", name);
        check("https://gitlab.example/a/b/c.git", Some("gitlab.example/a/b/c"));
        check("git://github.com:9418/o/r", name);
        check("/srv/git/r.git", None);
        check("/srv/git:x/r.git", None);
        check("../r", None);
        check("https://", None);
        check("", None);
    }
}
