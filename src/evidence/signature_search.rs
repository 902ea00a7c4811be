//! Asks `gh` or `cosign` who signed what a bundle says.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::claimed_statement::{Claim, LooseStatement, VerifiedSignature};
use super::signature_tools::{cosign_arguments, gh_arguments, read_gh};
use super::verdict_policy::RequiredSigner;
use crate::base::explanation::Explanation;
use crate::base::text::one_line;
use crate::context::Session;
use crate::evaluate::observation::{Stop, Stream};
use crate::files::file_name::file_name;
use crate::files::{read, transient};
use crate::forge::github::repository::RepositoryName;
use crate::process::guard_pipe::Guard;
use crate::process::signal::Cancel;
use crate::process::spawn::{self, Heard, ProcessLimits, Program};

/// How long a tool may take: it asks the network.
const LIMIT: Duration = Duration::from_mins(2);

/// The most that is read of an answer, in bytes: it repeats every attestation.
const MAX_ANSWER: usize = 64 << 20;

/// The longest attestation that is read, in bytes.
const MAX_ATTESTATION: u64 = 16 * read::MIB;

/// Where signatures are looked for, and whose count.
pub(super) struct SignatureSearch<'s> {
    /// The repository in which the signer must have run.
    pub(super) repository: Option<&'s RepositoryName>,
    /// The workflow that must have signed.
    pub(super) signer: Option<&'s RequiredSigner>,
    /// Files with attestations; without any, `gh` asks GitHub.
    pub(super) attestations: &'s [PathBuf],
    /// Whether anybody wants to know.
    pub(super) is_asked: bool,
}

/// What a tool printed, once it said yes.
struct SignatureOutput {
    printed: String,
}

impl SignatureSearch<'_> {
    /// Returns who signed what a bundle says, or why nobody is known.
    pub(super) fn of(
        &self,
        claim: &Claim,
        bundle: &Path,
        session: &Session<'_>,
    ) -> Result<Vec<VerifiedSignature>, Explanation> {
        if !self.is_asked {
            return Err(Explanation::new("nobody asked for signatures"));
        }
        let find = |name: &str| spawn::find(name, session.env.get("PATH"));
        // The tool runs in an empty directory, from which a relative path would lead nowhere.
        let bundle = std::path::absolute(bundle)?;
        let bundle = bundle
            .to_str()
            .ok_or_else(|| Explanation::new("the path of the bundle is not UTF-8"))?
            .to_owned();
        // `gh` comes first, because it finds what GitHub keeps, and says which workflow has signed.
        if let Some(gh) = find("gh") {
            return self.by_gh(&gh, claim, &bundle, session);
        }
        match find("cosign") {
            Some(cosign) => self.by_cosign(&cosign, claim, &bundle, session),
            None => Err(Explanation::new("neither `gh` nor `cosign` is here to check signatures")),
        }
    }

    fn by_gh(
        &self,
        gh: &Path,
        claim: &Claim,
        bundle: &str,
        session: &Session<'_>,
    ) -> Result<Vec<VerifiedSignature>, Explanation> {
        let repository = self.repository.ok_or_else(|| {
            Explanation::new(
                "no repository is known whose workflows may have signed: give `--repo OWNER/NAME`",
            )
        })?;
        let repository = repository.to_string();
        let files = self.files()?;
        let asked: Vec<Option<&str>> = if files.is_empty() {
            vec![None]
        } else {
            files.iter().map(|file| Some(file.as_str())).collect()
        };
        let (mut found, mut why) = (Vec::new(), Explanation::new("there is no attestation"));
        // A file that proves nothing may be about another bundle, and takes nothing from what another file proves.
        for file in asked {
            let answer = ask(gh, &gh_arguments(bundle, &repository, file), session);
            match answer.and_then(|answer| read_gh(&answer.printed, claim, &repository)) {
                Ok(signatures) => found.extend(signatures),
                Err(other) => why = other,
            }
        }
        if found.is_empty() { Err(why) } else { Ok(found) }
    }

    /// `cosign` says only that the one who is asked about has signed.
    fn by_cosign(
        &self,
        cosign: &Path,
        claim: &Claim,
        bundle: &str,
        session: &Session<'_>,
    ) -> Result<Vec<VerifiedSignature>, Explanation> {
        let signer = self.signer.and_then(|signer| Some((signer, signer.git_ref.as_deref()?)));
        let (signer, git_ref) = signer.ok_or_else(|| {
            Explanation::new(
                "`cosign` has to be told who must have signed: give `signer: {workflow, ref}` in a policy",
            )
        })?;
        let mut why = Explanation::new(
            "`cosign` needs the attestation as a file: give its directory with `--attestations`",
        );
        for file in self.files()? {
            let asked = cosign_arguments(bundle, &file, &signer.workflow, git_ref);
            // `cosign` checks signer, type and subject; what was said of the subject is compared here.
            let departure = match payload(Path::new(&file)) {
                Ok(statement) => statement.departs_from(claim),
                Err(unread) => Some(unread.to_string()),
            };
            let checked = match departure {
                Some(departure) => {
                    Err(Explanation::new(format!("what was signed is not what the bundle says: {departure}")))
                }
                None => ask(cosign, &asked, session),
            };
            match checked {
                Ok(_) => {
                    let (workflow, r#ref) = (signer.workflow.clone(), git_ref.to_owned());
                    return Ok(vec![VerifiedSignature {
                        by: "cosign",
                        workflow,
                        r#ref,
                        repository: None,
                        run: None,
                    }]);
                }
                Err(other) => why = other,
            }
        }
        Err(why)
    }

    fn files(&self) -> Result<Vec<String>, Explanation> {
        let text = |path: &PathBuf| {
            let absolute = std::path::absolute(path)?;
            absolute
                .to_str()
                .map(str::to_owned)
                .ok_or_else(|| Explanation::new(format!("{} is not UTF-8", path.display())))
        };
        self.attestations.iter().map(text).collect()
    }
}

