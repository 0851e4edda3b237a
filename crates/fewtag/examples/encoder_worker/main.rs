//! The encoder as a process that takes commands, for `benchmarks/encoder/run.py` and `scripts/check_encoder.py`.
//!
//! ```text
//! encoder_worker ENCODER THREADS [PRECISION]
//!
//! ENCODER: a directory, or a config.json for random weights. PRECISION, for `forward` and `each`: f32 (default), int8, or
//! int8 by one of the machine's units: avx512-vnni, avx-vnni, avx2, neon-dot, portable
//!
//! batch FILE               sets the batch: [{"ids": [...], "segments": [...]}, ...]         -> "ok"
//! forward                  one forward pass without gradients                               -> seconds
//! each                     the same, one sequence after the other                           -> seconds
//! difference               int8 beside f32: the largest difference of a hidden row's number,
//!                          and the root of the mean square of all                           -> [largest, mean]
//! train                    one training step: forward with dropout, backward, clip, AdamW   -> seconds
//! memory                   the largest resident memory so far                               -> bytes
//! peak                     the rate of fused multiply-adds in registers, all threads        -> FLOP/s
//! products                 the rate of the linear layers' products alone, one thread        -> FLOP/s
//! pieces WORDS OUT         [[words], [words, words], ...] to sequences as `batch` reads     -> "ok"
//! pass BATCH TARGET OUT    hidden rows as f32 to OUT.hidden, gradients of Σ hidden · target
//!                          as safetensors to OUT.gradients                                  -> "ok"
//! fit TRAINING TARGETS     AdamW towards the target rows                     -> [loss before each update]
//! ```
//!
//! Each answer is one line of JSON. Target rows are little-endian f32.

#![expect(clippy::print_stdout, reason = "the answers go there")]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use fewtag::Matrix;
use fewtag::encoder::{
    Bert, BertConfig, Dropout, Engine, Frozen, Gradients, Int8Bert, PackedBatch, Parameters, Piece,
    Storage, TrainableEngine, WordPieces, storage, weights,
};
use fewtag::train::optimizer::{
    AdamW, Rates, Schedule, clip_scale, encoder_parts, squared_gradient_norm,
};
use fewtag_kernels::int8::Unit;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

mod fma_peak;
mod products;

type Answer = Result<Value, Box<dyn Error>>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (encoder, threads, precision) = match arguments.as_slice() {
        [encoder, threads] => (encoder, threads, "f32"),
        [encoder, threads, precision] => (encoder, threads, precision.as_str()),
        _ => return Err("usage: encoder_worker ENCODER THREADS [PRECISION]".into()),
    };
    rayon::ThreadPoolBuilder::new().num_threads(threads.parse()?).build_global()?;
    let mut worker = Worker::new(Path::new(encoder), precision)?;
    for line in std::io::stdin().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        println!("{}", worker.answer(&words)?);
    }
    Ok(())
}

struct Worker<'a> {
    encoder: &'a Path,
    bert: Bert,
    /// If `forward` is to run in whole numbers.
    int8: Option<Int8Bert>,
    batch: PackedBatch,
    trainer: Option<Trainer>,
}

impl<'a> Worker<'a> {
    fn new(encoder: &'a Path, precision: &str) -> Result<Self, Box<dyn Error>> {
        let bert = if encoder.is_dir() {
            Bert::new(weights::load(encoder)?)?
        } else {
            Bert::random(&BertConfig::from_json(&std::fs::read_to_string(encoder)?)?, 0)?
        };
        let int8 = match precision {
            "f32" => None,
            "int8" => Some(Int8Bert::new(bert.parameters())?),
            unit => {
                let named = |u: &Unit| unit.replace('-', "") == format!("{u:?}").to_lowercase();
                let unit = Unit::available().find(named).ok_or("this machine has no such unit")?;
                Some(Int8Bert::new(bert.parameters())?.with_unit(unit))
            }
        };
        Ok(Self { encoder, bert, int8, batch: PackedBatch::new(), trainer: None })
    }

