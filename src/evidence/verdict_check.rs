//! Verifies a verdict: finds its bundle, makes of it anew what is claimed, asks the tools for signatures, and holds all of it
//! against a policy.

use std::path::{Path, PathBuf};

use super::claimed_statement::Claim;
use super::gathered::GatheredEvidence;
use super::policy_check::{PolicyQuestion, Violation};
use super::signature_search::SignatureSearch;
use super::verdict_policy::VerdictPolicy;
use super::{expected_commit, status_artifact};
use crate::base::object::ObjectId;
use crate::base::sum::Sum;
use crate::bundle::EXTENSION;
use crate::bundle::opened::OpenedBundle;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::deliver::bundle_source;
use crate::files::read;
use crate::forge::github::repository::RepositoryName;
use crate::process::clock::Clock;
use crate::repository;
use crate::session::end::bundler::here;
use crate::session::start::incoming::unusable;
use crate::statement::in_toto::Statement;
use crate::statement::simple_verdict;
use crate::statement::subjects::BundleFile;
use crate::statement::verdict_details::{self, VerdictDetails};

/// The longest policy that is read, in bytes.
const MAX_POLICY: u64 = read::MIB;

/// What is verified, and against what.
#[derive(Clone, Debug, Default)]
pub(crate) struct VerifyOptions {
    /// A bundle, a statement, a directory, an artifact, a run of this machine, a commit or a tree.
    pub(crate) what: String,
    /// The one loop that is asked about.
    pub(crate) only: Option<String>,
    /// The file of the policy.
    pub(crate) policy: Option<PathBuf>,
    /// Where bundles and attestations are found.
    pub(crate) attestations: Option<PathBuf>,
    /// The repository whose workflows may have signed.
    pub(crate) repository: Option<String>,
    /// Whether unsigned verdicts are taken.
    pub(crate) unsigned: bool,
    /// The commit at which the run must have begun, with the tree that it has.
    pub(crate) commit: Option<ObjectId>,
    /// Where the predicate is written, for a tool that signs it.
    pub(crate) predicate: Option<PathBuf>,
}

/// Its result.
#[derive(Clone, Debug)]
pub(crate) struct Verified {
    /// What is claimed, and by whom.
    pub(crate) claims: Vec<Claim>,
    /// What is not as it was asked; empty where the policy holds.
    pub(crate) violations: Vec<Violation>,
}

