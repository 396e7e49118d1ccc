//! Files from the middle on: cut at every line, and put together anew.

/// What becomes of samples that are cut at every line: what is left, alone and before what was cut off, and behind
/// the beginning of every other sample, which ends as far into it.
pub fn cuts(samples: &[Vec<u8>]) -> impl Iterator<Item = Vec<u8>> {
    samples.iter().flat_map(move |sample| {
        let ends = line_ends(sample);
        let count = ends.len();
        ends.into_iter().enumerate().flat_map(move |(index, end)| {
            let (before, behind) = sample.split_at(end);
            let whole = [before.to_vec(), behind.to_vec(), [behind, before].concat()];
            let others = samples.iter().map(move |other| {
                let ends = line_ends(other);
                let as_far = ends.get(index * ends.len() / count).copied().unwrap_or_default();
                [&other[..as_far], behind].concat()
            });
            whole.into_iter().chain(others)
        })
    })
}

/// Where each line ends.
fn line_ends(sample: &[u8]) -> Vec<usize> {
    let ends = sample.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    ends.map(|(place, _)| place + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_place_to_cut() {
        let samples = [b"a\nb\n".to_vec(), b"1\n2\n3\n4\n".to_vec()];
        let all: Vec<String> =
            cuts(&samples).map(|cut| String::from_utf8(cut).unwrap().replace('\n', "")).collect();
        assert_eq!(all.len(), (2 + 4) * 5);
        assert_eq!(all[..5], ["a", "b", "ba", "ab", "1b"]);
        assert!(
            ["", "ab", "1234", "34", "4123", "a34", "ab4"]
                .iter()
                .all(|it| all.iter().any(|one| one == it))
        );
    }
}
