//! A table of word vectors in the form of an encoder, so that the model can be trained over it like over BERT.
//!
//! It is a BERT without layers: a word is one piece, and its vector is the layer norm of its row (and of a position's
//! row, which starts at zero). WPZ is the model over random rows, WPZ+GloVe over GloVe's. The authors' code has no
//! layer norm here; with it, dot products have the size that the model expects whatever the vectors' length.

use std::collections::BTreeSet;
use std::path::Path;

use fewtag::encoder::{BertConfig, Parameters, Storage, storage};
use fewtag::file;
use serde_json::json;

use super::glove::WordVectors;
use crate::error::{Error, Result};

const SPECIAL: [&str; 3] = ["[UNK]", "[CLS]", "[SEP]"];
/// As many words as a BERT reads pieces.
const N_POSITIONS: usize = 512;

/// Writes an encoder directory in which each of `words` has its vector; all other words share one that is zero.
///
/// # Errors
///
/// [`fewtag::Error::File`] if the directory cannot be written.
///
/// # Panics
///
/// Never: the parts of a table agree with each other.
pub fn write(dir: &Path, words: &BTreeSet<String>, vectors: &WordVectors) -> Result<()> {
    std::fs::create_dir_all(dir).map_err(|source| Error::file(dir, source))?;
    let pieces: Vec<&str> = SPECIAL.into_iter().chain(words.iter().map(String::as_str)).collect();
    let vocabulary: serde_json::Map<_, _> =
        pieces.iter().enumerate().map(|(id, piece)| ((*piece).to_owned(), id.into())).collect();
    let tokenizer = json!({
        "version": "1.0",
        "added_tokens": [],
        "model": { "type": "WordLevel", "vocab": vocabulary, "unk_token": SPECIAL[0] },
    });
    let config = json!({
        "model_type": "bert",
        "hidden_size": vectors.width(),
        "num_hidden_layers": 0,
        "num_attention_heads": 1,
        "intermediate_size": 1,
        "vocab_size": pieces.len(),
        "max_position_embeddings": N_POSITIONS,
    });
    let shape = BertConfig::from_json(&config.to_string())?;
    let mut parameters = Parameters::zeros(&shape);
    let embeddings = parameters.weights_mut().embeddings;
    embeddings.norm.weight.fill(1.0);
    let rows = embeddings.word.chunks_exact_mut(vectors.width());
    for (row, word) in rows.skip(SPECIAL.len()).zip(words) {
        row.copy_from_slice(&vectors.vector(word));
    }
    for (name, bytes) in [
        ("config.json", format!("{config:#}\n").into_bytes()),
        ("tokenizer.json", tokenizer.to_string().into_bytes()),
        ("model.safetensors", storage::to_bytes(&parameters, Storage::F32)?),
    ] {
        file::write_atomically(&dir.join(name), &bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use fewtag::encoder::{Bert, WordPieces, weights};
    use fewtag::reading::{Sequence, embed};

    use super::*;

    #[test]
    fn a_word_is_the_layer_norm_of_its_row_wherever_it_stands() {
        let dir = tempfile::tempdir().unwrap();
        let vectors = WordVectors::random(6, 1);
        write(dir.path(), &["a", "b"].map(String::from).into(), &vectors).unwrap();
        let pieces = WordPieces::load(dir.path()).unwrap();
        let engine = Bert::new(weights::load(dir.path()).unwrap()).unwrap();
        let sentence = Sequence::alone(&pieces.split(["b", "a", "b"]).unwrap(), &pieces);
        let words = &embed(&engine, &[sentence]).unwrap()[0];
        let b = vectors.vector("b");
        let mean = b.iter().sum::<f32>() / 6.0;
        let sd = (b.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 6.0).sqrt();
        for (x, b) in words.row(0).iter().zip(&b) {
            assert!((x - (b - mean) / sd).abs() < 1e-5);
        }
        assert_eq!(words.row(0), words.row(2));
    }

    #[test]
    fn a_table_reads_back_as_an_encoder() {
        let dir = tempfile::tempdir().unwrap();
        let words = ["7:30", "paris"].map(String::from).into();
        let vectors = WordVectors::random(6, 1);
        write(dir.path(), &words, &vectors).unwrap();
        let pieces = WordPieces::load(dir.path()).unwrap();
        let split = pieces.split(["paris", "7:30", "elsewhere"]).unwrap();
        assert_eq!((split.ids, split.first), (vec![4, 3, 0], vec![0, 1, 2]));
        let parameters = weights::load(dir.path()).unwrap();
        let rows = parameters.weights().embeddings.word;
        assert_eq!(rows[6 * 4..6 * 5], vectors.vector("paris"));
        assert!(rows[..6].iter().all(|x| *x == 0.0));
    }
}
