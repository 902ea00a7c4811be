//! What lies in a home, a CI runner's environment and a host's own directory, and which of it an action sees.

use crate::base::text::{after_last, up_to};

/// What holds credentials in a home; it is not there for confined actions.
pub const CREDENTIALS: [&str; 22] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".git-credentials",
    ".pypirc",
    ".pgpass",
    ".vault-token",
    ".terraform.d",
    ".password-store",
    ".config/gh",
    ".config/glab-cli",
    ".config/gcloud",
    ".config/op",
    ".config/git/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".composer/auth.json",
];

/// Directories of a home in which tools write beside what they only read: what is in them is read-only, and they are not.
pub const OPENED: [&str; 8] =
    [".cargo", ".npm", ".npm/_cacache", ".cache", ".config", ".local", ".local/share", ".rustup"];

/// Variables that lead to what a job says to its runner, or to agents and daemons outside. They are not there either, nor is
/// the file that they name.
pub const LEADING_OUT: [&str; 24] = [
    "GITHUB_ENV",
    "GITHUB_PATH",
    "GITHUB_OUTPUT",
    "GITHUB_STEP_SUMMARY",
    "GITHUB_STATE",
    "GITEA_ENV",
    "FORGEJO_ENV",
    "FORGEJO_PATH",
    "FORGEJO_OUTPUT",
    "FORGEJO_STEP_SUMMARY",
    "FORGEJO_STATE",
    "BASH_ENV",
    "BUILDKITE_ENV_FILE",
    "BUILDKITE_AGENT_ACCESS_TOKEN",
    "DRONE_OUTPUT",
    "DRONE_ENV",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DOCKER_HOST",
    "CONTAINER_HOST",
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "WAYLAND_DISPLAY",
];

/// The directory of a host in which it keeps its conversations, and what of it is not for its agent to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostHome {
    /// The name of the host.
    pub host: &'static str,
    /// The directory, below the home.
    pub directory: &'static str,
    /// The variable that names another one.
    pub variable: Option<&'static str>,
    /// What decides there what the host runs and obeys.
    pub protected: &'static [&'static str],
    /// A file beside it that is copied: the host replaces it.
    pub copied: Option<&'static str>,
    /// The hosts that its model is reached at.
    pub model: &'static [&'static str],
    /// Where it tells its vendor how it is used: refused without a word.
    pub telemetry: &'static [&'static str],
}

/// What is known of hosts.
pub const HOST_HOMES: [HostHome; 4] = [
    HostHome {
        host: "claude",
        directory: ".claude",
        variable: Some("CLAUDE_CONFIG_DIR"),
        protected: &[
            "settings.json",
            "settings.local.json",
            "hooks",
            "commands",
            "agents",
            "skills",
            "plugins",
            "CLAUDE.md",
            "keybindings.json",
        ],
        copied: Some(".claude.json"),
        model: &["api.anthropic.com", "console.anthropic.com", "platform.claude.com"],
        telemetry: &[
            "statsig.anthropic.com",
            "sentry.io",
            "http-intake.logs.datadoghq.com",
            "o1158394.ingest.us.sentry.io",
        ],
    },
    HostHome {
        host: "codex",
        directory: ".codex",
        variable: Some("CODEX_HOME"),
        protected: &[
            "config.toml",
            "AGENTS.md",
            "AGENTS.override.md",
            "prompts",
            "hooks",
            "hooks.json",
            "rules",
            "skills",
        ],
        copied: None,
        model: &["api.openai.com", "chatgpt.com", "auth.openai.com"],
        telemetry: &["ab.chatgpt.com", "o33249.ingest.us.sentry.io"],
    },
    HostHome {
        host: "gemini",
        directory: ".gemini",
        variable: None,
        protected: &["settings.json", "GEMINI.md", "extensions", "hooks", "commands", "policies", "skills"],
        copied: None,
        model: &["generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "oauth2.googleapis.com"],
        telemetry: &["play.googleapis.com"],
    },
    HostHome {
        host: "qwen",
        directory: ".qwen",
        variable: None,
        protected: &["settings.json", "QWEN.md", "extensions", "hooks", "commands", "skills"],
        copied: None,
        model: &["dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "chat.qwen.ai", "api.openai.com"],
        telemetry: &["gb4w8c3ygj-default-sea.rum.aliyuncs.com"],
    },
];

/// Returns what is known of a host.
pub fn of_host(name: &str) -> Option<&'static HostHome> {
    HOST_HOMES.iter().find(|known| known.host == name)
}

/// Tells whether a host of telemetry was asked for: it is denied without a word.
pub fn is_telemetry(name: &str) -> bool {
    HOST_HOMES.iter().any(|known| known.telemetry.contains(&name))
}

/// Returns the hosts, with their ports, of the addresses in a text, and ports of loopback.
pub fn addresses(text: &str) -> (Vec<String>, Vec<u16>) {
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    for scheme in ["https://", "http://"] {
        for rest in text.split(scheme).skip(1) {
            let before_path = up_to(rest, &['/', '?', '#', '\\', '"', '\'', ' ', '\t', '\r', '\n']);
            // A user and a password may stand before the host.
            let host = after_last(before_path, &['@']);
            let end = host.find(|c: char| {
                !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']'))
            });
            let authority = &host[..end.unwrap_or(host.len())];
            let (name, port) = authority
                .rsplit_once(':')
                .map_or((authority, None), |(name, port)| (name, port.parse().ok()));
            match (name, port) {
                ("127.0.0.1" | "localhost" | "[::1]", Some(port)) => ports.push(port),
                ("127.0.0.1" | "localhost" | "[::1]" | "", None) | ("", Some(_)) => {}
                (name, Some(port)) => hosts.push(format!("{name}:{port}")),
                (name, None) => hosts.push(name.to_owned()),
            }
        }
    }
    (hosts, ports)
}

