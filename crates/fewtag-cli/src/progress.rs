//! How far a long command has come, on standard error and only if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar that counts episodes; `what` stands before it.
pub(crate) fn episodes(n_episodes: usize, what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} episodes, {eta} left")
        .expect("the template is well-formed");
    ProgressBar::new(n_episodes as u64).with_style(style).with_message(what.to_owned())
}
