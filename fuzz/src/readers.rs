//! The readers of labelled sentences, and the writers on what they read.

use std::path::Path;

use fewtag::Sentence;
use fewtag::data::{self, Corpus, Format, ReadOptions};
use fewtag::scheme::Scheme;
use fewtag::words::WordSplit;

use crate::Target;

/// A format by its name, or `any`.
pub fn target(name: &str) -> Option<Target> {
    if name == "any" {
        return Some(Box::new(any));
    }
    let format = name.parse().ok()?;
    Some(Box::new(move |bytes| in_every_way(format, bytes)))
}

/// As a user gives it who says nothing about it; then into every other format.
fn any(bytes: &[u8]) {
    let _ = data::detect(Path::new("fuzz"), bytes);
    if let Ok(corpus) = data::parse(Path::new("fuzz"), bytes, &ReadOptions::default()) {
        for format in Format::ALL {
            let _ = corpus.losses(format);
            let _ = data::write(format, Scheme::Iob2, &corpus.domains, std::io::sink());
        }
        for domain in &corpus.domains {
            let _ = data::Check::of(domain);
        }
    }
}

/// Strictly and with repairs, in every scheme if words have tags, else in both ways to find words.
fn in_every_way(format: Format, bytes: &[u8]) {
    let mut schemes = vec![None];
    let mut splits = vec![WordSplit::Unicode];
    if format.keeps_tags() {
        schemes.extend(Scheme::ALL.map(Some));
    } else {
        splits.push(WordSplit::Blank);
    }
    for scheme in schemes {
        for &words in &splits {
            for repair in [false, true] {
                let options = ReadOptions { format: Some(format), scheme, repair, words };
                if let Ok(corpus) = data::parse(Path::new("fuzz"), bytes, &options) {
                    comes_back(&corpus, words);
                }
            }
        }
    }
    if format == Format::Episodes {
        let _ =
            data::parse_episodes(Path::new("fuzz"), bytes).map(|all| data::EpisodeCheck::of(&all));
    }
}

/// What was read from a format can be written in it, or is refused; what was written is read as the same.
fn comes_back(corpus: &Corpus, words: WordSplit) {
    let mut written = Vec::new();
    if data::write(corpus.format, Scheme::Iob2, &corpus.domains, &mut written).is_err() {
        return;
    }
    let scheme = corpus.format.keeps_tags().then_some(Scheme::Iob2);
    let options = ReadOptions { format: Some(corpus.format), scheme, repair: false, words };
    let again = data::parse(Path::new("fuzz"), &written, &options);
    let again =
        again.unwrap_or_else(|error| panic!("{error}:\n{}", String::from_utf8_lossy(&written)));
    let shown = || String::from_utf8_lossy(&written).into_owned();
    assert_eq!(sentences(&again), sentences(corpus), "{}", shown());
}

fn sentences(corpus: &Corpus) -> Vec<&Sentence> {
    corpus.sentences().collect()
}
