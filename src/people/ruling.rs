//! Whether a comment answers the question of a run: who wrote it, about what, and whether that was still so at this moment.

use super::asked::{AskedAtHead, NotMeant, meant};
use super::command::{self, CommandFault, Verb, WrittenCommand};
use crate::base::object::ObjectId;
use crate::base::text::listed;
use crate::base::time::Timestamp;
use crate::engine::question::{AnswerKind, Awaiting};
use crate::machine::Approvers;

/// An account of a server. Its name may be given to somebody else; its id is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Whether a program has it.
    pub is_bot: bool,
}

/// A comment, as the server has it at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentFacts {
    /// Its id.
    pub id: u64,
    /// Who wrote it.
    pub author: Account,
    /// Whether a program wrote it in the name of somebody.
    pub is_by_app: bool,
    /// Whether it came as a reply by mail.
    pub is_by_mail: bool,
    /// Its text.
    pub body: String,
    /// When it was written.
    pub created: Timestamp,
    /// Whether it was changed since.
    pub is_edited: bool,
}

/// The pull request that a comment is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullFacts {
    /// Its number.
    pub number: u64,
    /// Whether it is open.
    pub is_open: bool,
    /// The commit that it proposes.
    pub head: String,
    /// Whether that is in another repository.
    pub is_of_fork: bool,
    /// Who opened it.
    pub author: u64,
}

/// What an account may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionFacts {
    /// The account that the server answered for.
    pub account: u64,
    /// Whether it may write to the repository.
    pub may_write: bool,
    /// Whether somebody has made it a collaborator: everybody may read a public repository.
    pub is_collaborator: bool,
}

/// Whether somebody is in one of the teams that a loop names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TeamMembership {
    /// In one of them.
    Member,
    /// In none, or none is named.
    #[default]
    Outsider,
    /// There is no token that may read them.
    Unreadable,
}

/// Everything that the server knows of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerFacts {
    /// The comment.
    pub comment: CommentFacts,
    /// What its author may do; nothing where the token may not ask that.
    pub permission: Option<PermissionFacts>,
    /// The pull request that it is on.
    pub pull: PullFacts,
    /// Who started the run of the workflow that asks, at first and again, where the server says it.
    pub starters: Vec<u64>,
    /// Who may answer, as a branch says it that the change does not choose.
    pub approvers: Option<Approvers>,
    /// Whether the author is in a team that these name.
    pub membership: TeamMembership,
    /// The questions at the head of the pull request: what a comment without a code means depends on all of them.
    pub asked: Vec<AskedAtHead>,
    /// Whether the run that asks is over, as its status says.
    pub is_over: bool,
}

/// What a question is about, as far as an answer depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuestionFacts<'a> {
    /// Its code.
    pub code: &'a str,
    /// When it was asked, at the latest.
    pub asked_at: Timestamp,
    /// When it is not open any more.
    pub until: Timestamp,
    /// The commit that it is about.
    pub sha: Option<&'a str>,
}

impl<'a> QuestionFacts<'a> {
    /// Takes them from the question that a run was saved with.
    pub fn of(awaiting: &'a Awaiting) -> Self {
        let Awaiting { code, asked_at, until, sha, .. } = awaiting;
        Self { code, asked_at: *asked_at, until: *until, sha: sha.as_ref().map(ObjectId::as_str) }
    }
}

/// An answer that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuledAnswer {
    /// What it says.
    pub kind: AnswerKind,
    /// With which words.
    pub text: Option<String>,
}

