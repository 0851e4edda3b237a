//! Encoder weights in Hugging Face directories: `config.json` and `model.safetensors`.
//!
//! ```text
//! load  config.json ─▶ BertConfig ─▶ Parameters of that shape, filled tensor by tensor from
//!       model.safetensors, or from every file that model.safetensors.index.json names
//! ```
//!
//! Files hold f32, f16, bf16 or our own int8 ([`super::storage`]); we compute in f32. Names may be those of any time
//! and of `DistilBERT` ([`super::tensor_names`]). After loading, every weight came from a tensor of exactly its shape and is
//! finite; the segments that a `DistilBERT` lacks are zero. A tensor that has no place is an error, unless it belongs to
//! a head that we do not use ([`IGNORED`]): a silent skip would hide that a file is of another architecture.
//!
//! Pickles (`pytorch_model.bin`) are refused: reading one can run any code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::Deserialize;

use super::config::BertConfig;
use super::parameters::{Parameters, Tensor, tensors};
use super::storage::ROW_SCALES;
use super::tensor_names::{IGNORED, SEGMENTS, TodayName};
use crate::error::{Error, Result};

/// Loads the encoder in `dir`.
///
/// # Errors
///
/// If a file is missing or malformed, or if the weights are not exactly those that `config.json` describes.
pub fn load(dir: &Path) -> Result<Parameters> {
    let path = dir.join("config.json");
    let text = std::fs::read_to_string(&path).map_err(|source| Error::File { path, source })?;
    let config = BertConfig::from_json(&text)?;
    let files = weight_files(dir)?;
    let sizes: Result<Vec<u64>> = files.iter().map(|path| Ok(metadata(path)?.len())).collect();
    let mut parameters = Parameters::zeros(&config);
    let mut loading = Loading::new(&config, sizes?.into_iter().sum(), &files[0])?;
    for path in &files {
        loading.add(&read(path)?, path, &mut parameters)?;
    }
    loading.finish(&files[0], &mut parameters)?;
    Ok(parameters)
}

/// The encoder of shape `config` in the bytes of one safetensors file; `path` is its name in messages.
///
/// # Errors
///
/// If the bytes are no such file, or if the weights are not exactly those that `config` describes.
pub fn from_bytes(config: &BertConfig, bytes: &[u8], path: &Path) -> Result<Parameters> {
    let mut loading = Loading::new(config, bytes.len() as u64, path)?;
    let mut parameters = Parameters::zeros(config);
    loading.add(bytes, path, &mut parameters)?;
    loading.finish(path, &mut parameters)?;
    Ok(parameters)
}

/// The same without making floats of bytes: what `target` becomes is up to it.
pub(super) fn read_into(
    target: &mut impl Target,
    config: &BertConfig,
    bytes: &[u8],
    path: &Path,
) -> Result<()> {
    let mut loading = Loading::new(config, bytes.len() as u64, path)?;
    loading.add(bytes, path, target)?;
    loading.finish(path, target)
}

/// What takes the tensors of a file, each once.
pub(super) trait Target {
    /// Takes one, of the right shape.
    fn take(&mut self, tensor: &Tensor, stored: &StoredTensor) -> Result<()>;

    /// Takes one that the file does not have and that is zero.
    fn take_zero(&mut self, tensor: &Tensor);
}

impl Target for Parameters {
    fn take(&mut self, tensor: &Tensor, stored: &StoredTensor) -> Result<()> {
        stored.fill(&mut self.values_mut()[tensor.place.clone()])
    }

    fn take_zero(&mut self, tensor: &Tensor) {
        self.values_mut()[tensor.place.clone()].fill(0.0);
    }
}

/// The files that hold the weights of the encoder in `dir`, at least one.
///
/// # Errors
///
/// [`Error::PickledWeights`] or [`Error::NoWeights`] if there is none in a safe format.
pub fn weight_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let single = dir.join("model.safetensors");
    if single.is_file() {
        return Ok(vec![single]);
    }
    let index = dir.join("model.safetensors.index.json");
    if index.is_file() {
        return shards(dir, &index);
    }
    for pickle in ["pytorch_model.bin", "pytorch_model.bin.index.json"] {
        let path = dir.join(pickle);
        if path.is_file() {
            return Err(Error::PickledWeights { path });
        }
    }
    Err(Error::NoWeights { dir: dir.to_owned() })
}

