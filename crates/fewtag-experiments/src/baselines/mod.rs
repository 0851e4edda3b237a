//! The systems the paper compares with that are not built from its own parts.
//!
//! [`bi_lstm`] learns from each support set alone; [`transfer_bert`] from the source domains and then from the
//! support set. SimBERT, the prototypes and the matching networks are settings of the model itself; with word
//! vectors from [`glove`] in place of an encoder they give the remaining rows of its tables.

pub mod bi_lstm;
pub mod classifier;
pub mod glove;
pub mod lstm;
pub mod transfer_bert;
pub mod word_table;
