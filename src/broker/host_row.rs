//! The CLIs whose service can be brokered: which variables hold a key, which name the service, and how each is told to ask
//! somebody else. One row a CLI.

use std::net::IpAddr;

use http::Uri;

use super::model_service::{KeyHeader, ServiceApi, ServiceKey};
use crate::base::lookup::Lookup;
use crate::base::text::listed;

/// A CLI, and how it is told its service.
#[derive(Debug)]
struct HostRow {
    /// Its program, and others that speak for it.
    programs: &'static [&'static str],
    api: ServiceApi,
    /// The variables that hold a key, the one that wins first, and where its service wants it.
    keys: &'static [(&'static str, KeyHeader)],
    /// Variables that hold other credentials, with which it would ask without us.
    others: &'static [&'static str],
    /// Variables with which it asks a service that cannot be brokered, whatever else is set.
    elsewhere: &'static [&'static str],
    /// The variable that names the base address of the service.
    base: &'static str,
    /// What it is called with in the place of its key; `ADDRESS` and `TOKEN` stand for what they say.
    variables: &'static [(&'static str, &'static str)],
    /// More arguments.
    arguments: &'static [&'static str],
    /// How many of its own arguments stand before them.
    after: usize,
    /// What the settings of the user have to say, without which it does not take an address.
    setting: Option<NeededSetting>,
}

/// What a file of the user has to say.
#[derive(Clone, Copy, Debug)]
pub struct NeededSetting {
    /// The variable that names the directory of the file, in place of `HOME`.
    pub home: &'static str,
    /// The file, from that directory on.
    pub file: &'static str,
    /// Where it says it, as a JSON pointer.
    pub pointer: &'static str,
    /// What it says.
    pub value: &'static str,
}

const ROWS: &[HostRow] = &[
    HostRow {
        programs: &["claude", "claude-agent-acp"],
        api: ServiceApi::Anthropic,
        keys: &[("ANTHROPIC_AUTH_TOKEN", KeyHeader::Bearer), ("ANTHROPIC_API_KEY", KeyHeader::XApiKey)],
        others: &["CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_IDENTITY_TOKEN", "ANTHROPIC_IDENTITY_TOKEN_FILE"],
        elsewhere: &["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"],
        base: "ANTHROPIC_BASE_URL",
        variables: &[("ANTHROPIC_BASE_URL", "ADDRESS"), ("ANTHROPIC_AUTH_TOKEN", "TOKEN")],
        arguments: &[],
        after: 0,
        setting: None,
    },
    HostRow {
        programs: &["codex"],
        api: ServiceApi::OpenAi,
        keys: &[("CODEX_API_KEY", KeyHeader::Bearer), ("OPENAI_API_KEY", KeyHeader::Bearer)],
        others: &[],
        elsewhere: &[],
        base: "OPENAI_BASE_URL",
        variables: &[("LL_BROKER_TOKEN", "TOKEN")],
        arguments: &[
            "-c",
            r#"model_provider="ll-loop""#,
            "-c",
            r#"model_providers.ll-loop.name="ll-loop""#,
            "-c",
            r#"model_providers.ll-loop.base_url="ADDRESS""#,
            "-c",
            r#"model_providers.ll-loop.wire_api="responses""#,
            "-c",
            r#"model_providers.ll-loop.env_key="LL_BROKER_TOKEN""#,
        ],
        after: 2,
        setting: None,
    },
    HostRow {
        programs: &["gemini"],
        api: ServiceApi::Gemini,
        keys: &[("GEMINI_API_KEY", KeyHeader::XGoogApiKey)],
        others: &["GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"],
        elsewhere: &["GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI"],
        base: "GOOGLE_GEMINI_BASE_URL",
        variables: &[("GOOGLE_GEMINI_BASE_URL", "ADDRESS"), ("GEMINI_API_KEY", "TOKEN")],
        arguments: &[],
        after: 0,
        // With an address and without this, it looks for a login of another kind.
        setting: Some(NeededSetting {
            home: "GEMINI_CLI_HOME",
            file: ".gemini/settings.json",
            pointer: "/security/auth/selectedType",
            value: "gemini-api-key",
        }),
    },
    HostRow {
        programs: &["qwen"],
        api: ServiceApi::OpenAi,
        keys: &[("OPENAI_API_KEY", KeyHeader::Bearer)],
        others: &[],
        elsewhere: &[],
        base: "OPENAI_BASE_URL",
        variables: &[("OPENAI_BASE_URL", "ADDRESS"), ("OPENAI_API_KEY", "TOKEN")],
        arguments: &[],
        after: 0,
        setting: None,
    },
];

/// A service, the key for it, and how a CLI is told to ask us in its place.
#[derive(Clone, Debug)]
pub struct Wiring {
    row: &'static HostRow,
    /// The variable that the key was in.
    pub variable: &'static str,
    /// The key.
    pub key: ServiceKey,
    /// The base address of the service.
    pub base: Uri,
}

