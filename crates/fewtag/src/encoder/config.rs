//! The shape of a BERT encoder, as `config.json` of a Hugging Face directory states it.
//!
//! A `DistilBERT` is a BERT without segments: its fields have other names, and here it has two segments that are zero.
//! Only the fields that change the arithmetic are read; all others are ignored.
//! A [`BertConfig`] made by [`BertConfig::from_json`] is consistent: every size but the number of layers is at least 1
//! and the heads divide the width.

use fewtag_kernels::activation::Activation;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The shape of a BERT encoder. The field names are those of `config.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BertConfig {
    /// The width `h` of a hidden row.
    pub hidden_size: usize,
    /// The number of layers.
    pub num_hidden_layers: usize,
    /// The number of attention heads; they share the width equally.
    pub num_attention_heads: usize,
    /// The width `f` inside the feed-forward block.
    pub intermediate_size: usize,
    /// The number of word pieces.
    pub vocab_size: usize,
    /// The number of positions: the longest sequence that can be encoded.
    pub max_position_embeddings: usize,
    /// The number of segments.
    #[serde(default = "two_segments")]
    pub type_vocab_size: usize,
    /// The non-linearity of the feed-forward block.
    #[serde(default)]
    pub hidden_act: Activation,
    /// What layer normalisation adds to the variance.
    #[serde(default = "bert_epsilon")]
    pub layer_norm_eps: f32,
}

const DISTILBERT: &str = "distilbert";

/// The shape of a `DistilBERT`, by its own names.
#[derive(Deserialize)]
struct DistilBertConfig {
    dim: usize,
    n_layers: usize,
    n_heads: usize,
    hidden_dim: usize,
    vocab_size: usize,
    max_position_embeddings: usize,
    #[serde(default)]
    activation: Activation,
}

impl From<DistilBertConfig> for BertConfig {
    fn from(config: DistilBertConfig) -> Self {
        Self {
            hidden_size: config.dim,
            num_hidden_layers: config.n_layers,
            num_attention_heads: config.n_heads,
            intermediate_size: config.hidden_dim,
            vocab_size: config.vocab_size,
            max_position_embeddings: config.max_position_embeddings,
            type_vocab_size: two_segments(),
            hidden_act: config.activation,
            layer_norm_eps: bert_epsilon(),
        }
    }
}

fn two_segments() -> usize {
    2
}

fn bert_epsilon() -> f32 {
    1e-12
}

impl BertConfig {
    /// Reads and checks the text of a `config.json`.
    ///
    /// # Errors
    ///
    /// [`Error::EncoderConfigJson`] if a field is missing or of another kind, [`Error::EncoderConfig`] if a value
    /// makes no encoder or asks for a variant that this engine does not compute.
    pub fn from_json(text: &str) -> Result<Self> {
        /// Fields that do not enter the arithmetic but may say that it is another one.
        #[derive(Deserialize)]
        struct Variant {
            model_type: Option<String>,
            position_embedding_type: Option<String>,
        }
        let json = |source| Error::EncoderConfigJson { source };
        let variant: Variant = serde_json::from_str(text).map_err(json)?;
        let is_distilbert = variant.model_type.as_deref() == Some(DISTILBERT);
        for (field, value, expected) in [
            ("model_type", variant.model_type, &["bert", DISTILBERT][..]),
            ("position_embedding_type", variant.position_embedding_type, &["absolute"]),
        ] {
            if let Some(value) = value.filter(|value| !expected.contains(&value.as_str())) {
                let expected = expected.join("` and `");
                let problem = format!("`{value}` is not supported, only `{expected}`");
                return Err(Error::EncoderConfig { field, problem });
            }
        }
        let config: Self = if is_distilbert {
            serde_json::from_str::<DistilBertConfig>(text).map_err(json)?.into()
        } else {
            serde_json::from_str(text).map_err(json)?
        };
        config.check()?;
        Ok(config)
    }

    /// # Errors
    ///
    /// [`Error::EncoderConfig`] naming the first field that makes no encoder.
    pub fn check(&self) -> Result<()> {
        let refuse = |field, problem: String| Err(Error::EncoderConfig { field, problem });
        for (field, size) in [
            ("hidden_size", self.hidden_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", self.num_attention_heads),
            ("intermediate_size", self.intermediate_size),
            ("vocab_size", self.vocab_size),
            ("max_position_embeddings", self.max_position_embeddings),
            ("type_vocab_size", self.type_vocab_size),
        ] {
            // Far above every real encoder; keeps the number of parameters far from overflow.
            let max = if field == "num_hidden_layers" { 1 << 10 } else { 1 << 20 };
            // An encoder without layers is a table of word vectors.
            let min = usize::from(field != "num_hidden_layers");
            if size < min || size > max {
                return refuse(field, format!("{size} is not between {min} and {max}"));
            }
        }
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            let (h, heads) = (self.hidden_size, self.num_attention_heads);
            return refuse("num_attention_heads", format!("{heads} heads do not divide width {h}"));
        }
        if !(self.layer_norm_eps > 0.0 && self.layer_norm_eps < 1.0) {
            return refuse("layer_norm_eps", format!("{} is not in (0, 1)", self.layer_norm_eps));
        }
        Ok(())
    }

    /// The shape of the layers above the lowest `n_below`, without embeddings.
    ///
    /// # Panics
    ///
    /// If there are fewer layers.
    #[must_use]
    pub(crate) fn upper(&self, n_below: usize) -> Self {
        assert!(n_below <= self.num_hidden_layers, "{n_below} layers below");
        Self {
            num_hidden_layers: self.num_hidden_layers - n_below,
            vocab_size: 0,
            max_position_embeddings: 0,
            type_vocab_size: 0,
            ..self.clone()
        }
    }

    /// The width of one attention head.
    #[must_use]
    pub(crate) fn head_size(&self) -> usize {
        self.hidden_size / self.num_attention_heads
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A small encoder of odd sizes: nothing divides by 8.
    pub(crate) fn odd_config() -> BertConfig {
        BertConfig {
            hidden_size: 15,
            num_hidden_layers: 2,
            num_attention_heads: 3,
            intermediate_size: 21,
            vocab_size: 31,
            max_position_embeddings: 19,
            type_vocab_size: 2,
            hidden_act: Activation::Gelu,
            layer_norm_eps: 1e-12,
        }
    }

    #[test]
    fn json_goes_round() {
        let text = serde_json::to_string(&odd_config()).unwrap();
        assert_eq!(BertConfig::from_json(&text).unwrap(), odd_config());
    }

    #[test]
    fn a_config_that_makes_no_encoder_is_refused_by_field() {
        let refused = |change: fn(&mut BertConfig), expected: &str| {
            let mut config = odd_config();
            change(&mut config);
            let text = serde_json::to_string(&config).unwrap();
            match BertConfig::from_json(&text) {
                Err(Error::EncoderConfig { field, .. }) => assert_eq!(field, expected),
                other => panic!("{expected}: {other:?}"),
            }
        };
        refused(|c| c.hidden_size = 0, "hidden_size");
        refused(|c| c.num_hidden_layers = 1 << 20, "num_hidden_layers");
        refused(|c| c.vocab_size = usize::MAX, "vocab_size");
        refused(|c| c.num_attention_heads = 4, "num_attention_heads");
        refused(|c| c.layer_norm_eps = 0.0, "layer_norm_eps");
    }

    #[test]
    fn a_distilbert_is_a_bert_by_other_names() {
        let json = serde_json::json!({
            "model_type": "distilbert", "dim": 15, "n_layers": 2, "n_heads": 3, "hidden_dim": 21, "vocab_size": 31,
            "max_position_embeddings": 19, "activation": "gelu", "sinusoidal_pos_embds": false, "dropout": 0.1,
        });
        assert_eq!(BertConfig::from_json(&json.to_string()).unwrap(), odd_config());
    }

    #[test]
    fn other_architectures_are_refused() {
        let base = serde_json::to_value(odd_config()).unwrap();
        for (field, value) in [("model_type", "mpnet"), ("position_embedding_type", "relative_key")]
        {
            let mut json = base.clone();
            json[field] = value.into();
            let error = BertConfig::from_json(&json.to_string()).unwrap_err();
            assert!(error.to_string().contains(value), "{error}");
        }
        let mut json = base;
        json["hidden_act"] = "silu".into();
        assert!(matches!(
            BertConfig::from_json(&json.to_string()),
            Err(Error::EncoderConfigJson { .. })
        ));
    }
}
