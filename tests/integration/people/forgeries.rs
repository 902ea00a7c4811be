//! Forgeries, made by a machine: everything that can be wrong with who wrote a comment, with where it stands and with what it says,
//! for every command. One server has all of them, each in a repository of its own, and none is followed.

use base64::Engine as _;
use serde_json::{Value, json};
use wiremock::matchers::any;
use wiremock::{Mock, Request, Respond, ResponseTemplate};

use super::questions::ASKS;
use super::steering::{Scene, failed, question, status};
use crate::ci::reported::Github;
use crate::common::Project;

/// How many forgeries have to be tried at least.
const LEAST: usize = 500;

/// How many of the programs run at the same time.
const AT_ONCE: usize = 4;

const CODE: &str = "0123abcd";

/// Every command that changes something, as its author would write it.
const COMMANDS: &[&str] = &[
    "/ll-loop approve 0123abcd",
    "/ll-loop approve",
    "/ll-loop reject main",
    "/ll-loop answer 0123abcd with the flag",
    "/ll-loop fix",
    "/ll-loop resume",
    "/ll-loop deliver",
    "/ll-loop stop",
    "/ll-loop retry",
];

/// One thing that is wrong.
struct Wrong {
    name: &'static str,
    forge: fn(&mut Scene),
}

const fn wrong(name: &'static str, forge: fn(&mut Scene)) -> Wrong {
    Wrong { name, forge }
}

/// What is wrong with the author, or with the comment, whatever it says.
const AUTHORS: &[Wrong] = &[
    wrong("edited", |scene| {
        scene.edited = json!({"data": {"node": {"lastEditedAt": "2026-06-01T00:00:00Z"}}});
    }),
    wrong("unknown to GraphQL", |scene| scene.edited = json!({"data": {"node": null}})),
    wrong("by mail", |scene| {
        scene.edited = json!({"data": {"node": {"lastEditedAt": null, "createdViaEmail": true}}});
    }),
    wrong("without a node", |scene| scene.comment["node_id"] = Value::Null),
    wrong("edited later", |scene| scene.comment["updated_at"] = json!("2026-06-01T00:00:01Z")),
    wrong("edited before", |scene| scene.comment["updated_at"] = json!("2026-05-31T23:59:59Z")),
    wrong("a reader", |scene| scene.permission["permission"] = json!("read")),
    wrong("a triager", |scene| scene.permission["permission"] = json!("triage")),
    wrong("nobody", |scene| scene.permission["permission"] = json!("none")),
    wrong("without a role", |scene| scene.permission["permission"] = json!("")),
    wrong("a role in capitals", |scene| scene.permission["permission"] = json!("WRITE")),
    wrong("a role with a look-alike", |scene| scene.permission["permission"] = json!("\u{430}dmin")),
    wrong("a role of another kind", |scene| scene.permission["permission"] = json!("writer")),
    wrong("a role beside the permission", |scene| {
        scene.permission = json!({"permission": "read", "role_name": "admin", "user": {"id": 7, "login": "ada", "permissions": {"admin": true}}});
    }),
    wrong("renamed", |scene| scene.permission["user"]["id"] = json!(70)),
    wrong("a deleted account", |scene| scene.permission["user"] = Value::Null),
    wrong("a freed name", |scene| scene.comment["user"]["id"] = json!(70)),
    wrong("a deleted author", |scene| scene.comment["user"] = Value::Null),
    wrong("the ghost", |scene| {
        scene.comment["user"] = json!({"id": 10137, "login": "ghost", "type": "User"});
    }),
    wrong("a bot", |scene| scene.comment["user"]["type"] = json!("Bot")),
    wrong("an app", |scene| scene.comment["performed_via_github_app"] = json!({"id": 1, "slug": "x"})),
    wrong("an association that is a lie", |scene| {
        scene.comment["author_association"] = json!("OWNER");
        scene.permission["permission"] = json!("read");
    }),
    wrong("another comment", |scene| scene.comment["id"] = json!(502)),
    wrong("without a text", |scene| scene.comment["body"] = Value::Null),
    wrong("on an issue", |scene| scene.pull = Value::Null),
    wrong("of another repository", |scene| {
        scene.comment["issue_url"] = json!("https://api.github.com/repos/octo/other/issues/3");
    }),
    wrong("of a longer repository", |scene| {
        scene.comment["issue_url"] = json!("https://api.github.com/repos/octo/project-x/issues/3");
    }),
    wrong("of a repository by a detour", |scene| {
        scene.comment["issue_url"] = json!("https://api.github.com/repos/octo/project/../other/issues/3");
    }),
    wrong("in a review", |scene| {
        scene.comment["issue_url"] = json!("");
        scene.comment["pull_request_url"] = json!("https://api.github.com/repos/octo/other/pulls/3");
    }),
    wrong("on a closed pull request", |scene| scene.pull["state"] = json!("closed")),
    wrong("on a merged one", |scene| scene.pull["state"] = json!("merged")),
    wrong("on one in no state", |scene| scene.pull["state"] = json!("")),
];

