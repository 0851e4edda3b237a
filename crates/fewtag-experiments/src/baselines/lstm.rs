//! One direction of a long short-term memory, forward and backward in time.
//!
//! ```text
//! u_t = [x_t, h_{t−1}, 1]          z_t = u_t · W
//! i, f, o = σ(z)   g = tanh(z)     gates in PyTorch's order i, f, g, o
//! c_t = f·c_{t−1} + i·g            h_t = o·tanh(c_t)
//! ```
//!
//! `W` is `[n_inputs + n_hidden + 1, 4·n_hidden]`: row `k` is what input `k` adds to all gates, the last row is the
//! bias. The state before the first word is zero.
//!
//! Method: Hochreiter & Schmidhuber (1997) with forget gates. Reference values: `tests/golden/lstm.json`.

use fewtag::matrix::{Matrix, add_scaled, dot};

/// The weights `W` of one direction.
#[derive(Debug, Clone)]
pub struct Lstm {
    weights: Matrix,
}

/// What the forward pass leaves for the backward pass, one row per word.
#[derive(Debug)]
pub struct Trace {
    /// `u_t`, `[T, n_inputs + n_hidden + 1]`.
    joined: Matrix,
    /// The gates after their nonlinearity, `[T, 4·n_hidden]`.
    gates: Matrix,
    /// `c_t`, `[T, n_hidden]`.
    cells: Matrix,
    /// `h_t`, `[T, n_hidden]`.
    outputs: Matrix,
}

impl Trace {
    /// `h_t`, `[T, n_hidden]`.
    #[must_use]
    pub fn outputs(&self) -> &Matrix {
        &self.outputs
    }
}

impl Lstm {
    /// Takes `W`, `[n_inputs + n_hidden + 1, 4·n_hidden]`.
    ///
    /// # Panics
    ///
    /// If no `n_inputs ≥ 1` fits the shape.
    #[must_use]
    pub fn new(weights: Matrix) -> Self {
        let lstm = Self { weights };
        let n_hidden = lstm.n_hidden();
        assert!(lstm.weights.n_cols() == 4 * n_hidden && lstm.weights.n_rows() > n_hidden + 1);
        lstm
    }

    /// `W`, `[n_inputs + n_hidden + 1, 4·n_hidden]`.
    #[must_use]
    pub fn weights(&self) -> &Matrix {
        &self.weights
    }

    /// `W`, to be changed.
    pub fn weights_mut(&mut self) -> &mut Matrix {
        &mut self.weights
    }

    /// The width of `h_t`.
    #[must_use]
    pub fn n_hidden(&self) -> usize {
        self.weights.n_cols() / 4
    }

    fn n_inputs(&self) -> usize {
        self.weights.n_rows() - self.n_hidden() - 1
    }

    /// Reads `inputs [T, n_inputs]` from the first row to the last.
    #[must_use]
    pub fn forward(&self, inputs: &Matrix) -> Trace {
        let (n_words, n_inputs, n_hidden) = (inputs.n_rows(), self.n_inputs(), self.n_hidden());
        let mut trace = Trace {
            joined: Matrix::zeros(n_words, self.weights.n_rows()),
            gates: Matrix::zeros(n_words, 4 * n_hidden),
            cells: Matrix::zeros(n_words, n_hidden),
            outputs: Matrix::zeros(n_words, n_hidden),
        };
        let mut cell = vec![0.0; n_hidden];
        let mut output = vec![0.0; n_hidden];
        for (t, input) in inputs.rows().enumerate() {
            let joined = trace.joined.row_mut(t);
            joined[..n_inputs].copy_from_slice(input);
            joined[n_inputs..][..n_hidden].copy_from_slice(&output);
            joined[n_inputs + n_hidden] = 1.0;

            let gates = trace.gates.row_mut(t);
            for (&u, row) in joined.iter().zip(self.weights.rows()) {
                add_scaled(gates, u, row);
            }
            activate(gates, n_hidden);
            for k in 0..n_hidden {
                let [i, f, g, o] = gates_of(gates, k);
                cell[k] = f * cell[k] + i * g;
                output[k] = o * cell[k].tanh();
            }
            trace.cells.row_mut(t).copy_from_slice(&cell);
            trace.outputs.row_mut(t).copy_from_slice(&output);
        }
        trace
    }

    /// Turns `∂loss/∂h [T, n_hidden]` into `∂loss/∂x [T, n_inputs]`, adding `∂loss/∂W` to `d_weights`.
    ///
    /// # Panics
    ///
    /// If `d_weights` has not the shape of `W`, or `d_outputs` not that of the trace.
    #[must_use]
    pub fn backward(&self, trace: &Trace, d_outputs: &Matrix, d_weights: &mut Matrix) -> Matrix {
        assert_eq!(d_weights.values().len(), self.weights.values().len(), "gradient shape");
        assert_eq!(d_outputs.n_rows(), trace.outputs.n_rows(), "number of words");
        let (n_inputs, n_hidden) = (self.n_inputs(), self.n_hidden());
        let mut d_inputs = Matrix::zeros(d_outputs.n_rows(), n_inputs);
        let mut d_cell = vec![0.0; n_hidden]; // What later words want of c_t ...
        let mut d_output = vec![0.0; n_hidden]; // ... and of h_t.
        let start = vec![0.0; n_hidden];
        for t in (0..d_outputs.n_rows()).rev() {
            add_scaled(&mut d_output, 1.0, d_outputs.row(t));
            let before = if t == 0 { &start } else { trace.cells.row(t - 1) };
            let cells = Cells { before, after: trace.cells.row(t) };
            let d_gates = gate_gradients(trace.gates.row(t), &cells, &d_output, &mut d_cell);

            let d_input = d_inputs.row_mut(t);
            for (k, (&u, row)) in trace.joined.row(t).iter().zip(self.weights.rows()).enumerate() {
                add_scaled(d_weights.row_mut(k), u, &d_gates);
                if k < n_inputs {
                    d_input[k] = dot(row, &d_gates);
                } else if k < n_inputs + n_hidden {
                    d_output[k - n_inputs] = dot(row, &d_gates);
                }
            }
        }
        d_inputs
    }
}

