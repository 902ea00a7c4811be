//! Finds secrets in the environment, by the names of variables and by the form of their values.

use crate::base::text::{after_last, percent_decoded};

/// Words in the names of variables whose values are secrets.
const WORDS: &[&str] = &[
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "API_KEY",
    "APIKEY",
    "PRIVATE_KEY",
    "ACCESS_KEY",
    "CREDENTIAL",
    "JWT",
];

/// Such words too, unless the name ends with a word of [`ABOUT`].
const WORDS_OF_THINGS: &[&str] =
    &["SSH_KEY", "SIGNING_KEY", "ENCRYPTION_KEY", "CONNECTION_STRING", "CONNECTIONSTRING", "CONN_STR"];

/// Last words of names whose values describe a secret and are not secret themselves, as in `SSH_KEY_PATH`.
const ABOUT: &[&str] = &[
    "AUDIENCE", "BACKEND", "CLASS", "DIR", "DOMAIN", "EMAIL", "ENABLED", "ENDPOINT", "FILE", "HOST", "ID",
    "ISSUER", "METHOD", "MODE", "NAME", "PATH", "PORT", "PROVIDER", "REALM", "SCOPE", "SCOPES", "SERVER",
    "SERVICE", "SOCK", "SOCKET", "TYPE", "URI", "URL", "USER", "USERNAME",
];

/// Endings that turn `AUTH` into a word about something else, such as `AUTHOR`.
const OTHER_AUTHS: &[&str] = &["OR", "ENTICATOR", "ENTICATED", "ENTICODE"];

/// Words that end with `PASS` and name no password.
const OTHER_PASSES: &[&str] = &["BYPASS", "COMPASS", "ENCOMPASS"];

/// Keys of connection strings and of queries whose values are secrets.
const KEYS: &[&str] = &[
    "access_token",
    "accountkey",
    "api_key",
    "apikey",
    "auth_token",
    "client_secret",
    "passwd",
    "password",
    "pwd",
    "secret",
    "sharedaccesskey",
    "sharedaccesssignature",
    "sig",
    "sslpassword",
    "token",
];

/// A user name in a URL without a password is a token if it is at least this long.
const TOKEN: usize = 20;

/// A value of at most so many small letters is a setting such as `required`, and no credential.
const WORD: usize = 12;

/// What the variables of an exporter begin with: the headers that they name are credentials, as a rule.
const OTLP: &str = "OTEL_EXPORTER_OTLP_";

/// Returns the secrets that a variable holds; its value is one by its name, or because somebody `named` it.
pub(crate) fn of(name: &str, value: &str, named: bool) -> Vec<String> {
    let upper = name.to_ascii_uppercase();
    let mut all = within(value);
    let last = upper.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or("");
    let is_place = matches!(last, "URL" | "URI" | "URLS") && !all.is_empty();
    // Only there: `CORS_ALLOW_HEADERS` and the like hold words that would be hidden in all that a run prints.
    if last == "HEADERS" && upper.starts_with(OTLP) {
        all.extend(in_headers(value));
    }
    if named || is_place || is_secret(&upper, last, value) {
        all.push(value.to_owned());
    }
    all
}

/// Returns the values of a list of headers, `name=value,…`: as written, percent-decoded, and without a word such as `Bearer` in front.
fn in_headers(listed: &str) -> Vec<String> {
    let values = listed.split(',').filter_map(|pair| Some(pair.split_once('=')?.1.trim()));
    let forms = |value: &str| {
        let decoded = percent_decoded(value);
        let last = after_last(&decoded, &[' ']).to_owned();
        [value.to_owned(), decoded, last]
    };
    let mut all: Vec<String> = values.flat_map(forms).filter(|value| !value.is_empty()).collect();
    all.dedup();
    all
}

fn is_secret(name: &str, last: &str, value: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let is_about = ABOUT.contains(&last);
    let is_pass = last.ends_with("PASS") && !OTHER_PASSES.contains(&last);
    // `PWD` by itself is the working directory.
    let is_pwd = name.ends_with("_PWD");
    has(WORDS)
        || is_pass
        || is_pwd
        // The address of a database, or of a service such as Sentry, with the key in it.
        || last == "DSN"
        || !is_about && (has(WORDS_OF_THINGS) || is_auth(name) && !is_setting(value))
}

/// Tells whether a name contains `AUTH`, but not as a part of words such as `AUTHOR`.
fn is_auth(name: &str) -> bool {
    name.match_indices("AUTH").any(|(at, word)| {
        let rest = &name[at + word.len()..];
        // `AUTHORIZATION` begins with `AUTHOR`.
        rest.starts_with("ORIZATION") || !OTHER_AUTHS.iter().any(|other| rest.starts_with(other))
    })
}

