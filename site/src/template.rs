//! A launcher's command as people write it: words as in a shell, in which `{np}`, `{nodes}`, `{ppn}` and
//! `{hosts}` stand for a job's numbers and nodes.

use anyhow::Result;

use crate::{allocation::Allocation, usage};

/// What a launcher may be given, beside the number of ranks.
const OF_ALLOCATION: [&str; 3] = ["{nodes}", "{ppn}", "{hosts}"];

/// A launcher's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    words: Vec<String>,
    /// The nodes' names, where they are wanted.
    hosts: Vec<String>,
}

impl Template {
    /// Words as a shell would take them, with `{np}` in one of them.
    ///
    /// # Errors
    /// A quote that is not closed, no `{np}`, or something that the allocation does not tell.
    pub fn parse(text: &str, allocation: Option<&Allocation>) -> Result<Self> {
        let Some(words) = shlex::split(text) else {
            usage!("the launcher '{text}' has a quote that is not closed");
        };
        if !words.iter().any(|word| word.contains("{np}")) {
            usage!(
                "the launcher '{text}' does not say where the number of ranks goes; write {{np}} \
                 there, as in 'mpirun -np {{np}}'"
            );
        }
        if let Some(place) = words.iter().find_map(|word| unknown_place(word)) {
            usage!(
                "the launcher '{text}' has {place}, which stands for nothing (known: {{np}} for the number of ranks; in \
                 an allocation {}, too)",
                OF_ALLOCATION.join(", ")
            );
        }
        let wants = |place: &str| words.iter().any(|word| word.contains(place));
        let unknown = OF_ALLOCATION.iter().find(|place| wants(place));
        if let (Some(place), None) = (unknown, allocation.and_then(|held| held.nodes)) {
            usage!(
                "{place} is known only in an allocation of Slurm, PBS, LSF or Flux; write the number \
                 of nodes or their names into the launcher '{text}'"
            );
        }
        let hosts = match (wants("{hosts}"), allocation) {
            (true, Some(held)) => held.hosts()?,
            _ => Vec::new(),
        };
        Ok(Template { words, hosts })
    }

    /// The program that starts the ranks.
    pub fn program(&self) -> &str {
        &self.words[0]
    }

    /// Its words, places and all.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// This template with one more word behind the program.
    pub fn with(&self, word: String) -> Self {
        let mut other = self.clone();
        other.words.insert(1, word);
        other
    }

    /// The words for a job of so many ranks in an allocation of so many nodes. A job of fewer ranks
    /// than there are nodes can be on as many nodes only.
    pub fn filled(&self, ranks: u32, nodes: Option<u32>) -> impl Iterator<Item = String> {
        let nodes = nodes.unwrap_or(ranks).min(ranks).max(1);
        let hosts = self.hosts.iter().take(nodes as usize).map(String::as_str);
        let hosts = hosts.collect::<Vec<_>>().join(",");
        self.words.iter().map(move |word| {
            word.replace("{np}", &ranks.to_string())
                .replace("{nodes}", &nodes.to_string())
                .replace("{ppn}", &ranks.div_ceil(nodes).to_string())
                .replace("{hosts}", &hosts)
        })
    }

    /// As one would type it.
    pub fn text(&self) -> String {
        Self::quoted_text(&self.words)
    }

    /// Words as one would type them.
    pub fn quoted_text(words: &[String]) -> String {
        words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// What looks like a place in a word and is none that we fill. Words with blanks are scripts, which may use braces.
fn unknown_place(word: &str) -> Option<&str> {
    if word.contains(char::is_whitespace) {
        return None;
    }
    let begins = word.match_indices('{').map(|(begin, _)| begin);
    let places = begins.filter_map(|begin| {
        let length = word[begin..].find('}')?;
        let place = &word[begin..=begin + length];
        let is_name =
            place.len() > 2 && place[1..length].bytes().all(|byte| byte.is_ascii_lowercase());
        (is_name && !word[..begin].ends_with('$')).then_some(place)
    });
    places.into_iter().find(|place| *place != "{np}" && !OF_ALLOCATION.contains(place))
}

/// A word as a shell takes it for one; a place's braces need no quotes.
pub fn quoted(word: &str) -> String {
    let special = |c: char| !c.is_ascii_alphanumeric() && !"{}_-+=./,:@%".contains(c);
    match word.is_empty() || word.contains(special) {
        true => format!("'{}'", word.replace('\'', r"'\''")),
        false => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::BatchSystem;
    use std::fs;

    fn words(template: &Template, ranks: u32, nodes: u32) -> Vec<String> {
        template.filled(ranks, Some(nodes)).collect()
    }

    #[test]
    fn a_place_that_stands_for_nothing_is_named() {
        for (text, place) in [
            ("mpirun -np {np} {foo}", "{foo}"),
            ("srun -n {np} -N {node}", "{node}"),
            ("mpirun -np {np} --host={hostnames}", "{hostnames}"),
        ] {
            let error = Template::parse(text, None).unwrap_err().to_string();
            assert!(error.contains(&format!("has {place}, which stands for nothing")), "{error}");
        }
        for text in [
            "sh -c 'mpirun -np {np} awk {print}'",
            "mpirun -np {np} -x A=${b}",
            "mpirun -np {np} {} {1,2} { {A}",
        ] {
            assert!(Template::parse(text, None).is_ok(), "{text}");
        }
    }

    #[test]
    fn quoted_words_stay_together() {
        let text = "sh -c 'exec mpirun -np {np} apptainer exec \"my image.sif\" \"$@\"' sh";
        let template = Template::parse(text, None).unwrap();
        assert_eq!(template.words().len(), 4);
        assert_eq!(Template::parse(&template.text(), None).unwrap(), template);
        let plain = "srun --mpi=pmix -n {np}";
        assert_eq!(Template::parse(plain, None).unwrap().text(), plain);
        let error = Template::parse("sh -c 'echo {np}", None).unwrap_err().to_string();
        assert!(error.contains("a quote that is not closed"), "{error}");
        let error = Template::parse("mpirun -np 8", None).unwrap_err().to_string();
        assert!(error.contains("write {np} there"), "{error}");
    }

    #[test]
    fn places_stand_for_what_the_allocation_holds() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("nodes");
        fs::write(&file, "a\na\nb\nb\nc\n").unwrap();
        let held = Allocation {
            nodes: Some(3),
            host_file: Some(file.to_str().unwrap().to_owned()),
            ..Allocation::unknown(BatchSystem::Pbs, "1".into())
        };
        let text = "run -n {np} -N {nodes} --ppn={ppn} -H {hosts}";
        let template = Template::parse(text, Some(&held)).unwrap();
        assert_eq!(words(&template, 5, 3), ["run", "-n", "5", "-N", "3", "--ppn=2", "-H", "a,b,c"]);
        assert_eq!(words(&template, 2, 3), ["run", "-n", "2", "-N", "2", "--ppn=1", "-H", "a,b"]);
        for place in OF_ALLOCATION {
            let error = Template::parse(&format!("sh {place} {{np}}"), None).unwrap_err();
            let error = error.to_string();
            assert!(error.contains(place) && error.contains("write the number"), "{error}");
        }
    }
}