/// The cell state around one word, `[n_hidden]` each.
struct Cells<'a> {
    before: &'a [f32],
    after: &'a [f32],
}

/// `∂loss/∂z_t [4·n_hidden]`; `d_cell` goes in as the wish for `c_t` and comes out as the wish for `c_{t−1}`.
fn gate_gradients(gates: &[f32], cells: &Cells, d_output: &[f32], d_cell: &mut [f32]) -> Vec<f32> {
    let n_hidden = d_output.len();
    let mut d_gates = vec![0.0; gates.len()];
    for k in 0..n_hidden {
        let [i, f, g, o] = gates_of(gates, k);
        let squashed = cells.after[k].tanh();
        d_cell[k] += d_output[k] * o * (1.0 - squashed * squashed);
        d_gates[k] = d_cell[k] * g * i * (1.0 - i);
        d_gates[n_hidden + k] = d_cell[k] * cells.before[k] * f * (1.0 - f);
        d_gates[2 * n_hidden + k] = d_cell[k] * i * (1.0 - g * g);
        d_gates[3 * n_hidden + k] = d_output[k] * squashed * o * (1.0 - o);
        d_cell[k] *= f;
    }
    d_gates
}

/// `i, f, g, o` of hidden unit `k`.
fn gates_of(gates: &[f32], k: usize) -> [f32; 4] {
    let n_hidden = gates.len() / 4;
    [gates[k], gates[n_hidden + k], gates[2 * n_hidden + k], gates[3 * n_hidden + k]]
}

fn activate(gates: &mut [f32], n_hidden: usize) {
    for (k, z) in gates.iter_mut().enumerate() {
        *z = if k / n_hidden == 2 { z.tanh() } else { 1.0 / (1.0 + (-*z).exp()) };
    }
}

#[cfg(test)]
mod tests {
    use fewtag::Random;

    use super::*;

    fn any(n_rows: usize, n_cols: usize, random: &mut Random) -> Matrix {
        Matrix::new((0..n_rows * n_cols).map(|_| random.normal() as f32).collect(), n_cols)
    }

    /// A loss that weighs every output differently: `Σ h·d`.
    fn loss(lstm: &Lstm, inputs: &Matrix, d: &Matrix) -> f32 {
        dot(lstm.forward(inputs).outputs().values(), d.values())
    }

    fn assert_slope(above: f32, below: f32, gradient: f32) {
        let slope = (above - below) / (2.0 * STEP);
        assert!((slope - gradient).abs() < 3e-3 * gradient.abs().max(1.0), "{slope} {gradient}");
    }

    const STEP: f32 = 1e-2;

    #[test]
    fn gradients_equal_finite_differences() {
        let mut random = Random::new(3);
        let (n_inputs, n_hidden, n_words) = (3, 5, 4); // Odd sizes exercise the rest of `dot`.
        let mut lstm = Lstm::new(any(n_inputs + n_hidden + 1, 4 * n_hidden, &mut random));
        let mut inputs = any(n_words, n_inputs, &mut random);
        let d_outputs = any(n_words, n_hidden, &mut random);
        let mut d_weights = Matrix::zeros(n_inputs + n_hidden + 1, 4 * n_hidden);
        let d_inputs = lstm.backward(&lstm.forward(&inputs), &d_outputs, &mut d_weights);

        for k in 0..d_weights.values().len() {
            let mut at = |shift: f32| {
                lstm.weights_mut().values_mut()[k] += shift;
                let loss = loss(&lstm, &inputs, &d_outputs);
                lstm.weights_mut().values_mut()[k] -= shift;
                loss
            };
            assert_slope(at(STEP), at(-STEP), d_weights.values()[k]);
        }
        for k in 0..d_inputs.values().len() {
            let mut at = |shift: f32| {
                inputs.values_mut()[k] += shift;
                let loss = loss(&lstm, &inputs, &d_outputs);
                inputs.values_mut()[k] -= shift;
                loss
            };
            assert_slope(at(STEP), at(-STEP), d_inputs.values()[k]);
        }
    }

    #[test]
    fn gradients_of_two_sentences_add_up() {
        let mut random = Random::new(4);
        let lstm = Lstm::new(any(2 + 2 + 1, 8, &mut random));
        let (inputs, d_outputs) = (any(3, 2, &mut random), any(3, 2, &mut random));
        let (mut once, mut twice) = (Matrix::zeros(5, 8), Matrix::zeros(5, 8));
        let trace = lstm.forward(&inputs);
        let _ = lstm.backward(&trace, &d_outputs, &mut once);
        for _ in 0..2 {
            let _ = lstm.backward(&trace, &d_outputs, &mut twice);
        }
        for (once, twice) in once.values().iter().zip(twice.values()) {
            assert!((2.0 * once - twice).abs() < 1e-5);
        }
    }
}
