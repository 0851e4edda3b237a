//! Every unit of this machine against whole-number arithmetic spelled out in 64 bits, without a tolerance.

use super::rows::{self, Scale};
use super::*;
use crate::Fma;
use crate::activation::{self, Activation};
use crate::testing::normal;

/// `m, n, k`: around the sizes of tiles, panels, groups and quads.
const SIZES: [[usize; 3]; 12] = [
    [1, 1, 1],
    [2, 3, 2],
    [12, 32, 64],
    [13, 33, 65],
    [25, 31, 3],
    [5, 70, 384],
    [7, 64, 1536],
    [29, 95, 37],
    [8, 32, 63],
    [3, 65, 130],
    [6, 32, 4],
    [0, 40, 8],
];

/// A product to be made, with all its numbers.
struct Case {
    x: Vec<f32>,
    weights: Vec<i8>,
    steps: Vec<f32>,
    bias: Vec<f32>,
    k: usize,
}

impl Case {
    /// Weights of the whole range of a byte.
    fn random([m, n, k]: [usize; 3]) -> Self {
        let bytes = |x: &f32| (x * 60.0).clamp(-128.0, 127.0) as i8;
        let weights = normal(n * k, 1).iter().map(bytes).collect();
        let steps = normal(n, 2).iter().map(|x| x.abs() / 100.0).collect();
        Self { x: normal(m * k, 3), weights, steps, bias: normal(n, 4), k }
    }

    fn panels(&self) -> Panels {
        let cut = self.steps.len() / 3; // As queries, keys and values come.
        let (first, second) = (self.weights.split_at(cut * self.k), self.steps.split_at(cut));
        let part = |values, scales| Matrix { values, scales };
        Panels::pack(&[part(first.0, second.0), part(first.1, second.1)], self.k)
    }

    fn rows(&self, unit: Unit) -> Rows {
        let mut rows = Rows::new(unit);
        rows.quantise(&self.x, self.k);
        rows
    }

    fn product(&self, unit: Unit, finish: Finish) -> Vec<f32> {
        let mut y = vec![f32::NAN; self.x.len() / self.k * self.steps.len()];
        let (rows, panels) = (self.rows(unit), self.panels());
        Product { rows: &rows, panels: &panels, bias: &self.bias, finish }.into(&mut y);
        y
    }

    /// The formula of the module, number by number.
    fn expected(&self) -> Vec<f32> {
        let mut y = Vec::new();
        for x in self.x.chunks_exact(self.k) {
            let groups: Vec<_> = x.chunks(GROUP).map(quantised).collect();
            for (j, q) in self.weights.chunks_exact(self.k).enumerate() {
                let mut sum = 0.0_f32;
                for ((scale, bytes), q) in groups.iter().zip(q.chunks(GROUP)) {
                    let terms = bytes.iter().zip(q);
                    let terms =
                        terms.map(|(&u, &q)| (i64::from(u) - i64::from(scale.zero)) * i64::from(q));
                    sum = (terms.sum::<i64>() as f32).mul_add(scale.step, sum);
                }
                y.push(sum * self.steps[j] + self.bias[j]);
            }
        }
        y
    }
}