/// Why a comment does not answer a question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerRefusal {
    /// It says something else.
    #[error("{0}")]
    Command(#[from] CommandFault),
    /// It does not say which question it answers, and that is not plain.
    #[error("{0}")]
    NotMeant(#[from] NotMeant),
    /// It was changed.
    #[error("it was edited; write a new one")]
    Edited,
    /// It was there before the question.
    #[error("it is older than the question")]
    Older,
    /// Somebody has stopped it, or it was cancelled.
    #[error("the question is not open any more: the status of its commit says how the run ended")]
    Over,
    /// It came too late.
    #[error("the question was open until {0}")]
    Late(Timestamp),
    /// It is about another question.
    #[error("it answers `{given}`, and the question is `{open}`")]
    OtherQuestion {
        /// The code that it names.
        given: String,
        /// That of the question.
        open: String,
    },
    /// It names another commit.
    #[error("it is about another commit than the question")]
    OtherCommit,
    /// There are commits that nobody was asked about.
    #[error("the pull request has another head than the commit that the question is about")]
    HeadMoved,
    /// There is nothing to decide any more.
    #[error("the pull request is closed")]
    Closed,
    /// What would go on is the code of a stranger.
    #[error("the pull request is of a fork")]
    Fork,
    /// The name belongs to somebody else now.
    #[error("the account that wrote it is not the one that has its name now")]
    OtherAccount,
    /// Nobody can tell what the author may do.
    #[error(
        "the token may not ask who may write to the repository: on Gitea and Forgejo, give that of a person who administers it as `token`"
    )]
    Unaskable,
    /// A program wrote it.
    #[error("a program wrote it, and the loop does not name that one")]
    Program,
    /// Whoever has a notification of somebody can answer it by mail in that name.
    #[error("it came by mail, whose sender nobody checks: write it on the page of the pull request")]
    Mail,
    /// The author may not write.
    #[error("its author has no write access to the repository")]
    NoWriteAccess,
    /// The author is not one of those who may.
    #[error("only {0} may answer")]
    NotNamed(String),
    /// The loop names teams, and nobody can tell who is in them.
    #[error("the loop names teams, and there is no token that may read them: give one as `team-token`")]
    Teams,
    /// The author of the change answered.
    #[error("the author of the change, and whoever started the run, may not answer")]
    Author,
}

/// Reads the answer of a comment to a question, or says why it does not answer.
pub fn decide(facts: &AnswerFacts, question: QuestionFacts<'_>) -> Result<RuledAnswer, AnswerRefusal> {
    let AnswerFacts { comment, pull, .. } = facts;
    let written = command::read(&comment.body)?;
    let kind = match written.verb {
        Verb::Answer(kind) => kind,
        Verb::Stop => AnswerKind::Stop,
        Verb::Retry | Verb::Resume | Verb::Deliver | Verb::Fix | Verb::Help => {
            return Err(CommandFault::NotAnAnswer.into());
        }
    };
    // First of all: a comment about another question is neither late nor forbidden.
    means(&written, kind, facts, question)?;
    // Others than its author can edit a comment, and its author is named above it all the same.
    if comment.is_edited {
        return Err(AnswerRefusal::Edited);
    }
    // Servers know whole seconds.
    if comment.created.as_millis() < question.asked_at.as_millis() / 1000 * 1000 {
        return Err(AnswerRefusal::Older);
    }
    if kind == AnswerKind::Stop {
        // The loop says who may answer; to end a run takes no more than write access to the repository.
        may_steer(comment, facts.permission.as_ref())?;
    } else {
        if facts.is_over {
            return Err(AnswerRefusal::Over);
        }
        if comment.created >= question.until {
            return Err(AnswerRefusal::Late(question.until));
        }
        may_answer(facts)?;
    }
    if !pull.is_open {
        return Err(AnswerRefusal::Closed);
    }
    if pull.is_of_fork {
        return Err(AnswerRefusal::Fork);
    }
    if question.sha != Some(pull.head.as_str()) {
        return Err(AnswerRefusal::HeadMoved);
    }
    if !written.is_about(&pull.head) {
        return Err(AnswerRefusal::OtherCommit);
    }
    Ok(RuledAnswer { kind, text: written.text })
}

/// Tells whether a command means this question.
fn means(
    written: &WrittenCommand,
    kind: AnswerKind,
    facts: &AnswerFacts,
    question: QuestionFacts<'_>,
) -> Result<(), AnswerRefusal> {
    let given = match written.name().filter(|_| kind == AnswerKind::Stop) {
        // What ends a question need not be as sure of it as what goes on with a run.
        Some(name) if bears(name, &facts.asked, question.code) => question.code,
        Some(name) => name,
        None if kind == AnswerKind::Stop => question.code,
        None => code(written, facts)?,
    };
    if given == question.code {
        return Ok(());
    }
    let (given, open) = (given.to_owned(), question.code.to_owned());
    Err(AnswerRefusal::OtherQuestion { given, open })
}

/// Tells whether the run that asked the question with this code is called so.
fn bears(name: &str, asked: &[AskedAtHead], code: &str) -> bool {
    asked.iter().any(|asked| asked.question.code == code && asked.names.bear(name))
}

