//! Judging predictions: 10,000 sentences of 12 words with 8 slots, a tenth of the tags wrong.
//!
//! `cargo bench -p fewtag --bench scoring`

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use fewtag::eval::{EpisodeScore, Judged};
use fewtag::{Random, Slot, Tag};

fn main() {
    divan::main();
}

const N_SENTENCES: usize = 10_000;

fn any_tag(slots: &[Slot], random: &mut Random) -> Tag {
    let slot = slots[random.below(slots.len())].clone();
    match random.below(4) {
        0 => Tag::B(slot),
        1 => Tag::I(slot),
        _ => Tag::O,
    }
}

fn sentence(slots: &[Slot], random: &mut Random) -> (Vec<Tag>, Vec<Tag>) {
    let gold: Vec<Tag> = (0..12).map(|_| any_tag(slots, random)).collect();
    let predict =
        |tag: &Tag| if random.below(10) == 0 { any_tag(slots, random) } else { tag.clone() };
    let predicted = gold.iter().map(predict).collect();
    (gold, predicted)
}

#[divan::bench]
fn judge_10_000_sentences(bencher: Bencher) {
    let slots: Vec<Slot> =
        (0..8).map(|s| Slot::new(&format!("slot{s}")).expect("a name")).collect();
    let mut random = Random::new(1);
    let tags: Vec<_> = (0..N_SENTENCES).map(|_| sentence(&slots, &mut random)).collect();
    bencher.counter(ItemsCount::new(N_SENTENCES)).bench(|| {
        let judged: Vec<Judged> = tags.iter().map(|(g, p)| Judged::new(g, p)).collect();
        black_box(EpisodeScore::of(&judged)).f1()
    });
}