/// A group in bytes.
fn quantised(x: &[f32]) -> (Scale, Vec<u8>) {
    let (scale, bytes) = rows::quantised::<u8>(x);
    (scale, bytes[..x.len()].to_vec())
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn every_unit_gives_the_same_bits_at_odd_sizes() {
    for size in SIZES {
        let case = Case::random(size);
        for unit in Unit::available() {
            let y = case.product(unit, Finish::Plain);
            assert_eq!(bits(&y), bits(&case.expected()), "{unit:?} {size:?}");
        }
    }
}

#[test]
fn no_sum_saturates_at_the_ends_of_a_byte() {
    // Pairs whose sum does not fit 16 bits, on both sides, in part of a group, a whole one and many.
    for k in [2, 4, GROUP, 1536, 1 << 16] {
        for (byte, x) in
            [(127, [1.0, 1.0]), (-128, [1.0, 1.0]), (-128, [-1.0, 1.0]), (127, [-1.0, 1.0])]
        {
            let case = Case {
                x: x.into_iter().cycle().take(3 * k).collect(),
                weights: vec![byte; 33 * k],
                steps: vec![1.0; 33],
                bias: vec![0.0; 33],
                k,
            };
            let (_, bytes) = quantised(&case.x[..k.min(GROUP)]);
            assert!(bytes.contains(&255));
            for unit in Unit::available() {
                let y = case.product(unit, Finish::Plain);
                assert_eq!(bits(&y), bits(&case.expected()), "{unit:?} {byte} {x:?} {k}");
            }
        }
    }
}

#[test]
fn a_product_is_close_to_that_of_the_numbers_it_stands_for() {
    let case = Case::random([9, 40, 384]);
    let y = case.product(Unit::best(), Finish::Plain);
    for (x, y) in case.x.chunks_exact(case.k).zip(y.chunks_exact(40)) {
        let steps: Vec<f32> = x.chunks(GROUP).map(|x| quantised(x).0.step).collect();
        for (j, (q, y)) in case.weights.chunks_exact(case.k).zip(y).enumerate() {
            let weight = |q: i8| f64::from(q) * f64::from(case.steps[j]);
            let exact: f64 = x.iter().zip(q).map(|(&x, &q)| f64::from(x) * weight(q)).sum();
            // Every term is off by half a step of its group at most.
            let terms = q.iter().enumerate();
            let bounds = terms.map(|(p, &q)| weight(q).abs() * f64::from(steps[p / GROUP]) * 0.501);
            let bound = bounds.sum::<f64>() + 1e-5;
            let error = (f64::from(*y) - exact - f64::from(case.bias[j])).abs();
            assert!(error <= bound, "{error} > {bound}");
        }
    }
}

#[test]
fn rows_of_zeros_stay_and_tiny_ones_become_zeros() {
    for value in [0.0, -0.0, 1e-40, -1e-38] {
        let mut case = Case::random([3, 40, 50]);
        case.x[50..100].fill(value);
        for unit in Unit::available() {
            assert_eq!(case.product(unit, Finish::Plain)[40..80], case.bias, "{unit:?} {value}");
        }
    }
}

#[test]
fn what_is_not_finite_makes_its_own_row_nan_and_no_other() {
    for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for at in [0, 31, 32, 63, 64, 149] {
            let mut case = Case::random([3, 40, 150]);
            let good = case.product(Unit::Portable, Finish::Plain);
            case.x[150 + at] = bad;
            for unit in Unit::available() {
                let y = case.product(unit, Finish::Plain);
                assert!(y[40..80].iter().all(|y| y.is_nan()), "{unit:?} {bad} at {at}");
                assert_eq!(y[..40], good[..40]);
                assert_eq!(y[80..], good[80..]);
            }
        }
    }
    let huge = [f32::MAX, f32::MIN];
    assert!(quantised(&huge).0.step.is_nan(), "a range that no float holds");
}

#[test]
fn bytes_are_the_nearest_ones() {
    for seed in 0..20 {
        let shift = seed as f32 / 4.0 - 2.0;
        let x: Vec<f32> = normal(GROUP, seed).iter().map(|x| x + shift).collect();
        let (scale, bytes) = quantised(&x);
        for (&x, &u) in x.iter().zip(&bytes) {
            let off = (x - scale.step * (i32::from(u) - scale.zero) as f32).abs();
            // Beyond the ends there is no byte: a zero that was rounded moves them by half a step.
            assert!(off <= scale.step * if u == 0 || u == 255 { 1.001 } else { 0.501 });
        }
    }
    // 0…255 are their own bytes, and halves go to the even one.
    for first in 0..=u8::MAX - 62 {
        let bytes: Vec<u8> = (first..first + 62).chain([255]).collect();
        let whole: Vec<f32> = bytes.iter().map(|&u| f32::from(u)).collect();
        assert_eq!(quantised(&whole), (Scale { step: 1.0, zero: 0 }, bytes));
    }
    assert_eq!(quantised(&[255.0, 0.5, 1.5, 2.5]).1, [255, 0, 2, 2]);
    assert_eq!(quantised(&[-1.0, 0.0]), (Scale { step: 1.0 / 255.0, zero: 255 }, vec![0, 255]));
}

