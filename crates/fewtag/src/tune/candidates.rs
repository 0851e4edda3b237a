//! What the record of judged folds says: which ways of tuning there are to choose from, and what each is worth.

use std::collections::BTreeSet;

use super::evidence;
use super::judge::{Judgement, factors};
use super::plan::{Plan, Run};
use super::record::{Record, State, Trial};
use super::report::Candidate;
use super::weights::{Choice, Figures};

/// Fewer predicted spans say nothing of a temperature.
const FEWEST_SPANS: usize = 30;

/// The candidate that gained most; of equal ones the first, which moved least.
pub(super) fn best(candidates: &[Candidate]) -> Option<usize> {
    let gain = |at: &usize| candidates[*at].gain.f1;
    (0..candidates.len()).rev().max_by(|a, b| gain(a).total_cmp(&gain(b)))
}

impl Record {
    pub(super) fn is_over(&self, run: usize, fold: usize) -> bool {
        let trial = self.trials.iter().find(|trial| (trial.run, trial.fold) == (run, fold));
        trial.is_some_and(|trial| trial.state != State::UnderWay)
    }

    fn trial(&mut self, run: usize, fold: usize) -> &mut Trial {
        let trial = self.trials.iter_mut().find(|trial| (trial.run, trial.fold) == (run, fold));
        trial.expect("a trial is recorded when it begins")
    }

    pub(super) fn put(&mut self, run: usize, fold: usize, update: u64, judged: Judgement) {
        self.trial(run, fold).judged.insert(update, judged);
    }

    pub(super) fn set(&mut self, run: usize, fold: usize, state: State) {
        self.trial(run, fold).state = state;
    }

    pub(super) fn failures(&self) -> Vec<String> {
        let reason = |trial: &Trial| match &trial.state {
            State::Failed(reason) => Some(reason.clone()),
            State::UnderWay | State::Done => None,
        };
        self.trials.iter().filter_map(reason).collect()
    }

    /// The folds on which a way of tuning was judged: the model as it was, and the tuned one.
    pub(super) fn judgements(
        &self,
        choice: Choice,
        plan: &Plan,
    ) -> (Vec<&Judgement>, Vec<&Judgement>) {
        let is_run = |run: &usize| {
            let Run { layers, rate } = plan.runs[*run];
            (layers, rate.to_bits()) == (choice.layers, choice.rate.to_bits())
        };
        let trials = self.trials.iter().filter(|t| is_run(&t.run) && t.state == State::Done);
        let judged = trials.filter_map(|trial| {
            Some((&self.untuned[trial.fold], trial.judged.get(&choice.updates)?))
        });
        judged.unzip()
    }

    /// All ways of tuning that were judged on every fold, or, once it must be decided, on some.
    pub(super) fn candidates(&self, plan: &Plan, decided: bool) -> Vec<Candidate> {
        let enough = if decided { plan.n_folds.min(2) } else { plan.n_folds };
        let mut candidates = Vec::new();
        for (_, choice) in plan.choices() {
            let (before, after) = self.judgements(choice, plan);
            if after.len() >= enough.max(1) {
                candidates.push(Candidate::new(choice, &before, &after));
            }
        }
        candidates
    }

    pub(super) fn figures(&self, candidate: &Candidate, plan: &Plan) -> Figures {
        let (before, after) = self.judgements(candidate.choice, plan);
        let numbers = after.iter().flat_map(|judgement| judgement.sentences.keys());
        let judged = numbers.collect::<BTreeSet<_>>().len();
        let (untuned, tuned) = (evidence::score(&before), candidate.score);
        Figures { untuned, tuned, judged, choice: candidate.choice }
    }

    /// What the temperature is to be multiplied by, so that probabilities are honest on what was left out.
    pub(super) fn temperature_factor(&self, choice: Choice, plan: &Plan) -> f32 {
        let (_, judged) = self.judgements(choice, plan);
        if judged.iter().map(|judgement| judgement.n_spans).sum::<usize>() < FEWEST_SPANS {
            return 1.0;
        }
        let loss = |at: usize| judged.iter().map(|j| j.log_losses[at]).sum::<f64>();
        let losses = factors().enumerate().map(|(at, factor)| (loss(at), factor));
        losses.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(1.0, |(_, factor)| factor)
    }
}
