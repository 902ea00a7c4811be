//! What others are told when the outcome of a loop on a branch changes: whether it is news, and the document in the shape that
//! its receiver reads.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::text::one_line;
use crate::definition::schema::NotifyShape;

/// How a loop stands on a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BranchOutcome {
    /// It succeeds.
    Green,
    /// It does not.
    Red,
    /// It waits for a person.
    Waiting,
    /// Its budget was used up.
    OverBudget,
}

impl BranchOutcome {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Red => "red",
            Self::Waiting => "waiting",
            Self::OverBudget => "over_budget",
        }
    }

    /// Tells whether this is news after what was known before. Where nothing was known, a success is not news.
    pub fn is_news(self, before: Option<Self>) -> bool {
        match before {
            Some(before) => before != self,
            None => self != Self::Green,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Green => "✅",
            Self::Red => "❌",
            Self::Waiting => "✋",
            Self::OverBudget => "💸",
        }
    }
}

/// Tells by the host that receives a document what it has to look like.
pub fn shape_for(host: &str) -> NotifyShape {
    // With the dot, because `notslack.com` is not below `slack.com`.
    let is_below = |domain: &str| host == domain || host.ends_with(&format!(".{domain}"));
    if is_below("slack.com") {
        return NotifyShape::Slack;
    }
    let teams = ["webhook.office.com", "logic.azure.com", "powerplatform.com"];
    if teams.into_iter().any(is_below) { NotifyShape::Teams } else { NotifyShape::Plain }
}

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The loop, and its key where it has one.
    pub loop_name: String,
    /// The key.
    pub key: Option<String>,
    /// The branch or tag, where it is known.
    pub branch: Option<String>,
    /// How it stood before, where it is known.
    pub before: Option<BranchOutcome>,
    /// How it stands.
    pub now: BranchOutcome,
    /// How the run ended, in one word.
    pub outcome: String,
    /// Whether something verified it.
    pub is_verified: bool,
    /// The same in a sentence.
    pub sentence: String,
    /// The code of the question that it waits with.
    pub code: Option<String>,
    /// The id of the run.
    pub run: String,
    /// The commit.
    pub commit: Option<String>,
    /// Its page.
    pub page: Option<String>,
}

impl Notice {
    /// Writes the document.
    pub fn document(&self, shape: NotifyShape) -> Value {
        match shape {
            NotifyShape::Plain => self.plain(),
            NotifyShape::Slack => json!({ "text": self.slack() }),
            NotifyShape::Teams => self.teams(),
        }
    }

    fn plain(&self) -> Value {
        json!({
            "schema": 1,
            "loop": self.loop_name,
            "key": self.key,
            "branch": self.branch,
            "was": self.before.map(BranchOutcome::word),
            "is": self.now.word(),
            "outcome": self.outcome,
            "verified": self.is_verified,
            "sentence": self.sentence,
            "code": self.code,
            "run": self.run,
            "commit": self.commit,
            "url": self.page,
        })
    }

    /// Returns the first line: what changed, and where.
    fn title(&self) -> String {
        let was = self.before.map_or_else(String::new, |before| format!("{} → ", before.word()));
        let on =
            self.branch.as_ref().map_or_else(String::new, |branch| format!(" on {}", one_line(branch, 100)));
        let key = self.key.as_ref().map_or_else(String::new, |key| format!(" ({})", one_line(key, 60)));
        let name = one_line(&self.loop_name, 100);
        format!("{} {name}{key}{on}: {was}{}", self.now.sign(), self.now.word())
    }

    /// Slack reads `&`, `<` and `>`, and what it makes of `*` and `_` harms nobody.
    fn slack(&self) -> String {
        let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let page = self
            .page
            .as_ref()
            // A bar would end the address of the link.
            .map_or_else(String::new, |page| format!("\n<{}|The run>", escaped(page).replace('|', "%7C")));
        format!("{}\n{}{page}", escaped(&self.title()), escaped(&self.sentence))
    }

    /// A card, whose texts are Markdown: no link is made of what a run says.
    fn teams(&self) -> Value {
        let words = |text: &str| {
            text.chars().fold(String::new(), |mut out, c| {
                if matches!(c, '[' | ']' | '*' | '_' | '\\' | '<' | '>' | '`') {
                    out.push('\\');
                }
                out.push(c);
                out
            })
        };
        let block = |text: &str| json!({"type": "TextBlock", "text": words(text), "wrap": true});
        let actions: Vec<Value> = self
            .page
            .iter()
            .map(|page| json!({"type": "Action.OpenUrl", "title": "The run", "url": page}))
            .collect();
        json!({
            "type": "message",
            "attachments": [{
                "contentType": "application/vnd.microsoft.card.adaptive",
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard",
                    "version": "1.4",
                    "body": [block(&self.title()), block(&self.sentence)],
                    "actions": actions,
                },
            }],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_change_is_news() {
        use BranchOutcome::{Green, OverBudget, Red, Waiting};
        for (before, now, expected) in [
            (None, Green, false),
            (None, Red, true),
            (None, Waiting, true),
            (Some(Green), Green, false),
            (Some(Green), Red, true),
            (Some(Red), Red, false),
            (Some(Red), Green, true),
            (Some(Green), Waiting, true),
            (Some(Red), OverBudget, true),
            (Some(OverBudget), OverBudget, false),
        ] {
            assert_eq!(now.is_news(before), expected, "{before:?} {now:?}");
        }
    }

    fn notice() -> Notice {
        Notice {
            loop_name: "deploy".to_owned(),
            key: None,
            branch: Some("main".to_owned()),
            before: Some(BranchOutcome::Green),
            now: BranchOutcome::Red,
            outcome: "failure".to_owned(),
            is_verified: false,
            sentence: "failure: <!channel> [x](http://evil) & `check` *said* no".to_owned(),
            code: None,
            run: "deploy-20251120T234847-1f2e".to_owned(),
            commit: None,
            page: Some("https://github.com/o/r/actions/runs/7".to_owned()),
        }
    }

    #[test]
    fn nothing_that_a_run_says_mentions_or_links_in_a_message() {
        let slack = notice().document(NotifyShape::Slack)["text"].as_str().unwrap().to_owned();
        assert!(slack.starts_with("❌ deploy on main: green → red\nfailure: &lt;!channel&gt;"), "{slack}");
        assert!(slack.ends_with("\n<https://github.com/o/r/actions/runs/7|The run>"), "{slack}");
        let teams = notice().document(NotifyShape::Teams);
        let said = teams.pointer("/attachments/0/content/body/1/text").unwrap().as_str().unwrap();
        assert!(said.contains("\\[x\\](http"), "{said}");
        let plain = notice().document(NotifyShape::Plain);
        assert_eq!((&plain["was"], &plain["is"]), (&json!("green"), &json!("red")));
    }

    #[test]
    fn the_host_tells_the_shape() {
        for (host, shape) in [
            ("hooks.slack.com", NotifyShape::Slack),
            ("evilslack.com", NotifyShape::Plain),
            ("acme.webhook.office.com", NotifyShape::Teams),
            ("prod-1.westus.logic.azure.com", NotifyShape::Teams),
            ("example.com", NotifyShape::Plain),
        ] {
            assert_eq!(shape_for(host), shape, "{host}");
        }
    }
}