/// The distinct files of an index, in the order of their names.
fn shards(dir: &Path, index: &Path) -> Result<Vec<PathBuf>> {
    #[derive(Deserialize)]
    struct Index {
        weight_map: BTreeMap<String, String>,
    }
    let Index { weight_map } = serde_json::from_slice(&read(index)?)
        .map_err(|source| Error::WeightIndex { path: index.to_owned(), source })?;
    let names: BTreeSet<String> = weight_map.into_values().collect();
    // An index must not lead out of its directory.
    let stray =
        |name: &String| Path::new(name).file_name().is_none_or(|file| file != name.as_str());
    if let Some(file) = names.iter().find(|name| stray(name)) {
        return Err(Error::StrayShard { path: index.to_owned(), file: file.clone() });
    }
    if names.is_empty() {
        return Err(Error::NoWeights { dir: dir.to_owned() });
    }
    Ok(names.into_iter().map(|name| dir.join(name)).collect())
}

/// The tensors that are still to come.
struct Loading {
    missing: BTreeMap<String, Tensor>,
    /// Whether a tensor had a name of `DistilBERT`, which has no segments.
    is_distilbert: bool,
}

impl Loading {
    /// For files of `n_bytes` in total, so that a wrong `config.json` cannot ask for endless memory.
    fn new(config: &BertConfig, n_bytes: u64, path: &Path) -> Result<Self> {
        let tensors = tensors(config);
        let n_values = tensors.last().map_or(0, |tensor| tensor.place.end);
        if n_values as u64 > n_bytes {
            return Err(Error::TooFewWeights { path: path.to_owned(), n_bytes, n_values });
        }
        let missing = tensors.into_iter().map(|tensor| (tensor.name.clone(), tensor)).collect();
        Ok(Self { missing, is_distilbert: false })
    }

    /// Takes all tensors of one file.
    fn add(&mut self, bytes: &[u8], path: &Path, target: &mut impl Target) -> Result<()> {
        let file = SafeTensors::deserialize(bytes)
            .map_err(|source| Error::Safetensors { path: path.to_owned(), source })?;
        // In a fixed order, so that a file with two faults is always refused for the same one.
        let tensors: BTreeMap<&str, TensorView> = file.iter().collect();
        for (&stored_name, view) in &tensors {
            let TodayName { name, is_distilbert } = TodayName::of(stored_name);
            self.is_distilbert |= is_distilbert;
            let of_int8 = stored_name.strip_suffix(ROW_SCALES).and_then(|base| tensors.get(base));
            if IGNORED.contains(&name.as_ref()) || of_int8.is_some() {
                continue;
            }
            let Some(tensor) = self.missing.remove(name.as_ref()) else {
                return Err(Error::UnknownTensor {
                    path: path.to_owned(),
                    tensor: stored_name.to_owned(),
                    shape: view.shape().to_vec(),
                });
            };
            check_shape(&tensor.name, &tensor.shape, view, path)?;
            let row_scales = tensors.get(format!("{stored_name}{ROW_SCALES}").as_str());
            target.take(&tensor, &StoredTensor { tensor: &tensor, view, row_scales, path })?;
        }
        Ok(())
    }

    /// # Errors
    ///
    /// If something is missing.
    fn finish(mut self, path: &Path, target: &mut impl Target) -> Result<()> {
        if self.is_distilbert
            && let Some(segments) = self.missing.remove(SEGMENTS)
        {
            target.take_zero(&segments);
        }
        match self.missing.into_values().next() {
            None => Ok(()),
            Some(Tensor { name: tensor, shape, .. }) => {
                Err(Error::MissingTensor { path: path.to_owned(), tensor, shape })
            }
        }
    }
}

/// A tensor as its file holds it.
pub(super) struct StoredTensor<'a> {
    tensor: &'a Tensor,
    view: &'a TensorView<'a>,
    row_scales: Option<&'a TensorView<'a>>,
    path: &'a Path,
}

