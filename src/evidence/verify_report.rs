//! What `ll-loop verify` says, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::claimed_statement::{Claim, VerifiedSignature};
use super::verdict_check::Verified;
use crate::base::text::one_line;

/// The version of the JSON; it grows when a reader has to know.
const SCHEMA: u32 = 1;

/// Says what is claimed, by whom, and whether it holds.
pub(crate) fn text(verified: &Verified) -> String {
    let mut out = String::new();
    for claim in &verified.claims {
        of_claim(&mut out, claim);
    }
    if verified.violations.is_empty() {
        out.push_str("it holds\n");
        return out;
    }
    out.push_str("it does not hold:\n");
    for violation in &verified.violations {
        let run = violation.run.as_ref().map_or_else(String::new, |run| format!(" ({run})"));
        let _ = writeln!(out, "  {}: {}{run}", violation.rule, one_line(&violation.message, 500));
    }
    out
}

fn of_claim(out: &mut String, claim: &Claim) {
    let details = &claim.details;
    let outcome = details.run.outcome.map_or("incomplete", |outcome| outcome.word());
    let _ = writeln!(out, "{}: {outcome}, run {}", details.r#loop.name, one_line(&details.run.id, 200));
    if let Some(commit) = &details.commit {
        let _ = writeln!(out, "  commit  {commit}");
    }
    if let Some(tree) = &details.tree {
        let _ = writeln!(out, "  tree    {tree}");
    }
    let _ = writeln!(out, "  bundle  sha256:{}", claim.bundle);
    let words: Vec<&str> = details.properties.iter().map(|property| property.word()).collect();
    if !words.is_empty() {
        let _ = writeln!(out, "  claims  {}", words.join(" "));
    }
    for signature in &claim.signatures {
        let _ = writeln!(out, "  signed  {}", one_line(&signed(signature), 500));
    }
    if claim.signatures.is_empty() {
        let why = claim.unsigned.as_deref().unwrap_or("it is not signed");
        let _ = writeln!(out, "  unsigned: {}", one_line(why, 500));
    }
}

fn signed(signature: &VerifiedSignature) -> String {
    let of = signature.repository.as_ref().map_or_else(String::new, |name| format!(", for {name}"));
    let run = signature.run.as_ref().map_or_else(String::new, |run| format!(", in {run}"));
    format!("by {}@{} ({}){of}{run}", signature.workflow, signature.r#ref, signature.by)
}

/// The same as JSON.
pub(crate) fn object(verified: &Verified) -> Value {
    let claim = |claim: &Claim| {
        json!({
            "bundle": {"sha256": claim.bundle, "from": claim.shown},
            "details": claim.details,
            "signatures": claim.signatures,
            "unsigned": claim.unsigned.as_ref().filter(|_| claim.signatures.is_empty()),
        })
    };
    json!({
        "schema": SCHEMA,
        "holds": verified.violations.is_empty(),
        "claims": verified.claims.iter().map(claim).collect::<Vec<_>>(),
        "violations": verified.violations,
    })
}