/// Reads what an attestation signs. It counts only once a tool has said that it is signed.
fn payload(path: &Path) -> Result<LooseStatement, Explanation> {
    let text = read::text(path, MAX_ATTESTATION)?;
    let value: serde_json::Value = serde_json::from_str(&text)?;
    let envelope = value.get("dsseEnvelope").ok_or_else(|| Explanation::new("it holds no envelope"))?;
    if envelope["payloadType"] != "application/vnd.in-toto+json" {
        return Err(Explanation::new("its envelope holds no statement"));
    }
    let encoded = envelope["payload"].as_str().ok_or_else(|| Explanation::new("its envelope is empty"))?;
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, encoded)?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// Runs a tool in a directory where it finds nothing, with the token that the user has for it.
fn ask(tool: &Path, arguments: &[String], session: &Session<'_>) -> Result<SignatureOutput, Explanation> {
    let name = file_name(tool);
    let failed =
        |error: &dyn std::fmt::Display| Explanation::new(format!("`{name}` cannot be asked: {error}"));
    let nowhere = transient::directory("").map_err(|error| failed(&error))?;
    let tool = std::path::absolute(tool).map_err(|error| failed(&error))?;
    let tool = tool.to_str().ok_or_else(|| failed(&"its path is not UTF-8"))?;
    let mut env = session.env.for_ourselves();
    env.extend(session.env.token().map(|token| ("GH_TOKEN".to_owned(), token.to_owned())));
    let program = Program {
        argv: std::iter::once(tool.to_owned()).chain(arguments.iter().cloned()).collect(),
        env: env.into_iter().collect(),
        cwd: Some(nowhere.path().to_owned()),
        stdin: None,
        guard: Guard::default(),
    };
    let limits = ProcessLimits { end: Some((LIMIT, Stop::Timeout)), ..ProcessLimits::default() };
    let mut printed = Vec::new();
    let mut hear = |stream: Stream, bytes: &[u8]| {
        if stream == Stream::Stdout {
            printed.extend_from_slice(bytes);
        }
        // The answer is held in memory, whatever the tool prints.
        if printed.len() > MAX_ANSWER { Heard::Stop(Stop::Unavailable) } else { Heard::More }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed(&error))?;
    let (_never, mut cancel) = Cancel::channel();
    let seen = runtime.block_on(spawn::run(&program, limits, &mut cancel, &mut hear));
    if let Some(why) = seen.failure.as_deref().filter(|_| !seen.succeeded()) {
        return Err(failed(&one_line(why, 200)));
    }
    if !seen.succeeded() {
        let said =
            seen.stderr.as_str().lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        return Err(Explanation::new(format!(
            "`{name}` says no (exit {}): {}",
            seen.exit_code,
            one_line(said, 300)
        )));
    }
    let printed = String::from_utf8(printed).map_err(|error| failed(&error))?;
    Ok(SignatureOutput { printed })
}
