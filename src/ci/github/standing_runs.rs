//! The runs of loops at a commit, as their statuses tell it: which there were, how each came out, and what one waits for. All
//! of it is what whoever may set a status says; who acts by it asks the server about the run, and the run about itself.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::commit_status::{self, ListedStatus};
use super::shared::ReportMark;
use crate::base::text::one_line;
use crate::base::time::Timestamp;
use crate::ci::chain::NextRun;
use crate::forge::github::api::{Api, ApiError};
use crate::forge::github::repository::RepositoryName;
use crate::people::asked::AskedAtHead;
use crate::people::notice::BranchOutcome;
use crate::people::run_names::RunNames;
use crate::people::run_wait::RunWait;

/// The most statuses that are read. A fan-out of 256 legs sets two for each.
const MAX_READ: usize = 2000;

/// What one status says of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingRun {
    /// The names of the run.
    pub names: RunNames,
    /// How it came out: the state of a status.
    pub state: String,
    /// What it waits for, if it does.
    pub wait: Option<RunWait>,
    /// When the status was set.
    pub at: Option<Timestamp>,
    /// Whether it is the last word under its name.
    pub is_last: bool,
    /// The name of the status.
    context: String,
    /// Its link, without how the run came out and what it waits for.
    link: String,
}

/// A run of which it is asked how its loop stood before.
#[derive(Clone, Copy, Debug)]
pub struct LastOutcome<'a> {
    /// Its loop.
    pub loop_name: &'a str,
    /// Its key, where it has one that people see.
    pub key: Option<&'a str>,
    /// Its id.
    pub instance: &'a str,
}

/// What the statuses of a commit tell, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StandingRuns {
    runs: Vec<StandingRun>,
    /// Whether there are older statuses that were not read.
    is_cut: bool,
}