/// What is wrong with whose code would go on. A fork may stop and repeat its own.
const CODE_OF_OTHERS: &[Wrong] = &[
    wrong("a fork", |scene| scene.pull["head"]["repo"] = json!({"full_name": "mallory/project"})),
    wrong("a fork that is gone", |scene| scene.pull["head"]["repo"] = Value::Null),
    wrong("a look-alike", |scene| {
        scene.pull["head"]["repo"] = json!({"full_name": "octo/pr\u{43e}ject"});
    }),
    wrong("a longer name", |scene| scene.pull["head"]["repo"] = json!({"full_name": "octo/projects"})),
    wrong("an owner before it", |scene| {
        scene.pull["head"]["repo"] = json!({"full_name": "mallory/octo/project"});
    }),
    wrong("pushed for review", |scene| scene.pull["head"]["ref"] = json!("refs/pull/3/head")),
    wrong("without a branch", |scene| scene.pull["head"]["ref"] = json!("")),
];

/// What is wrong with the question that is answered.
const QUESTIONS: &[Wrong] = &[
    wrong("none", |scene| scene.statuses.clear()),
    wrong("answered", |scene| {
        scene.statuses.push(status(10, "main", 75, "main-20251120T234847-70", ":pending"));
    }),
    wrong("over", |scene| {
        scene.statuses.push(status(10, "main", 70, "main-20251120T234847-70", ":error"));
    }),
    wrong("too late", |scene| {
        let url = scene.statuses[0]["target_url"].as_str().unwrap().replace("4000000000000", "1000");
        scene.statuses[0]["target_url"] = json!(url);
    }),
    wrong("asked anew", |scene| {
        scene.statuses = vec![question(10, "main", 70, "89abcdef"), question(9, "main", 70, CODE)];
    }),
    wrong("of a status elsewhere", |scene| {
        let url = scene.statuses[0]["target_url"].as_str().unwrap().replace("octo/project", "octo/other");
        scene.statuses[0]["target_url"] = json!(url);
    }),
    wrong("of no run", |scene| {
        let url = scene.statuses[0]["target_url"].as_str().unwrap().replace("runs/70", "runs/70/../71");
        scene.statuses[0]["target_url"] = json!(url);
    }),
    wrong("of the code of a fork", |scene| scene.run["head_repository"] = json!({"id": 2})),
    wrong("of the code of nobody", |scene| scene.run["head_repository"] = Value::Null),
    wrong("of no workflow", |scene| scene.run["path"] = json!("dynamic/pages")),
    wrong("for others", |scene| approvers(scene, "{users: [grace, ada2, xada, ad]}")),
    wrong("for a look-alike", |scene| approvers(scene, "{users: [\"\u{430}da\"]}")),
    wrong("for a team", |scene| approvers(scene, "{teams: [ada, octo/ada]}")),
    wrong("for others than the author", |scene| {
        approvers(scene, "{users: [ada]}");
        scene.pull["user"]["id"] = json!(7);
    }),
    wrong("for others than who began", |scene| {
        approvers(scene, "{users: [ada]}");
        scene.run["actor"] = json!({"id": 7});
    }),
    wrong("for others than who began again", |scene| {
        approvers(scene, "{users: [ada]}");
        scene.run["triggering_actor"] = json!({"id": 7});
    }),
    wrong("of a loop that asks nobody", |scene| {
        scene.base = Some(ASKS.replace("  ask:", "  asks:").replace("next: ask", "next: asks"));
    }),
    wrong("of no loop", |scene| scene.base = Some("[".to_owned())),
];