/// What a CLI is called with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallSettings {
    /// Its environment, beside what is taken out of it.
    pub variables: Vec<(String, String)>,
    /// More arguments.
    pub arguments: Vec<String>,
    /// How many of its own arguments stand before them.
    pub after: usize,
}

/// Who holds the key of a run.
#[derive(Clone, Debug)]
pub enum KeyHolder {
    /// This process.
    Broker(Box<Wiring>),
    /// The CLI, for this reason.
    Host(String),
}

/// Why a service cannot be brokered although there is a key for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoBase {
    /// The address is invalid.
    #[error("`{0}` holds no address of a service")]
    Invalid(&'static str),
    /// The key would go over the network as it is.
    #[error("`{0}` names a service that is not asked over TLS")]
    Plain(&'static str),
}

/// Tells who holds the key where a CLI is asked in this environment.
///
/// # Errors
/// The variable that names the service names none that a key can be sent to.
pub fn holder(host: &str, env: Lookup<'_>) -> Result<KeyHolder, NoBase> {
    let Some(row) = row(host) else {
        return Ok(KeyHolder::Host(format!("`{host}` has no way to be told another service")));
    };
    let set = |name: &str| env(name).filter(|value| !value.trim().is_empty());
    if let Some(name) = row.elsewhere.iter().find(|name| set(name).is_some_and(|value| is_on(&value))) {
        return Ok(KeyHolder::Host(format!("`{name}` is set")));
    }
    let Some((variable, header, key)) =
        row.keys.iter().find_map(|(name, header)| Some((*name, *header, set(name)?)))
    else {
        let other = row.others.iter().find(|name| set(name).is_some());
        let keys = listed(row.keys.iter().map(|(name, _)| *name), "or");
        return Ok(KeyHolder::Host(match other {
            Some(name) => format!("it has a login of its own, `{name}`"),
            None => format!("the environment has no {keys}"),
        }));
    };
    let base = set(row.base).unwrap_or_else(|| row.api.vendor().to_owned());
    let base: Uri = base.trim().parse().map_err(|_| NoBase::Invalid(row.base))?;
    let host = base.host().ok_or(NoBase::Invalid(row.base))?;
    // A key must not go over a network in the clear, and on loopback it goes over none.
    match base.scheme_str() {
        Some("https") => {}
        Some("http") if is_loopback(host) => {}
        Some("http") => return Err(NoBase::Plain(row.base)),
        Some(_) | None => return Err(NoBase::Invalid(row.base)),
    }
    let key = ServiceKey::new(header, &key);
    Ok(KeyHolder::Broker(Box::new(Wiring { row, variable, key, base })))
}

/// Returns how a CLI is told to ask us where a recording answers in the place of its service; none where it cannot be told.
pub fn keyless(host: &str) -> Option<Wiring> {
    let row = row(host)?;
    let (variable, header) = *row.keys.first()?;
    let base = row.api.vendor().parse().ok()?;
    Some(Wiring { row, variable, key: ServiceKey::new(header, ""), base })
}

/// Returns the variables that hold keys and other credentials of any CLI in the table.
pub fn credentials() -> impl Iterator<Item = &'static str> {
    ROWS.iter().flat_map(HostRow::credentials)
}

/// Returns the variables that name the service of any CLI in the table. Who asks through us has no use for the address, and
/// a sandbox would let it through to there.
pub fn services() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.base)
}

/// Tells whether an address is on this machine. A name that only begins like one may lead anywhere.
pub(super) fn is_loopback(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn row(host: &str) -> Option<&'static HostRow> {
    let command = host.strip_prefix("acp:").and_then(shlex::split);
    let program = command.as_ref().and_then(|words| words.first()).map_or(host, String::as_str);
    let file = program.rsplit('/').next().unwrap_or(program);
    let is_acp = command.is_some();
    // An argument of codex has its place, which is another one for whoever speaks for it.
    ROWS.iter().find(|row| row.programs.contains(&file) && (!is_acp || row.arguments.is_empty()))
}

fn is_on(value: &str) -> bool {
    !matches!(value.to_ascii_lowercase().as_str(), "0" | "false" | "no" | "off")
}

impl HostRow {
    fn credentials(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|(name, _)| *name).chain(self.others.iter().copied())
    }
}

impl Wiring {
    /// Returns the API of the service.
    pub fn api(&self) -> ServiceApi {
        self.row.api
    }

    /// Returns what the settings of the user have to say.
    pub fn setting(&self) -> Option<NeededSetting> {
        self.row.setting
    }