impl StandingRuns {
    /// Reads the statuses of a commit.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn at(api: &Api, repository: &RepositoryName, sha: &str) -> Result<Self, ApiError> {
        // One more than counts, which tells that there are more.
        let listed = commit_status::statuses(api, repository, sha, MAX_READ + 1);
        let mut listed: Vec<ListedStatus> = listed.into_iter().collect::<Result<_, _>>()?;
        listed.sort_by_key(|status| std::cmp::Reverse(status.id));
        let mut seen = BTreeSet::new();
        let runs = listed.iter().filter_map(|status| {
            let mut run = StandingRun::of(status, repository)?;
            // Only we take names for different that differ in case alone.
            run.is_last = seen.insert(status.context.to_ascii_lowercase());
            Some(run)
        });
        Ok(Self { runs: runs.collect(), is_cut: listed.len() > MAX_READ })
    }

    /// Returns what was said last under each name.
    pub fn last(&self) -> impl Iterator<Item = &StandingRun> {
        self.runs.iter().filter(|run| run.is_last)
    }

    /// Returns the questions that were asked at the commit.
    pub fn asked(&self) -> Vec<AskedAtHead> {
        let question = |run: &StandingRun| match &run.wait {
            Some(RunWait::Answer(question)) => Some(question.clone()),
            Some(RunWait::Resume(_) | RunWait::Legs | RunWait::Budget) | None => None,
        };
        let asked = |run: &StandingRun| {
            let names = run.names.clone();
            Some(AskedAtHead { names, question: question(run)?, is_open: self.is_latest_of_run(run) })
        };
        self.runs.iter().filter_map(asked).collect()
    }

    /// Tells whether the last word on a run is that it is over.
    pub fn is_over(&self, instance: &str) -> bool {
        let last = self.runs.iter().find(|run| run.names.instance == instance);
        last.is_some_and(|run| run.state != "pending")
    }

    /// Returns in how many runs of workflows a run was until now.
    ///
    /// # Errors
    /// The commit has more statuses than are read: a chain that is counted too short would never end.
    pub fn links_of(&self, run: &StandingRun) -> Result<u32, ApiError> {
        Ok(u32::try_from(self.whole_chain_of(&run.names.instance)?.len()).unwrap_or(u32::MAX))
    }

    /// Returns the runs of workflows that a run was in until now, the first one first.
    pub fn chain_of(&self, instance: &str) -> Vec<u64> {
        let of_run = self.runs.iter().filter(|other| other.names.instance == instance);
        let mut numbers: Vec<u64> = of_run.map(|other| other.names.run).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Returns the same, where none of it can be missing: who may not answer follows from it.
    ///
    /// # Errors
    /// The commit has more statuses than are read.
    pub fn whole_chain_of(&self, instance: &str) -> Result<Vec<u64>, ApiError> {
        self.must_be_whole("in which runs of workflows the run was")?;
        Ok(self.chain_of(instance))
    }

    fn must_be_whole(&self, question: &str) -> Result<(), ApiError> {
        if !self.is_cut {
            return Ok(());
        }
        let reason = format!("the commit has more than {MAX_READ} statuses");
        Err(ApiError::Unreadable { request: question.to_owned(), reason })
    }

    /// Returns how the same loop stood before a run, as its last other run says it that is over.
    pub fn before(&self, of: &LastOutcome<'_>) -> Option<BranchOutcome> {
        let outcome = |run: &StandingRun| match (run.state.as_str(), &run.wait) {
            (_, Some(RunWait::Budget)) => Some(BranchOutcome::OverBudget),
            ("success", _) => Some(BranchOutcome::Green),
            ("failure" | "error", _) => Some(BranchOutcome::Red),
            _ => None,
        };
        let is_same = |run: &&StandingRun| {
            run.names.loop_name == of.loop_name
                && run.names.key.as_deref() == of.key
                && run.names.instance != of.instance
        };
        self.runs.iter().filter(is_same).find_map(outcome)
    }

    /// Returns in how many attempts of its run of a workflow a merge of legs was until now.
    ///
    /// # Errors
    /// The commit has more statuses than are read.
    pub fn attempts_of(&self, run: &StandingRun) -> Result<u32, ApiError> {
        self.must_be_whole("in how many attempts the legs were")?;
        let waits = |other: &&StandingRun| {
            other.names.run == run.names.run
                && other.names.loop_name == run.names.loop_name
                && other.wait == Some(RunWait::Legs)
        };
        Ok(u32::try_from(self.runs.iter().filter(waits).count()).unwrap_or(u32::MAX))
    }

    /// Returns how often a question was reported.
    pub fn times_asked(&self, code: &str) -> usize {
        self.asked().iter().filter(|asked| asked.question.code == code).count()
    }

    fn is_latest_of_run(&self, run: &StandingRun) -> bool {
        self.runs.iter().find(|other| other.names.instance == run.names.instance) == Some(run)
    }
}

impl StandingRun {
    fn of(status: &ListedStatus, repository: &RepositoryName) -> Option<Self> {
        let mark = ReportMark::parse(status.link())?;
        let names = RunNames::of_status(&status.context, mark.instance(), number(mark.page(), repository)?);
        let at = status.created_at.clone().and_then(|at| Timestamp::try_from(at).ok());
        Some(Self {
            names,
            state: mark.own.to_owned(),
            wait: mark.waits().and_then(RunWait::parse),
            at,
            is_last: false,
            context: status.context.clone(),
            link: mark.without_end(),
        })
    }

    /// Ends the status of the run.
    ///
    /// # Errors
    /// The token may not.
    pub fn end(&self, api: &Api, repository: &RepositoryName, sha: &str, why: &str) -> Result<(), ApiError> {
        self.set(api, repository, sha, NewStatus { state: "error", said: why, page: None })
    }