#[test]
fn vectorised_rows_are_the_bytes_of_plain_ones() {
    for k in [1, 4, 31, 100, 384] {
        let case = Case::random([5, 1, k]);
        for unit in Unit::available() {
            let rows = case.rows(unit);
            let (n_quads, n_groups) = (k.div_ceil(QUAD), k.div_ceil(GROUP));
            for (i, x) in case.x.chunks_exact(k).enumerate() {
                let (scales, bytes): (Vec<_>, Vec<_>) = x.chunks(GROUP).map(quantised).unzip();
                assert_eq!(rows.scales[i * n_groups..][..n_groups], scales);
                let bytes = bytes.concat();
                let ours: Vec<u8> = if unit.is_wide() {
                    rows.wide[i * n_quads..][..n_quads]
                        .as_flattened()
                        .iter()
                        .map(|&u| u as u8)
                        .collect()
                } else {
                    rows.narrow[i * n_quads..][..n_quads].as_flattened().to_vec()
                };
                assert_eq!(ours[..k], bytes, "{unit:?} {k}");
            }
        }
    }
}

#[test]
fn a_large_number_makes_its_own_group_coarse_and_no_other() {
    for unit in Unit::available() {
        let mut case = Case::random([1, 33, 3 * GROUP]);
        let before = case.product(unit, Finish::Plain);
        for row in case.weights.chunks_exact_mut(3 * GROUP) {
            row[GROUP..].fill(0);
        }
        let alone = case.product(unit, Finish::Plain);
        case.x[2 * GROUP + 5] = 1e6;
        assert_eq!(case.product(unit, Finish::Plain), alone, "{unit:?}");
        assert_ne!(alone, before, "the other groups counted");
    }
}

#[test]
fn a_row_does_not_depend_on_other_rows() {
    let case = Case::random([29, 50, 70]);
    for unit in Unit::available() {
        let whole = case.product(unit, Finish::Plain);
        for i in 0..29 {
            let alone = Case { x: case.x[i * 70..][..70].to_vec(), ..Case::random([1, 50, 70]) };
            assert_eq!(alone.product(unit, Finish::Plain), whole[i * 50..][..50], "{unit:?} {i}");
        }
    }
}

#[test]
fn parts_of_the_columns_are_those_of_the_whole() {
    let case = Case::random([5, 100, 70]);
    let more = normal(500, 9);
    for unit in Unit::available() {
        for finish in [Finish::Plain, Finish::Add(&more)] {
            let whole = case.product(unit, finish);
            let (rows, panels) = (case.rows(unit), case.panels());
            let product = Product { rows: &rows, panels: &panels, bias: &case.bias, finish };
            assert_eq!(product.n_panels(), 4);
            for part in [0..2, 2..4, 3..4, 1..1] {
                let columns = product.columns(&part);
                let mut y = vec![0.0; 5 * columns.len()];
                product.columns_into(part.clone(), &mut y, columns.len());
                let expected =
                    whole.chunks_exact(100).flat_map(|row| row[columns.clone()].to_vec());
                assert_eq!(y, expected.collect::<Vec<_>>(), "{unit:?} {columns:?}");
                let mut wide = vec![7.0; 5 * 100];
                product.columns_into(part, &mut wide, 100);
                for (wide, y) in wide.chunks_exact(100).zip(y.chunks(columns.len().max(1))) {
                    assert_eq!(wide[..y.len()], *y, "{unit:?} {columns:?}");
                    assert_eq!(wide[y.len()..], [7.0; 100][y.len()..], "others are left alone");
                }
            }
        }
    }
}

#[test]
fn what_follows_a_product_is_done_to_every_number() {
    let case = Case::random([7, 45, 33]);
    let more = normal(7 * 45, 9);
    for unit in Unit::available() {
        let plain = case.product(unit, Finish::Plain);
        let sums: Vec<f32> = plain.iter().zip(&more).map(|(x, y)| x + y).collect();
        assert_eq!(case.product(unit, Finish::Add(&more)), sums, "{unit:?}");
        for kind in [Activation::Gelu, Activation::GeluNew, Activation::Relu] {
            let mut expected = plain.clone();
            let fma = Fma { is_fused: unit != Unit::Portable };
            activation::apply(kind, &mut expected, fma);
            assert_eq!(case.product(unit, Finish::Activation(kind)), expected, "{unit:?} {kind:?}");
        }
    }
}
