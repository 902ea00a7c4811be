//! Addresses of remotes, as people may see them.

/// Returns a URL without a name and a password, for people.
pub fn without_credential(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (server, path) = rest.split_at(end);
    let server = server.rsplit_once('@').map_or(server, |(_, server)| server);
    format!("{scheme}://{server}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_url_is_not_shown() {
        for (url, shown) in [
            ("https://me:geheim@x.org/o/r.git", "https://x.org/o/r.git"),
            ("https://geheim@x.org", "https://x.org"),
            ("https://me:ge@heim@x.org:8/o@p", "https://x.org:8/o@p"),
            ("https://x.org/o@p", "https://x.org/o@p"),
            ("git@x.org:o/r", "git@x.org:o/r"),
            ("/srv/a@b", "/srv/a@b"),
        ] {
            assert_eq!(without_credential(url), shown);
        }
    }
}
