//! Which account a host uses, by the variables that are set: a key in the environment may win over the subscription that
//! somebody meant to use, and nobody sees it until the bill comes.

use crate::base::text::listed;

/// A way to tell a host its account: variables that have to be set together, or one in the place of another.
struct AccountVariables {
    /// The variables that are all set.
    all: &'static [&'static str],
    /// Of these, one is set as well.
    any: &'static [&'static str],
    /// What it is, where the variables do not say so.
    what: &'static str,
}

const fn way(all: &'static [&'static str]) -> AccountVariables {
    AccountVariables { all, any: &[], what: "" }
}

const fn cloud(all: &'static [&'static str], what: &'static str) -> AccountVariables {
    AccountVariables { all, any: &[], what }
}

/// A host, and the ways to tell it its account, the one that wins first.
struct KnownHost {
    program: &'static str,
    ways: &'static [AccountVariables],
    /// Of which two of them none wins.
    doubts: &'static [Doubt],
}

/// Two ways of which none wins over the other for certain.
struct Doubt {
    between: [&'static str; 2],
    what: &'static str,
}

const KNOWN: &[KnownHost] = &[
    KnownHost {
        program: "claude",
        ways: &[
            cloud(&["CLAUDE_CODE_USE_BEDROCK"], "the account of Amazon Bedrock"),
            cloud(&["CLAUDE_CODE_USE_VERTEX"], "the account of Google Cloud"),
            cloud(&["CLAUDE_CODE_USE_FOUNDRY"], "the account of Microsoft Foundry"),
            way(&["ANTHROPIC_AUTH_TOKEN"]),
            way(&["ANTHROPIC_API_KEY"]),
            way(&["CLAUDE_CODE_OAUTH_TOKEN"]),
            AccountVariables {
                all: &["ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID"],
                any: &["ANTHROPIC_IDENTITY_TOKEN_FILE", "ANTHROPIC_IDENTITY_TOKEN"],
                what: "the identity of the job, by OIDC federation",
            },
        ],
        doubts: &[
            Doubt { between: ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"], what: "it sends both" },
            Doubt {
                between: ["CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_FEDERATION_RULE_ID"],
                what: "which of them wins is up to its version",
            },
        ],
    },
    KnownHost {
        program: "codex",
        ways: &[way(&["CODEX_API_KEY"]), way(&["OPENAI_API_KEY"])],
        doubts: &[Doubt {
            between: ["CODEX_API_KEY", "OPENAI_API_KEY"],
            what: "which of them wins is up to its version",
        }],
    },
    KnownHost {
        program: "gemini",
        ways: &[
            cloud(&["GOOGLE_GENAI_USE_GCA"], "the Google account that it is logged in with"),
            cloud(&["GOOGLE_GENAI_USE_VERTEXAI"], "the account of Google Cloud"),
            way(&["GEMINI_API_KEY"]),
        ],
        doubts: &[],
    },
    KnownHost { program: "qwen", ways: &[way(&["OPENAI_API_KEY"])], doubts: &[] },
];

/// The programs that speak ACP for another one.
const ADAPTERS: &[(&str, &str)] = &[("claude-agent-acp", "claude"), ("codex-acp", "codex")];

/// Which account a host uses, as far as its variables tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAccount {
    /// What is to be said, without any value.
    pub sentence: String,
    /// Whether there are several, so that another one could be meant.
    pub is_ambiguous: bool,
}

/// Tells which account the host of this name uses where these variables are set.
pub fn account(host: &str, is_set: &dyn Fn(&str) -> bool) -> HostAccount {
    // `acp:` takes a command line, of which the first word is the program.
    let command = host.strip_prefix("acp:").and_then(shlex::split);
    let program = command.as_ref().and_then(|words| words.first()).map_or(host, String::as_str);
    let file = program.rsplit('/').next().unwrap_or(program);
    let known = ADAPTERS.iter().find(|(adapter, _)| *adapter == file).map_or(file, |(_, of)| of);
    let Some(known) = KNOWN.iter().find(|one| one.program == known) else {
        let sentence = format!("`{host}` uses the account that its own settings name");
        return HostAccount { sentence, is_ambiguous: false };
    };
    let set: Vec<&AccountVariables> = known.ways.iter().filter(|way| way.is_set(is_set)).collect();
    let Some((first, others)) = set.split_first() else {
        let keys = known.ways.iter().filter(|way| way.what.is_empty()).flat_map(|way| way.all);
        let sentence = format!(
            "`{host}` uses the account that it is logged in with, if any: the environment has no {}",
            listed(keys, "or")
        );
        return HostAccount { sentence, is_ambiguous: false };
    };
    // Only the first two can be in doubt: whatever comes later loses to both.
    let doubt = others.first().and_then(|second| {
        let between = [first.all[0], second.all[0]];
        Some((second, known.doubts.iter().find(|doubt| doubt.between == between)?))
    });
    let (used, unused) = match doubt {
        Some((second, doubt)) => {
            (format!("{} or {}: {}", first.text(), second.text(), doubt.what), &others[1..])
        }
        None => (first.text(), others),
    };
    let names: Vec<_> = unused.iter().map(|way| way.all[0]).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    let rest = match names.as_slice() {
        [] => String::new(),
        names => format!(", and not {}, which {verb} set, too", listed(names, "or")),
    };
    let sentence = format!("`{host}` uses {used}{rest}");
    HostAccount { sentence, is_ambiguous: !others.is_empty() }
}

impl AccountVariables {
    fn is_set(&self, is_set: &dyn Fn(&str) -> bool) -> bool {
        let any = self.any.is_empty() || self.any.iter().any(|name| is_set(name));
        any && self.all.iter().all(|name| is_set(name))
    }

