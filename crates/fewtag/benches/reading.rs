//! Reading and checking: 2,000 sentences of 12 words in every format.
//!
//! `cargo bench -p fewtag --bench reading`

use std::path::Path;

use divan::Bencher;
use divan::counter::BytesCount;
use fewtag::data::{self, Check, Format, ReadOptions};
use fewtag::scheme::Scheme;
use fewtag::{Domain, Random, Sentence, Slot, Span, Token, tag};

fn main() {
    divan::main();
}

fn sentence(slots: &[Slot], random: &mut Random) -> Sentence {
    let start = random.below(10);
    let span = Span { start, end: start + 2, slot: slots[random.below(slots.len())].clone() };
    let tokens = tag::bio_tags(&[span], 12).into_iter();
    let tokens = tokens.map(|tag| Token { word: format!("word{}", random.below(5_000)), tag });
    Sentence::new(tokens.collect()).expect("12 words")
}

fn domain() -> Domain {
    let slots = ["artist", "track", "album", "city"].map(|name| Slot::new(name).expect("a name"));
    let mut random = Random::new(1);
    let sentences = (0..2_000).map(|_| sentence(&slots, &mut random)).collect();
    Domain { name: "music".to_owned(), sentences }
}

#[divan::bench(args = Format::ALL)]
fn read(bencher: Bencher, format: Format) {
    let mut bytes = Vec::new();
    data::write(format, Scheme::Iob2, &[domain()], &mut bytes).expect("any format can hold this");
    bencher
        .counter(BytesCount::new(bytes.len()))
        .bench(|| data::parse(Path::new("music"), &bytes, &ReadOptions::default()));
}

#[divan::bench(args = Format::ALL)]
fn write(bencher: Bencher, format: Format) {
    let domains = [domain()];
    bencher.bench(|| data::write(format, Scheme::Iob2, &domains, std::io::sink()));
}

#[divan::bench]
fn check(bencher: Bencher) {
    let domain = domain();
    bencher.bench(|| Check::of(&domain));
}
