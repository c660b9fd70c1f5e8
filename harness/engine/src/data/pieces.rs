//! Shorter forms of a list, the shortest first.

/// Most forms of a list, but for those of one size of pieces.
const LISTS_MAX: usize = 400;

/// Longest list that also loses its items one by one.
const ONE_BY_ONE_MAX: usize = 24;

/// Gives `items` without all of them, without each half, each quarter and so on, and without each single one.
pub fn without_pieces<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    let mut out = Vec::new();
    let mut size = items.len();
    while size > 0 {
        if size > 1 || items.len() == 1 || items.len() <= ONE_BY_ONE_MAX {
            for begin in (0..items.len()).step_by(size) {
                let end = (begin + size).min(items.len());
                out.push([&items[..begin], &items[end..]].concat());
            }
        }
        size = if size == items.len() && size > 1 { size.div_ceil(2) } else { size / 2 };
        if out.len() > LISTS_MAX {
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_go_from_large_to_small() {
        assert_eq!(without_pieces(&[1]), [Vec::<i32>::new()]);
        let pieces = without_pieces(&[1, 2, 3, 4]);
        assert_eq!(pieces[..3], [vec![], vec![3, 4], vec![1, 2]]);
        assert!(pieces.contains(&vec![1, 2, 4]), "{pieces:?}");
        assert!(pieces.iter().all(|rest| rest.len() < 4));
    }
}
