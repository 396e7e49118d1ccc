//! The one font, shipped with the crate so that figures look alike on every machine.

use std::sync::OnceLock;

use ab_glyph::{Font, FontRef, Glyph, OutlinedGlyph, ScaleFont, point};
use plotters::{
    prelude::{Color, IntoFont, RGBColor, TextStyle},
    style::{FontStyle, register_font},
};

use crate::FigureError;

/// Both the name under which the font is registered and the list that an SVG viewer reads: the
/// viewer takes the first that it has.
const FAMILY: &str = "DejaVu Sans, Verdana, sans-serif";

const FILE: &[u8] = include_bytes!("../font/DejaVuSans-subset.ttf");

/// plotters takes a "size" and writes 1/1.24 of it into the SVG; ours are true em heights.
const SIZE_PER_EM: f64 = 1.24;

/// Registers the font with plotters, once per process.
fn font() -> Result<&'static FontRef<'static>, FigureError> {
    static FONT: OnceLock<Option<FontRef<'static>>> = OnceLock::new();
    FONT.get_or_init(|| {
        register_font(FAMILY, FontStyle::Normal, FILE).ok()?;
        FontRef::try_from_slice(FILE).ok()
    })
    .as_ref()
    .ok_or_else(|| FigureError::Drawing("the font in this program is damaged".into()))
}

/// A text style of `em` pixels.
pub(crate) fn style(em: u32, color: RGBColor) -> Result<TextStyle<'static>, FigureError> {
    font()?;
    Ok((FAMILY, f64::from(em) * SIZE_PER_EM).into_font().color(&color.to_rgba()))
}

/// The em height behind a plotters size.
pub(crate) fn em(size: f64) -> f64 {
    size / SIZE_PER_EM
}

/// The glyphs of a text that starts at (0, 0) on the baseline, and its width in pixels.
pub(crate) fn lay_out(text: &str, em: f64) -> Result<(Vec<Glyph>, f64), FigureError> {
    let font = font()?;
    let units = font.units_per_em().unwrap_or(1.0);
    let scaled = font.as_scaled((em as f32) * font.height_unscaled() / units);
    let mut x = 0.0;
    let mut glyphs: Vec<Glyph> = Vec::new();
    for character in text.chars() {
        let mut glyph = scaled.scaled_glyph(character);
        x += glyphs.last().map_or(0.0, |previous| scaled.kern(previous.id, glyph.id));
        glyph.position = point(x, 0.0);
        x += scaled.h_advance(glyph.id);
        glyphs.push(glyph);
    }
    Ok((glyphs, f64::from(x)))
}

/// The shape of a glyph; a blank has none.
pub(crate) fn outline(glyph: Glyph) -> Result<Option<OutlinedGlyph>, FigureError> {
    Ok(font()?.outline_glyph(glyph))
}

/// Width in pixels of a text of `em` pixels.
pub(crate) fn width(text: &str, em: u32) -> Result<i32, FigureError> {
    Ok(lay_out(text, f64::from(em))?.1.ceil() as i32)
}

/// A text without characters that a file format or a line of text cannot hold.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Breaks a text at blanks into lines no wider than `limit`; a longer word is cut.
pub(crate) fn wrap(text: &str, em: u32, limit: i32) -> Result<Vec<String>, FigureError> {
    let mut lines: Vec<String> = Vec::new();
    for word in printable(text).split_whitespace() {
        let longer = lines.last().map(|line| format!("{line} {word}"));
        match longer {
            Some(longer) if width(&longer, em)? <= limit => {
                lines.pop();
                lines.push(longer);
            }
            _ => lines.push(shorten(word, em, limit)?),
        }
    }
    Ok(lines)
}

/// Cuts a text to `limit` pixels and says so with an ellipsis.
pub(crate) fn shorten(text: &str, em: u32, limit: i32) -> Result<String, FigureError> {
    let text = printable(text);
    if width(&text, em)? <= limit {
        return Ok(text);
    }
    let cut = |end: usize| format!("{}\u{2026}", text[..end].trim_end());
    let fits = |end: &usize| width(&cut(*end), em).is_ok_and(|width| width <= limit);
    let ends: Vec<usize> = text.char_indices().map(|(index, _)| index).collect();
    // Few are tried, since a text may be a whole file; a text that is shorter is no wider but by
    // what its last letters stand closer together.
    let longest = ends.partition_point(fits);
    Ok(ends[..longest].iter().copied().rev().find(fits).map(cut).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_character_that_figures_write_is_in_the_font() {
        let font = font().unwrap();
        let written =
            (' '..='~').chain("\u{d7}\u{b7}\u{b5}\u{2264}\u{2265}\u{2026}\u{2013}".chars());
        for character in written {
            assert_ne!(font.glyph_id(character).0, 0, "{character:?} is missing");
        }
    }

    #[test]
    fn a_longer_text_is_wider_and_twice_the_size_is_twice_as_wide() {
        assert!(width("binomial 8 KiB", 16).unwrap() > width("binomial", 16).unwrap());
        let (small, large) = (width("binomial", 100).unwrap(), width("binomial", 200).unwrap());
        assert!((2 * small - large).abs() <= 2, "{small} {large}");
    }

    /// One letter less after the other would be tried for minutes.
    #[test]
    fn a_very_long_text_is_cut_as_a_long_one() {
        let [long, short] = [1 << 16, 1000].map(|times| shorten(&"a".repeat(times), 16, 200));
        assert_eq!(long.unwrap(), short.unwrap());
    }

    proptest! {
        #[test]
        fn wrapped_lines_fit_and_keep_every_word(
            words in proptest::collection::vec("[a-z]{1,12}", 1..20),
        ) {
            let lines = wrap(&words.join(" "), 16, 200).unwrap();
            for line in &lines {
                prop_assert!(width(line, 16).unwrap() <= 200);
            }
            prop_assert_eq!(lines.join(" "), words.join(" "));
        }

        #[test]
        fn a_shortened_text_fits(text in ".{0,60}", limit in 0_i32..300) {
            prop_assert!(width(&shorten(&text, 16, limit).unwrap(), 16).unwrap() <= limit);
        }
    }
}