impl Session<'_> {
    /// Verifies what is claimed of a run, of a commit or of a tree.
    ///
    /// # Errors
    /// Something that was named cannot be found or read.
    pub(crate) fn verify(&self, options: &VerifyOptions) -> Result<Verified, Error> {
        let policy = self.verdict_policy(options.policy.as_deref())?;
        let repository = self.signing_repository(options.repository.as_deref())?;
        let object = self.object(&options.what);
        let mut opened = self.bundles(options, object.as_ref())?;
        // A directory of evidence may hold verdicts about other commits, which are no fault of this one.
        opened.bundles.retain(|bundle| object.as_ref().is_none_or(|object| bundle.claim.is_about(object)));
        let clock = Clock::start();
        let search = SignatureSearch {
            repository: repository.as_ref(),
            signer: policy.signer.as_ref(),
            attestations: &opened.attestations,
            // Tools ask the network. With `--unsigned`, their answer matters only where the policy names a signer.
            is_asked: !options.unsigned || policy.signer.is_some(),
        };
        let mut claims = Vec::new();
        for OpenedVerdict { file, mut claim, .. } in opened.bundles {
            if let Some(commit) = &options.commit {
                claim.faults.extend(expected_commit::fault(commit, &claim, self));
            }
            match search.of(&claim, &file, self) {
                Ok(signatures) => claim.signatures = signatures,
                Err(why) => claim.unsigned = Some(why.to_string()),
            }
            claims.push(claim);
        }
        let (only, unsigned, now) = (options.only.as_deref(), options.unsigned, clock.now());
        let question = PolicyQuestion { policy: &policy, object: object.as_ref(), only, unsigned, now };
        let mut violations = question.violations(&claims);
        violations.extend(opened.strays);
        let verified = Verified { claims, violations };
        if let Some(path) = &options.predicate {
            self.write_predicate(path, &verified)?;
        }
        Ok(verified)
    }

    fn verdict_policy(&self, path: Option<&Path>) -> Result<VerdictPolicy, Error> {
        let Some(path) = path else { return Ok(VerdictPolicy::none()) };
        let shown = path.display().to_string();
        let text = read::text(&self.path(path), MAX_POLICY)
            .map_err(|error| Error::refused(format!("cannot read the policy {shown}: {error}")))?;
        VerdictPolicy::read(&shown, &text)
            .map_err(|error| Error::refused(format!("the policy {shown} cannot be used\n{error}")))
    }

    /// Returns the repository whose workflows may have signed: never what a bundle says of itself.
    fn signing_repository(&self, asked: Option<&str>) -> Result<Option<RepositoryName>, Error> {
        let name = asked.map(str::to_owned).or_else(|| github_repository(self));
        let Some(name) = name else { return Ok(None) };
        let parsed = RepositoryName::parse(&name);
        parsed.map(Some).ok_or_else(|| {
            Error::refused(format!("invalid repository `{name}`")).with_hint("write `OWNER/NAME`")
        })
    }

    /// Returns the commit or tree that a text names: a whole id, and no file of that name.
    fn object(&self, what: &str) -> Option<ObjectId> {
        ObjectId::parse(what).ok().filter(|_| !self.path(Path::new(what)).exists())
    }

    fn bundles(&self, options: &VerifyOptions, object: Option<&ObjectId>) -> Result<OpenedVerdicts, Error> {
        let mut found = GatheredEvidence::default();
        if let Some(directory) = &options.attestations {
            found.below(&self.path(directory))?;
        }
        let mut opened = OpenedVerdicts::default();
        let path = self.path(Path::new(&options.what));
        match object {
            Some(object) if options.attestations.is_none() => {
                let local = status_artifact::fetch(object, options.only.as_deref(), self)?;
                for bundle in local {
                    opened.add(bundle);
                }
            }
            Some(_) => {}
            None if path.is_dir() => found.below(&path)?,
            None if path.is_file() => found.file(&path)?,
            None => {
                let source = bundle_source::open(&options.what, false, self)?;
                opened.add((source.bundle, source.shown));
            }
        }
        for file in &found.bundles {
            let shown = file.display().to_string();
            let bundle = OpenedBundle::open(file).map_err(|error| unusable(&shown, &error))?;
            opened.add((bundle, shown));
        }
        opened.attestations = std::mem::take(&mut found.attestations);
        // After all bundles are there: a statement may be about any of them.
        opened.compare(&found);
        // That nothing is known of a commit is an answer to the question, and becomes a violation.
        if opened.bundles.is_empty() && object.is_none() {
            return Err(Error::refused(format!("there is no bundle for {}", options.what))
                .of_kind(Kind::Absent)
                .with_hint("a statement is checked against its bundle: put `RUN.llz` beside it, or name its directory with `--attestations`"));
        }
        Ok(opened)
    }

    /// Writes what is to be signed, if all of it holds.
    fn write_predicate(&self, path: &Path, verified: &Verified) -> Result<(), Error> {
        let [claim] = verified.claims.as_slice() else {
            return Err(Error::refused("`--predicate` is for one verdict").with_hint("name one bundle"));
        };
        if !verified.violations.is_empty() {
            return Ok(());
        }
        // What is in it are texts, numbers, lists and maps with texts as keys.
        let text = serde_json::to_string_pretty(&claim.details).expect("a predicate has a text");
        crate::files::replace::deliver(&self.path(path), text + "\n")
            .map_err(|error| Error::unwritten("cannot write the predicate", &error))?;
        // As the statements name it, wherever it was found.
        let name = format!("{}.{EXTENSION}", claim.details.run.id);
        let outputs = [
            ("subject-digest", format!("sha256:{}", claim.bundle)),
            ("subject-name", name),
            ("predicate-type", verdict_details::PREDICATE_TYPE.to_owned()),
        ];
        crate::ci::Provider::detect(&self.env.lookup())
            .announce(&outputs)
            .map_err(|error| Error::failed("cannot tell the CI system what to sign", &error))
    }
}

/// A bundle and what it claims.
struct OpenedVerdict {
    file: PathBuf,
    claim: Claim,
    /// Keeps the file.
    _bundle: OpenedBundle,
}

