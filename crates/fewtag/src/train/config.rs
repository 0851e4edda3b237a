//! What a training run is told: one strict TOML file, a short difference from the paper's values.
//!
//! Every field has the paper's value (or, where the paper is silent, the one of the method's page) as its
//! default; an unknown field is an error, never ignored. The file is saved with the model, so a model always
//! says how it was made. Paths are relative to the directory the command runs in.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::emission::Mix;
use crate::encoder::Frozen;
use crate::error::{Error, Result};
use crate::settings::ModelSettings;

/// Everything that decides the result of a training run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where every random number of the run comes from.
    pub seed: u64,
    /// The directory of the encoder that training starts from.
    pub encoder: PathBuf,
    /// So many of the encoder's lowest layers are kept. 0: all.
    pub layers: usize,
    /// How much memory weights, moments and activations may take together, in MiB. It changes the speed of
    /// a run, never its result.
    pub memory_mib: usize,
    /// What to learn from and to choose by.
    pub data: Data,
    /// What the model is.
    pub model: ModelSettings,
    /// Where the numbers of the scorers `mixed` and `fitted` start, as their logarithms (the gate as its logit).
    pub mix: Mix,
    /// How it learns.
    pub optimizer: Optimizer,
    /// When it is judged on the dev data.
    pub evaluation: Evaluation,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 0,
            encoder: PathBuf::new(),
            layers: 0,
            memory_mib: 2048,
            data: Data::default(),
            model: ModelSettings::default(),
            mix: Mix::default(),
            optimizer: Optimizer::default(),
            evaluation: Evaluation::default(),
        }
    }
}

/// What to learn from. A path is a file or a directory of files. An episode file is used as it is; any other
/// format is a set of domains, from which every batch draws a new episode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Data {
    /// The source domains or their episodes.
    pub train: Vec<PathBuf>,
    /// What the best weights are chosen by; empty: the last weights are kept.
    pub dev: Vec<PathBuf>,
    /// What the finished model is scored on, all of it; has no part in training.
    pub test: Vec<PathBuf>,
    /// Domains that are not trained on though a path of `train` holds them.
    pub leave_out: Vec<String>,
    /// How the queries of a batch are gathered.
    pub batches: Batching,
    /// Drawn episodes: so many an update; they share its queries.
    pub episodes: usize,
    /// Drawn episodes: how many sentences each tag gets; every episode picks one of these at random.
    pub shots: Vec<usize>,
    /// Drawn episodes: a domain of `n` sentences is chosen with a probability proportional to `n` to this
    /// power; 1 is fair to sentences, 0 to domains.
    pub smoothing: f64,
    /// Drawn episodes: at most so many slots, chosen at random; the words of others become `O`. 0: all.
    pub max_slots: usize,
    /// Drawn episodes: the number of slots is drawn as well, from 1 on, and most queries have one of them.
    pub vary_slots: bool,
    /// Drawn episodes: the probability that a support sentence without any of the slots stays, as an example of none.
    pub plain_support: f64,
    /// Drawn episodes: the probability that some labels, half the time all, have no example and speak by name.
    pub zero_shot: f64,
    /// Drawn episodes: the probability that a label's name is another one's or says nothing.
    pub odd_names: f64,
    /// Drawn episodes: a support set of more sentences is drawn again with fewer shots. 0: any.
    pub max_support: usize,
    /// Drawn episodes: longer sentences are not used; a few very long ones would not fit the encoder.
    pub max_words: usize,
    /// The probability that all words of a batch are lower-cased.
    pub lower_case: f64,
    /// The probability that all words of a batch are upper-cased.
    pub upper_case: f64,
    /// The probability that a batch does without label names (if the model uses them).
    pub drop_names: f64,
}

impl Default for Data {
    fn default() -> Self {
        Self {
            train: Vec::new(),
            dev: Vec::new(),
            test: Vec::new(),
            leave_out: Vec::new(),
            batches: Batching::Episode,
            episodes: 1,
            shots: vec![1],
            smoothing: 0.5,
            max_slots: 0,
            vary_slots: false,
            plain_support: 0.0,
            zero_shot: 0.0,
            odd_names: 0.0,
            max_support: 0,
            max_words: 100,
            lower_case: 0.0,
            upper_case: 0.0,
            drop_names: 0.0,
        }
    }
}

/// How the queries of a batch are gathered from episodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Batching {
    /// All from one episode: in separate context its support is then encoded once for the whole batch.
    Episode,
    /// Each from any episode.
    Mixed,
}

