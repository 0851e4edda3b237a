//! Numbers of things in messages: `1 sentence`, `2 sentences`.

use std::fmt;

/// Something that was counted, named in the singular.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted(pub usize, pub &'static str);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(n, what) = self;
        match (n, what.strip_suffix('y')) {
            (1, _) => write!(f, "1 {what}"),
            (n, Some(start)) => write!(f, "{n} {start}ies"),
            (n, None) => write!(f, "{n} {what}s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_singular() {
        let counted = [Counted(0, "finding"), Counted(1, "finding"), Counted(2, "query")];
        assert_eq!(counted.map(|it| it.to_string()), ["0 findings", "1 finding", "2 queries"]);
    }
}
