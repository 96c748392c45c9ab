//! Solves flow equations whose unknown edges form a forest.

/// The reason why no unique solution exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowError {
    /// The count of this edge is undetermined, because the edge lies on a cycle of unknown edges.
    Undetermined(usize),
    /// More or less flows into this vertex than out of it.
    Unbalanced(usize),
}

/// Fills in the unknown edges so that the flow into every vertex equals the flow out of it plus the
/// flow that stays: `Σ in − Σ out = stays[v]`.
///
/// A vertex with only one unknown edge determines that edge. Repeatedly removing such leaves
/// determines the whole forest (Ball and Larus 1992, section 3.1). Every equation is used or
/// checked. Time: O(V + E).
///
/// Values may come out negative. Sums stay far below the limits of `i128` if the known values are
/// below 2^64 and there are fewer than 2^32 edges.
pub(crate) fn solve(
    ends: &[(u32, u32)],
    values: &mut [Option<i128>],
    stays: &[i128],
) -> Result<(), FlowError> {
    let mut vertices: Vec<Vertex> = stays
        .iter()
        .map(|&s| Vertex {
            excess: -s,
            ..Vertex::default()
        })
        .collect();
    for (e, (&(from, to), value)) in ends.iter().zip(values.iter()).enumerate() {
        for (v, sign) in [(from, -1), (to, 1)] {
            let vertex = &mut vertices[v as usize];
            match value {
                Some(value) => vertex.excess += sign * value,
                None => {
                    vertex.unknown += 1;
                    vertex.unknown_edges ^= e;
                }
            }
        }
    }
    let is_leaf = |v: &Vertex| v.unknown == 1;
    let mut leaves: Vec<u32> = (0..vertices.len() as u32)
        .filter(|&v| is_leaf(&vertices[v as usize]))
        .collect();
    while let Some(leaf) = leaves.pop() {
        // The edge may have been determined from its other end in the meantime.
        if !is_leaf(&vertices[leaf as usize]) {
            continue;
        }
        let e = vertices[leaf as usize].unknown_edges;
        let (from, to) = ends[e];
        let excess = vertices[leaf as usize].excess;
        let value = if from == leaf { excess } else { -excess };
        values[e] = Some(value);
        for (v, sign) in [(from, -1), (to, 1)] {
            let vertex = &mut vertices[v as usize];
            vertex.excess += sign * value;
            vertex.unknown -= 1;
            vertex.unknown_edges ^= e;
            if is_leaf(vertex) {
                leaves.push(v);
            }
        }
    }
    if let Some(e) = values.iter().position(Option::is_none) {
        return Err(FlowError::Undetermined(e));
    }
    match vertices.iter().position(|v| v.excess != 0) {
        Some(v) => Err(FlowError::Unbalanced(v)),
        None => Ok(()),
    }
}

#[derive(Clone, Debug, Default)]
struct Vertex {
    /// The known flow into the vertex, minus the known flow that leaves it or stays.
    excess: i128,
    /// The number of unknown edges at the vertex. A self-loop counts twice.
    unknown: u32,
    /// The exclusive or of the numbers of the unknown edges. Once a single edge is left, this is
    /// its number.
    unknown_edges: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forest_is_determined_and_a_cycle_is_not() {
        let ends = [(0, 1), (1, 2), (2, 0), (1, 0)];
        let mut values = [None, Some(5), None, None];
        assert_eq!(
            solve(&ends, &mut values, &[0; 3]),
            Err(FlowError::Undetermined(0))
        );
        let mut values = [None, Some(5), None, Some(2)];
        assert_eq!(solve(&ends, &mut values, &[0; 3]), Ok(()));
        assert_eq!(values, [Some(7), Some(5), Some(5), Some(2)]);
    }

    #[test]
    fn flow_that_stays_is_missing_further_on() {
        let ends = [(0, 1), (1, 2), (2, 0)];
        let mut values = [Some(3), None, None];
        assert_eq!(solve(&ends, &mut values, &[-1, 1, 0]), Ok(()));
        assert_eq!(values, [Some(3), Some(2), Some(2)]);
    }

    #[test]
    fn a_violated_equation_is_found() {
        let ends = [(0, 1), (1, 0)];
        assert_eq!(
            solve(&ends, &mut [Some(3), Some(4)], &[0, 0]),
            Err(FlowError::Unbalanced(0))
        );
        let wrong = solve(&ends, &mut [None, Some(4)], &[0, 1]);
        assert!(matches!(wrong, Err(FlowError::Unbalanced(_))));
    }

    #[test]
    fn an_unknown_self_loop_is_undetermined() {
        assert_eq!(
            solve(&[(0, 0)], &mut [None], &[0]),
            Err(FlowError::Undetermined(0))
        );
    }
}
