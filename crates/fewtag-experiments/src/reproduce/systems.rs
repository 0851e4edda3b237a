//! The systems of the paper's tables, and a few that later work suggests.
//!
//! A system is a name and a short configuration: the difference from the defaults, which are the paper's NMN+P&D.

/// A row of the tables.
#[derive(Debug, PartialEq, Eq)]
pub struct System {
    /// How a user names it; its configuration is `systems/KEY.toml` in this crate.
    pub key: &'static str,
    /// How the tables name it: as the paper does, if it is in the paper.
    pub name: &'static str,
    /// What learns.
    pub learner: Learner,
    /// Its configuration: the TOML of `fewtag train`, or of the baseline's settings.
    pub config: &'static str,
}

/// What learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learner {
    /// The model over the given encoder, as it is.
    Untrained,
    /// The model, over the given encoder.
    Model,
    /// The model, over a table of random word vectors.
    RandomVectors,
    /// The model, over a table of GloVe vectors.
    Glove,
    /// A bidirectional LSTM, from each support set alone, over GloVe vectors if they are given.
    BiLstm,
    /// The same over random word vectors.
    RandomBiLstm,
    /// A token classifier, from the source domains and then from each support set.
    TransferBert,
}

impl Learner {
    /// Whether it learns from the source domains of a fold.
    #[must_use]
    pub fn learns_from_sources(self) -> bool {
        !matches!(self, Self::Untrained | Self::BiLstm | Self::RandomBiLstm)
    }
}

macro_rules! system {
    ($key:literal, $name:literal, $learner:ident) => {
        System {
            key: $key,
            name: $name,
            learner: Learner::$learner,
            config: include_str!(concat!("../../systems/", $key, ".toml")),
        }
    };
}

/// All systems, in the order of the paper's tables; those beyond the paper follow.
pub static SYSTEMS: [System; 23] = [
    system!("bi-lstm", "Bi-LSTM", BiLstm),
    system!("simbert", "SimBERT", Untrained),
    system!("transfer-bert", "TransferBERT", TransferBert),
    system!("wpz", "WPZ", RandomVectors),
    system!("wpz-glove", "WPZ+GloVe", Glove),
    system!("wpz-bert", "WPZ+BERT", Model),
    system!("mn", "MN", Model),
    system!("nmn", "NMN", Model),
    system!("mn-pd", "MN+P&D", Model),
    system!("wpz-bert-pd", "WPZ+BERT+P&D", Model),
    system!("nmn-pd", "NMN+P&D", Model),
    system!("nmn-pw", "NMN+PW", Model),
    system!("nmn-pw-rule", "NMN+PW+Rule", Model),
    system!("nmn-dt", "NMN+DT", Model),
    system!("nmn-pd-fixed-scale", "NMN+P&D, fixed scale", Model),
    system!("nearest-dt", "nearest+DT", Model),
    system!("vp", "WPZ+BERT+DT, projection", Model),
    system!("vp-pd", "WPZ+BERT+P&D, projection", Model),
    system!("l-wpz", "L-WPZ+DT", Model),
    system!("l-vp", "L-WPZ+DT, projection", Model),
    system!("fitted", "fitted+DT", Model),
    system!("bi-lstm-random", "Bi-LSTM, random words", RandomBiLstm),
    system!("transfer-bert-slow", "TransferBERT, rate 1e-5", TransferBert),
];

impl System {
    /// The system of that key.
    #[must_use]
    pub fn find(key: &str) -> Option<&'static Self> {
        SYSTEMS.iter().find(|system| system.key == key)
    }
}

#[cfg(test)]
mod tests {
    use fewtag::train::config::Config;

    use super::super::published::Published;
    use super::*;

    #[test]
    fn every_row_of_the_paper_has_its_system() {
        let published = Published::tables();
        let names = |system: &String| SYSTEMS.iter().any(|have| have.name == system);
        assert!(published.one_shot.iter().all(|row| names(&row.system)));
        assert!(published.five_shot.iter().all(|row| names(&row.system)));
        assert!(published.rules.iter().all(|row| names(&row.system)));
    }

    #[test]
    fn every_configuration_of_the_model_is_a_training_configuration() {
        let baselines = [Learner::BiLstm, Learner::RandomBiLstm, Learner::TransferBert];
        for system in SYSTEMS.iter().filter(|system| !baselines.contains(&system.learner)) {
            let config = Config::parse(system.config, &[]).unwrap();
            config.model.check().unwrap();
        }
        let paper = Config::parse(System::find("nmn-pd").unwrap().config, &[]).unwrap();
        assert_eq!(paper, Config::default());
    }

    #[test]
    fn keys_are_distinct() {
        for system in &SYSTEMS {
            assert_eq!(System::find(system.key), Some(system));
        }
        assert_eq!(System::find("bert"), None);
    }
}