impl StoredTensor<'_> {
    /// Copies its numbers into their place.
    pub(super) fn fill(&self, values: &mut [f32]) -> Result<()> {
        let data = self.view.data();
        match self.view.dtype() {
            Dtype::F32 => convert(values, data, f32::from_le_bytes),
            Dtype::F16 => convert(values, data, |bytes| f16::from_le_bytes(bytes).to_f32()),
            Dtype::BF16 => convert(values, data, |bytes| bf16::from_le_bytes(bytes).to_f32()),
            Dtype::I8 => {
                convert(values, data, |bytes| f32::from(i8::from_le_bytes(bytes)));
                let scales = self.row_scales()?;
                for (row, scale) in values.chunks_exact_mut(values.len() / scales.len()).zip(scales)
                {
                    for value in row {
                        *value *= scale;
                    }
                }
            }
            found => return Err(wrong_type(&self.tensor.name, found, self.path)),
        }
        self.check_finite(values)
    }

    /// If it is stored in bytes, these and the size of a step for each row.
    pub(super) fn steps(&self) -> Result<Option<(&[i8], Vec<f32>)>> {
        if self.view.dtype() != Dtype::I8 {
            return Ok(None);
        }
        let scales = self.row_scales()?;
        let longest: Vec<f32> = scales.iter().map(|scale| scale * f32::from(i8::MIN)).collect();
        self.check_finite(&longest)?;
        Ok(Some((bytemuck::cast_slice(self.view.data()), scales)))
    }

    fn check_finite(&self, values: &[f32]) -> Result<()> {
        if values.iter().all(|value| value.is_finite()) {
            return Ok(());
        }
        let (path, tensor) = (self.path.to_owned(), self.tensor.name.clone());
        Err(Error::NonFiniteWeight { path, tensor })
    }

    /// The size of a step, row by row.
    fn row_scales(&self) -> Result<Vec<f32>> {
        let name = format!("{}{ROW_SCALES}", self.tensor.name);
        let (path, shape) = (self.path, vec![self.tensor.shape[0]]);
        let Some(row_scales) = self.row_scales else {
            return Err(Error::MissingTensor { path: path.to_owned(), tensor: name, shape });
        };
        check_shape(&name, &shape, row_scales, path)?;
        if row_scales.dtype() != Dtype::F32 {
            return Err(wrong_type(&name, row_scales.dtype(), path));
        }
        let mut scales = vec![0.0; shape[0]];
        convert(&mut scales, row_scales.data(), f32::from_le_bytes);
        Ok(scales)
    }
}

fn check_shape(name: &str, expected: &[usize], view: &TensorView, path: &Path) -> Result<()> {
    if view.shape() == expected {
        return Ok(());
    }
    let (expected, found) = (expected.to_vec(), view.shape().to_vec());
    Err(Error::TensorShape { path: path.to_owned(), tensor: name.to_owned(), expected, found })
}

fn wrong_type(name: &str, found: Dtype, path: &Path) -> Error {
    let (path, tensor) = (path.to_owned(), name.to_owned());
    Error::TensorType { path, tensor, found: found.to_string() }
}

fn convert<const N: usize>(values: &mut [f32], bytes: &[u8], number: impl Fn([u8; N]) -> f32) {
    let (numbers, rest) = bytes.as_chunks::<N>();
    assert!(rest.is_empty() && numbers.len() == values.len(), "the shapes were compared");
    for (value, bytes) in values.iter_mut().zip(numbers) {
        *value = number(*bytes);
    }
}

