//! The bidirectional LSTM against PyTorch: scores, loss and every gradient.
//!
//! `tests/golden/lstm.json` is written by `scripts/golden_lstm.py`, never by this crate.

use fewtag::Matrix;
use fewtag_experiments::baselines::bi_lstm::BiLstm;
use fewtag_experiments::baselines::classifier::Classifier;
use fewtag_experiments::baselines::lstm::Lstm;

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    inputs: Vec<Vec<f32>>,
    gold: Vec<usize>,
    left_to_right: Vec<Vec<f32>>,
    right_to_left: Vec<Vec<f32>>,
    output: Vec<Vec<f32>>,
    scores: Vec<Vec<f32>>,
    loss: f32,
    d_left_to_right: Vec<Vec<f32>>,
    d_right_to_left: Vec<Vec<f32>>,
    d_output: Vec<Vec<f32>>,
}

#[test]
fn the_bi_lstm_agrees_with_pytorch() {
    let file = include_str!("../golden/lstm.json");
    let cases: Vec<Case> = serde_json::from_str(file).expect("valid golden file");
    for case in cases {
        let tagger = BiLstm {
            left_to_right: Lstm::new(matrix(&case.left_to_right)),
            right_to_left: Lstm::new(matrix(&case.right_to_left)),
            output: Classifier::new(matrix(&case.output)),
        };
        let inputs = matrix(&case.inputs);
        let mut gradients = tagger.no_gradients();
        let loss = tagger.loss(&inputs, &case.gold, &mut gradients);
        assert!((loss - case.loss).abs() < 1e-5 * case.loss.max(1.0), "{}: {loss}", case.name);
        assert_close(&case.name, &tagger.scores(&inputs), &case.scores);
        assert_close(&case.name, &gradients.left_to_right, &case.d_left_to_right);
        assert_close(&case.name, &gradients.right_to_left, &case.d_right_to_left);
        assert_close(&case.name, &gradients.output, &case.d_output);
    }
}

fn matrix(rows: &[Vec<f32>]) -> Matrix {
    Matrix::new(rows.concat(), rows[0].len())
}

fn assert_close(case: &str, ours: &Matrix, reference: &[Vec<f32>]) {
    let reference = matrix(reference);
    assert_eq!((ours.n_rows(), ours.n_cols()), (reference.n_rows(), reference.n_cols()), "{case}");
    for (ours, reference) in ours.values().iter().zip(reference.values()) {
        let error = (ours - reference).abs() / reference.abs().max(1.0);
        assert!(error <= 2e-6, "{case}: ours {ours}, reference {reference}, error {error:.1e}");
    }
}
