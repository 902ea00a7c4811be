//! Answers the jq expressions of runs that are played, in a thread: an expression can go on for ever, and the test must not.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::base::explanation::Explanation;
use crate::engine::request::QueryRequest;
use crate::evaluate::jq;
use crate::evaluate::jq_question::{Queried, Query};
use crate::evaluate::observation::Stop;

/// How long an expression may take of real time. One that takes longer goes on until the program ends.
const LIMIT: Duration = Duration::from_secs(10);

/// Answers a query.
pub(super) fn answer(request: &QueryRequest) -> Queried {
    let Query { filter, text } = request.query.clone();
    // Runs ask in a process that can be ended; a test promises to start none.
    let (sender, receiver) = mpsc::channel();
    let asked = thread::Builder::new().spawn(move || {
        // Nobody may listen any more.
        let _late = sender.send(jq::run(&filter, &text));
    });
    if let Err(error) = asked {
        return Queried {
            result: Err(Explanation::new(format!("no thread for a jq expression: {error}"))),
            stop: None,
        };
    }
    match receiver.recv_timeout(LIMIT) {
        Ok(result) => Queried { result, stop: None },
        Err(_) => Queried {
            result: Err(Explanation::new(format!(
                "the jq expression takes longer than {} s",
                LIMIT.as_secs()
            ))),
            stop: Some(Stop::Timeout),
        },
    }
}
