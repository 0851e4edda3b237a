//! Cross-validation over domains: each is the test domain once.

/// Domains by their place: one to test on, one to choose weights by, the others to learn from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fold {
    /// The test domain.
    pub test: usize,
    /// The dev domain: the one after it, cyclically.
    pub dev: usize,
    /// The source domains: all others.
    pub train: Vec<usize>,
}

impl Fold {
    /// The fold that tests on domain `test` of `n_domains`, which must be at least three.
    ///
    /// # Panics
    ///
    /// If there are fewer, or `test` is none of them.
    #[must_use]
    pub fn new(test: usize, n_domains: usize) -> Self {
        assert!(n_domains >= 3 && test < n_domains, "fold {test} of {n_domains} domains");
        let dev = (test + 1) % n_domains;
        Self { test, dev, train: (0..n_domains).filter(|d| ![test, dev].contains(d)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dev_domain_follows_the_test_domain() {
        assert_eq!(Fold::new(0, 7), Fold { test: 0, dev: 1, train: vec![2, 3, 4, 5, 6] });
        assert_eq!(Fold::new(6, 7), Fold { test: 6, dev: 0, train: vec![1, 2, 3, 4, 5] });
        assert_eq!(Fold::new(3, 4), Fold { test: 3, dev: 0, train: vec![1, 2] });
    }
}
