//! What a command says besides its result, on standard error: warnings, and on a terminal how far it has come.

use std::io::Write;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar that counts episodes; `what` stands before it.
pub(crate) fn episodes(n_episodes: usize, what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} episodes, {eta} left")
        .expect("the template is well-formed");
    ProgressBar::new(n_episodes as u64).with_style(style).with_message(what.to_owned())
}

/// Tells of something that does not stop the command.
pub(crate) fn warn(message: &str) {
    // Nobody is left to tell if standard error is gone.
    let _ = writeln!(std::io::stderr(), "warning: {message}");
}