/// Returns the code of the question that a command answers.
fn code<'a>(written: &'a WrittenCommand, facts: &'a AnswerFacts) -> Result<&'a str, NotMeant> {
    match written.code() {
        Some(code) => Ok(code),
        None => Ok(&meant(written.name(), &facts.asked)?.question.code),
    }
}

/// Tells whether the author of a comment may steer runs with it: whoever may write to the repository, and no program.
///
/// # Errors
/// The account is another one now, a program, or may not write, or nobody can tell.
pub fn may_steer(comment: &CommentFacts, permission: Option<&PermissionFacts>) -> Result<(), AnswerRefusal> {
    let permission = permission.ok_or(AnswerRefusal::Unaskable)?;
    // The server is asked by name, which may be somebody else's by now.
    if permission.account != comment.author.id {
        return Err(AnswerRefusal::OtherAccount);
    }
    if comment.author.is_bot || comment.is_by_app {
        return Err(AnswerRefusal::Program);
    }
    if comment.is_by_mail {
        return Err(AnswerRefusal::Mail);
    }
    if permission.may_write { Ok(()) } else { Err(AnswerRefusal::NoWriteAccess) }
}

/// Tells whether the author of a comment may answer.
fn may_answer(facts: &AnswerFacts) -> Result<(), AnswerRefusal> {
    let AnswerFacts { comment, permission, pull, starters, approvers, membership, .. } = facts;
    let author = &comment.author;
    let permission = permission.as_ref().ok_or(AnswerRefusal::Unaskable)?;
    if permission.account != author.id {
        return Err(AnswerRefusal::OtherAccount);
    }
    let named = approvers.as_ref().filter(|approvers| approvers.names_somebody());
    let is_user = named.is_some_and(|named| named.names_user(&author.name));
    // A team that has a bot among its members has not said that the bot approves.
    if (author.is_bot || comment.is_by_app) && !is_user {
        return Err(AnswerRefusal::Program);
    }
    if comment.is_by_mail {
        return Err(AnswerRefusal::Mail);
    }
    let is_named = is_user || named.is_some() && *membership == TeamMembership::Member;
    // Whom the loop names need only be somebody here: a name that was given up can be taken by a stranger.
    if !(permission.may_write || is_named && permission.is_collaborator) {
        return Err(AnswerRefusal::NoWriteAccess);
    }
    if let (Some(named), false) = (named, is_named) {
        if *membership == TeamMembership::Unreadable {
            return Err(AnswerRefusal::Teams);
        }
        let all: Vec<String> = named.users.iter().chain(&named.teams).cloned().collect();
        return Err(AnswerRefusal::NotNamed(listed(&all, "or")));
    }
    let is_kept_out = approvers.as_ref().is_some_and(|approvers| approvers.not_author);
    if is_kept_out && (author.id == pull.author || starters.contains(&author.id)) {
        return Err(AnswerRefusal::Author);
    }
    Ok(())
}

