//! Decision functions as source code: what all languages have in common.

use std::marker::PhantomData;

use libraries::{
    Error, Export, Exporter, File, HowToLoad, Result,
    rules::Rules,
    spans::{ProcsSpan, spans},
};
use records::{Algorithm, Collective, Method, Point};

/// A programming language in which a decision function can be written.
pub trait SourceLanguage: Sync {
    /// As people name it.
    const NAME: &str;
    /// What a file of it is called.
    const UNIT: &str;

    /// The whole file.
    ///
    /// # Errors
    /// What the export holds can't be written.
    fn text(export: &Export<'_>) -> Result<String>;

    /// How a program asks it, for people.
    fn how_to_use(file: &str) -> HowToLoad;
}

/// One file in a language, which holds every method.
pub struct SourceCode<L>(PhantomData<L>);

/// The exporter, the same for every version of the language.
///
/// # Errors
/// A version is given.
pub fn exporter<L: SourceLanguage + 'static>(version: Option<&str>) -> Result<Box<dyn Exporter>> {
    match version {
        Some(version) => Err(Error::Usage(format!(
            "--target-version {version}: the {} is the same for every version of {}",
            L::UNIT,
            L::NAME
        ))),
        None => Ok(Box::new(SourceCode::<L>(PhantomData))),
    }
}

impl<L: SourceLanguage> Exporter for SourceCode<L> {
    fn target(&self) -> String {
        L::NAME.into()
    }

    fn named(&self, algorithm: Algorithm, segment_bytes: u64) -> Method {
        Method::own(algorithm).with_segment(segment_bytes)
    }

    fn express(&self, _: Point, _: &Method) -> Result<(), String> {
        Ok(())
    }

    fn algorithms(&self, collective: Collective) -> Vec<Algorithm> {
        models::algorithms(collective).to_vec()
    }

    fn files(&self, export: &Export<'_>) -> Result<Vec<File>> {
        Ok(vec![File { name: String::new(), text: L::text(export)? }])
    }

    fn how_to_load(&self, file: &str, _: &Export<'_>) -> HowToLoad {
        L::how_to_use(file)
    }
}

/// The spans of a collective in which the default is replaced anywhere.
///
/// # Errors
/// As [`spans`].
pub fn replaced_spans(rules: &Rules) -> Result<Vec<ProcsSpan>> {
    let mut spans = spans(rules, false)?;
    spans.retain(|span| span.ranges.iter().any(|range| range.choice.method != Method::Default));
    Ok(spans)
}