/// Returns the name and address of who makes commits, out of a configuration of git, in the form of one.
pub fn identity(config: &str) -> String {
    let mut of_user = false;
    let mut lines = vec!["[user]"];
    for line in config.lines() {
        let line_of = line.trim();
        if line_of.starts_with('[') {
            of_user = line_of.eq_ignore_ascii_case("[user]");
        } else if of_user {
            let key = up_to(line_of, &['=']).trim().to_ascii_lowercase();
            // A value that goes on in the next line would take in what stands there, under another key.
            lines.extend((matches!(key.as_str(), "name" | "email") && !line.ends_with('\\')).then_some(line));
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_makes_commits_comes_along_and_nothing_else() {
        let config = "[core]\n\tname = x\n[User]\n\tname = \"A B\"\n\tsigningkey = k\n\tEmail=a@b\n[alias]\n\temail = !evil\n";
        assert_eq!(identity(config), "[user]\n\tname = \"A B\"\n\tEmail=a@b\n");
        assert_eq!(identity(""), "[user]\n");
    }

    #[test]
    fn addresses_are_found_wherever_they_stand() {
        let text = "x=http://127.0.0.1:8123/v1 'base_url=\"https://api.example.com:8443/x\"' https://a.b";
        let (hosts, ports) = addresses(text);
        assert_eq!((hosts, ports), (vec!["api.example.com:8443".to_owned(), "a.b".to_owned()], vec![8123]));
        let text = "https://me@gateway.example/v1 http://me:p:4@localhost:80/ https://a@b@c.d:1 \"https://e.f\" x@y \
                    https://g.h/@i https://j.k?l@m https://n.o\\@p https://q.r,s https://a%40b:@t.u";
        let named = ["gateway.example", "c.d:1", "e.f", "g.h", "j.k", "n.o", "q.r", "t.u"];
        assert_eq!(addresses(text), (named.map(str::to_owned).to_vec(), vec![80]));
        assert_eq!(addresses("http:// https://:4 https://me@ none"), (Vec::new(), Vec::new()));
    }

    #[test]
    fn each_host_has_a_place_and_a_model() {
        for known in HOST_HOMES {
            assert_eq!(of_host(known.host), Some(&known));
            assert!(!known.model.is_empty() && known.directory.starts_with('.'));
            assert!(known.telemetry.iter().all(|host| is_telemetry(host) && !known.model.contains(host)));
        }
    }
}
