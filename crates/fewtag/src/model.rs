//! A model on disk: a Hugging Face encoder directory with one more file.
//!
//! ```text
//! fewtag.json         format version, settings, what was learned above the encoder, checksum of the weights
//! config.json         the shape of the encoder
//! tokenizer.json      its word pieces
//! model.safetensors   its weights: f32, f16, or int8 with row scales
//! ```
//!
//! `fewtag.json` is written last, and its checksum must fit the weights: a directory that a crash left half
//! written is refused, not believed. Loading checks the version, every name, shape and number.
//! [`from_files`] does the same from memory. `built_in`, a feature, is a model inside the library.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::encoder::{
    Bert, BertConfig, Engine, Int8Bert, Precision, Storage, WordPieces, storage, weights,
    with_shapes,
};
use crate::error::{Error, Result};
use crate::eval::Temperature;
use crate::file;
use crate::head::Head;
use crate::random::Random;
use crate::settings::ModelSettings;
use crate::tagger::Tagger;

/// The version of the format that this crate writes and reads.
pub const FORMAT: u32 = 1;

/// What `fewtag.json` says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    format: u32,
    settings: ModelSettings,
    head: Head,
    weights_sha256: String,
}

/// The contents of the four files of a model.
#[derive(Debug, Clone, Copy)]
pub struct ModelFiles<'a> {
    /// `fewtag.json`.
    pub fewtag: &'a [u8],
    /// `config.json`.
    pub config: &'a [u8],
    /// `tokenizer.json`.
    pub tokenizer: &'a [u8],
    /// `model.safetensors`.
    pub weights: &'a [u8],
}

/// Loads the model in `dir` in floats, as it is saved and trained.
///
/// # Errors
///
/// If a file is missing, damaged, of another version, or does not fit the others; the message names it.
pub fn load(dir: &Path) -> Result<Tagger> {
    load_with(dir, Precision::F32)
}

/// Loads the model in `dir`, to tag in this precision.
///
/// # Errors
///
/// As [`load`].
pub fn load_with(dir: &Path, precision: Precision) -> Result<Tagger> {
    let read = |name: &str| file::read(&dir.join(name));
    if !dir.join("fewtag.json").is_file() && dir.join("config.json").is_file() {
        return Err(Error::EncoderOnly { dir: dir.to_owned() });
    }
    let files = ModelFiles {
        fewtag: &read("fewtag.json")?,
        config: &read("config.json")?,
        tokenizer: &read("tokenizer.json")?,
        weights: &read("model.safetensors")?,
    };
    from_files(&files, dir, precision)
}

/// Loads a model from the contents of its files; `origin` is the directory named in messages.
///
/// # Errors
///
/// As [`load`].
pub fn from_files(files: &ModelFiles, origin: &Path, precision: Precision) -> Result<Tagger> {
    let description = Description::from_json(files.fewtag, &origin.join("fewtag.json"))?;
    let path = origin.join("model.safetensors");
    if file::sha256(files.weights) != description.weights_sha256 {
        return Err(Error::WeightsChecksum { path });
    }
    let config = BertConfig::from_json(file::text(&origin.join("config.json"), files.config)?)?;
    let engine: Arc<dyn Engine> = match precision {
        Precision::F32 => Arc::new(Bert::new(weights::from_bytes(&config, files.weights, &path)?)?),
        Precision::Int8 => Arc::new(Int8Bert::from_bytes(&config, files.weights, &path)?),
    };
    let word_pieces = WordPieces::from_json(files.tokenizer, &origin.join("tokenizer.json"))?;
    let parts = [files.fewtag, files.config, files.tokenizer].map(file::sha256);
    let checksum = file::sha256((parts.concat() + &description.weights_sha256).as_bytes());
    let tagger = Tagger::new(engine, word_pieces, description.settings, description.head)?;
    Ok(tagger.with_checksum(&checksum))
}

/// The model inside this crate: English, described in the README of `fewtag-model`, under terms of its own.
///
/// # Errors
///
/// None, unless this version and the model's do not belong together.
#[cfg(feature = "built-in")]
pub fn built_in(precision: Precision) -> Result<Tagger> {
    let files = ModelFiles {
        fewtag: fewtag_model::FEWTAG,
        config: fewtag_model::CONFIG,
        tokenizer: fewtag_model::TOKENIZER,
        weights: &fewtag_model::weights(),
    };
    from_files(&files, Path::new("models/default"), precision)
}