    fn text(&self) -> String {
        match self.what {
            "" => listed(self.all, "and"),
            what => format!("{what} (`{}`)", self.all[0]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(program: &str, set: &[&str]) -> (String, bool) {
        let account = account(program, &|name| set.contains(&name));
        (account.sentence.replace(&format!("`{program}`"), "it"), account.is_ambiguous)
    }

    #[test]
    fn the_account_that_wins_is_named() {
        const FEDERATION: [&str; 3] =
            ["ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID", "ANTHROPIC_IDENTITY_TOKEN_FILE"];
        for (program, set, sentence) in [
            ("claude", &["ANTHROPIC_API_KEY"][..], "it uses `ANTHROPIC_API_KEY`"),
            (
                "acp:/usr/bin/claude-agent-acp --verbose",
                &["ANTHROPIC_API_KEY"],
                "it uses `ANTHROPIC_API_KEY`",
            ),
            (
                "claude",
                &["CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_API_KEY"],
                "it uses `ANTHROPIC_API_KEY`, and not `CLAUDE_CODE_OAUTH_TOKEN`, which is set, too",
            ),
            (
                "claude",
                &["CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
                "it uses `ANTHROPIC_AUTH_TOKEN` or `ANTHROPIC_API_KEY`: it sends both, and not `CLAUDE_CODE_OAUTH_TOKEN`, which is set, too",
            ),
            (
                "claude",
                &FEDERATION,
                "it uses the identity of the job, by OIDC federation (`ANTHROPIC_FEDERATION_RULE_ID`)",
            ),
            (
                "claude",
                &FEDERATION[..2],
                "it uses the account that it is logged in with, if any: the environment has no `ANTHROPIC_AUTH_TOKEN`, `ANTHROPIC_API_KEY` or `CLAUDE_CODE_OAUTH_TOKEN`",
            ),
            (
                "codex",
                &["OPENAI_API_KEY", "CODEX_API_KEY"],
                "it uses `CODEX_API_KEY` or `OPENAI_API_KEY`: which of them wins is up to its version",
            ),
            (
                "gemini",
                &["GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"],
                "it uses the account of Google Cloud (`GOOGLE_GENAI_USE_VERTEXAI`), and not `GEMINI_API_KEY`, which is set, too",
            ),
            ("qwen", &["OPENAI_API_KEY"], "it uses `OPENAI_API_KEY`"),
            ("acp:player", &["ANTHROPIC_API_KEY"], "it uses the account that its own settings name"),
        ] {
            let is_ambiguous = set.len() > 1 && set[0] != FEDERATION[0];
            assert_eq!(says(program, set), (sentence.to_owned(), is_ambiguous));
        }
    }
}
