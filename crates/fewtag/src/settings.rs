//! What kind of model it is: the choices that are made before training and saved with the weights.
//!
//! The defaults are the paper's NMN with pair-wise embedding and dependency transfer.

use serde::{Deserialize, Serialize};

use crate::domain::SupportSet;
use crate::emission::{EmissionScorer, ScorerKind, Similarity};
use crate::error::{Error, Result};
use crate::head::Head;
use crate::tag::{Tag, TagSet};
use crate::transition::{TransitionMode, TransitionStart};

/// How query and support are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Context {
    /// The query beside each support sentence in turn: the paper's pair-wise embedding.
    #[default]
    Paired,
    /// Each sentence alone; the support is read once for all queries.
    Separate,
}

/// The choices that make a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own, named in files")]
pub struct ModelSettings {
    /// How query and support are read.
    pub context: Context,
    /// How the support words of a tag are put together.
    pub scorer: ScorerKind,
    /// How two word vectors are compared.
    pub similarity: Similarity,
    /// The share of the tag's name in a prototype, from 0 (off) to 1. The mixed scorer learns what a name is worth:
    /// there anything above 0 means on.
    pub label_names: f32,
    /// What tags may follow each other, and how well.
    pub transitions: TransitionMode,
    /// Where training starts them.
    #[serde(skip_serializing_if = "is_default")]
    pub transition_start: TransitionStart,
    /// Whether decoding forbids every `I` that continues no span of its slot.
    pub constrained: bool,
    /// Whether the loss knows it too: then forbidden paths have no share in it.
    #[serde(skip_serializing_if = "is_default")]
    pub legal_loss: bool,
    /// Whether the encoder sees how words are written: lower case, Capitalised, SHOUTED, digits.
    #[serde(skip_serializing_if = "is_default")]
    pub case: bool,
    /// Whether a slot with `B` but no `I` in the support lets its `B` words speak for `I` too.
    pub borrow: bool,
    /// Whether the regression of the fitted scorer also sees each word by itself, outside its sentence.
    #[serde(skip_serializing_if = "is_default")]
    pub lexical: bool,
    /// The layers whose rows that regression sees as well, from below; the more examples, the more they count.
    #[serde(skip_serializing_if = "is_default")]
    pub middle: Vec<usize>,
    /// What a word of `B` says in that regression for `I` of its slot, and one of `I` for `B`: from 0 to 1.
    #[serde(skip_serializing_if = "is_default")]
    pub siblings: f32,
    /// How fast the nearest words of the mixed and the fitted scorer give way to prototypes as examples come: by `n^−fade` with
    /// `n` examples per label, at least one, from 0 (not at all) to 1.
    #[serde(skip_serializing_if = "is_default")]
    pub fade: f32,
    /// The factor λ of the emissions; where it starts, if it is learned.
    pub scale: f32,
    /// Whether λ is learned.
    pub learn_scale: bool,
    /// Probabilities are those of all scores divided by this; it changes no tag.
    pub temperature: f32,
    /// The temperature is multiplied by the number of examples per label to this power.
    #[serde(skip_serializing_if = "is_default")]
    pub temperature_growth: f32,
    /// The temperature is multiplied by this where names alone speak for the labels, and by the less the nearer to one example
    /// per label.
    #[serde(skip_serializing_if = "is_one")]
    pub temperature_of_names: f32,
}

/// Factors that older models lack are not written while they change nothing.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_one(factor: &f32) -> bool {
    (factor - 1.0).abs() < f32::EPSILON
}

/// Settings that older models lack are not written while they are off.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            context: Context::default(),
            scorer: ScorerKind::default(),
            similarity: Similarity::default(),
            label_names: 0.0,
            transitions: TransitionMode::default(),
            transition_start: TransitionStart::default(),
            constrained: false,
            legal_loss: false,
            case: false,
            borrow: false,
            lexical: false,
            middle: Vec::new(),
            siblings: 0.0,
            fade: 0.0,
            // The paper draws it from U(0, 1), where dot products of BERT vectors, around 100, saturate.
            scale: 0.05,
            learn_scale: true,
            temperature: 1.0,
            temperature_growth: 0.0,
            temperature_of_names: 1.0,
        }
    }
}