/// How the weights change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Optimizer {
    /// The highest learning rate of the encoder's weights.
    pub encoder_rate: f32,
    /// The highest learning rate of λ and the transitions.
    pub head_rate: f32,
    /// That of the transitions, if it differs: a short run must move a random table as far as a long one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transition_rate: Option<f32>,
    /// That of λ, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_rate: Option<f32>,
    /// That of the numbers of the scorers `mixed` and `fitted`, if it differs. 0: they stay where they start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mix_rate: Option<f32>,
    /// Decoupled weight decay of all but biases, layer norms, λ and transitions.
    pub weight_decay: f32,
    /// The part of all updates during which the rates rise from 0; they fall back to 0 over the rest.
    pub warmup: f32,
    /// The global gradient norm is cut to this.
    pub clip: f32,
    /// Whether the norms of the encoder's and the head's gradients are cut apart: those of λ can be much larger, and
    /// would shrink every step of the encoder.
    pub clip_apart: bool,
    /// Whether Adam's moments are corrected for their start at zero; the paper's authors had none.
    pub bias_correction: bool,
    /// The number of queries per update.
    pub batch: usize,
    /// The number of updates; unset: given by `epochs`.
    pub updates: Option<u64>,
    /// Passes over the queries of the training episodes; drawn episodes need `updates` instead.
    pub epochs: f64,
    /// The dropout rate inside the encoder.
    pub dropout: f32,
    /// So many of the encoder's lowest layers, with the embeddings below them, stay as they are.
    pub frozen_layers: usize,
    /// The embeddings stay as they are.
    pub frozen_embeddings: bool,
}

impl Default for Optimizer {
    fn default() -> Self {
        Self {
            encoder_rate: 1e-5,
            head_rate: 1e-3,
            transition_rate: None,
            scale_rate: None,
            mix_rate: None,
            weight_decay: 0.01,
            warmup: 0.1,
            clip: 1.0,
            clip_apart: false,
            bias_correction: true,
            batch: 4,
            updates: None,
            epochs: 1.0,
            dropout: 0.1,
            frozen_layers: 0,
            frozen_embeddings: false,
        }
    }
}

impl Optimizer {
    /// What is not trained.
    #[must_use]
    pub fn frozen(&self) -> Frozen {
        match (self.frozen_layers, self.frozen_embeddings) {
            (0, false) => Frozen::Nothing,
            (0, true) => Frozen::Embeddings,
            (n, _) => Frozen::Layers(n),
        }
    }
}

/// When the model is judged on the dev data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Evaluation {
    /// Judge after every so many updates.
    pub every: u64,
    /// Stop when so many evaluations in a row did not improve the dev F1. 0: never.
    pub patience: usize,
    /// The number of dev episodes per domain; 0: all of an episode file.
    pub episodes: usize,
    /// The number of queries per dev episode; 0: all of an episode file.
    pub queries: usize,
}

impl Default for Evaluation {
    fn default() -> Self {
        // An epoch of the paper's 1-shot Snips folds is about 2,500 updates: five evaluations an epoch, and
        // two epochs of patience.
        Self { every: 500, patience: 10, episodes: 20, queries: 10 }
    }
}

impl Config {
    /// Reads the text of a TOML file, in which `overrides` replace fields: `("optimizer.batch", "8")`. The
    /// ranges are left to [`Config::check`].
    ///
    /// # Errors
    ///
    /// [`Error::ConfigSyntax`] if the text is no TOML, has an unknown field or a value of another kind.
    pub fn parse(text: &str, overrides: &[(&str, &str)]) -> Result<Self> {
        let syntax = |source| Error::ConfigSyntax { source: Box::new(source) };
        let mut table: toml::Table = toml::from_str(text).map_err(syntax)?;
        for (field, value) in overrides {
            let line = format!("{field} = {value}");
            // What is no TOML value is meant as a string: `encoder=dir` needs no quotes.
            let given = toml::from_str(&line).or_else(|error| {
                let quoted = format!("{field} = {}", toml::Value::String((*value).to_owned()));
                toml::from_str(&quoted).map_err(|_| syntax(error))
            })?;
            merge(&mut table, given);
        }
        table.try_into().map_err(syntax)
    }