    fn answer(&mut self, words: &[&str]) -> Answer {
        match words {
            ["batch", file] => {
                self.batch =
                    packed(&serde_json::from_slice::<Vec<Sequence>>(&std::fs::read(file)?)?);
                Ok(json!("ok"))
            }
            ["forward"] => {
                let start = Instant::now();
                self.encode(&self.batch)?;
                Ok(json!(start.elapsed().as_secs_f64()))
            }
            ["each"] => {
                let each: Vec<PackedBatch> = self
                    .batch
                    .sequences()
                    .map(|rows| {
                        let mut alone = PackedBatch::new();
                        alone.push(self.batch.pieces()[rows].iter().copied());
                        alone
                    })
                    .collect();
                let start = Instant::now();
                for alone in &each {
                    self.encode(alone)?;
                }
                Ok(json!(start.elapsed().as_secs_f64()))
            }
            ["difference"] => self.difference(),
            ["train"] => self.train(),
            ["memory"] => peak_memory(),
            ["peak"] => Ok(json!(fma_peak::flops_per_second(rayon::current_num_threads()))),
            ["products"] => Ok(json!(products::flops_per_second(self.bert.parameters().config()))),
            ["pieces", words, out] => self.pieces(Path::new(words), Path::new(out)),
            ["pass", batch, target, out] => {
                self.pass(Path::new(batch), Path::new(target), Path::new(out))
            }
            ["fit", training, targets] => self.fit(Path::new(training), Path::new(targets)),
            other => Err(format!("unknown command {other:?}").into()),
        }
    }

    fn encode(&self, batch: &PackedBatch) -> fewtag::Result<Matrix> {
        match &self.int8 {
            Some(int8) => int8.encode(batch),
            None => self.bert.encode(batch),
        }
    }

    fn difference(&self) -> Answer {
        let [a, b] = [self.bert.encode(&self.batch)?, self.encode(&self.batch)?];
        let differences = a.values().iter().zip(b.values()).map(|(a, b)| f64::from((a - b).abs()));
        let largest = differences.clone().fold(0.0, f64::max);
        let squares: f64 = differences.map(|d| d * d).sum();
        Ok(json!([largest, (squares / a.values().len() as f64).sqrt()]))
    }

    /// A step towards hidden rows of zeros: what the loss is does not change the work.
    fn train(&mut self) -> Answer {
        let trainer = self.trainer.get_or_insert_with(|| Trainer::new(self.bert.parameters()));
        let start = Instant::now();
        let dropout = Dropout { rate: 0.1, seed: trainer.adam.n_updates() };
        let target = Matrix::zeros(self.batch.n_pieces(), self.bert.width());
        trainer.accumulate(&self.bert, &self.batch, &target, Some(dropout))?;
        trainer.update(&mut self.bert, Rates { learning_rate: 1e-5, weight_decay: 0.01 }, 1.0);
        Ok(json!(start.elapsed().as_secs_f64()))
    }

    fn pieces(&self, words: &Path, out: &Path) -> Answer {
        let word_pieces = WordPieces::load(self.encoder)?;
        let samples: Vec<Vec<Vec<String>>> = serde_json::from_slice(&std::fs::read(words)?)?;
        let mut sequences = Vec::new();
        for parts in samples {
            let mut sequence = Sequence { ids: vec![word_pieces.cls()], segments: vec![0] };
            for (words, segment) in parts.iter().zip(0..) {
                sequence.ids.extend(word_pieces.split(words.iter().map(String::as_str))?.ids);
                sequence.ids.push(word_pieces.sep());
                sequence.segments.resize(sequence.ids.len(), segment);
            }
            sequences.push(sequence);
        }
        std::fs::write(out, serde_json::to_vec(&sequences)?)?;
        Ok(json!("ok"))
    }

