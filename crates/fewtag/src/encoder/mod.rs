//! The encoder: word pieces in, one vector per piece out.

pub mod word_pieces;

pub use word_pieces::{Pieces, WordPieces};
