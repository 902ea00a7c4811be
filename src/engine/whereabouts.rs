//! Where a run is, as its events tell: for everyone who says where its process was killed.

use super::event::Event;
use crate::base::name::StateName;
use crate::base::text::one_line;

/// The place of a run. Only the events of the run itself count, and not those of the loops that it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whereabouts {
    state: Option<StateName>,
    /// The checks of the closing pass that are still to be made, while it goes on.
    pass: Option<Vec<String>>,
}

impl Whereabouts {
    /// Takes the next event; tells whether it says where the run is.
    pub fn event(&mut self, event: &Event) -> bool {
        if let Event::StateEnter { state, .. } | Event::Route { to: state, .. } = event {
            (self.state, self.pass) = (Some(state.clone()), None);
        } else if let Event::LoopResume(resume) = event {
            // A pass that was cut off is made anew.
            (self.state, self.pass) = (Some(resume.from_state.clone()), None);
        } else if let Event::ClosingPassStart(start) = event {
            self.pass = Some(start.checks.clone());
        } else if let Event::ClosingPassCheck(check) = event {
            let left = self.pass.as_mut().filter(|_| !check.made_again);
            let Some(left) = left else { return false };
            let Some(at) = left.iter().position(|name| *name == check.check) else { return false };
            left.remove(at);
        } else if matches!(event, Event::ClosingPassEnd(_)) {
            self.pass = None;
        } else {
            return false;
        }
        true
    }

    /// Returns the state or the terminal.
    pub fn state(&self) -> Option<&StateName> {
        self.state.as_ref()
    }

    /// Says where in the closing pass the run is, if it is there: ``the closing pass, in `test` ``.
    pub fn in_pass(&self) -> Option<String> {
        let check = self.pass.as_ref()?.first();
        let check = check.map_or_else(String::new, |check| format!(", in `{}`", one_line(check, 200)));
        Some(format!("the closing pass{check}"))
    }

    /// Says where the run is: ``state `test` ``; nothing before the first step.
    pub fn words(&self) -> Option<String> {
        self.in_pass().or_else(|| Some(format!("state `{}`", one_line(self.state.as_ref()?.as_str(), 200))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::event::{ClosingPassEnd, ClosingPassStart, PassResult, RouteReason};

    fn state(name: &str) -> StateName {
        StateName::parse(name).unwrap()
    }

    #[test]
    fn a_run_is_in_its_closing_pass_from_its_start_to_its_end() {
        let mut place = Whereabouts::default();
        assert_eq!(place.words(), None);
        place.event(&Event::StateEnter { state: state("fix"), iteration: 1, step: 1, attempt: 1 });
        assert_eq!(place.words().unwrap(), "state `fix`");
        let (from, to, reason) = (state("fix"), state("done"), RouteReason::Next);
        place.event(&Event::Route { from, to, verdict: None, reason });
        assert_eq!(place.words().unwrap(), "state `done`");
        let checks = vec!["test".to_owned(), "lint".to_owned()];
        place.event(&Event::ClosingPassStart(ClosingPassStart {
            checks,
            reasons: Vec::new(),
            put_back: Vec::new(),
            hidden: Vec::new(),
            to_prove: Vec::new(),
        }));
        assert_eq!(place.words().unwrap(), "the closing pass, in `test`");
        assert_eq!(place.state(), Some(&state("done")));
        place.event(&Event::ClosingPassEnd(ClosingPassEnd {
            result: PassResult::Confirmed,
            put_back: Vec::new(),
            failed: None,
            unknown: None,
        }));
        assert_eq!(place.words().unwrap(), "state `done`");
    }
}
