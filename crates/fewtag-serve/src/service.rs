//! What the handlers ask for: the learner of a domain or of a request's examples, and the check of a domain.

use std::path::PathBuf;
use std::sync::Arc;

use fewtag::support::Report;
use fewtag::{Context, DomainFile, Tagger};

use crate::Shared;
use crate::error::{ApiError, ApiResult, Code, chain};
use crate::labels;
use crate::learner::{KEPT_OF_TUNED, Key, Learner, Owner};
use crate::request::{self, Group};
use crate::store::Domain;

impl Shared {
    /// The current version of a domain and its learner, from memory if it has not changed; without a context in the model's.
    ///
    /// # Errors
    ///
    /// If there is no such domain, or its examples cannot be read.
    pub async fn learner(
        &self,
        name: &str,
        context: Option<Context>,
    ) -> ApiResult<(i64, Arc<Learner>)> {
        let context = context.unwrap_or(self.tagger.settings().context);
        let version = self.store.version(name).await?;
        let key = Key { owner: Owner::Domain(name.to_owned()), context };
        if let Some(learner) = self.known(&key, version) {
            return Ok((version, learner));
        }
        let (domain, tagger) = loop {
            let domain = self.store.read(name).await?; // Perhaps a newer version already.
            if let Some(tagger) = self.tagger_of(&domain, &key).await? {
                break (domain, tagger);
            } // Otherwise its weights were taken back meanwhile, and it has a newer version.
        };
        let version = domain.version;
        let learner = blocking(move || {
            let weights = domain.tuned.as_ref().map_or(0, |tuned| tuned.version);
            let support = labels::of_domain(&tagger, &domain)?;
            Ok(Arc::new(Learner::new((&tagger, weights), support, context)?))
        })
        .await?;
        Ok((version, self.learners.keep(key, version, learner)))
    }

    /// The model of a domain: the server's, or a tuned one from memory or from the database; none if it is not there any more.
    async fn tagger_of(&self, domain: &Domain, key: &Key) -> ApiResult<Option<Tagger>> {
        let Some(tuned) = &domain.tuned else { return Ok(Some(self.tagger.clone())) };
        if let Some(tagger) = self.learners.tagger(key, tuned.version) {
            return Ok(Some(tagger));
        }
        let Some(file) = self.store.weights(&domain.name, tuned.version).await? else {
            return Ok(None);
        };
        let (base, place) = (self.tagger.clone(), PathBuf::from(&domain.name));
        let tagger = blocking(move || {
            let file = DomainFile::from_bytes(&file, &place);
            let tagger = file.and_then(|file| file.tagger(&base, &place));
            tagger.map_err(|error| {
                tracing::error!(error = chain(&error), "tuned weights cannot be used");
                let message =
                    "its tuned weights are damaged; `tune/undo` goes back to those before";
                ApiError::new(Code::Internal, message)
            })
        });
        Ok(Some(tagger.await?.keeping(KEPT_OF_TUNED)))
    }

    /// The learner of a request's examples and labels, from memory if a request before had the same; `inside` names the place of a
    /// field.
    ///
    /// # Errors
    ///
    /// If an example or a label makes no sense; the error names its place.
    pub fn learner_of(
        &self,
        group: &Group,
        context: Option<Context>,
        inside: impl Fn(&str) -> String,
    ) -> ApiResult<Arc<Learner>> {
        let context = context.unwrap_or(self.tagger.settings().context);
        let key = Key { owner: Owner::Request(request::digest(group)), context };
        if let Some(learner) = self.known(&key, 0) {
            return Ok(learner);
        }
        let limits = &self.config.limits;
        let sentences = request::sentences(&group.support, limits, &inside("support"))?;
        let declared = labels::declared(&group.labels, &group.meanings, limits, &inside)?;
        let place = |error: ApiError| {
            let field = error.place.clone().unwrap_or_else(|| "support".to_owned());
            error.at(inside(&field))
        };
        let set = labels::of_request(sentences, &declared).map_err(place)?;
        let learner = Arc::new(Learner::new((&self.tagger, 0), set, context)?);
        Ok(self.learners.keep(key, 0, learner))
    }

    fn known(&self, key: &Key, version: i64) -> Option<Arc<Learner>> {
        let learner = self.learners.find(key, version);
        let counter =
            if learner.is_some() { &self.metrics.cache_hits } else { &self.metrics.cache_misses };
        counter.inc();
        learner
    }

    /// What is wrong or weak in the examples of a domain, and in which version of it.
    ///
    /// # Errors
    ///
    /// If there is no such domain, or the queue is too full to read it.
    pub async fn check(self: Arc<Self>, name: &str) -> ApiResult<(i64, Report)> {
        let (version, learner) = self.learner(name, None).await?;
        let report = blocking(move || {
            let sentences = learner.support().sentences();
            let costs = sentences.iter().map(|sentence| learner.cost_of(sentence.words()));
            let _room = self.queue.reserve(costs.sum::<ApiResult<usize>>()?)?;
            Ok(fewtag::support::check(learner.tagger(), sentences)?)
        });
        Ok((version, report.await?))
    }
}

/// Runs what takes long where it does not keep others waiting.
///
/// # Errors
///
/// Those of the work, and [`Code::Internal`] if it panics.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> ApiResult<T> + Send + 'static,
) -> ApiResult<T> {
    let failed = |_| Err(ApiError::new(Code::Internal, "the request could not be prepared"));
    tokio::task::spawn_blocking(work).await.unwrap_or_else(failed)
}
