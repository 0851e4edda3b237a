//! Drawing episodes from a domain of the size of Few-NERD's development set (18,817 sentences, 13 slots).
//!
//! `cargo bench -p fewtag --bench sampling`

use divan::{Bencher, black_box};
use fewtag::sampler::{Duplicates, EpisodeSettings, MIN_SENTENCES, Sampler};
use fewtag::{Domain, Random, Sentence, Slot, Tag, Token};

fn main() {
    divan::main();
}

/// Sentences of 24 words with one to three spans; the slots' frequencies fall off like 1/rank.
fn domain() -> Domain {
    let slots: Vec<Slot> =
        (0..13).map(|s| Slot::new(&format!("slot{s}")).expect("a name")).collect();
    let mut random = Random::new(1);
    let sentences = (0..18_817).map(|_| sentence(&slots, &mut random)).collect();
    Domain { name: "synthetic".into(), sentences }
}

fn sentence(slots: &[Slot], random: &mut Random) -> Sentence {
    let mut tags = vec![Tag::O; 24];
    for span in 0..=random.below(3) {
        let rank = random.below(slots.len()) + 1;
        let slot = &slots[random.below(rank)];
        tags[8 * span] = Tag::B(slot.clone());
        tags[8 * span + 1..8 * span + 1 + random.below(3)].fill(Tag::I(slot.clone()));
    }
    let tokens = tags.into_iter().map(|tag| Token { word: "word".into(), tag }).collect();
    Sentence::new(tokens).expect("24 words")
}

#[divan::bench]
fn index_a_domain(bencher: Bencher) {
    let domain = domain();
    bencher.with_inputs(|| domain.clone()).bench_values(|domain| {
        Sampler::new(domain, MIN_SENTENCES, Duplicates::Keep).expect("slots")
    });
}

#[divan::bench(args = [1, 5, 20])]
fn draw_100_episodes(bencher: Bencher, shots: usize) {
    let sampler = Sampler::new(domain(), MIN_SENTENCES, Duplicates::Keep).expect("slots");
    let settings = EpisodeSettings { shots, queries: 10, ..EpisodeSettings::default() };
    bencher.bench(|| {
        for episode in sampler.episodes(settings, 0).take(100) {
            black_box(episode).expect("enough sentences");
        }
    });
}
