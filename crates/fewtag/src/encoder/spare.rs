//! Buffers that are used again: a fresh one costs as much time in the kernel as several passes over it.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// Values to lend, and to take back when they are dropped. What they hold is to be overwritten.
#[derive(Debug, Default)]
pub(super) struct Spare<T>(Arc<Mutex<Vec<T>>>);

impl<T: Default> Spare<T> {
    /// A value that was used before, or a new one.
    pub(super) fn lend(&self) -> Lent<T> {
        let value = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Lent { value: value.unwrap_or_default(), home: Arc::clone(&self.0) }
    }
}

/// A value that returns to its [`Spare`] when dropped.
#[derive(Debug)]
pub(super) struct Lent<T: Default> {
    value: T,
    home: Arc<Mutex<Vec<T>>>,
}

impl<T: Default> Deref for Lent<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Default> DerefMut for Lent<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: Default> Drop for Lent<T> {
    fn drop(&mut self) {
        let value = std::mem::take(&mut self.value);
        self.home.lock().unwrap_or_else(PoisonError::into_inner).push(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_value_is_lent_again() {
        let spare = Spare::<Vec<u8>>::default();
        let mut first = spare.lend();
        first.push(7);
        assert!(spare.lend().is_empty());
        drop(first);
        assert_eq!(*spare.lend(), [7]);
    }
}
