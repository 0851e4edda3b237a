//! A learned domain, as the Python class `Domain` holds it.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fewtag::answer::Thresholds;
use fewtag::encoder::Precision;
use fewtag::support::{self, Suggestion};
use fewtag::{
    Adapted, Answer, Context, DomainFile, ModelSettings, Sentence, Slot, SupportSet, Tagger, data,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrow::{self, Tagged};
use crate::errors::{ExamplesError, FewtagError, ModelError, raise};
use crate::examples::Examples;
use crate::pool::run;

/// The models of this process. Only locked by who holds the GIL.
static MODELS: Mutex<Option<HashMap<Model, Tagger>>> = Mutex::new(None);

/// Which model: its directory, unless it is the built-in one, and in which numbers it computes.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Model {
    dir: Option<PathBuf>,
    precision: Precision,
}

impl Model {
    fn new(dir: Option<PathBuf>, precision: Option<&str>) -> PyResult<Self> {
        let named = |name: &str| Precision::ALL.into_iter().find(|it| it.name() == name);
        let unknown = || ModelError::new_err("a precision is `int8` or `f32`");
        let precision = precision.map(|name| named(name).ok_or_else(unknown)).transpose()?;
        Ok(Self { dir, precision: precision.unwrap_or_default() })
    }

    /// Loads it, once a process.
    fn tagger(&self, py: Python<'_>) -> PyResult<Tagger> {
        {
            let known = MODELS.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(tagger) = known.as_ref().and_then(|models| models.get(self)) {
                return Ok(tagger.clone());
            }
        }
        let wanted = self.clone();
        let loaded = run(py, move || match &wanted.dir {
            Some(dir) => fewtag::model::load_with(dir, wanted.precision),
            None => fewtag::model::built_in(wanted.precision),
        })?;
        let tagger = loaded.map_err(raise)?;
        let mut known = MODELS.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_default().insert(self.clone(), tagger.clone());
        Ok(tagger)
    }
}

/// A span as Python gets it: first character, one past the last, label, text, probability.
type SpanTuple = (usize, usize, String, String, f64);

/// A labelled stretch of an example: first character, one past the last, label.
type LabelTuple = (usize, usize, String);

/// An answer, or why there is none.
#[derive(IntoPyObject)]
enum Outcome {
    Spans(Vec<SpanTuple>),
    Error(String),
}

/// A learned domain.
#[pyclass(module = "fewtag._fewtag", frozen)]
pub(crate) struct Core {
    adapted: Arc<Adapted>,
    thresholds: Arc<Thresholds>,
    tagger: Tagger,
    support: Arc<SupportSet>,
    model: Model,
}

/// What a domain is learned with besides its examples: a dictionary with these keys.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Options {
    labels: Vec<String>,
    meanings: BTreeMap<String, Option<String>>,
    thresholds: (f64, BTreeMap<String, f64>),
    context: Option<String>,
    model: Option<PathBuf>,
    precision: Option<String>,
}

#[pymethods]
impl Core {
    /// Learns a domain.
    #[new]
    fn new(py: Python<'_>, examples: &Examples, options: Options) -> PyResult<Self> {
        let support = support_set(examples.sentences.clone(), &options.labels, options.meanings)?;
        let thresholds = checked(options.thresholds, &support)?;
        let model = Model::new(options.model, options.precision.as_deref())?;
        let mut tagger = model.tagger(py)?;
        if let Some(name) = options.context {
            let context = match name.as_str() {
                "paired" => Context::Paired,
                "separate" => Context::Separate,
                _ => return Err(ModelError::new_err("a context is `paired` or `separate`")),
            };
            let settings = ModelSettings { context, ..tagger.settings().clone() };
            tagger = tagger.with_settings(settings).map_err(raise)?;
        }
        Self::learn(py, tagger, support, thresholds, model)
    }

    /// Opens the saved domain of a file.
    #[staticmethod]
    #[pyo3(signature = (path, model=None, precision=None))]
    fn read(
        py: Python<'_>,
        path: PathBuf,
        model: Option<PathBuf>,
        precision: Option<&str>,
    ) -> PyResult<Self> {
        let domain = DomainFile::read(&path).map_err(raise)?;
        Self::opened(py, &domain, &path, Model::new(model, precision)?)
    }

    /// Opens a saved domain; `name` stands in messages.
    #[staticmethod]
    #[pyo3(signature = (bytes, name, model=None, precision=None))]
    fn open(
        py: Python<'_>,
        bytes: &[u8],
        name: PathBuf,
        model: Option<PathBuf>,
        precision: Option<&str>,
    ) -> PyResult<Self> {
        let domain = DomainFile::from_bytes(bytes, &name).map_err(raise)?;
        Self::opened(py, &domain, &name, Model::new(model, precision)?)
    }