/// What stands before a command, so that it is a quotation, code, hidden, or not on the first line.
const BEFORE: &[&str] = &[
    " ",
    "\t",
    "    ",
    "> ",
    ">",
    "> > ",
    ">\n> ",
    "- ",
    "* ",
    "+ ",
    "1. ",
    "- [ ] ",
    "# ",
    "| ",
    "`",
    "``",
    "```\n",
    "```sh\n",
    "~~~\n",
    "    $ ",
    "\n",
    "\r\n",
    "\r",
    "\n\n",
    "<!--",
    "<!-- ",
    "<!--\n",
    "<p>",
    "<pre>\n",
    "<code>",
    "<details>\n",
    "<details><summary>x</summary>\n\n",
    "<sub>",
    "<!-- ll-loop/commands -->\n",
    "\u{feff}",
    "\u{200b}",
    "\u{200d}",
    "\u{2060}",
    "\u{ad}",
    "\u{a0}",
    "\u{3000}",
    "\u{202e}",
    "\u{2066}",
    "\u{2028}",
    "\u{2029}",
    "\u{85}",
    "\u{b}",
    "\u{c}",
    "\u{1b}[2K",
    "\0",
    "\\",
    "/",
    "//",
    "'",
    "\"",
    "(",
    "[",
    "{",
    "@ada ",
    "@ll-loop ",
    "#3 ",
    "LGTM\n",
    "On Mon, 1 Jun 2026, ada wrote:\n> ",
    "-----Original Message-----\n",
    "--\n",
    "please: ",
    "$ ",
    "!",
    ".",
];

/// What the words look like that only look like the command.
const ALIKE: &[&str] = &[
    "/LL-LOOP",
    "/Ll-loop",
    "/ll-Loop",
    "/ll_loop",
    "/ll loop",
    "/lloop",
    "/ll--loop",
    "/ll\u{2010}loop",
    "/ll\u{2011}loop",
    "/ll\u{2012}loop",
    "/ll\u{2013}loop",
    "/ll\u{2212}loop",
    "/ll\u{fe63}loop",
    "/ll\u{ff0d}loop",
    "/II-loop",
    "/l1-loop",
    "/\u{217c}\u{217c}-loop",
    "/\u{13b7}l-loop",
    "\u{2215}ll-loop",
    "\u{2044}ll-loop",
    "\u{ff0f}ll-loop",
    "/ll-l\u{3bf}op",
    "/ll-lo\u{43e}p",
    "/ll-loo\u{440}",
    "/ll-loop\u{301}",
    "/l\u{200b}l-loop",
    "/ll\u{ad}-loop",
    "/ll-loop\u{200b}",
    "/ll-loop\u{a0}",
    "/ll-loop:",
    "/ll-loop,",
    "/ll-loop/",
    "/ll-loop.",
    "/ll-loops",
    "/ll-loop-",
    "/ll-loop=",
    "ll-loop",
    "\\/ll-loop",
    "/%6Cl-loop",
    "&#47;ll-loop",
    "&sol;ll-loop",
];

/// Another question is one that a comment without code and name does mean.
const OTHER_QUESTION: &[Wrong] =
    &[wrong("of another run", |scene| scene.statuses = vec![question(9, "other", 71, "89abcdef")])];

