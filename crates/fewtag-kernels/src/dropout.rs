//! Dropout: in training a number is set to zero with probability `rate`, else divided by `1 − rate`.
//!
//! Which numbers is a function of seed, layer, place, row and column. So it does not depend on threads or on the order
//! of work, and the backward pass asks again instead of keeping a mask: it applies the same function to the gradient.
//!
//! ```text
//! (a, b) = the two halves of value(seed, (layer, place, head, row))            once per row
//! drop column j  if  mix(mix(j · γ ⊕ a) ⊕ b) < rate · 2³²                      once per number
//! ```
//!
//! `mix` is the 32-bit finaliser of `MurmurHash3` (Appleby, 2011), which vectorises.

use crate::vectorised;

/// Dropout of a training pass. The same seed drops the same numbers, whatever the number of threads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    /// The share of numbers set to zero, in `[0, 1)`.
    pub rate: f32,
    /// Fixes which.
    pub seed: u64,
}

/// Where in the encoder numbers are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The embeddings, after their layer normalisation.
    Embeddings,
    /// The attention probabilities of a head.
    Attention {
        /// Which.
        head: usize,
    },
    /// The attention block's output, before the residual sum.
    AttentionOutput,
    /// The feed-forward block's output, before the residual sum.
    Output,
}

/// Dropout within one layer.
#[derive(Debug, Clone, Copy)]
pub struct LayerDropout {
    dropout: Dropout,
    layer: usize,
}

impl LayerDropout {
    /// The dropout of `layer`.
    ///
    /// # Panics
    ///
    /// If the rate is not in `[0, 1)`.
    pub fn new(dropout: Dropout, layer: usize) -> Self {
        assert!((0.0..1.0).contains(&dropout.rate), "dropout rate {}", dropout.rate);
        Self { dropout, layer }
    }

    /// Hashes below it are dropped.
    #[expect(clippy::cast_sign_loss, reason = "a rate is not negative")]
    fn threshold(self) -> u32 {
        (f64::from(self.dropout.rate) * 2.0_f64.powi(32)) as u32
    }

    /// Drops from `rows`, of which the first is row `first` of the batch. Applied to a gradient it is its own backward pass.
    pub fn apply(self, place: Place, first: usize, rows: &mut [f32], width: usize) {
        let (place, head) = match place {
            Place::Embeddings => (0, 0),
            Place::Attention { head } => (1, head),
            Place::AttentionOutput => (2, 0),
            Place::Output => (3, 0),
        };
        let seed = self.dropout.seed;
        let counter = ((self.layer * 4 + place) as u64) << 48 | (head as u64) << 32;
        let threshold = self.threshold();
        let scale = 1.0 / (1.0 - self.dropout.rate);
        vectorised(
            #[inline(always)]
            || {
                for (r, row) in rows.chunks_exact_mut(width).enumerate() {
                    let key = value(seed, counter | (first + r) as u64);
                    let (a, b) = (key as u32, (key >> 32) as u32);
                    for (j, x) in row.iter_mut().enumerate() {
                        let hash = mix(mix((j as u32).wrapping_mul(0x9e37_79b9) ^ a) ^ b);
                        // A mask instead of a choice: the compiler would make a branch of it.
                        let keep = u32::from(hash >= threshold).wrapping_neg();
                        *x = f32::from_bits((*x * scale).to_bits() & keep);
                    }
                }
            },
        );
    }
}

/// Value `n` of the generator `SplitMix64` of `seed` (Steele, Lea and Flood, 2014).
#[inline(always)]
pub(crate) fn value(seed: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_add(n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[inline(always)]
fn mix(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 250;

    fn dropped(seed: u64, layer: usize, place: Place, first: usize) -> Vec<f32> {
        let mut rows = vec![1.0; 400 * WIDTH];
        LayerDropout::new(Dropout { rate: 0.1, seed }, layer).apply(place, first, &mut rows, WIDTH);
        rows
    }

    #[test]
    fn a_tenth_is_dropped_and_the_mean_stays() {
        let rows = dropped(1, 0, Place::Output, 0);
        let zeros = rows.iter().filter(|&&x| x == 0.0).count() as f64 / rows.len() as f64;
        // Five standard deviations of a share of 100,000 draws: 5·√(0.1·0.9/100000) = 0.0047.
        assert!((zeros - 0.1).abs() < 0.0047, "{zeros}");
        assert!(rows.iter().all(|&x| x == 0.0 || (x - 1.0 / 0.9).abs() < 1e-6));
        for column in 0..WIDTH {
            let zeros = rows.iter().skip(column).step_by(WIDTH).filter(|&&x| x == 0.0).count();
            assert!((10..=70).contains(&zeros), "column {column}: {zeros} of 400");
        }
    }

    #[test]
    fn seeds_layers_places_and_heads_drop_independently() {
        let base = dropped(1, 0, Place::Output, 0);
        for other in [
            dropped(2, 0, Place::Output, 0),
            dropped(1, 1, Place::Output, 0),
            dropped(1, 0, Place::AttentionOutput, 0),
            dropped(1, 0, Place::Attention { head: 0 }, 0),
            dropped(1, 0, Place::Attention { head: 1 }, 0),
            dropped(1, 0, Place::Output, 1000),
        ] {
            let both = base.iter().zip(&other).filter(|&(x, y)| *x == 0.0 && *y == 0.0).count();
            assert!((840..1160).contains(&both), "{both} of 100,000, expected 1,000");
        }
    }

    #[test]
    fn a_row_does_not_know_where_its_group_starts() {
        let base = dropped(1, 0, Place::Output, 0);
        assert_eq!(base[7 * WIDTH..], dropped(1, 0, Place::Output, 7)[..393 * WIDTH]);
    }
}