    /// The bytes of the saved domain.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.file()?.to_bytes()))
    }

    /// Saves the domain, as a whole or not at all.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        self.file()?.write(&path).map_err(raise)
    }

    /// Tags texts, each with its spans or the reason why it has none.
    #[pyo3(signature = (texts, thresholds=None))]
    fn tag(
        &self,
        py: Python<'_>,
        texts: Vec<String>,
        thresholds: Option<(f64, BTreeMap<String, f64>)>,
    ) -> PyResult<Vec<Outcome>> {
        let thresholds = self.thresholds(thresholds)?;
        let adapted = Arc::clone(&self.adapted);
        run(py, move || {
            adapted.tag_texts(&texts, &thresholds).into_iter().map(Outcome::new).collect()
        })
    }

    /// Tags a column of texts, or that of a table which has this name or is the only one.
    #[pyo3(signature = (data, column=None, thresholds=None))]
    fn tag_arrow(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        column: Option<&str>,
        thresholds: Option<(f64, BTreeMap<String, f64>)>,
    ) -> PyResult<Tagged> {
        arrow::tag(py, &self.adapted, data, column, &self.thresholds(thresholds)?)
    }

    /// Why the spans of a text were tagged: the JSON object that `fewtag tag --explain --format jsonl` prints.
    #[pyo3(signature = (text, thresholds=None))]
    fn explain(
        &self,
        py: Python<'_>,
        text: String,
        thresholds: Option<(f64, BTreeMap<String, f64>)>,
    ) -> PyResult<String> {
        let thresholds = self.thresholds(thresholds)?;
        let (adapted, support) = (Arc::clone(&self.adapted), Arc::clone(&self.support));
        let answer = run(py, move || explain(&adapted, &support, &thresholds, text))?;
        Ok(json(&answer.map_err(raise)?))
    }

    /// What is wrong or weak in the examples, as JSON.
    fn check(&self, py: Python<'_>) -> PyResult<String> {
        let (tagger, support) = (self.tagger.clone(), Arc::clone(&self.support));
        let report = run(py, move || support::check(&tagger, support.sentences()))?;
        Ok(json(&report.map_err(raise)?))
    }

    /// The texts that would teach most, best first, as a JSON list.
    fn suggest(&self, py: Python<'_>, pool: Vec<String>, n: usize) -> PyResult<String> {
        let (adapted, support) = (Arc::clone(&self.adapted), Arc::clone(&self.support));
        let chosen = run(py, move || {
            let mut numbers = Vec::new();
            let sentences = pool.iter().enumerate().filter_map(|(number, text)| {
                let sentence = Sentence::plain(text);
                let is_blank = matches!(sentence, Err(fewtag::Error::EmptySentence));
                (!is_blank).then(|| numbers.push(number)).map(|()| sentence)
            });
            let sentences: Vec<_> = sentences.collect();
            let chosen = support::suggest(&adapted, &support, sentences, n)?;
            let values = chosen.iter().map(|one| suggestion(one, &numbers));
            Ok::<_, fewtag::Error>(values.collect::<serde_json::Value>())
        })?;
        Ok(chosen.map_err(raise)?.to_string())
    }

    /// The labels, sorted.
    #[getter]
    fn labels(&self) -> Vec<String> {
        self.support.tag_set().slots().iter().map(ToString::to_string).collect()
    }

    /// The examples: text, and its spans.
    #[getter]
    fn examples(&self) -> Vec<(String, Vec<LabelTuple>)> {
        let example = |sentence: &Sentence| {
            let labels = data::labels(sentence).into_iter();
            let spans = labels.map(|(at, label)| (at.start, at.end, label)).collect();
            (sentence.text().0.into_owned(), spans)
        };
        self.support.sentences().iter().map(example).collect()
    }

    /// The words of the examples.
    #[getter]
    fn words(&self) -> Vec<Vec<String>> {
        let words = |sentence: &Sentence| sentence.words().map(str::to_owned).collect();
        self.support.sentences().iter().map(words).collect()
    }

    /// How query and examples are read.
    #[getter]
    fn context(&self) -> &'static str {
        match self.tagger.settings().context {
            Context::Paired => "paired",
            Context::Separate => "separate",
        }
    }

    /// Where the model lies, unless it is the built-in one.
    #[getter]
    fn model(&self) -> Option<&Path> {
        self.model.dir.as_deref()
    }

    /// In which numbers the encoder computes.
    #[getter]
    fn precision(&self) -> &'static str {
        self.model.precision.name()
    }

    /// What tuning was found to be worth, as JSON, if the domain was tuned.
    #[getter]
    fn figures(&self) -> Option<String> {
        self.tagger.figures().map(json)
    }

    /// What tells the model from others.
    #[getter]
    fn checksum(&self) -> Option<&str> {
        self.tagger.checksum()
    }
}