/// An untrained model over the encoder in `dir`: transitions drawn from `seed`, λ as set.
///
/// # Errors
///
/// If the encoder cannot be loaded or the settings make no sense.
pub fn from_encoder(dir: &Path, settings: ModelSettings, seed: u64) -> Result<Tagger> {
    let head = Head::new(&settings, &mut Random::new(seed).named("head"));
    let parameters = weights::load(dir)?;
    let parameters = if settings.case { with_shapes(parameters) } else { parameters };
    Tagger::new(Arc::new(Bert::new(parameters)?), WordPieces::load(dir)?, settings, head)
}

/// Writes a model into `dir`, which is made if it is missing. Each file is replaced as a whole.
///
/// # Errors
///
/// [`Error::NothingToSave`] if the engine keeps no weights, [`Error::Unstorable`] if a weight is not finite or too large for `storage`, [`Error::File`] if the disk
/// does not take a file.
pub fn save(tagger: &Tagger, dir: &Path, storage: Storage) -> Result<()> {
    let parameters = tagger.engine().to_save().ok_or(Error::NothingToSave)?;
    let weights = storage::to_bytes(parameters, storage)?;
    let description = Description {
        format: FORMAT,
        settings: tagger.settings().clone(),
        head: *tagger.head(),
        weights_sha256: file::sha256(&weights),
    };
    let config = Config { model_type: "bert", config: parameters.config() };
    std::fs::create_dir_all(dir).map_err(|source| Error::File { path: dir.to_owned(), source })?;
    let write = |name: &str, bytes: &[u8]| file::write_atomically(&dir.join(name), bytes);
    write("config.json", &json(&config))?;
    write("tokenizer.json", tagger.word_pieces().to_json()?.as_bytes())?;
    write("model.safetensors", &weights)?;
    write("fewtag.json", &json(&description))
}

/// The mean of models that were trained from the same encoder with other seeds: every weight and every number of the head.
/// Its settings are those of the first. Their temperature fits the first alone: calibrate anew.
///
/// Such a mean is often better than each of them, and costs no more. Source: Wortsman et al. (2022), "Model soups".
///
/// # Errors
///
/// [`Error::NotAlike`] if the models differ in more than their numbers, [`Error::NothingToSave`] if the engine of one keeps no
/// weights.
///
/// # Panics
///
/// If there is no model.
pub fn average(models: &[Tagger]) -> Result<Tagger> {
    let (first, share) = (&models[0], 1.0 / models.len() as f64);
    let mut weights = first.engine().to_save().ok_or(Error::NothingToSave)?.clone();
    let mut head = *first.head();
    let zeros = |values: &[f32]| vec![0.0; values.len()];
    let (mut sum, mut head_sum) = (zeros(weights.values()), zeros(head.as_slice()));
    let pieces = first.word_pieces().to_json()?;
    for (number, model) in (1..).zip(models) {
        let parameters = model.engine().to_save().ok_or(Error::NothingToSave)?;
        let unlike = |what: &str| Err(Error::NotAlike { what: what.to_owned(), number });
        if parameters.config() != weights.config() {
            return unlike("the encoder");
        }
        if model.word_pieces().to_json()? != pieces {
            return unlike("the vocabulary");
        }
        if let Some(setting) = first_difference(model.settings(), first.settings()) {
            return unlike(&format!("the setting `{setting}`"));
        }
        let add = |sum: &mut [f64], values: &[f32]| {
            sum.iter_mut().zip(values).for_each(|(sum, x)| *sum += share * f64::from(*x));
        };
        add(&mut sum, parameters.values());
        add(&mut head_sum, model.head().as_slice());
    }
    let write = |into: &mut [f32], sum: &[f64]| {
        into.iter_mut().zip(sum).for_each(|(x, sum)| *x = *sum as f32);
    };
    write(weights.values_mut(), &sum);
    write(head.as_mut_slice(), &head_sum);
    let engine = Arc::new(Bert::new(weights)?);
    Tagger::new(engine, first.word_pieces().clone(), first.settings().clone(), head)
}

/// A setting in which two kinds of model differ: neither where λ started nor how probabilities were made honest.
fn first_difference(one: &ModelSettings, other: &ModelSettings) -> Option<String> {
    let [one, other] = [one, other].map(|settings| {
        let mut kind = ModelSettings { scale: ModelSettings::default().scale, ..settings.clone() };
        Temperature::ONE.put_into(&mut kind);
        serde_json::to_value(kind).expect("settings are JSON")
    });
    // A setting that is as by default may be left out of either.
    let names = one.as_object().into_iter().chain(other.as_object()).flat_map(|all| all.keys());
    names.into_iter().find(|name| one.get(name) != other.get(name)).cloned()
}

