//! Pools of buffers that are used again: a fresh one costs as much time in the kernel as several passes over it.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// Values that come back when they are dropped. What they hold is to be overwritten.
#[derive(Debug, Default)]
pub(super) struct Pool<T>(Arc<Mutex<Vec<T>>>);

impl<T: Default> Pool<T> {
    /// A value that was used before, or a new one.
    pub(super) fn take(&self) -> Pooled<T> {
        self.take_or(T::default)
    }

    /// The same, where a new one is made by `new`.
    pub(super) fn take_or(&self, new: impl FnOnce() -> T) -> Pooled<T> {
        let value = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Pooled { value: value.unwrap_or_else(new), home: Arc::clone(&self.0) }
    }
}

/// A value that returns to its [`Pool`] when dropped.
#[derive(Debug)]
pub(super) struct Pooled<T: Default> {
    value: T,
    home: Arc<Mutex<Vec<T>>>,
}

impl<T: Default> Deref for Pooled<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Default> DerefMut for Pooled<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: Default> Drop for Pooled<T> {
    fn drop(&mut self) {
        let value = std::mem::take(&mut self.value);
        self.home.lock().unwrap_or_else(PoisonError::into_inner).push(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_value_is_used_again() {
        let pool = Pool::<Vec<u8>>::default();
        let mut first = pool.take();
        first.push(7);
        assert!(pool.take().is_empty());
        drop(first);
        assert_eq!(*pool.take(), [7]);
    }
}
