//! The message for a session that begins while work is in progress.

use super::state::CriteriaState;

/// How much of the specification the message shows.
const SPEC_CHARACTERS: usize = 100;

/// Returns where the work stands, when it goes on: nothing that has ended needs to be resumed.
pub fn resume_message(state: &CriteriaState) -> Option<String> {
    if state.status() != "in_progress" {
        return None;
    }
    let spec: String = state.spec().unwrap_or("unknown").chars().take(SPEC_CHARACTERS).collect();
    let unmet: Vec<&str> = state.unmet().collect();
    Some(format!(
        "[LOOP RESUME] Active loop detected\n\
         Spec: {spec}\n\
         Progress: {}/{} steps | Iteration: {}\n\
         Unmet criteria: {}\n\
         Next: {}",
        state.list("completedSteps").len(),
        state.list("steps").len(),
        state.iteration(),
        if unmet.is_empty() { "none".to_owned() } else { unmet.join(", ") },
        state.next_step().as_deref().unwrap_or("continue work"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Option<String> {
        resume_message(&CriteriaState::read(text.as_bytes()).unwrap())
    }

    #[test]
    fn it_tells_where_the_work_stands() {
        let told = message(
            r#"{"spec": "add validation", "criteriaStatus": {"tests": false, "lint": true, "docs": false},
                "steps": ["a", "b", "c"], "completedSteps": ["a"], "remainingSteps": ["b", "c"], "iteration": 2,
                "status": "in_progress"}"#,
        );
        assert_eq!(
            told.unwrap(),
            "[LOOP RESUME] Active loop detected\nSpec: add validation\nProgress: 1/3 steps | Iteration: 2\n\
             Unmet criteria: tests, docs\nNext: b"
        );
    }

    #[test]
    fn what_is_not_there_has_a_word_in_its_place() {
        let told = message(r#"{"status": "in_progress"}"#).unwrap();
        assert_eq!(
            told,
            "[LOOP RESUME] Active loop detected\nSpec: unknown\nProgress: 0/0 steps | Iteration: 1\n\
             Unmet criteria: none\nNext: continue work"
        );
    }

    #[test]
    fn only_work_that_goes_on_is_told_of() {
        for status in ["\"completed\"", "\"cancelled\"", "\"IN_PROGRESS\"", "null", "1"] {
            assert_eq!(message(&format!("{{\"status\": {status}}}")), None, "{status}");
        }
        assert_eq!(message("{}"), None);
    }

    #[test]
    fn a_long_specification_is_cut_between_characters() {
        let told =
            message(&format!(r#"{{"status": "in_progress", "spec": "{}"}}"#, "é".repeat(300))).unwrap();
        assert!(told.contains(&format!("Spec: {}\n", "é".repeat(100))), "{told}");
    }
}
