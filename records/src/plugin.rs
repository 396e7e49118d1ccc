use std::fmt;

use crate::{Collective, quoted};

/// A collective in a shared library of somebody else's, with the signature of MPI's.
///
/// Written `LIBRARY:SYMBOL`, or `LIBRARY:SYMBOL,suboptions=TEXT` where the library's
/// `collectives_initialize` is to be handed a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Plugin {
    library: String,
    symbol: String,
    suboptions: String,
}

const SUBOPTIONS: &str = ",suboptions=";

impl Plugin {
    /// A function of a library; `suboptions` may be empty.
    ///
    /// # Errors
    /// The library has no name or one that can't be written down, or the symbol is none of C's.
    pub fn new(library: &str, symbol: &str, suboptions: &str) -> Result<Self, String> {
        let first = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
        let later = |letter: char| first(letter) || letter.is_ascii_digit();
        if library.is_empty() {
            return Err("has no library; expected LIBRARY:SYMBOL".into());
        }
        if library.contains(SUBOPTIONS) {
            return Err(format!("the library's name may not contain '{SUBOPTIONS}'"));
        }
        if library.chars().chain(suboptions.chars()).any(char::is_control) {
            return Err("a library's name and suboptions are one line of text".into());
        }
        if !symbol.starts_with(first) || !symbol.chars().all(later) {
            return Err(format!(
                "{} is not the name of a C function; expected LIBRARY:SYMBOL",
                quoted(symbol)
            ));
        }
        let [library, symbol, suboptions] = [library, symbol, suboptions].map(str::to_owned);
        Ok(Plugin { library, symbol, suboptions })
    }

    /// Reads what [`fmt::Display`] writes.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (function, suboptions) = text.split_once(SUBOPTIONS).unwrap_or((text, ""));
        let Some((library, symbol)) = function.rsplit_once(':') else {
            return Err("a plug-in is plugin:LIBRARY:SYMBOL[,suboptions=TEXT]".into());
        };
        Plugin::new(library, symbol, suboptions)
    }

    /// The shared library: a path, or a name that the loader looks for.
    pub fn library(&self) -> &str {
        &self.library
    }

    pub fn symbol(&self) -> &str {
        &self.symbol
    }

    /// What `collectives_initialize` is handed.
    pub fn suboptions(&self) -> &str {
        &self.suboptions
    }

    /// The collective that the function's name tells, as MPIBlib has it: the first in the name, of
    /// several that begin there the longest (`MPIB_Scatterv_sorted` is a scatterv).
    ///
    /// # Errors
    /// The name tells none.
    pub fn collective(&self) -> Result<Collective, String> {
        let symbol = self.symbol.to_ascii_lowercase();
        let place = |of: &Collective| {
            let at = symbol.find(of.name())?;
            Some((at, std::cmp::Reverse(of.name().len())))
        };
        let named = Collective::ALL.into_iter().filter(|of| place(of).is_some()).min_by_key(place);
        named.ok_or_else(|| {
            let known = Collective::ALL.map(Collective::name).join(", ");
            format!(
                "{} names no collective; its name must contain one ({known})",
                quoted(&self.symbol)
            )
        })
    }
}

impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plugin { library, symbol, suboptions } = self;
        write!(f, "{library}:{symbol}")?;
        match suboptions.is_empty() {
            true => Ok(()),
            false => write!(f, "{SUBOPTIONS}{suboptions}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_name_tells_the_collective() {
        for (symbol, wanted) in [
            ("MPIB_Scatter_binomial", Collective::Scatter),
            ("MPIB_Scatterv_sorted", Collective::Scatterv),
            ("my_allreduce", Collective::Allreduce),
            ("MPI_Reduce_scatter_block", Collective::ReduceScatterBlock),
            ("Reduce_scatter_then_gather", Collective::ReduceScatter),
            ("bcast_as_scatter_allgather", Collective::Bcast),
            ("exscan2", Collective::Exscan),
        ] {
            assert_eq!(Plugin::new("l.so", symbol, "").unwrap().collective(), Ok(wanted));
        }
        let error = Plugin::new("l.so", "broadcast", "").unwrap().collective().unwrap_err();
        assert!(error.contains("must contain one (allgather"), "{error}");
    }

    #[test]
    fn what_is_no_plug_in_is_refused_with_what_would_be_one() {
        for (text, part) in [
            ("lib.so", "plugin:LIBRARY:SYMBOL"),
            (":MPI_Bcast", "has no library"),
            ("lib.so:", "is not the name of a C function"),
            ("lib.so:a-b", "'a-b' is not the name"),
            ("lib.so:1st", "is not the name of a C function"),
            ("li\nb.so:bcast", "one line"),
        ] {
            let error = Plugin::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn every_plug_in_reads_back(
            library in "[ -~]{1,30}", symbol in "[A-Za-z_][A-Za-z0-9_]{0,20}", suboptions in "[ -~]{0,30}",
        ) {
            if let Ok(plugin) = Plugin::new(&library, &symbol, &suboptions) {
                prop_assert_eq!(Plugin::parse(&plugin.to_string()), Ok(plugin));
            }
        }
    }
}