/// Bundles, and what was found beside them.
#[derive(Default)]
struct OpenedVerdicts {
    bundles: Vec<OpenedVerdict>,
    attestations: Vec<PathBuf>,
    /// Statements that are about no bundle here.
    strays: Vec<Violation>,
}

impl OpenedVerdicts {
    /// Makes anew what a bundle claims, once for each.
    fn add(&mut self, (bundle, shown): (OpenedBundle, String)) {
        let sum = bundle.sum;
        if self.bundles.iter().any(|known| known.claim.bundle == sum) {
            return;
        }
        let Some(mut details) = verdict_details::predicate(&bundle.digest) else {
            let message = format!("{shown}: the run never began");
            self.strays.push(Violation { rule: "verified", run: None, message });
            return;
        };
        let faults = contradictions(&bundle);
        // The run left statements of the version that wrote its bundle, and they are compared byte for byte.
        let written_by = bundle.manifest.written_by.as_str();
        let version = written_by.strip_prefix("ll-loop ").unwrap_or(written_by);
        version.clone_into(&mut details.versions.ll_loop);
        let stated = stated(&bundle, &details);
        let claim =
            Claim { shown, details, stated, bundle: sum, signatures: Vec::new(), unsigned: None, faults };
        self.bundles.push(OpenedVerdict { file: bundle.file.clone(), claim, _bundle: bundle });
    }

    /// Compares unsigned statements with their bundles.
    fn compare(&mut self, found: &GatheredEvidence) {
        for statement in &found.statements {
            let shown = statement.path.display();
            let sum: Option<Sum> = statement.statement.bundle();
            let of = self.bundles.iter_mut().find(|known| Some(known.claim.bundle) == sum);
            match of {
                Some(known) => {
                    // As a whole: of fields compared one by one, the one that is forgotten could be forged.
                    if !known.claim.stated.contains(&statement.text) {
                        let fault = format!("{shown}: it is not what the bundle says");
                        known.claim.faults.push(fault);
                    }
                }
                None => self.strays.push(Violation {
                    rule: "statement",
                    run: None,
                    message: format!("{shown}: it is about no bundle that is here"),
                }),
            }
        }
    }
}

/// Writes the statements that a run leaves beside its bundle.
fn stated(bundle: &OpenedBundle, details: &VerdictDetails) -> Vec<String> {
    let name = format!("{}.{EXTENSION}", bundle.manifest.instance);
    let file = BundleFile { name, sum: bundle.sum };
    let verdict = simple_verdict::of(&bundle.digest, Some(&file)).map(|statement| statement.text());
    let details = verdict_details::of(&bundle.digest, Some(&file))
        .map(|statement| Statement { predicate: details.clone(), ..statement }.text());
    verdict.into_iter().chain(details).collect()
}

/// Says where a bundle contradicts itself: its manifest, its journal, and the tree that it holds.
fn contradictions(bundle: &OpenedBundle) -> Vec<String> {
    let (manifest, digest) = (&bundle.manifest, &bundle.digest);
    let start = digest.start();
    let differs = |what: &str, is_same: bool| {
        (!is_same).then(|| {
            format!("the bundle contradicts itself: its manifest and its journal name another {what}")
        })
    };
    let tree = digest.verification().and_then(|verification| verification.tree.as_ref());
    let saved = manifest.tree.as_ref().filter(|saved| saved.missing.is_none());
    [
        differs("loop", start.is_some_and(|start| start.r#loop == manifest.r#loop)),
        differs("run", start.is_some_and(|start| start.run_id == manifest.instance.as_str())),
        differs("outcome", digest.end().map(|end| end.outcome) == manifest.outcome),
        // What a run leaves out of its bundle is not in the tree that it holds, and the run's own tree says so.
        differs(
            "tree",
            match (tree, saved) {
                (Some(tree), Some(saved)) if manifest.left_out.is_empty() => *tree == saved.tree,
                _ => true,
            },
        ),
        bundle.damaged_stream(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the repository of the job, or that of the checkout, where it is one of GitHub.
fn github_repository(session: &Session<'_>) -> Option<String> {
    let name = here(&repository::at(&session.cwd, session), session)?;
    name.strip_prefix("github.com/").map(str::to_owned)
}
