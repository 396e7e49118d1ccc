//! A run's figures as parts of a page, which stand beside each other or below each other as there is room.

use std::fs;

use anyhow::Result;
use maud::{Markup, PreEscaped, html};
use records::FileError;
use site::run_directory::RunDirectory;

/// A part that is wider takes all columns, in pixels.
const WIDE: u32 = 760;

/// A figure as the page holds it: a panel is placed with the legend that is its own.
#[derive(Default)]
struct FigureParts<'a> {
    title: &'a str,
    lines: Vec<&'a str>,
    /// SVG elements: a panel, and the entries of the legend that follow it.
    panels: Vec<(&'a str, Vec<&'a str>)>,
    /// Of all panels.
    legend: Vec<&'a str>,
}

/// What stands between two texts.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(begin)?;
    rest.split_once(end).map(|(inside, _)| inside)
}

/// The parts of a drawing by `figures`; nothing where it is not drawn part by part.
fn parts(svg: &str) -> Option<FigureParts<'_>> {
    let mut parts = FigureParts {
        title: between(svg, "<title>", "</title>")?,
        lines: between(svg, "<desc>", "</desc>")?.lines().collect(),
        ..FigureParts::default()
    };
    const BEGIN: &str = "<svg class=\"";
    for (start, _) in svg.match_indices(BEGIN) {
        let end = start + svg[start..].find("</svg>")? + "</svg>".len();
        let element = &svg[start..end];
        match between(element, BEGIN, "\"")? {
            "heading" => {}
            "panel" => parts.panels.push((element, Vec::new())),
            "scale" => parts.legend.push(element),
            _ => match (parts.panels.last_mut(), parts.legend.is_empty()) {
                (Some((_, keys)), true) => keys.push(element),
                _ => parts.legend.push(element),
            },
        }
    }
    // What follows the last panel alone is of all.
    let of_panels = parts.panels.iter().filter(|(_, keys)| !keys.is_empty()).count();
    if let (0 | 1, Some((_, keys))) = (of_panels, parts.panels.last_mut()) {
        parts.legend.splice(..0, std::mem::take(keys));
    }
    Some(parts)
}

/// A figure of the run; nothing where it was not drawn. `known` are lines that the page has already.
pub(super) fn figure(run: &RunDirectory, name: &str, known: &[String]) -> Result<Option<Markup>> {
    let path = run.path().join("figures").join(format!("{name}.svg"));
    if !path.exists() {
        return Ok(None);
    }
    let svg = fs::read_to_string(&path).map_err(|error| FileError::io(&path, "read", &error))?;
    let Some(FigureParts { title, lines, panels, legend }) = parts(&svg) else {
        // What stands before the drawing itself (an XML declaration) has no place inside a page.
        let drawing = svg.find("<svg").map(|start| &svg[start..]);
        return Ok(drawing.map(|drawing| html! { figure { (PreEscaped(drawing)) } }));
    };
    // Warnings stand together, before all figures.
    let is_new = |line: &&str| !line.starts_with("warning: ") && known.iter().all(|it| it != line);
    let lines = lines.into_iter().filter(is_new);
    let is_wide = |panel: &str| {
        let width = between(panel, " width=\"", "\"").and_then(|width| width.parse::<u32>().ok());
        width.is_some_and(|width| width > WIDE)
    };
    let any_wide = panels.iter().any(|(panel, _)| is_wide(panel));
    Ok(Some(html! {
        figure.wide[any_wide] {
            figcaption {
                strong { (PreEscaped(title)) }
                @for line in lines { br; (PreEscaped(line)) }
            }
            @if !panels.is_empty() {
                div.panels {
                    @for (panel, keys) in panels {
                        div {
                            (PreEscaped(panel))
                            @if !keys.is_empty() { (entries(&keys)) }
                        }
                    }
                }
            }
            @if !legend.is_empty() { (entries(&legend)) }
        }
    }))
}

/// What a word introduces begins a line.
fn entries(keys: &[&str]) -> Markup {
    let is_word = |key: &&str| key.starts_with("<svg class=\"word\"");
    let lines = keys.chunk_by(|_, next| !is_word(next));
    html! { @for line in lines { div.legend { @for key in line { (PreEscaped(*key)) } } } }
}

/// Figures that stand side by side where there is room.
pub(super) fn beside(figures: &[Markup]) -> Markup {
    html! { @if !figures.is_empty() { div.figures { @for figure in figures { (figure) } } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legend_of_one_panel_stands_below_it_and_one_of_all_below_all() {
        let part = |class: &str| format!("<svg class=\"{class}\" width=\"9\">{class}</svg>\n");
        let of = |classes: &[&str]| {
            let inside: String = classes.iter().map(|class| part(class)).collect();
            let svg = format!("<svg><title>T</title><desc>a\nb</desc>{inside}</svg>");
            let found = parts(&svg).unwrap();
            assert_eq!((found.title, &found.lines[..]), ("T", &["a", "b"][..]));
            let keys = found.panels.iter().map(|(_, keys)| keys.len()).collect::<Vec<_>>();
            (keys, found.legend.len())
        };
        assert_eq!(of(&["heading", "panel", "key", "key", "panel", "key"]), (vec![2, 1], 0));
        assert_eq!(of(&["heading", "panel", "panel", "word", "key"]), (vec![0, 0], 2));
        assert_eq!(of(&["heading", "panel", "scale", "key"]), (vec![0], 2));
        assert_eq!(of(&["heading"]), (vec![], 0));
        assert!(parts("<svg><path/></svg>").is_none());
    }
}