/// Who rejects, rejects alone.
const ALONE: &[Wrong] = &[wrong("for two", |scene| approvers(scene, "{users: [ada, bob], min: 2}"))];

fn approvers(scene: &mut Scene, who: &str) {
    scene.base = Some(ASKS.replace("states:", &format!("approvers: {who}\nstates:")));
}

/// A comment that is followed, with this text: the run asks, or has failed.
fn honest(command: &str) -> Scene {
    let needs_failure = ["resume", "deliver", "retry"].iter().any(|verb| command.contains(verb));
    Scene::of(command).changed(|scene| {
        if needs_failure {
            scene.statuses = vec![failed(9, "main", 70)];
        }
    })
}

/// A comment with its name, for whoever reads that it was followed.
struct Case {
    name: String,
    scene: Scene,
}

fn cases(of: &str, wrongs: &[Wrong], commands: &[&str]) -> Vec<Case> {
    let pairs = wrongs.iter().flat_map(|wrong| commands.iter().map(move |command| (wrong, *command)));
    pairs
        .map(|(Wrong { name, forge }, command)| Case {
            name: format!("{of} {name}: {command}"),
            scene: honest(command).changed(forge),
        })
        .collect()
}

fn words(bodies: impl Iterator<Item = (String, &'static str)>) -> Vec<Case> {
    let case = |(body, command): (String, &str)| Case {
        name: format!("words {body:?}"),
        scene: honest(command).changed(|scene| scene.comment["body"] = json!(body)),
    };
    bodies.map(case).collect()
}

fn forgeries() -> Vec<Case> {
    let (answers, mut all) = (&COMMANDS[..4], cases("author", AUTHORS, COMMANDS));
    // Of a fork, `stop` and `retry` are followed, which are the last two.
    all.extend(cases("code of", CODE_OF_OTHERS, &COMMANDS[..COMMANDS.len() - 2]));
    all.extend(cases("question", QUESTIONS, answers));
    all.extend(cases("question", ALONE, &[COMMANDS[0], COMMANDS[1], COMMANDS[3]]));
    all.extend(cases("question", OTHER_QUESTION, &[COMMANDS[0], COMMANDS[2], COMMANDS[3]]));
    let few = [COMMANDS[0], COMMANDS[4], COMMANDS[7]].into_iter().cycle();
    all.extend(words(BEFORE.iter().zip(few.clone()).map(|(before, to)| (format!("{before}{to}"), to))));
    all.extend(words(ALIKE.iter().zip(few).map(|(alike, to)| (to.replacen("/ll-loop", alike, 1), to))));
    let long = "x".repeat(10 << 20);
    all.extend(words(
        [format!("/ll-loop answer {CODE} {long}"), format!("{long}\n{}", COMMANDS[0]), format!("\n{long}")]
            .into_iter()
            .map(|body| (body, COMMANDS[0])),
    ));
    all
}

/// A server with many repositories, in each of which there is one comment.
struct Crowd(Vec<Scene>);

impl Crowd {
    /// Moves each scene to its own repository.
    fn of(cases: Vec<Case>) -> Self {
        let moved = |(at, Case { scene, .. }): (usize, Case)| {
            let own = |value: &Value| -> Value {
                let text = value.to_string();
                let text = text.replace("cto/project", &format!("cto/project-{at}"));
                serde_json::from_str(&text).unwrap()
            };
            let mut scene = Scene {
                comment: own(&scene.comment),
                pull: own(&scene.pull),
                statuses: scene.statuses.iter().map(own).collect(),
                ..scene
            };
            if !scene.comment["node_id"].is_null() {
                scene.comment["node_id"] = json!(at.to_string());
            }
            scene
        };
        Self(cases.into_iter().enumerate().map(moved).collect())
    }

    fn answer(&self, request: &Request) -> Option<Value> {
        let path = request.url.path();
        if path == "/graphql" {
            let asked: Value = serde_json::from_slice(&request.body).ok()?;
            let at: usize = asked["variables"]["id"].as_str()?.parse().ok()?;
            return Some(self.0[at].edited.clone());
        }
        let (at, rest) = path.strip_prefix("/repos/octo/project-")?.split_once('/')?;
        let scene = self.0.get(at.parse::<usize>().ok()?)?;
        if request.method.as_str() != "GET" {
            return Some(json!({"id": 1, "workflow_run_id": 80}));
        }
        let parts: Vec<&str> = rest.split('/').collect();
        match parts[..] {
            ["issues", "comments", "501"] => Some(scene.comment.clone()),
            ["pulls", "3"] => Some(scene.pull.clone()).filter(|pull| !pull.is_null()),
            ["issues", "3", "comments"] => Some(json!([scene.comment])),
            ["commits", _, "statuses"] => Some(json!(scene.statuses)),
            ["collaborators", _, "permission"] => Some(scene.permission.clone()),
            ["actions", "runs", _] => Some(scene.run.clone()),
            ["contents", ..] => {
                let content = base64::engine::general_purpose::STANDARD.encode(scene.base.as_ref()?);
                Some(json!({ "content": content }))
            }
            _ => None,
        }
    }
}

impl Respond for Crowd {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let missing = || ResponseTemplate::new(404).set_body_json(json!({"message": "Not Found"}));
        self.answer(request).map_or_else(missing, |body| ResponseTemplate::new(200).set_body_json(body))
    }
}