/// Changes the temperature of the model in `dir`, and nothing else.
///
/// # Errors
///
/// If `dir` holds no model of this version, or cannot be written.
pub fn set_temperature(dir: &Path, temperature: Temperature) -> Result<()> {
    let path = dir.join("fewtag.json");
    let mut description = Description::from_json(&file::read(&path)?, &path)?;
    temperature.put_into(&mut description.settings);
    description.settings.check()?;
    file::write_atomically(&path, &json(&description))
}

/// A `config.json` that says what it configures, as `transformers` wants it.
#[derive(Serialize)]
struct Config<'a> {
    model_type: &'static str,
    #[serde(flatten)]
    config: &'a BertConfig,
}

fn json(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).expect("plain structures become JSON");
    bytes.push(b'\n');
    bytes
}

impl Description {
    fn from_json(bytes: &[u8], path: &Path) -> Result<Self> {
        /// Read first: another version may have other fields.
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let fail = |source| Error::ModelJson { path: path.to_owned(), source };
        let Version { format } = serde_json::from_slice(bytes).map_err(fail)?;
        if format != FORMAT {
            return Err(Error::ModelFormat { path: path.to_owned(), format, known: FORMAT });
        }
        let description: Self = serde_json::from_slice(bytes).map_err(fail)?;
        if !description.head.as_slice().iter().all(|x| x.is_finite()) {
            return Err(Error::NonFiniteWeight { path: path.to_owned(), tensor: "head".into() });
        }
        Ok(description)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::settings::Context;

    fn encoder_dir() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder")
    }

    fn tiny() -> Tagger {
        let settings = ModelSettings { context: Context::Separate, ..ModelSettings::default() };
        from_encoder(&encoder_dir(), settings, 1).unwrap()
    }

