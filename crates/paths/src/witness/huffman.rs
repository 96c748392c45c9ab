//! Computes code lengths from weights (Huffman 1952).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The sum of the weights is divided into this many parts. Each weight is rounded to a whole number
/// of parts, at least one. The length of a word in a Huffman code is at most log_φ of its inverse
/// probability (Buro 1993), which is below 32 for 2^22 words.
const PARTS: f64 = 65_536.0;

/// Returns the word lengths of an optimal prefix-free code for these nonnegative weights. Lengths
/// are from 1 to 32 for up to 2^22 words. Time: O(n log n).
pub(super) fn code_lengths(weights: &[f64]) -> Vec<u8> {
    let n = weights.len();
    if n == 1 {
        return vec![1];
    }
    let sum: f64 = weights.iter().sum();
    let parts = |weight: f64| {
        let parts = weight / sum * PARTS;
        // If the sum is zero, the quotient is NaN, and every weight gets one part.
        (parts.round() as u64).max(1)
    };
    let mut heap: BinaryHeap<Reverse<(u64, usize)>> = weights
        .iter()
        .enumerate()
        .map(|(i, &weight)| Reverse((parts(weight), i)))
        .collect();
    let mut parent = vec![0; (2 * n).saturating_sub(1)];
    let mut next = n;
    while let (Some(Reverse((a, i))), Some(Reverse((b, j)))) = (heap.pop(), heap.pop()) {
        (parent[i], parent[j]) = (next, next);
        heap.push(Reverse((a + b, next)));
        next += 1;
        if heap.len() == 1 {
            break;
        }
    }
    // Parents have higher numbers than their children, and the last number is the root.
    let mut depth = vec![0u8; parent.len()];
    for i in (0..parent.len().saturating_sub(1)).rev() {
        depth[i] = depth[parent[i]] + 1;
    }
    depth.truncate(n);
    depth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heavy_words_are_short() {
        assert_eq!(code_lengths(&[8.0, 4.0, 2.0, 1.0, 1.0]), [1, 2, 3, 4, 4]);
        assert_eq!(code_lengths(&[1.0; 4]), [2; 4]);
        assert_eq!(code_lengths(&[3.0]), [1]);
        assert_eq!(code_lengths(&[0.0; 3]).iter().max(), Some(&2));
    }

    #[test]
    fn no_word_is_too_long() {
        // Fibonacci weights are the worst case.
        let mut weights = vec![1.0, 1.0];
        for i in 2..100 {
            weights.push(weights[i - 1] + weights[i - 2]);
        }
        let lengths = code_lengths(&weights);
        assert!(
            lengths.iter().all(|&l| (1..=32).contains(&l)),
            "{lengths:?}"
        );
        let kraft: f64 = lengths.iter().map(|&l| 0.5f64.powi(i32::from(l))).sum();
        assert_eq!(kraft, 1.0);
    }
}