    fn pass(&self, batch: &Path, target: &Path, out: &Path) -> Answer {
        let batch = packed(&serde_json::from_slice::<Vec<Sequence>>(&std::fs::read(batch)?)?);
        let d_hidden = Matrix::new(numbers(&std::fs::read(target)?), self.bert.width());
        let (hidden, trace) = self.bert.encode_for_training(&batch, &[], None)?;
        let mut gradients = Gradients::zeros(self.bert.parameters().config());
        self.bert.backward(&batch, &trace, d_hidden, &mut gradients);
        let bytes: Vec<u8> = hidden.values().iter().flat_map(|value| value.to_le_bytes()).collect();
        std::fs::write(out.with_extension("hidden"), bytes)?;
        std::fs::write(
            out.with_extension("gradients"),
            storage::to_bytes(gradients.parameters(), Storage::F32)?,
        )?;
        Ok(json!("ok"))
    }

    fn fit(&mut self, training: &Path, targets: &Path) -> Answer {
        let Fit { batches, training } = serde_json::from_slice(&std::fs::read(training)?)?;
        let targets = numbers(&std::fs::read(targets)?);
        let mut trainer = Trainer::new(self.bert.parameters());
        let schedule = Schedule { warm_up: training.warm_up, n_updates: training.updates };
        let peak = Rates { learning_rate: training.peak_rate, weight_decay: training.decay };
        let (mut losses, mut start) = (Vec::new(), 0);
        for (sequences, update) in batches.iter().zip(0..training.updates) {
            let batch = packed(sequences);
            let end = start + batch.n_pieces() * self.bert.width();
            let target = Matrix::new(targets[start..end].to_vec(), self.bert.width());
            start = end;
            losses.push(trainer.accumulate(&self.bert, &batch, &target, None)?);
            trainer.update(&mut self.bert, peak.scaled(schedule.factor(update)), training.clip);
        }
        Ok(json!(losses))
    }
}

/// Gradients and moments of one encoder.
struct Trainer {
    gradients: Gradients,
    adam: AdamW,
}

impl Trainer {
    fn new(parameters: &Parameters) -> Self {
        let adam = AdamW::new(parameters.values().len());
        Self { gradients: Gradients::zeros(parameters.config()), adam }
    }

    /// The mean squared distance between hidden rows and target rows; sets its gradient.
    fn accumulate(
        &mut self,
        bert: &Bert,
        batch: &PackedBatch,
        target: &Matrix,
        dropout: Option<Dropout>,
    ) -> fewtag::Result<f64> {
        self.gradients.clear();
        let (mut hidden, trace) = bert.encode_for_training(batch, &[], dropout)?;
        let n_rows = hidden.n_rows() as f32;
        let mut loss = 0.0;
        for (h, t) in hidden.values_mut().iter_mut().zip(target.values()) {
            let difference = *h - t;
            loss += f64::from(difference * difference);
            *h = 2.0 * difference / n_rows;
        }
        bert.backward(batch, &trace, hidden, &mut self.gradients);
        Ok(loss / f64::from(n_rows))
    }

    fn update(&mut self, bert: &mut Bert, rates: Rates, clip: f32) {
        let norm = squared_gradient_norm(&self.gradients).sqrt();
        let parts = encoder_parts(bert.parameters_mut(), &self.gradients, Frozen::Nothing, rates);
        self.adam.update(parts, clip_scale(norm, clip));
    }
}

#[derive(Serialize, Deserialize)]
struct Sequence {
    ids: Vec<u32>,
    segments: Vec<u8>,
}

#[derive(Deserialize)]
struct Fit {
    batches: Vec<Vec<Sequence>>,
    training: Training,
}

#[derive(Deserialize)]
struct Training {
    updates: u64,
    warm_up: u64,
    peak_rate: f32,
    decay: f32,
    clip: f32,
}

fn packed(sequences: &[Sequence]) -> PackedBatch {
    let mut batch = PackedBatch::new();
    for Sequence { ids, segments } in sequences {
        batch.push(ids.iter().zip(segments).map(|(&id, &segment)| Piece { id, segment }));
    }
    batch
}

fn numbers(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect()
}

/// The high-water mark that Linux keeps.
fn peak_memory() -> Answer {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(json!(kilobytes * 1024))
}
