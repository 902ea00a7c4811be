//! What the tools that check signatures are asked, and what their answers mean. Whatever they print is data.

use serde::Deserialize;

use super::claimed_statement::{Claim, LooseStatement, VerifiedSignature};
use crate::base::explanation::Explanation;
use crate::statement::verdict_details::PREDICATE_TYPE;

/// The issuer of the identities of GitHub's workflows.
const ISSUER: &str = "https://token.actions.githubusercontent.com";

/// Where the workflows of the public server live.
const SERVER: &str = "https://github.com/";

/// Returns what `gh` is asked about a bundle: for an attestation in a file, or for those that GitHub keeps.
pub(crate) fn gh_arguments(bundle: &str, repository: &str, attestation: Option<&str>) -> Vec<String> {
    let words = [
        "attestation",
        "verify",
        bundle,
        "--repo",
        repository,
        "--predicate-type",
        PREDICATE_TYPE,
        "--format",
        "json",
    ];
    let mut all: Vec<String> = words.map(str::to_owned).into();
    if let Some(file) = attestation {
        all.extend(["--bundle".to_owned(), file.to_owned()]);
    }
    all
}

/// Returns what `cosign` is asked about a bundle and an attestation in a file, by this workflow.
pub(crate) fn cosign_arguments(
    bundle: &str,
    attestation: &str,
    workflow: &str,
    git_ref: &str,
) -> Vec<String> {
    let identity = format!("{SERVER}{workflow}@{git_ref}");
    let words = [
        "verify-blob-attestation",
        "--new-bundle-format",
        "--bundle",
        attestation,
        "--type",
        PREDICATE_TYPE,
        "--certificate-identity",
        &identity,
        "--certificate-oidc-issuer",
        ISSUER,
        bundle,
    ];
    words.map(str::to_owned).into()
}

/// What `gh attestation verify --format json` prints, as far as it is read.
#[derive(Debug, Deserialize)]
struct GhAnswer {
    #[serde(rename = "verificationResult")]
    result: GhResult,
}

#[derive(Debug, Deserialize)]
struct GhResult {
    statement: LooseStatement,
    signature: GhSignature,
}

#[derive(Debug, Deserialize)]
struct GhSignature {
    certificate: GhCertificate,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GhCertificate {
    issuer: String,
    #[serde(rename = "buildSignerURI")]
    build_signer_uri: String,
    #[serde(rename = "sourceRepositoryURI")]
    source_repository_uri: String,
    #[serde(rename = "runInvocationURI", default)]
    run_invocation_uri: Option<String>,
}

/// Reads what `gh` says it has verified: the signatures of what the bundle says, for its runs in this repository.
///
/// # Errors
/// Why none of it counts.
pub(crate) fn read_gh(
    printed: &str,
    claim: &Claim,
    repository: &str,
) -> Result<Vec<VerifiedSignature>, Explanation> {
    let answers: Vec<GhAnswer> = serde_json::from_str(printed)
        .map_err(|error| Explanation::new(format!("what `gh` answered cannot be read: {error}")))?;
    let mut why = Explanation::new("`gh` knows no attestation of it");
    let mut found = Vec::new();
    for GhAnswer { result } in answers {
        match gh_signature(&result, claim, repository) {
            Ok(signature) => found.push(signature),
            Err(other) => why = other,
        }
    }
    if found.is_empty() { Err(why) } else { Ok(found) }
}

fn gh_signature(
    result: &GhResult,
    claim: &Claim,
    repository: &str,
) -> Result<VerifiedSignature, Explanation> {
    let certificate = &result.signature.certificate;
    // `gh` has compared the digest of the bundle and the type of what was said; that may still say anything.
    if let Some(departure) = result.statement.departs_from(claim) {
        return Err(Explanation::new(format!("what was signed is not what the bundle says: {departure}")));
    }
    if certificate.issuer != ISSUER {
        return Err(Explanation::new("it was signed by no workflow of GitHub"));
    }
    let address = certificate.source_repository_uri.as_str();
    let of_server = address.strip_prefix(SERVER);
    // GitHub does not tell names of owners and repositories apart by case.
    let Some(theirs) = of_server.filter(|theirs| theirs.eq_ignore_ascii_case(repository)) else {
        // One of another server is shown as a whole.
        let theirs = of_server.unwrap_or(address);
        return Err(Explanation::new(format!("it was signed for `{theirs}`, not for `{repository}`")));
    };
    let (workflow, git_ref) = certificate
        .build_signer_uri
        .strip_prefix(SERVER)
        .and_then(|rest| rest.rsplit_once('@'))
        .ok_or_else(|| Explanation::new("the workflow that signed it is not named"))?;
    Ok(VerifiedSignature {
        by: "gh",
        workflow: workflow.to_owned(),
        r#ref: git_ref.to_owned(),
        repository: Some(theirs.to_owned()),
        run: certificate.run_invocation_uri.clone(),
    })
}