/// Lets the program follow the comment of every case, and returns the names of those that it has followed.
fn followed(cases: Vec<Case>) -> Vec<String> {
    let names: Vec<String> = cases.iter().map(|case| case.name.chars().take(120).collect()).collect();
    let github = Github::silent();
    github.mount(Mock::given(any()).respond_with(Crowd::of(cases)));
    let here: Vec<usize> = (0..names.len()).collect();
    let mut said_done = Vec::new();
    std::thread::scope(|scope| {
        let chunks = here.chunks(here.len().div_ceil(AT_ONCE));
        let workers: Vec<_> = chunks
            .map(|chunk| {
                let project = github.job(Project::new()).env("LL_TOKEN", "ghs_0123456789");
                scope.spawn(move || follow(project, chunk))
            })
            .collect();
        for worker in workers {
            said_done.extend(worker.join().unwrap());
        }
    });
    let orders = github.changes();
    let is_order = |at: usize| {
        let below = format!("/repos/octo/project-{at}/");
        orders.iter().any(|(request, _)| {
            request.contains(&below) && !request.ends_with("/reactions") && !request.contains("/comments")
        })
    };
    let is_followed = |at: &usize| said_done.contains(at) || is_order(*at);
    here.into_iter().filter(is_followed).map(|at| names[at].clone()).collect()
}

/// Runs the program for some of the cases, and returns those of which it says that they were done.
fn follow(mut project: Project, cases: &[usize]) -> Vec<usize> {
    let mut done = Vec::new();
    for at in cases {
        project = project.env("GITHUB_REPOSITORY", format!("octo/project-{at}"));
        let ran = project.run(&["command", "--comment", "501"]);
        assert!(matches!(ran.code, Some(0 | 69)), "{at}: {}", ran.all());
        assert!(!ran.stderr.contains("panicked"), "{at}: {}", ran.all());
        if ran.stdout.starts_with("done") && !ran.stdout.contains("of 2 people") {
            done.push(*at);
        }
    }
    done
}

#[test]
fn of_more_than_500_forgeries_none_is_followed() {
    let all = forgeries();
    assert!(all.len() >= LEAST, "only {} forgeries", all.len());
    assert_eq!(followed(all), Vec::<String>::new());
}

/// Without anything wrong each of them is followed, so that a forgery fails for what is wrong with it.
#[test]
fn every_command_is_followed_that_nobody_forged() {
    let honest: Vec<Case> =
        COMMANDS.iter().map(|name| Case { name: (*name).to_owned(), scene: honest(name) }).collect();
    assert_eq!(followed(honest), COMMANDS);
}