    /// The settings as a TOML file that reads back as the same value.
    ///
    /// # Panics
    ///
    /// Never: every field has a TOML form.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("every setting has a TOML form")
    }

    /// Refuses values out of range.
    ///
    /// # Errors
    ///
    /// [`Error::Config`], which names the field and what it may be.
    pub fn check(&self) -> Result<()> {
        self.model.check()?;
        let Self { data, optimizer, evaluation, .. } = self;
        let share = |value: f64| (0.0..=1.0).contains(&value);
        let rate = |value: f32| value.is_finite() && value >= 0.0;
        let rules = [
            ("encoder", !self.encoder.as_os_str().is_empty(), "the directory of an encoder"),
            ("data.train", !data.train.is_empty(), "at least one file or directory"),
            ("data.shots", !data.shots.is_empty() && !data.shots.contains(&0), "counts from 1"),
            ("data.smoothing", data.smoothing.is_finite(), "a number"),
            ("data.max_words", data.max_words > 0, "a count from 1"),
            ("data.episodes", data.episodes > 0, "a count from 1"),
            ("data.plain_support", share(data.plain_support), "a probability"),
            ("data.zero_shot", share(data.zero_shot), "a probability"),
            ("data.odd_names", share(data.odd_names), "a probability"),
            ("data.lower_case", share(data.lower_case), "a probability"),
            (
                "data.upper_case",
                share(data.upper_case) && share(data.lower_case + data.upper_case),
                "a probability, with `data.lower_case` at most 1",
            ),
            ("data.drop_names", share(data.drop_names), "a probability"),
            ("optimizer.encoder_rate", rate(optimizer.encoder_rate), "a rate from 0"),
            ("optimizer.head_rate", rate(optimizer.head_rate), "a rate from 0"),
            (
                "optimizer.transition_rate",
                optimizer.transition_rate.is_none_or(rate),
                "a rate from 0",
            ),
            ("optimizer.scale_rate", optimizer.scale_rate.is_none_or(rate), "a rate from 0"),
            ("optimizer.mix_rate", optimizer.mix_rate.is_none_or(rate), "a rate from 0"),
            ("mix", self.mix.as_slice().iter().all(|x| x.is_finite()), "finite numbers"),
            ("optimizer.weight_decay", rate(optimizer.weight_decay), "a rate from 0"),
            ("optimizer.warmup", share(optimizer.warmup.into()), "a part from 0 to 1"),
            ("optimizer.clip", optimizer.clip > 0.0, "a norm above 0"),
            ("optimizer.batch", optimizer.batch > 0, "a count from 1"),
            ("optimizer.updates", optimizer.updates != Some(0), "a count from 1"),
            ("optimizer.epochs", optimizer.epochs > 0.0, "a number above 0"),
            ("optimizer.dropout", (0.0..1.0).contains(&optimizer.dropout), "a rate from 0 below 1"),
            ("evaluation.every", evaluation.every > 0, "a count from 1"),
        ];
        match rules.into_iter().find(|(_, holds, _)| !holds) {
            Some((field, _, wanted)) => Err(Error::Config { field, wanted }),
            None => Ok(()),
        }
    }
}

/// Puts the values of `given` into `table`, level by level.
fn merge(table: &mut toml::Table, given: toml::Table) {
    for (field, value) in given {
        match (table.get_mut(&field), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(value)) => merge(inner, value),
            (_, value) => {
                table.insert(field, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: &str = "encoder = 'e'\ndata.train = ['t']";

    #[test]
    fn a_short_file_keeps_the_papers_values() {
        let config = Config::parse(SHORT, &[]).unwrap();
        config.check().unwrap();
        assert_eq!(config.optimizer, Optimizer::default());
        assert_eq!((config.optimizer.batch, config.optimizer.encoder_rate), (4, 1e-5));
    }

    #[test]
    fn a_saved_config_reads_back_as_the_same_value() {
        let mut config = Config::parse(SHORT, &[]).unwrap();
        config.optimizer.updates = Some(7);
        config.data.batches = Batching::Mixed;
        assert_eq!(Config::parse(&config.to_toml(), &[]).unwrap(), config);
    }

    #[test]
    fn an_override_replaces_one_field_and_keeps_its_neighbours() {
        let overrides = [("optimizer.batch", "8"), ("encoder", "a/b"), ("data.shots", "[1, 5]")];
        let text = "encoder = 'e'\noptimizer.batch = 2\noptimizer.clip = 3.0";
        let config = Config::parse(text, &overrides).unwrap();
        assert_eq!((config.optimizer.batch, config.optimizer.clip), (8, 3.0));
        assert_eq!((config.encoder, config.data.shots), ("a/b".into(), vec![1, 5]));
        assert!(Config::parse(text, &[("optimizer.batch", "many")]).is_err());
        assert!(Config::parse(text, &[("optimizer", "1")]).is_err());
    }

    #[test]
    fn an_unknown_field_is_refused_by_name() {
        for text in ["sed = 1", "[optimizer]\nlr = 1", "[data]\nshot = [1]", "[model]\nx = 1"] {
            let error = Config::parse(text, &[]).unwrap_err();
            let cause = std::error::Error::source(&error).unwrap().to_string();
            assert!(cause.contains("unknown field"), "{cause}");
        }
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_its_field() {
        for (extra, field) in [
            ("data.shots = []", "data.shots"),
            ("data.lower_case = 1.5", "data.lower_case"),
            ("optimizer.batch = 0", "optimizer.batch"),
            ("optimizer.dropout = 1.0", "optimizer.dropout"),
            ("optimizer.clip = 0.0", "optimizer.clip"),
            ("optimizer.encoder_rate = nan", "optimizer.encoder_rate"),
        ] {
            let config = Config::parse(&format!("{SHORT}\n{extra}"), &[]).unwrap();
            let error = config.check().unwrap_err().to_string();
            assert!(error.contains(field), "{error}");
        }
        let error = Config::parse("data.train = ['t']", &[]).unwrap().check().unwrap_err();
        assert!(error.to_string().contains("`encoder`"), "{error}");
    }
}
