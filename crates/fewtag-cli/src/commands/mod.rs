//! One file per subcommand: its `Args` are its help text, its `run` is its work.

mod answers;
mod cache;
mod completions;
mod crossval;
mod data;
mod domain;
mod encoder;
mod evaluate;
mod hub;
mod input;
mod learn;
mod model;
mod reproduce;
mod sample;
mod score;
mod serve;
mod support;
mod tag;
mod tagger;
mod threshold;
mod train;
mod tune;
mod values;

use std::io::Write;

/// What `fewtag` can do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Completions(completions::Args),
    Crossval(crossval::Args),
    Data(data::Args),
    Domain(domain::Args),
    Encoder(encoder::Args),
    Evaluate(evaluate::Args),
    Model(model::Args),
    Reproduce(reproduce::Args),
    Sample(sample::Args),
    Score(score::Args),
    Serve(Box<serve::Args>),
    Support(support::Args),
    Tag(tag::Args),
    Train(train::Args),
    Tune(Box<tune::Args>),
}

/// Runs a subcommand, writing its result to `out`.
pub(crate) fn run(command: &Command, out: &mut impl Write) -> anyhow::Result<()> {
    match command {
        Command::Completions(args) => completions::run(args, out),
        Command::Crossval(args) => crossval::run(args, out),
        Command::Data(args) => data::run(args, out),
        Command::Domain(args) => domain::run(args, out),
        Command::Encoder(args) => encoder::run(args, out),
        Command::Evaluate(args) => evaluate::run(args, out),
        Command::Model(args) => model::run(args, out),
        Command::Reproduce(args) => reproduce::run(args, out),
        Command::Sample(args) => sample::run(args, out),
        Command::Score(args) => score::run(args, out),
        Command::Serve(args) => serve::run(args, out),
        Command::Support(args) => support::run(args, out),
        Command::Tag(args) => tag::run(args, out),
        Command::Train(args) => train::run(args, out),
        Command::Tune(args) => tune::run(args, out),
    }
}