fn is_setting(value: &str) -> bool {
    value.len() <= WORD && value.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Returns the passwords in the URLs and connection strings of a value, both as written and percent-decoded.
fn within(value: &str) -> Vec<String> {
    let in_urls = value.match_indices("://").filter_map(|(at, sign)| {
        let rest = &value[at + sign.len()..];
        let end = rest.find(|c: char| matches!(c, '/' | '?' | '#' | '"' | '\'') || c.is_whitespace());
        // The last one: a password may have one in it that should have been encoded.
        let (user, _) = rest[..end.unwrap_or(rest.len())].rsplit_once('@')?;
        match user.split_once(':') {
            Some((_, password)) => Some(password),
            None => Some(user).filter(|user| user.len() >= TOKEN),
        }
    });
    let pairs = value.split(|c: char| matches!(c, '?' | '&' | ';') || c.is_whitespace());
    let in_pairs = pairs.filter_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        KEYS.contains(&key.trim().to_ascii_lowercase().as_str()).then_some(value.trim_matches(['"', '\'']))
    });
    let found = in_urls.chain(in_pairs).filter(|found| !found.is_empty());
    let mut all: Vec<String> = found.flat_map(|found| [found.to_owned(), percent_decoded(found)]).collect();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "Zr9-Bw2Xv7q";

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in [
            "NPM_TOKEN",
            "db_password",
            "SSH_KEY",
            "DEPLOY_SSH_KEY",
            "SIGNING_KEY",
            "SENTRY_DSN",
            "MYSQL_PWD",
            "PGPASSWORD",
            "SMTP_PASS",
            "SSHPASS",
            "GPG_PASSPHRASE",
            "NPM_CONFIG_//registry.npmjs.org/:_authToken",
            "npm_config__auth",
            "GOOGLE_CREDENTIALS",
            "PROXY_AUTH",
            "AUTH",
            "AUTHORIZATION",
            "HTTP_AUTHORIZATION",
            "OAUTH",
            "BASIC_AUTH",
            "DOCKER_AUTH_CONFIG",
            "STORAGE_CONNECTION_STRING",
            "AUTH_KEY",
        ] {
            assert_eq!(of(name, VALUE, false), [VALUE], "{name}");
        }
    }

    #[test]
    fn headers_of_an_exporter_are_secrets_and_those_of_others_settings() {
        let headers = "authorization=Bearer%20hunter2hunter2,x-key=abc=";
        let found = of("OTEL_EXPORTER_OTLP_TRACES_HEADERS", headers, false);
        for form in ["Bearer%20hunter2hunter2", "Bearer hunter2hunter2", "hunter2hunter2", "abc="] {
            assert!(found.iter().any(|known| known == form), "{form} is not in {found:?}");
        }
        assert_eq!(of("CORS_ALLOW_HEADERS", "accept=json", false), Vec::<String>::new());
    }

    #[test]
    fn false_friends_are_none() {
        for name in [
            "PATH",
            "PWD",
            "OLDPWD",
            "AUTHOR",
            "GIT_AUTHOR_NAME",
            "GIT_AUTHOR_EMAIL",
            "GIT_AUTHOR_DATE",
            "XAUTHORITY",
            "CERT_AUTHORITY",
            "SSH_AUTH_SOCK",
            "AUTH_TYPE",
            "OAUTH_CLIENT_ID",
            "AUTHORIZED_KEYS",
            "BYPASS",
            "COMPASS",
            "SSH_KEY_PATH",
            "SNOWFLAKE_AUTHENTICATOR",
            "AUTH_URL",
            "DATABASE_URL",
            "KEYBOARD",
            "CACHE_KEY",
            "MONKEY",
        ] {
            assert_eq!(of(name, VALUE, false), [""; 0], "{name}");
        }
        assert_eq!(of("SMTP_AUTH", "required", false), [""; 0]);
        assert_eq!(of("X", VALUE, true), [VALUE]);
    }

    #[test]
    fn a_password_in_a_url_is_a_secret() {
        let url = "postgres://app:pa%2Fss%40w0rd@db.example.com:5432/app?sslmode=require";
        assert_eq!(of("DATABASE_URL", url, false), ["pa%2Fss%40w0rd", "pa/ss@w0rd", url]);
        assert_eq!(of("HTTPS_PROXY", "http://me:Zr9-Bw2Xv7q@proxy:3128", false), [VALUE]);
        assert_eq!(
            of("REDIS_URL", "redis://:Zr9-Bw2Xv7q@cache", false),
            [VALUE, "redis://:Zr9-Bw2Xv7q@cache"]
        );
        let token = "ghp_0123456789abcdefghijKLMN";
        assert_eq!(of("REMOTE", &format!("https://{token}@github.com/o/r"), false), [token]);
        for url in [
            "https://example.com/a@b",
            "https://git@example.com/",
            "postgres://app@db/app",
            "://",
            "https://:@x",
        ] {
            assert_eq!(of("DATABASE_URL", url, false), [""; 0], "{url}");
        }
    }

    #[test]
    fn a_password_in_a_connection_string_is_a_secret() {
        for text in [
            "Server=db;User Id=sa;Password=Zr9-Bw2Xv7q;",
            "AccountName=a;AccountKey=Zr9-Bw2Xv7q;EndpointSuffix=x",
            "host=db user=me password='Zr9-Bw2Xv7q' dbname=x",
            "jdbc:postgresql://db/app?user=me&password=Zr9-Bw2Xv7q",
        ] {
            assert_eq!(of("DB", text, false), [VALUE], "{text}");
        }
    }
}
