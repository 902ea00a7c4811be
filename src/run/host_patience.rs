//! How long a host may be silent. A host that waits for a service that is not there may do so for ever, while one whose
//! agent runs a long build says nothing for good reason.

use std::time::Duration;

use tokio::time::Instant;

use crate::base::time::human;
use crate::host::{Failure, Listener, Pulse};

/// How long a host may be silent, by what it was heard doing last.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Without a word at the start, and without the service that it tries to reach.
    pub unreached: Duration,
    /// While the model thinks.
    pub silent: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        // What cannot be asked is known within a minute; the service itself gives a call up after ten.
        Self { unreached: Duration::from_secs(40), silent: Duration::from_mins(15) }
    }
}

/// Watches a call.
pub(super) struct CallWatch {
    patience: Patience,
    /// Since when the service is tried to be reached.
    trying_since: Option<Instant>,
    pulse: Pulse,
}

impl CallWatch {
    pub(super) fn new(patience: Patience) -> Self {
        Self { patience, trying_since: None, pulse: Pulse::Calling }
    }

    /// Takes how a call is getting on; returns when it is stopped unless more is heard.
    pub(super) fn heard(&mut self, pulse: Pulse) -> Option<Instant> {
        let now = Instant::now();
        self.pulse = pulse;
        match pulse {
            Pulse::Calling | Pulse::Retrying => {
                Some(*self.trying_since.get_or_insert(now) + self.patience.unreached)
            }
            Pulse::Thinking => {
                self.trying_since = None;
                Some(now + self.patience.silent)
            }
            Pulse::Working => {
                self.trying_since = None;
                None
            }
        }
    }

    /// Says why a call was stopped.
    pub(super) fn verdict(&self, listener: &dyn Listener) -> Failure {
        let trouble = listener.trouble().map_or_else(String::new, |trouble| format!(": {trouble}"));
        match self.pulse {
            Pulse::Calling | Pulse::Retrying => Failure::Unavailable(format!(
                "it has not reached its service for {}{trouble}; check the network, the address of the service and the \
                 key",
                human(self.patience.unreached)
            )),
            Pulse::Thinking | Pulse::Working => {
                Failure::Failed(format!("it said nothing for {}{trouble}", human(self.patience.silent)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_counts_while_nobody_works() {
        let patience = Patience { unreached: Duration::from_secs(1), silent: Duration::from_mins(1) };
        let mut watch = CallWatch::new(patience);
        let calling = watch.heard(Pulse::Calling).unwrap();
        assert_eq!(watch.heard(Pulse::Calling), Some(calling), "trying again is no progress");
        assert!(watch.heard(Pulse::Thinking).unwrap() > calling);
        assert_eq!(watch.heard(Pulse::Working), None);
        let retrying = watch.heard(Pulse::Retrying).unwrap();
        assert!(retrying >= calling);
        assert_eq!(watch.heard(Pulse::Retrying), Some(retrying));
    }
}