    fn saved(storage: Storage) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        save(&tiny(), dir.path(), storage).unwrap();
        dir
    }

    /// Loads a good model after one file was changed.
    fn refusal(name: &str, change: impl Fn(Vec<u8>) -> Vec<u8>) -> String {
        let dir = saved(Storage::F32);
        let path = dir.path().join(name);
        std::fs::write(&path, change(std::fs::read(&path).unwrap())).unwrap();
        load(dir.path()).err().expect("a damaged model is refused").to_string()
    }

    fn replaced(from: &str, to: &str) -> impl Fn(Vec<u8>) -> Vec<u8> {
        move |bytes| {
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.contains(from), "{text}");
            text.replacen(from, to, 1).into_bytes()
        }
    }

    #[test]
    fn a_saved_model_is_loaded_as_it_was() {
        let tagger = load(saved(Storage::F32).path()).unwrap();
        assert_eq!(tagger.settings(), tiny().settings());
        assert_eq!(tagger.head(), tiny().head());
        assert_eq!(tagger.engine().to_save(), tiny().engine().to_save());
        let words = ["Play", "jazz"];
        assert_eq!(
            tagger.word_pieces().split(words).unwrap(),
            tiny().word_pieces().split(words).unwrap()
        );
    }

    #[test]
    fn smaller_storage_is_loaded_too_and_saved_over() {
        let dir = saved(Storage::Int8);
        let small = std::fs::metadata(dir.path().join("model.safetensors")).unwrap().len();
        let tagger = load(dir.path()).unwrap();
        save(&tagger, dir.path(), Storage::F32).unwrap();
        assert!(std::fs::metadata(dir.path().join("model.safetensors")).unwrap().len() > small);
        let again = load(dir.path()).unwrap();
        assert_eq!(again.engine().to_save(), tagger.engine().to_save());
    }

    #[test]
    fn a_model_in_whole_numbers_tags_and_is_not_saved() {
        let dir = saved(Storage::Int8);
        let int8 = load_with(dir.path(), Precision::Int8).unwrap();
        assert_eq!(int8.settings(), tiny().settings());
        let refused = save(&int8, dir.path(), Storage::F32).unwrap_err();
        assert!(matches!(refused, Error::NothingToSave), "{refused}");
        let path = dir.path().join("model.safetensors");
        std::fs::write(&path, b"cut").unwrap();
        assert!(load_with(dir.path(), Precision::Int8).is_err());
    }

    #[test]
    fn an_average_lies_between_and_is_a_model_like_any_other() {
        let settings = ModelSettings { temperature: 3.0, scale: 0.3, ..tiny().settings().clone() };
        let other = from_encoder(&encoder_dir(), settings.clone(), 2).unwrap();
        let mut parameters = other.engine().to_save().unwrap().clone();
        parameters.values_mut().iter_mut().for_each(|x| *x *= 2.0);
        let (engine, pieces) = (Arc::new(Bert::new(parameters).unwrap()), other.word_pieces());
        let other = Tagger::new(engine, pieces.clone(), settings, *other.head()).unwrap();
        let mean = average(&[tiny(), other.clone(), tiny()]).unwrap();
        assert_eq!(mean.settings(), tiny().settings());
        let values = |tagger: &Tagger| tagger.engine().to_save().unwrap().values().to_vec();
        let heads = [&tiny(), &other, &mean].map(|tagger| tagger.head().as_slice().to_vec());
        let weights = [&tiny(), &other, &mean].map(values);
        for [first, second, mean] in [heads, weights] {
            for ((a, b), found) in first.iter().zip(&second).zip(&mean) {
                let expected = (2.0 * a + b) / 3.0;
                assert!((found - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{a} {b}");
            }
        }
        let dir = tempfile::tempdir().unwrap();
        save(&mean, dir.path(), Storage::Int8).unwrap();
        assert!(load(dir.path()).is_ok());
    }

    #[test]
    fn models_of_different_kinds_are_not_averaged() {
        let with = |settings| from_encoder(&encoder_dir(), settings, 1).unwrap();
        let other = with(ModelSettings { borrow: true, ..tiny().settings().clone() });
        let refused = average(&[tiny(), other]).err().unwrap().to_string();
        assert!(refused.contains("the setting `borrow` of model 2"), "{refused}");
        let cased = with(ModelSettings { case: true, ..tiny().settings().clone() });
        let refused = average(&[tiny(), cased]).err().unwrap().to_string();
        assert!(refused.contains("the encoder of model 2"), "{refused}");
        let dir = saved(Storage::Int8);
        let int8 = load_with(dir.path(), Precision::Int8).unwrap();
        assert!(matches!(average(&[tiny(), int8]), Err(Error::NothingToSave)));
    }

    #[test]
    fn the_temperature_can_be_set_alone() {
        let dir = saved(Storage::Int8);
        let at = |base| Temperature { base, ..Temperature::ONE };
        set_temperature(dir.path(), at(2.5)).unwrap();
        let settings = ModelSettings { temperature: 2.5, ..tiny().settings().clone() };
        assert_eq!(*load(dir.path()).unwrap().settings(), settings);
        assert!(matches!(set_temperature(dir.path(), at(f32::NAN)), Err(Error::Setting { .. })));
        assert!(load(dir.path()).is_ok());
    }

    #[test]
    fn a_model_is_also_an_encoder_directory() {
        let dir = saved(Storage::F32);
        assert_eq!(Some(&weights::load(dir.path()).unwrap()), tiny().engine().to_save());
    }

    #[test]
    fn an_encoder_directory_is_no_model() {
        let message = load(&encoder_dir()).err().unwrap().to_string();
        assert!(message.contains("an encoder, not a trained model"), "{message}");
        assert!(matches!(load(tempfile::tempdir().unwrap().path()), Err(Error::File { .. })));
    }

    #[test]
    fn another_version_is_refused_before_its_fields_are_read() {
        let message = refusal("fewtag.json", |_| br#"{"format": 7, "new": true}"#.to_vec());
        assert!(message.contains("format 7") && message.contains("reads format 1"), "{message}");
    }

    #[test]
    fn a_description_is_read_strictly() {
        let message = refusal("fewtag.json", replaced("\"scorer\"", "\"scorers\""));
        assert!(message.contains("fewtag.json"), "{message}");
        let message =
            refusal("fewtag.json", replaced("\"temperature\": 1.0", "\"temperature\": -1.0"));
        assert!(message.contains("`temperature`"), "{message}");
        assert!(refusal("fewtag.json", |bytes| bytes[..50].to_vec()).contains("fewtag.json"));
    }

    #[test]
    fn weights_that_were_changed_or_cut_are_refused() {
        let flipped = refusal("model.safetensors", |mut bytes| {
            *bytes.last_mut().unwrap() ^= 1;
            bytes
        });
        assert!(flipped.contains("model.safetensors"), "{flipped}");
        let cut = refusal("model.safetensors", |bytes| bytes[..bytes.len() / 2].to_vec());
        assert!(cut.contains("model.safetensors"), "{cut}");
    }

    #[test]
    fn files_of_different_models_do_not_load_together() {
        let message = refusal("config.json", replaced("\"vocab_size\": 2", "\"vocab_size\": 1"));
        assert!(message.contains("word_embeddings"), "{message}");
        let message = refusal("tokenizer.json", |_| b"{}".to_vec());
        assert!(message.contains("tokenizer.json"), "{message}");
    }
}