/// Tells whether so many different people approve as the loop wants; one who says no is enough.
pub fn are_enough(authors: &[u64], min: u32) -> bool {
    // By their ids: two comments of one person are one approval, and a name can be given to somebody else.
    let mut different = authors.to_vec();
    different.sort_unstable();
    different.dedup();
    different.len() >= min as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::StateName;
    use crate::base::object::ObjectId;
    use crate::base::sum::Sum;
    use crate::people::asked::QuestionMark;
    use crate::people::run_names::RunNames;

    const HEAD: &str = "1111111111111111111111111111111111111111";
    const ASKED: i64 = 1_790_000_000_123;

    fn awaiting() -> Awaiting {
        let digest = Sum::of(b"question");
        Awaiting {
            question: "Deploy?".to_owned(),
            options: AnswerKind::OFFERED.to_vec(),
            asked_at: Timestamp::from_millis(ASKED),
            state: StateName::parse("ask").unwrap(),
            tree: Some(ObjectId::parse(&"2".repeat(40)).unwrap()),
            sha: Some(ObjectId::parse(HEAD).unwrap()),
            digest,
            code: digest.to_string()[..8].to_owned(),
            approvers: None,
            until: Timestamp::from_millis(ASKED + 1_000_000),
            asked_in: None,
            asked_anew: false,
        }
    }

    /// Ada approves the change of grace, whose run the account 9 started.
    fn facts() -> AnswerFacts {
        AnswerFacts {
            comment: CommentFacts {
                id: 5,
                author: Account { id: 7, name: "ada".to_owned(), is_bot: false },
                is_by_app: false,
                is_by_mail: false,
                body: format!("/ll-loop approve {}", awaiting().code),
                created: Timestamp::from_millis(ASKED + 10_000),
                is_edited: false,
            },
            permission: Some(PermissionFacts { account: 7, may_write: true, is_collaborator: true }),
            pull: PullFacts { number: 3, is_open: true, head: HEAD.to_owned(), is_of_fork: false, author: 8 },
            starters: vec![9],
            approvers: None,
            membership: TeamMembership::Outsider,
            asked: Vec::new(),
            is_over: false,
        }
    }

    fn known(facts: &mut AnswerFacts) -> &mut PermissionFacts {
        let known = PermissionFacts { account: 7, may_write: true, is_collaborator: true };
        facts.permission.get_or_insert(known)
    }

    fn ruled(facts: &AnswerFacts) -> Result<RuledAnswer, AnswerRefusal> {
        decide(facts, QuestionFacts::of(&awaiting()))
    }

    /// The same question, as the status of its commit tells it.
    fn asked(code: &str, is_open: bool) -> AskedAtHead {
        let names = RunNames::of_status("ll-loop/deploy", "deploy-20251120T234847-1f2e", 70);
        let question =
            QuestionMark { code: code.to_owned(), until: awaiting().until, state: "ask".to_owned() };
        AskedAtHead { names, question, is_open }
    }

    fn named(users: &[&str], teams: &[&str]) -> Approvers {
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Approvers { users: all(users), teams: all(teams), min: 1, not_author: true }
    }

    #[test]
    fn who_may_answers() {
        let good = [
            facts(),
            AnswerFacts { approvers: Some(named(&["Ada"], &[])), ..facts() },
            AnswerFacts { approvers: Some(named(&["ada"], &["acme/release"])), ..facts() },
            // In a team, also by reading alone.
            AnswerFacts {
                permission: Some(PermissionFacts { account: 7, may_write: false, is_collaborator: true }),
                approvers: Some(named(&["grace"], &["acme/release"])),
                membership: TeamMembership::Member,
                ..facts()
            },
            // A second is the least that servers know.
            AnswerFacts {
                comment: CommentFacts {
                    created: Timestamp::from_millis(ASKED / 1000 * 1000),
                    ..facts().comment
                },
                ..facts()
            },
            // Whom the loop names need not write.
            AnswerFacts {
                permission: Some(PermissionFacts { account: 7, may_write: false, is_collaborator: true }),
                approvers: Some(named(&["ada"], &[])),
                ..facts()
            },
            // Without `approvers`, the author may as well.
            AnswerFacts { pull: PullFacts { author: 7, ..facts().pull }, ..facts() },
            AnswerFacts {
                pull: PullFacts { author: 7, ..facts().pull },
                approvers: Some(Approvers { not_author: false, ..named(&["ada"], &[]) }),
                ..facts()
            },
            AnswerFacts {
                comment: CommentFacts {
                    author: Account { id: 7, name: "release[bot]".to_owned(), is_bot: true },
                    ..facts().comment
                },
                approvers: Some(named(&["release[bot]"], &[])),
                ..facts()
            },
        ];
        for facts in good {
            assert_eq!(ruled(&facts).map(|answer| answer.kind), Ok(AnswerKind::Approve), "{facts:?}");
        }
    }

    /// One thing that is wrong with an answer which is good otherwise.
    type Forgery = (&'static str, fn(&mut AnswerFacts));

    const FORGERIES: &[Forgery] = &[
        ("edited", |facts| facts.comment.is_edited = true),
        ("by an app", |facts| facts.comment.is_by_app = true),
        ("by a bot", |facts| facts.comment.author.is_bot = true),
        ("older", |facts| facts.comment.created = Timestamp::from_millis(ASKED - 1_000)),
        ("ancient", |facts| facts.comment.created = Timestamp::from_millis(0)),
        ("late", |facts| facts.comment.created = Timestamp::from_millis(ASKED + 1_000_000)),
        ("other question", |facts| facts.comment.body = "/ll-loop approve 00000000".to_owned()),
        ("without code", |facts| facts.comment.body = "/ll-loop approve".to_owned()),
        ("without code, two", |facts| {
            facts.comment.body = "/ll-loop approve".to_owned();
            facts.asked = vec![asked(&awaiting().code, true), asked("89abcdef", true)];
        }),
        ("without code, asked again", |facts| {
            facts.comment.body = "/ll-loop approve deploy".to_owned();
            facts.asked = vec![asked(&awaiting().code, true), asked("89abcdef", false)];
        }),
        ("by a name, of another", |facts| {
            facts.comment.body = "/ll-loop approve release".to_owned();
            facts.asked = vec![asked(&awaiting().code, true)];
        }),
        ("by a name, not open", |facts| {
            facts.comment.body = "/ll-loop approve deploy".to_owned();
            facts.asked = vec![asked(&awaiting().code, false)];
        }),
        ("no answer", |facts| facts.comment.body = "/ll-loop help".to_owned()),
        ("another verb", |facts| facts.comment.body = format!("/ll-loop retry {}", awaiting().code)),
        ("by mail", |facts| facts.comment.is_by_mail = true),
        ("over", |facts| facts.is_over = true),
        ("in a quotation", |facts| facts.comment.body.insert_str(0, "> ")),
        ("in a code block", |facts| facts.comment.body.insert_str(0, "```\n")),
        ("in a later line", |facts| facts.comment.body.insert(0, '\n')),
        ("other commit", |facts| facts.comment.body.push_str(" 2222222")),
        ("head moved", |facts| facts.pull.head = "3".repeat(40)),
        ("head unknown", |facts| facts.pull.head.clear()),
        ("closed", |facts| facts.pull.is_open = false),
        ("fork", |facts| facts.pull.is_of_fork = true),
        ("no writer", |facts| known(facts).may_write = false),
        ("a reader who is named", |facts| {
            facts.permission = Some(PermissionFacts { account: 7, may_write: false, is_collaborator: false });
            facts.approvers = Some(named(&["ada"], &[]));
        }),
        ("an author of whom nobody can tell", |facts| facts.permission = None),
        ("renamed account", |facts| known(facts).account = 70),
        ("freed name", |facts| facts.comment.author.id = 70),
        ("not named", |facts| facts.approvers = Some(named(&["grace"], &[]))),
        ("look-alike", |facts| facts.approvers = Some(named(&["ad\u{430}"], &[]))),
        ("longer name", |facts| facts.approvers = Some(named(&["ada2", "xada", "ad"], &[]))),
        ("a team", |facts| facts.approvers = Some(named(&[], &["acme/release"]))),
        ("a team that nobody may read", |facts| {
            facts.approvers = Some(named(&[], &["acme/release"]));
            facts.membership = TeamMembership::Unreadable;
        }),
        ("a team whose member may not even read", |facts| {
            facts.permission = Some(PermissionFacts { account: 7, may_write: false, is_collaborator: false });
            facts.approvers = Some(named(&[], &["acme/release"]));
            facts.membership = TeamMembership::Member;
        }),
        ("a bot in a team", |facts| {
            facts.comment.author.is_bot = true;
            facts.approvers = Some(named(&[], &["acme/release"]));
            facts.membership = TeamMembership::Member;
        }),
        ("a member who is the author", |facts| {
            facts.pull.author = 7;
            facts.approvers = Some(named(&[], &["acme/release"]));
            facts.membership = TeamMembership::Member;
        }),
        ("author of the change", |facts| {
            facts.approvers = Some(named(&["ada"], &[]));
            facts.pull.author = 7;
        }),
        ("who started the run", |facts| {
            facts.approvers = Some(named(&["ada"], &[]));
            facts.starters = vec![7];
        }),
        ("who started the run again", |facts| {
            facts.approvers = Some(named(&["ada"], &[]));
            facts.starters = vec![9, 7];
        }),
        ("author, whoever may write", |facts| {
            facts.approvers = Some(named(&[], &[]));
            facts.pull.author = 7;
        }),
    ];

    /// Each forgery alone, and every pair of them: what is wrong twice is not right.
    #[test]
    fn no_forgery_is_taken() {
        let mut tried = 0;
        for (name, forge) in FORGERIES {
            let mut one = facts();
            forge(&mut one);
            assert!(ruled(&one).is_err(), "{name}");
            tried += 1;
        }
        // Of whom the loop names, the second forgery may say another thing, so that it has the last word.
        for (name, forge) in FORGERIES.iter().filter(|(name, _)| !is_about_names(name)) {
            for (other, also) in FORGERIES {
                let mut both = facts();
                also(&mut both);
                forge(&mut both);
                // Both together are one other account.
                if (*name, *other) != ("renamed account", "freed name") {
                    assert!(ruled(&both).is_err(), "{name} and {other}");
                    tried += 1;
                }
            }
        }
        assert!(tried >= 200, "only {tried} were tried");
    }

    /// Tells whether a forgery is one only as long as the loop names nobody else, or nothing else was asked.
    fn is_about_names(name: &str) -> bool {
        [
            "without code",
            "not named",
            "look-alike",
            "longer name",
            "a team",
            "author",
            "who started",
            "by a bot",
            "by an app",
            "freed name",
            "a bot in",
            "a member",
        ]
        .iter()
        .any(|about| name.starts_with(about))
    }

    #[test]
    fn the_only_question_needs_no_code() {
        for body in ["/ll-loop approve", "/ll-loop approve deploy", "/ll-loop approve 70"] {
            let mut one = facts();
            one.comment.body = body.to_owned();
            one.asked = vec![asked(&awaiting().code, true)];
            assert_eq!(ruled(&one).map(|answer| answer.kind), Ok(AnswerKind::Approve), "{body}");
        }
    }

    fn stopping(body: &str) -> AnswerFacts {
        AnswerFacts {
            comment: CommentFacts { body: body.to_owned(), ..facts().comment },
            asked: vec![asked(&awaiting().code, false)],
            ..facts()
        }
    }

    #[test]
    fn whoever_may_write_stops_the_question_that_is_meant() {
        let code = awaiting().code;
        for body in
            ["/ll-loop stop", "/ll-loop stop deploy", "/ll-loop stop 70", &format!("/ll-loop stop {code}")]
        {
            // Its status has ended by then, and who may answer is nobody's concern any more.
            let over =
                AnswerFacts { is_over: true, approvers: Some(named(&["grace"], &[])), ..stopping(body) };
            assert_eq!(ruled(&over).map(|answer| answer.kind), Ok(AnswerKind::Stop), "{body}");
        }
        for body in [
            "/ll-loop stop 89abcdef",
            "/ll-loop stop release",
            "/ll-loop stop deploy 2222222",
            " /ll-loop stop",
        ] {
            assert!(ruled(&stopping(body)).is_err(), "{body}");
        }
    }

    #[test]
    fn no_forgery_stops_a_question() {
        let cannot_steer = [
            "edited",
            "by an app",
            "by a bot",
            "older",
            "ancient",
            "by mail",
            "head moved",
            "head unknown",
            "closed",
            "fork",
            "no writer",
            "an author of whom nobody can tell",
            "renamed account",
            "freed name",
        ];
        for (name, forge) in FORGERIES.iter().filter(|(name, _)| cannot_steer.contains(name)) {
            let mut one = stopping("/ll-loop stop");
            forge(&mut one);
            assert!(ruled(&one).is_err(), "{name}");
        }
    }

    #[test]
    fn whoever_may_write_may_steer() {
        let AnswerFacts { comment, permission, .. } = facts();
        let permission = permission.unwrap();
        assert_eq!(may_steer(&comment, Some(&permission)), Ok(()));
        assert_eq!(may_steer(&comment, None), Err(AnswerRefusal::Unaskable));
        let bot = Account { is_bot: true, ..comment.author.clone() };
        for (comment, permission, why) in [
            (CommentFacts { author: bot, ..comment.clone() }, permission.clone(), AnswerRefusal::Program),
            (CommentFacts { is_by_app: true, ..comment.clone() }, permission.clone(), AnswerRefusal::Program),
            (CommentFacts { is_by_mail: true, ..comment.clone() }, permission.clone(), AnswerRefusal::Mail),
            (
                comment.clone(),
                PermissionFacts { account: 70, ..permission.clone() },
                AnswerRefusal::OtherAccount,
            ),
            (comment, PermissionFacts { may_write: false, ..permission }, AnswerRefusal::NoWriteAccess),
        ] {
            assert_eq!(may_steer(&comment, Some(&permission)), Err(why));
        }
    }

    #[test]
    fn so_many_have_to_be_different() {
        assert!(are_enough(&[7], 1));
        assert!(!are_enough(&[], 1));
        assert!(!are_enough(&[7, 7, 7], 2));
        assert!(are_enough(&[7, 8, 7], 2));
    }
}