impl ModelSettings {
    /// Refuses numbers that mean nothing and choices that exclude each other.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`] with the name of the setting.
    pub fn check(&self) -> Result<()> {
        let refuse = |setting, problem| Err(Error::Setting { setting, problem });
        if !(0.0..=1.0).contains(&self.label_names) {
            return refuse("label_names", "is a share and must lie between 0 and 1");
        }
        if self.label_names > 0.0 && !self.scorer.takes_names() {
            return refuse(
                "label_names",
                "needs `scorer = \"prototype\"`, `\"mixed\"` or `\"fitted\"`",
            );
        }
        if !(0.0..=1.0).contains(&self.siblings) {
            return refuse("siblings", "is a share and must lie between 0 and 1");
        }
        if self.siblings > 0.0 && self.scorer != ScorerKind::Fitted {
            return refuse("siblings", "needs `scorer = \"fitted\"`");
        }
        if !(0.0..=1.0).contains(&self.fade) {
            return refuse("fade", "is a power and must lie between 0 and 1");
        }
        if self.fade > 0.0 && !self.scorer.is_mixed() {
            return refuse("fade", "needs `scorer = \"mixed\"` or `\"fitted\"`");
        }
        if self.lexical && self.scorer != ScorerKind::Fitted {
            return refuse("lexical", "needs `scorer = \"fitted\"`");
        }
        if !self.middle.is_empty() && self.scorer != ScorerKind::Fitted {
            return refuse("middle", "needs `scorer = \"fitted\"`");
        }
        if self.middle.first() == Some(&0) || !self.middle.is_sorted_by(|a, b| a < b) {
            return refuse("middle", "must be numbers of layers from 1 that increase");
        }
        if self.legal_loss && !self.constrained {
            return refuse("legal_loss", "needs `constrained = true`");
        }
        if !(1e-3..=1e3).contains(&self.temperature) {
            return refuse("temperature", "must lie between 0.001 and 1000");
        }
        if !(-2.0..=2.0).contains(&self.temperature_growth) {
            return refuse("temperature_growth", "is a power and must lie between -2 and 2");
        }
        if !(1e-3..=1e3).contains(&self.temperature_of_names) {
            return refuse("temperature_of_names", "must lie between 0.001 and 1000");
        }
        if !self.scale.is_finite() {
            return refuse("scale", "must be a number");
        }
        Ok(())
    }

    /// The emission scorer that these settings and a trained head describe.
    #[must_use]
    pub(crate) fn emission_scorer(&self, head: &Head) -> EmissionScorer {
        let Self { scorer: kind, similarity, label_names, lexical, siblings, fade, .. } = *self;
        let (n_middle, mix) = (self.middle.len(), head.mix);
        EmissionScorer { kind, similarity, label_names, lexical, n_middle, siblings, fade, mix }
    }

    /// The temperature with so many examples per label.
    #[must_use]
    pub(crate) fn temperature_at(&self, examples_per_label: f32) -> f32 {
        let n = examples_per_label;
        // A name is worth something too.
        let of_examples = n.max(0.5).powf(self.temperature_growth);
        self.temperature * of_examples * self.temperature_of_names.powf((1.0 - n).max(0.0))
    }

    /// The tags that a support set lets a word have: those it shows, and every `I` that may borrow.
    #[must_use]
    pub fn tag_set(&self, support: &SupportSet) -> TagSet {
        let shown = support.tag_set();
        if !self.borrow {
            return shown.clone();
        }
        let begun = shown.tags().iter().filter(|tag| matches!(tag, Tag::B(_)));
        let borrowing: Vec<Tag> = begun.filter_map(Tag::slot).cloned().map(Tag::I).collect();
        TagSet::new(shown.tags().iter().chain(&borrowing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_strict() {
        let read = |text: &str| toml::from_str::<ModelSettings>(text);
        assert_eq!(read("").unwrap(), ModelSettings::default());
        let settings = read("scorer = \"mn\"\nsimilarity = \"squared_distance\"").unwrap();
        assert_eq!(
            (settings.scorer, settings.similarity),
            (ScorerKind::Mn, Similarity::SquaredDistance)
        );
        assert!(read("scoring = \"mn\"").is_err());
        assert!(read("scorer = \"best\"").is_err());
    }

    #[test]
    fn settings_that_mean_nothing_are_refused() {
        let refusal = |text: &str| {
            let settings: ModelSettings = toml::from_str(text).unwrap();
            settings.check().unwrap_err().to_string()
        };
        assert!(
            refusal("label_names = 0.5").contains("`label_names` needs `scorer = \"prototype\"`")
        );
        assert!(refusal("label_names = 1.5").contains("between 0 and 1"));
        assert!(refusal("lexical = true").contains("`lexical` needs `scorer = \"fitted\"`"));
        assert!(refusal("scorer = \"fitted\"\nsiblings = 2.0").contains("between 0 and 1"));
        assert!(refusal("fade = 0.3").contains("`fade` needs `scorer = \"mixed\"`"));
        assert!(refusal("scorer = \"mixed\"\nfade = -0.1").contains("between 0 and 1"));
        assert!(refusal("middle = [1]").contains("`middle` needs `scorer = \"fitted\"`"));
        for layers in ["[0]", "[2, 1]", "[1, 1]"] {
            let refusal = refusal(&format!("scorer = \"fitted\"\nmiddle = {layers}"));
            assert!(refusal.contains("`middle` must be numbers of layers"), "{refusal}");
        }
        for beyond in ["0.0", "-1.0", "3e38", "1e-40", "nan"] {
            for name in ["temperature", "temperature_of_names"] {
                let refusal = refusal(&format!("{name} = {beyond}"));
                assert!(refusal.contains(&format!("`{name}` must lie between")), "{refusal}");
            }
        }
        assert!(refusal("scale = nan").contains("`scale`"));
        assert!(ModelSettings::default().check().is_ok());
    }

    #[test]
    fn names_have_a_temperature_that_gives_way_to_the_first_example() {
        let settings = ModelSettings {
            temperature: 3.0,
            temperature_growth: 0.5,
            temperature_of_names: 4.0,
            ..ModelSettings::default()
        };
        let of_half = 3.0 * 0.5_f32.sqrt();
        for (n, expected) in [(0.0, of_half * 4.0), (0.5, of_half * 2.0), (1.0, 3.0), (4.0, 6.0)] {
            let found = settings.temperature_at(n);
            assert!((found - expected).abs() < 1e-5, "{n}: {found} instead of {expected}");
        }
    }
}
