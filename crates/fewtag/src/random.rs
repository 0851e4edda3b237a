//! The one source of randomness: a seeded, counter-based generator.
//!
//! ```text
//! value(seed, n) = mix(seed + (n + 1) · γ)      SplitMix64, γ = ⌊2⁶⁴ / golden ratio⌋, odd
//! ```
//!
//! Whole numbers come from integer arithmetic alone, so the same seed gives the same values on every
//! machine. A value is a function of its counter, so it can be had out of order ([`Random::at`]), and
//! independent [`Random::stream`]s make a result independent of the thread that computes it.
//!
//! Method: Steele, Lea and Flood (2014), "Fast splittable pseudorandom number generators". Reference
//! values in the tests: Vigna's `splitmix64.c`. Not for secrets.

/// A seeded generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random {
    seed: u64,
    counter: u64,
}

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// The generator of `seed`; equal seeds give equal values.
    pub fn new(seed: u64) -> Self {
        Self { seed, counter: 0 }
    }

    /// The `n`-th of many generators that are independent of this one and of each other.
    ///
    /// It depends on the seed only, not on what was drawn so far.
    #[must_use]
    pub fn stream(&self, n: u64) -> Self {
        // Mixed twice: once would be a point of this generator's own sequence.
        Self::new(mix(self.at(n) ^ GAMMA))
    }

    /// The generator that belongs to `name`, so that a named thing draws alike whatever else is drawn.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        name.bytes().fold(self.stream(name.len() as u64), |random, byte| random.stream(byte.into()))
    }

    /// Value number `n` of this generator.
    pub fn at(&self, n: u64) -> u64 {
        mix(self.seed.wrapping_add(n.wrapping_add(1).wrapping_mul(GAMMA)))
    }

    /// The next value, any of 2⁶⁴.
    pub fn next_u64(&mut self) -> u64 {
        let value = self.at(self.counter);
        self.counter += 1;
        value
    }

    /// The next number in `0..n`, each exactly as likely.
    ///
    /// # Panics
    ///
    /// If `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        assert!(n > 0, "there is no number below 0");
        let n = n as u64;
        // Lemire (2019): the upper half of value·n, drawn again where the lower half is a remainder.
        let remainder = n.wrapping_neg() % n;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(n);
            if product as u64 >= remainder {
                return (product >> 64) as usize;
            }
        }
    }

    /// The next number in `[0, 1)`, one of 2⁵³ equally spaced ones.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The next number of the normal distribution N(0, 1), by Box and Muller (1958).
    ///
    /// The last bit may differ between machines whose logarithms do.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Brings `items` into a random order, every order being as likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// The finaliser of `SplitMix64`: a bijection whose output bits each depend on every input bit.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_reference() {
        // `splitmix64.c` started with x = 1234567.
        let mut random = Random::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!([0; 5].map(|_: u64| random.next_u64()), expected);
        assert_eq!(random.at(2), expected[2]);
    }

    #[test]
    fn streams_do_not_depend_on_what_was_drawn() {
        let fresh = Random::new(7);
        let mut used = fresh.clone();
        used.next_u64();
        assert_eq!(fresh.stream(3), used.stream(3));
        assert_ne!(fresh.stream(3), fresh.stream(4));
        assert_ne!(fresh.named("ab"), fresh.named("ba"));
    }

    #[test]
    fn every_number_below_n_is_as_likely() {
        let mut random = Random::new(1);
        let mut seen = [0_i32; 7];
        for _ in 0..70_000 {
            seen[random.below(7)] += 1;
        }
        // Six standard deviations of a binomial count are 6·√(70000·1/7·6/7) ≈ 556.
        assert!(seen.iter().all(|n| (n - 10_000).abs() < 556), "{seen:?}");
    }

    #[test]
    fn every_order_is_as_likely() {
        let mut random = Random::new(2);
        let mut seen = std::collections::HashMap::new();
        for _ in 0..60_000 {
            let mut items = [0, 1, 2];
            random.shuffle(&mut items);
            *seen.entry(items).or_insert(0_i32) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|n| (n - 10_000).abs() < 556), "{seen:?}");
    }

    #[test]
    fn normal_numbers_have_mean_0_and_variance_1() {
        let mut random = Random::new(3);
        let draws: Vec<f64> = (0..100_000).map(|_| random.normal()).collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
        let beyond_two = draws.iter().filter(|x| x.abs() > 2.0).count();
        assert!((4_100..5_000).contains(&beyond_two), "{beyond_two}"); // 4.55 % in theory.
    }

    #[test]
    fn units_lie_in_the_half_open_interval() {
        let mut random = Random::new(4);
        assert!((0..10_000).map(|_| random.unit()).all(|x| (0.0..1.0).contains(&x)));
    }
}