    /// Says in the status of the run that another one goes on with it, on this page where that is known.
    ///
    /// # Errors
    /// The token may not.
    pub fn hand_on(
        &self,
        api: &Api,
        repository: &RepositoryName,
        sha: &str,
        page: Option<&str>,
        number: Option<u64>,
    ) -> Result<(), ApiError> {
        let next = NextRun::Started { number, page: page.map(str::to_owned) };
        self.set(api, repository, sha, NewStatus { state: "pending", said: &next.sentence(), page })
    }

    /// Returns the link for the run, which waits for nothing.
    fn link(&self, state: &str, page: Option<&str>) -> String {
        // The mark is kept, since by it the run is found again.
        let (own, mark) = self.link.split_at(self.link.find('#').unwrap_or(self.link.len()));
        format!("{}{mark}:{state}", page.unwrap_or(own))
    }

    fn set(
        &self,
        api: &Api,
        repository: &RepositoryName,
        sha: &str,
        new: NewStatus<'_>,
    ) -> Result<(), ApiError> {
        let body = json!({
            "state": new.state,
            "context": self.context,
            "description": one_line(new.said, commit_status::MAX_DESCRIPTION),
            "target_url": self.link(new.state, new.page),
        });
        let written = api.post_again::<Value>(&repository.path(&format!("/statuses/{sha}")), &body);
        written.map(drop).map_err(|error| error.needing("statuses: write"))
    }
}

/// What somebody else says of a run.
#[derive(Clone, Copy)]
struct NewStatus<'s> {
    state: &'s str,
    said: &'s str,
    /// The page of the run of a workflow that it is in now; the one before where that is not known.
    page: Option<&'s str>,
}

/// Returns the number of the run of a workflow that has this page, if it is one of the repository.
fn number(page: &str, repository: &RepositoryName) -> Option<u64> {
    let (before, number) = page.rsplit_once("/actions/runs/")?;
    let own = format!("/{repository}").to_ascii_lowercase();
    number.parse().ok().filter(|_| before.to_ascii_lowercase().ends_with(&own))
}

#[cfg(test)]
mod tests {
    use wiremock::matchers::path;
    use wiremock::{Mock, ResponseTemplate};

    use super::*;
    use crate::forge::github::http::Transport;
    use crate::forge::github::testing::TestServer;

    #[test]
    fn a_chain_is_whole_where_all_statuses_were_read() {
        const RUN: &str = "main-20260101T000000-0123ab";
        let standing = |is_endless: bool| {
            let link = format!("https://x/o/r/actions/runs/60#ll-loop:{RUN}:1:pending");
            let status = json!({"id": 1, "context": "ll-loop/main", "state": "pending", "target_url": link});
            let page = ResponseTemplate::new(200).set_body_json(vec![status; 100]);
            let rel = if is_endless { r#"<x>; rel="next""# } else { r#"<x>; rel="first""# };
            let server = TestServer::start();
            let statuses = Mock::given(path("/repos/o/r/commits/abc/statuses"));
            server.mount(statuses.respond_with(page.insert_header("link", rel)));
            let api = Api::new(&server.address(), None, Transport::default());
            StandingRuns::at(&api, &RepositoryName::parse("o/r").unwrap(), "abc").unwrap()
        };
        assert_eq!(standing(false).whole_chain_of(RUN), Ok(vec![60]));
        let endless = standing(true);
        assert_eq!(endless.chain_of(RUN), [60]);
        let refused = endless.whole_chain_of(RUN).unwrap_err().to_string();
        assert!(refused.contains("more than 2000 statuses"), "{refused}");
        // Neither the limit of a chain nor that of attempts can be held by a part of it.
        let run = |standing: &StandingRuns| standing.last().next().unwrap().clone();
        let whole = standing(false);
        assert_eq!((whole.links_of(&run(&whole)), whole.attempts_of(&run(&whole))), (Ok(1), Ok(0)));
        assert!(endless.links_of(&run(&endless)).is_err());
        assert!(endless.attempts_of(&run(&endless)).is_err());
    }
}
