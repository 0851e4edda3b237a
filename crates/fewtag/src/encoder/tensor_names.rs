//! The names that tensors of an encoder have, or had, in Hugging Face files.
//!
//! ```text
//! bert.embeddings.LayerNorm.gamma                      embeddings.LayerNorm.weight
//! distilbert.transformer.layer.3.attention.q_lin.bias  encoder.layer.3.attention.self.query.bias
//! ```

use std::borrow::Cow;

/// Tensors of a BERT or `DistilBERT` file that the encoder itself does not have, without prefix and with new names.
pub(crate) const IGNORED: [&str; 24] = [
    "embeddings.position_ids",
    "pooler.dense.weight",
    "pooler.dense.bias",
    "cls.predictions.bias",
    "cls.predictions.decoder.weight",
    "cls.predictions.decoder.bias",
    "cls.predictions.transform.dense.weight",
    "cls.predictions.transform.dense.bias",
    "cls.predictions.transform.LayerNorm.weight",
    "cls.predictions.transform.LayerNorm.bias",
    "cls.seq_relationship.weight",
    "cls.seq_relationship.bias",
    "classifier.weight",
    "classifier.bias",
    "qa_outputs.weight",
    "qa_outputs.bias",
    "vocab_transform.weight",
    "vocab_transform.bias",
    "vocab_layer_norm.weight",
    "vocab_layer_norm.bias",
    "vocab_projector.weight",
    "vocab_projector.bias",
    "pre_classifier.weight",
    "pre_classifier.bias",
];

/// The table that `DistilBERT` does not have.
pub(super) const SEGMENTS: &str = "embeddings.token_type_embeddings.weight";

/// Parts of a layer of `DistilBERT`, and of BERT.
const DISTILBERT: [(&str, &str); 8] = [
    ("attention.q_lin.", "attention.self.query."),
    ("attention.k_lin.", "attention.self.key."),
    ("attention.v_lin.", "attention.self.value."),
    ("attention.out_lin.", "attention.output.dense."),
    ("sa_layer_norm.", "attention.output.LayerNorm."),
    ("ffn.lin1.", "intermediate.dense."),
    ("ffn.lin2.", "output.dense."),
    ("output_layer_norm.", "output.LayerNorm."),
];

/// What a stored tensor is called today, in BERT.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TodayName<'a> {
    /// Without the model's prefix, and with `weight`/`bias` for the old `gamma`/`beta`.
    pub(super) name: Cow<'a, str>,
    /// Whether it was stored under a name of `DistilBERT`'s layers.
    pub(super) is_distilbert: bool,
}

impl<'a> TodayName<'a> {
    /// That of a tensor stored as `name`.
    pub(super) fn of(name: &'a str) -> Self {
        let name = name.strip_prefix("bert.").unwrap_or(name);
        let name = name.strip_prefix("distilbert.").unwrap_or(name);
        if let Some(name) = of_distilbert(name) {
            return Self { name: name.into(), is_distilbert: true };
        }
        for (old, new) in
            [("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")]
        {
            if let Some(start) = name.strip_suffix(old) {
                return Self { name: format!("{start}{new}").into(), is_distilbert: false };
            }
        }
        Self { name: name.into(), is_distilbert: false }
    }
}

/// BERT's name of a tensor of a layer of `DistilBERT`.
fn of_distilbert(name: &str) -> Option<String> {
    let (layer, part) = name.strip_prefix("transformer.layer.")?.split_once('.')?;
    let mut parts = DISTILBERT.into_iter();
    let (new, kind) = parts.find_map(|(old, new)| Some((new, part.strip_prefix(old)?)))?;
    Some(format!("encoder.layer.{layer}.{new}{kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_names_and_those_of_distilbert_are_brought_to_todays() {
        for (stored, name, is_distilbert) in [
            ("embeddings.LayerNorm.weight", "embeddings.LayerNorm.weight", false),
            ("bert.embeddings.LayerNorm.gamma", "embeddings.LayerNorm.weight", false),
            ("distilbert.embeddings.LayerNorm.bias", "embeddings.LayerNorm.bias", false),
            (
                "distilbert.transformer.layer.3.attention.q_lin.bias",
                "encoder.layer.3.attention.self.query.bias",
                true,
            ),
            (
                "transformer.layer.0.output_layer_norm.weight",
                "encoder.layer.0.output.LayerNorm.weight",
                true,
            ),
            ("transformer.layer.0.other.weight", "transformer.layer.0.other.weight", false),
        ] {
            assert_eq!(TodayName::of(stored), TodayName { name: name.into(), is_distilbert });
        }
    }
}
