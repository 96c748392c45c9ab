//! Arithmetic modulo the Mersenne prime 2^61 − 1.

/// The modulus. Counts of real runs are smaller, so a count is its own residue.
pub(crate) const PRIME: u64 = (1 << 61) - 1;

/// An element of the field, below [`PRIME`].
pub(crate) type Residue = u64;

/// Returns the residue of any integer.
pub(crate) fn residue(x: i128) -> Residue {
    x.rem_euclid(i128::from(PRIME)) as u64
}

/// Returns a − b·c.
pub(crate) fn subtract_product(a: Residue, b: Residue, c: Residue) -> Residue {
    let product = multiply(b, c);
    if a >= product {
        a - product
    } else {
        a + PRIME - product
    }
}

/// Returns a·b.
pub(crate) fn multiply(a: Residue, b: Residue) -> Residue {
    let product = u128::from(a) * u128::from(b);
    let folded = (product >> 61) as u64 + (product as u64 & PRIME);
    if folded >= PRIME {
        folded - PRIME
    } else {
        folded
    }
}

/// Returns 1/a for a ≠ 0, by Fermat's little theorem.
pub(crate) fn inverse(a: Residue) -> Residue {
    let (mut result, mut base, mut exponent) = (1, a, PRIME - 2);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiply(result, base);
        }
        base = multiply(base, base);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_remainders(a in 0..PRIME, b in 0..PRIME, c in 0..PRIME) {
            let p = i128::from(PRIME);
            let exact = (i128::from(a) - i128::from(b) * i128::from(c) % p).rem_euclid(p);
            prop_assert_eq!(i128::from(subtract_product(a, b, c)), exact);
            if a != 0 {
                prop_assert_eq!(multiply(a, inverse(a)), 1);
            }
        }
    }
}