    /// Returns the variables that hold the keys and other credentials of the CLI.
    pub fn credentials(&self) -> impl Iterator<Item = &'static str> {
        self.row.credentials()
    }

    /// Returns what the CLI is called with to ask us, at an address and with a token.
    pub fn call_settings(&self, address: &str, token: &str) -> CallSettings {
        let address = format!("{address}{}", self.row.api.prefix());
        let filled = |text: &str| text.replace("ADDRESS", &address).replace("TOKEN", token);
        let variable = |(name, value): &(&str, &str)| ((*name).to_owned(), filled(value));
        CallSettings {
            variables: self.row.variables.iter().map(variable).collect(),
            // The token goes by the environment alone: every user of the machine can see arguments.
            arguments: self
                .row
                .arguments
                .iter()
                .map(|argument| argument.replace("ADDRESS", &address))
                .collect(),
            after: self.row.after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(host: &str, set: &[(&str, &str)]) -> Result<KeyHolder, NoBase> {
        let env = |name: &str| set.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned());
        holder(host, &env)
    }

    fn wiring(host: &str, set: &[(&str, &str)]) -> Wiring {
        match held(host, set) {
            Ok(KeyHolder::Broker(wiring)) => *wiring,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_key_in_the_environment_is_ours() {
        for (host, name, base) in [
            ("claude", "ANTHROPIC_API_KEY", "https://api.anthropic.com/"),
            ("acp:/opt/bin/claude-agent-acp -v", "ANTHROPIC_AUTH_TOKEN", "https://api.anthropic.com/"),
            ("codex", "OPENAI_API_KEY", "https://api.openai.com/v1"),
            ("gemini", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com/"),
            ("acp:gemini --acp", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com/"),
            ("qwen", "OPENAI_API_KEY", "https://api.openai.com/v1"),
        ] {
            let of = wiring(host, &[(name, "k")]);
            assert_eq!((of.variable, of.base.to_string().as_str()), (name, base), "{host}");
        }
    }

    #[test]
    fn what_a_cli_keeps_itself_is_in_its_hands() {
        for (host, set) in [
            ("claude", &[][..]),
            ("claude", &[("CLAUDE_CODE_OAUTH_TOKEN", "k")]),
            ("claude", &[("ANTHROPIC_API_KEY", "k"), ("CLAUDE_CODE_USE_BEDROCK", "1")]),
            ("claude", &[("ANTHROPIC_API_KEY", " ")]),
            ("gemini", &[("GEMINI_API_KEY", "k"), ("GOOGLE_GENAI_USE_VERTEXAI", "true")]),
            ("acp:codex", &[("OPENAI_API_KEY", "k")]),
            ("acp:player", &[("ANTHROPIC_API_KEY", "k")]),
        ] {
            assert!(matches!(held(host, set), Ok(KeyHolder::Host(_))), "{host} {set:?}");
        }
        let off = [("ANTHROPIC_API_KEY", "k"), ("CLAUDE_CODE_USE_BEDROCK", "0")];
        assert!(matches!(held("claude", &off), Ok(KeyHolder::Broker(_))));
    }

    #[test]
    fn a_key_goes_over_tls_or_stays_on_this_machine() {
        let base = |base: &str| held("claude", &[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", base)]);
        for fine in [
            "https://gateway.example/anthropic",
            "http://127.0.0.1:8080",
            "http://localhost:1",
            "http://[::1]:1",
        ] {
            assert!(base(fine).is_ok(), "{fine}");
        }
        for far in [
            "http://gateway.example",
            "http://127.evil.com",
            "http://127.0.0.1.evil.com",
            "http://localhost.evil.com",
        ] {
            assert_eq!(base(far).unwrap_err(), NoBase::Plain("ANTHROPIC_BASE_URL"), "{far}");
        }
        for none in ["gateway", "ftp://x", "http://", "/v1"] {
            assert_eq!(base(none).unwrap_err(), NoBase::Invalid("ANTHROPIC_BASE_URL"), "{none}");
        }
    }

    #[test]
    fn a_cli_is_told_an_address_and_a_token_and_no_key() {
        for (host, name) in [
            ("claude", "ANTHROPIC_API_KEY"),
            ("codex", "CODEX_API_KEY"),
            ("gemini", "GEMINI_API_KEY"),
            ("qwen", "OPENAI_API_KEY"),
        ] {
            let of = wiring(host, &[(name, "the-key")]);
            assert!(of.credentials().any(|one| one == name));
            let settings = of.call_settings("http://127.0.0.1:7", "the-token");
            let all = format!("{settings:?}");
            assert!(
                all.contains("127.0.0.1:7") && all.contains("the-token") && !all.contains("the-key"),
                "{all}"
            );
            assert!(!format!("{of:?}").contains("the-key"));
            assert!(
                !settings.arguments.iter().any(|argument| argument.contains("the-token")),
                "{settings:?}"
            );
        }
    }
}
