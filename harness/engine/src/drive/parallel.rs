//! Parallel work on many items.

use std::sync::{Mutex, PoisonError};

/// Runs `work` for each item on `threads` threads, at least one. Results come in the order of the items.
pub fn each<T: Send, R: Send>(
    threads: usize,
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let items = Mutex::new(items.into_iter().enumerate());
    let done = Mutex::new(Vec::new());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some((at, item)) = next() {
                    let result = work(item);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_items() {
        // Each item waits for the other: neither finishes before both have begun.
        let both = std::sync::Barrier::new(2);
        let met = each(2, ["a", "b"], |item| {
            both.wait();
            item
        });
        assert_eq!(met, ["a", "b"]);
        assert_eq!(each(0, 0..100, |n| n), (0..100).collect::<Vec<_>>());
    }
}