fn metadata(path: &Path) -> Result<std::fs::Metadata> {
    std::fs::metadata(path).map_err(|source| Error::File { path: path.to_owned(), source })
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::super::storage::Stored;
    use super::*;

    type File = BTreeMap<String, Stored>;

    fn tiny_dir() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder")
    }

    fn tiny() -> Parameters {
        load(&tiny_dir()).unwrap()
    }

    /// The tensors of the tiny encoder's own file.
    fn tiny_file() -> File {
        let bytes = read(&tiny_dir().join("model.safetensors")).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        file.iter()
            .map(|(name, view)| {
                let (shape, bytes) = (view.shape().to_vec(), view.data().to_vec());
                (name.to_owned(), Stored { dtype: view.dtype(), shape, bytes })
            })
            .collect()
    }

    fn bytes_of(file: &File) -> Vec<u8> {
        safetensors::serialize(file, None).unwrap()
    }

    fn loaded(file: &File) -> Result<Parameters> {
        from_bytes(tiny().config(), &bytes_of(file), Path::new("test.safetensors"))
    }

    fn refusal(file: &File) -> String {
        loaded(file).unwrap_err().to_string()
    }

    /// A directory with the tiny encoder's `config.json` and the given files.
    fn dir_with(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::copy(tiny_dir().join("config.json"), dir.path().join("config.json")).unwrap();
        for (name, bytes) in files {
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        dir
    }

    const KEY_BIAS: &str = "encoder.layer.1.attention.self.key.bias";

    #[test]
    fn every_tensor_arrives_in_its_place() {
        let file = tiny_file();
        for (tensor, values) in tiny().tensors() {
            let stored: Vec<f32> = file[&tensor.name]
                .bytes
                .as_chunks()
                .0
                .iter()
                .copied()
                .map(f32::from_le_bytes)
                .collect();
            assert_eq!(values, stored, "{}", tensor.name);
        }
    }

    #[test]
    fn prefixes_and_old_names_are_understood() {
        let old: File = tiny_file()
            .into_iter()
            .map(|(name, raw)| {
                let name = name
                    .replace("LayerNorm.weight", "LayerNorm.gamma")
                    .replace("LayerNorm.bias", "LayerNorm.beta");
                (format!("bert.{name}"), raw)
            })
            .collect();
        assert_eq!(loaded(&old).unwrap(), tiny());
    }

    #[test]
    fn segments_may_be_missing_from_a_distilbert_alone() {
        let mut file = tiny_file();
        file.remove(SEGMENTS);
        assert!(refusal(&file).contains(SEGMENTS));
        let key = file.remove(KEY_BIAS).unwrap();
        file.insert("distilbert.transformer.layer.1.attention.k_lin.bias".into(), key);
        let without = loaded(&file).unwrap();
        for ((tensor, found), (_, expected)) in without.tensors().zip(tiny().tensors()) {
            if tensor.name == SEGMENTS {
                assert!(found.iter().all(|x| *x == 0.0));
            } else {
                assert_eq!(found, expected, "{}", tensor.name);
            }
        }
    }

    #[test]
    fn heads_that_we_do_not_use_are_ignored() {
        let mut file = tiny_file();
        for name in ["bert.pooler.dense.weight", "cls.predictions.transform.LayerNorm.gamma"] {
            file.insert(
                name.into(),
                Stored { dtype: Dtype::I64, shape: vec![1], bytes: vec![0; 8] },
            );
        }
        assert_eq!(loaded(&file).unwrap(), tiny());
    }

    #[test]
    fn half_precision_is_widened() {
        for dtype in [Dtype::F16, Dtype::BF16] {
            let narrow = |bytes: &[u8; 4]| match (dtype, f32::from_le_bytes(*bytes)) {
                (Dtype::F16, value) => f16::from_f32(value).to_le_bytes(),
                (_, value) => bf16::from_f32(value).to_le_bytes(),
            };
            let mut file = tiny_file();
            for raw in file.values_mut() {
                raw.bytes = raw.bytes.as_chunks().0.iter().flat_map(narrow).collect();
                raw.dtype = dtype;
            }
            let halved = loaded(&file).unwrap();
            for (half, full) in halved.values().iter().zip(tiny().values()) {
                // bf16 keeps 8 significant bits; near zero f16 has an absolute step of 2^-24.
                assert!((half - full).abs() <= full.abs() / 256.0 + 1e-7, "{dtype}: {half} {full}");
            }
        }
    }

    #[test]
    fn shards_together_are_one_file() {
        let (mut first, mut second) = (tiny_file(), File::new());
        while second.len() < first.len() {
            let (name, raw) = first.pop_last().unwrap();
            second.insert(name, raw);
        }
        let map = |file: &File, to: &str| {
            file.keys().map(|name| (name.clone(), to.into())).collect::<Vec<_>>()
        };
        let mut names: BTreeMap<String, String> =
            map(&first, "a.safetensors").into_iter().collect();
        names.extend(map(&second, "b.safetensors"));
        let index =
            serde_json::json!({"metadata": {"total_size": 1}, "weight_map": names}).to_string();
        let dir = dir_with(&[
            ("a.safetensors", &bytes_of(&first)),
            ("b.safetensors", &bytes_of(&second)),
            ("model.safetensors.index.json", index.as_bytes()),
        ]);
        assert_eq!(load(dir.path()).unwrap(), tiny());
    }

    #[test]
    fn an_index_that_leaves_its_directory_is_refused() {
        for stray in ["../x.safetensors", "/x.safetensors", "a/../..", ""] {
            let index = serde_json::json!({"weight_map": {"x": stray}}).to_string();
            let dir = dir_with(&[("model.safetensors.index.json", index.as_bytes())]);
            assert!(matches!(load(dir.path()), Err(Error::StrayShard { .. })), "{stray}");
        }
    }

    #[test]
    fn a_malformed_index_is_refused() {
        let dir = dir_with(&[("model.safetensors.index.json", b"{}")]);
        assert!(matches!(load(dir.path()), Err(Error::WeightIndex { .. })));
        let dir = dir_with(&[("model.safetensors.index.json", br#"{"weight_map": {}}"#)]);
        assert!(matches!(load(dir.path()), Err(Error::NoWeights { .. })));
    }

    #[test]
    fn a_missing_tensor_is_named_with_its_shape() {
        let mut file = tiny_file();
        file.remove(KEY_BIAS);
        let message = refusal(&file);
        assert!(message.contains(&format!("lacks tensor `{KEY_BIAS}` of shape [20]")), "{message}");
    }

    #[test]
    fn an_unknown_tensor_is_named() {
        let mut file = tiny_file();
        file.insert("encoder.layer.2.output.dense.bias".into(), file[KEY_BIAS].clone());
        let message = refusal(&file);
        assert!(
            message.contains("tensor `encoder.layer.2.output.dense.bias` of shape [20]"),
            "{message}"
        );
    }

    #[test]
    fn a_tensor_under_two_names_is_refused() {
        let mut file = tiny_file();
        file.insert(format!("bert.{KEY_BIAS}"), file[KEY_BIAS].clone());
        assert!(matches!(loaded(&file), Err(Error::UnknownTensor { .. })));
    }

    #[test]
    fn a_wrong_shape_is_named_beside_the_right_one() {
        let mut file = tiny_file();
        file.get_mut(KEY_BIAS).unwrap().shape = vec![4, 5];
        let message = refusal(&file);
        assert!(
            message.contains(KEY_BIAS) && message.contains("[4, 5], config.json asks for [20]"),
            "{message}"
        );
    }

    #[test]
    fn a_type_that_is_no_float_is_refused() {
        let mut file = tiny_file();
        file.get_mut(KEY_BIAS).unwrap().dtype = Dtype::I32;
        assert!(refusal(&file).contains("type I32, expected F32, F16, BF16 or our I8"));
    }

    #[test]
    fn weights_that_are_not_finite_are_refused() {
        for bad in [f32::NAN, f32::INFINITY] {
            let mut file = tiny_file();
            file.get_mut(KEY_BIAS).unwrap().bytes[8..12].copy_from_slice(&bad.to_le_bytes());
            let message = refusal(&file);
            assert!(message.contains(KEY_BIAS) && message.contains("not finite"), "{message}");
        }
    }

    #[test]
    fn a_truncated_file_is_refused() {
        let bytes = bytes_of(&tiny_file());
        let cut = |length| from_bytes(tiny().config(), &bytes[..length], Path::new("cut"));
        for length in [bytes.len() * 3 / 4, bytes.len() - 1] {
            assert!(matches!(cut(length), Err(Error::Safetensors { .. })), "{length}");
        }
        for length in [0, 7, 100] {
            assert!(matches!(cut(length), Err(Error::TooFewWeights { .. })), "{length}");
        }
    }

    #[test]
    fn a_file_that_is_no_safetensors_is_refused() {
        let noise = vec![b'x'; 60_000];
        let refused = from_bytes(tiny().config(), &noise, Path::new("noise"));
        assert!(matches!(refused, Err(Error::Safetensors { .. })));
    }

    #[test]
    fn a_config_far_too_large_for_its_file_is_refused_before_memory_is_taken() {
        let sizes = BertConfig {
            hidden_size: 1 << 20,
            num_hidden_layers: 1 << 10,
            ..tiny().config().clone()
        };
        let refused = from_bytes(&sizes, &bytes_of(&tiny_file()), Path::new("small"));
        assert!(matches!(refused, Err(Error::TooFewWeights { .. })));
    }

    #[test]
    fn a_pickle_is_refused_with_a_way_out() {
        let dir = dir_with(&[("pytorch_model.bin", b"")]);
        let message = load(dir.path()).unwrap_err().to_string();
        assert!(
            message.contains("pytorch_model.bin` is a pickle")
                && message.contains("safe_serialization"),
            "{message}"
        );
    }

    #[test]
    fn a_directory_without_weights_or_config_is_refused() {
        assert!(matches!(load(dir_with(&[]).path()), Err(Error::NoWeights { .. })));
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(load(empty.path()), Err(Error::File { .. })));
    }
}