impl Core {
    fn opened(py: Python<'_>, domain: &DomainFile, path: &Path, model: Model) -> PyResult<Self> {
        let tagger = domain.tagger(&model.tagger(py)?, path).map_err(raise)?;
        Self::learn(py, tagger, domain.support().clone(), domain.thresholds().clone(), model)
    }

    /// What tuning needs.
    pub(crate) fn parts(&self) -> (Tagger, Arc<SupportSet>) {
        (self.tagger.clone(), Arc::clone(&self.support))
    }

    /// The same domain learned by another tagger.
    pub(crate) fn with_tagger(&self, py: Python<'_>, tagger: Tagger) -> PyResult<Self> {
        let (support, thresholds) = ((*self.support).clone(), (*self.thresholds).clone());
        Self::learn(py, tagger, support, thresholds, self.model.clone())
    }

    fn learn(
        py: Python<'_>,
        tagger: Tagger,
        support: SupportSet,
        thresholds: Thresholds,
        model: Model,
    ) -> PyResult<Self> {
        let support = Arc::new(support);
        let (teacher, examples) = (tagger.clone(), Arc::clone(&support));
        let adapted = run(py, move || teacher.adapt(&examples))?.map_err(raise)?;
        let (adapted, thresholds) = (Arc::new(adapted), Arc::new(thresholds));
        Ok(Self { adapted, thresholds, tagger, support, model })
    }

    fn file(&self) -> PyResult<DomainFile> {
        let (support, thresholds) = ((*self.support).clone(), (*self.thresholds).clone());
        DomainFile::new(&self.tagger, support, thresholds).map_err(raise)
    }

    /// Those of a call, or else those of the domain.
    fn thresholds(&self, given: Option<(f64, BTreeMap<String, f64>)>) -> PyResult<Arc<Thresholds>> {
        match given {
            None => Ok(Arc::clone(&self.thresholds)),
            Some(given) => checked(given, &self.support).map(Arc::new),
        }
    }
}

impl Outcome {
    fn new(answer: fewtag::Result<Answer>) -> Self {
        match answer {
            Err(error) => Self::Error(fewtag::error::chain(&error)),
            Ok(answer) => Self::Spans(
                answer
                    .spans
                    .into_iter()
                    .map(|span| (span.start, span.end, span.label, span.text, span.probability))
                    .collect(),
            ),
        }
    }
}

fn support_set(
    sentences: Vec<Sentence>,
    labels: &[String],
    meanings: BTreeMap<String, Option<String>>,
) -> PyResult<SupportSet> {
    let labels = labels.iter().map(|label| slot(label)).collect::<PyResult<Vec<_>>>()?;
    let mut support = SupportSet::with_labels(sentences, labels).map_err(raise)?;
    for (label, meaning) in meanings {
        let slot = slot(&label)?;
        if !support.tag_set().slots().contains(&&slot) {
            let message = format!("meanings: there is no label `{label}`");
            return Err(ExamplesError::new_err(message));
        }
        support = support.named(slot, meaning);
    }
    Ok(support)
}

/// The slot of a label that may be written as words: `song title` is `song_title`.
fn slot(name: &str) -> PyResult<Slot> {
    Slot::new(&name.split_whitespace().collect::<Vec<_>>().join("_")).map_err(raise)
}

fn checked(
    (general, of_label): (f64, BTreeMap<String, f64>),
    support: &SupportSet,
) -> PyResult<Thresholds> {
    let thresholds = Thresholds { general, of_label };
    let is_probability = |p: &f64| (0.0..=1.0).contains(p);
    if !is_probability(&thresholds.general) || !thresholds.of_label.values().all(is_probability) {
        return Err(FewtagError::new_err("a threshold is a probability: from 0 to 1"));
    }
    if let Some(label) = thresholds.unknown_label(support.tag_set()) {
        return Err(FewtagError::new_err(format!("the examples have no label `{label}`")));
    }
    Ok(thresholds)
}

fn explain(
    adapted: &Adapted,
    support: &SupportSet,
    thresholds: &Thresholds,
    text: String,
) -> fewtag::Result<Answer> {
    let sentence = match Sentence::plain(&text) {
        Err(fewtag::Error::EmptySentence) => return Ok(Answer { text, spans: Vec::new() }),
        other => other?,
    };
    let words: Vec<&str> = sentence.words().collect();
    let scored = adapted.score(&words)?;
    let mut tagged = scored.tagged();
    tagged.spans.retain(|span| thresholds.allow(span));
    Ok(Answer::explained(&sentence, &tagged, &scored, support))
}

fn suggestion(one: &Suggestion, numbers: &[usize]) -> serde_json::Value {
    let mut value = serde_json::json!(Answer::new(&one.sentence, &one.tagged));
    value["number"] = numbers[one.number - 1].into();
    value["reason"] = serde_json::json!(one.reason);
    value
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("plain structures are JSON")
}
