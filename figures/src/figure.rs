use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

use plotters::{
    backend::SVGBackend,
    coord::Shift,
    drawing::{DrawingArea, IntoDrawingArea},
    prelude::DrawingBackend,
};
use records::FileError;

use crate::{
    FigureError, canvas::Canvas, colour, data::GnuplotScript, map::MapFigure, page::Parted,
    plot::Plots, raster::Raster, space_time_page::SpaceTime, tree_page::TreePage,
};

/// A picture, laid out and ready to be drawn on any of plotters' backends.
///
/// A figure gives equal bytes every time it is drawn.
#[derive(Debug, Clone)]
pub struct Figure {
    page: Page,
    size: (u32, u32),
}

#[derive(Debug, Clone)]
enum Page {
    Map(MapFigure),
    Plots(Plots),
    Tree(TreePage),
    SpaceTime(SpaceTime),
}

impl Figure {
    pub(crate) fn of_map(map: MapFigure) -> Result<Self, FigureError> {
        let size = map.size()?;
        Ok(Figure { page: Page::Map(map), size })
    }

    pub(crate) fn of_plots(plots: Plots) -> Result<Self, FigureError> {
        let size = plots.size()?;
        Ok(Figure { page: Page::Plots(plots), size })
    }

    pub(crate) fn of_tree(tree: TreePage) -> Result<Self, FigureError> {
        let size = tree.size()?;
        Ok(Figure { page: Page::Tree(tree), size })
    }

    pub(crate) fn of_space_time(diagram: SpaceTime) -> Result<Self, FigureError> {
        let size = diagram.size()?;
        Ok(Figure { page: Page::SpaceTime(diagram), size })
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (u32, u32) {
        self.size
    }

    /// Draws on an area of at least [`size`](Self::size).
    ///
    /// # Errors
    /// The backend fails.
    pub fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
    ) -> Result<(), FigureError> {
        area.fill(&colour::WHITE).map_err(FigureError::drawing)?;
        let canvas = Canvas::new(area);
        match &self.page {
            Page::Map(map) => map.draw(&canvas)?,
            Page::Plots(plots) => plots.draw(&canvas)?,
            Page::Tree(tree) => tree.draw(&canvas)?,
            Page::SpaceTime(diagram) => diagram.draw(&canvas)?,
        }
        area.present().map_err(FigureError::drawing)
    }

    /// The figure as an SVG document.
    ///
    /// # Errors
    /// The drawing library fails.
    pub fn svg(&self) -> Result<String, FigureError> {
        match &self.page {
            Page::Map(map) => map.svg(self.size),
            Page::Plots(plots) => plots.svg(self.size),
            Page::Tree(_) | Page::SpaceTime(_) => {
                let mut text = String::new();
                self.draw(&SVGBackend::with_string(&mut text, self.size).into_drawing_area())?;
                Ok(text)
            }
        }
    }

    /// The figure as a PNG image, three bytes per pixel.
    ///
    /// # Errors
    /// The drawing library fails.
    pub fn png(&self) -> Result<Vec<u8>, FigureError> {
        let (width, height) = self.size;
        let mut pixels = vec![0; width as usize * height as usize * 3];
        self.draw(&Raster::new(&mut pixels, self.size).into_drawing_area())?;
        let mut image = Vec::new();
        let mut encoder = png::Encoder::new(&mut image, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(FigureError::drawing)?;
        writer.write_image_data(&pixels).map_err(FigureError::drawing)?;
        writer.finish().map_err(FigureError::drawing)?;
        Ok(image)
    }
}

impl Figure {
    /// What it shows as CSV, with a line of names.
    ///
    /// # Errors
    /// None that is known: the CSV library has one.
    pub fn csv(&self) -> Result<String, FigureError> {
        match &self.page {
            Page::Map(map) => map.table(),
            Page::Plots(plots) => plots.table(),
            Page::Tree(tree) => tree.table(),
            Page::SpaceTime(diagram) => diagram.table(),
        }
        .csv()
    }

    /// A gnuplot script that draws the same from its CSV, in a file of this name beside the script.
    ///
    /// # Errors
    /// What the figure would not be laid out for either.
    pub fn gnuplot(&self, csv: &str) -> Result<String, FigureError> {
        let script = GnuplotScript::new(csv, self.size);
        Ok(match &self.page {
            Page::Map(map) => map.script(script)?,
            Page::Plots(plots) => plots.script(script)?,
            Page::Tree(tree) => tree.script(script),
            Page::SpaceTime(diagram) => diagram.script(script),
        })
    }
}

/// Writes `stem`.csv with what is shown, and `stem`.gp, which draws it.
fn save_data(figure: &Figure, stem: &Path) -> Result<(), FigureError> {
    let (table, script) = (with_ending(stem, ".csv"), with_ending(stem, ".gp"));
    let name = table.file_name().unwrap_or_default().to_string_lossy().into_owned();
    write_whole(&table, figure.csv()?.as_bytes())?;
    write_whole(&script, figure.gnuplot(&name)?.as_bytes())?;
    Ok(())
}

/// Writes `stem`.svg and `stem`.png; returns their paths in this order. Beside them `stem`.csv and
/// `stem`.gp: the data, and a gnuplot script.
///
/// Each is written whole or not at all: on an error an older file is still there.
///
/// # Errors
/// A file cannot be written: its path and the reason, such as a full disk.
pub fn save(figure: &Figure, stem: &Path) -> Result<[PathBuf; 2], FigureError> {
    let paths = [with_ending(stem, ".svg"), with_ending(stem, ".png")];
    write_whole(&paths[0], figure.svg()?.as_bytes())?;
    write_whole(&paths[1], &figure.png()?)?;
    save_data(figure, stem)?;
    Ok(paths)
}

/// Writes one file, as SVG or PNG by the ending of its name, whole or not at all; beside a regular file its
/// data and a gnuplot script, `name.svg.csv` and `name.svg.gp`.
///
/// # Errors
/// The name has another ending, or the file cannot be written.
pub fn save_as(figure: &Figure, path: &Path) -> Result<(), FigureError> {
    match path.extension().and_then(OsStr::to_str) {
        Some("svg") => write_whole(path, figure.svg()?.as_bytes())?,
        Some("png") => write_whole(path, &figure.png()?)?,
        _ => {
            let problem = format!("{}: a figure's name ends with .svg or .png", path.display());
            return Err(FigureError::Impossible(problem));
        }
    }
    save_data(figure, path)
}

/// Appends: a stem may have dots of its own.
fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let beside = with_ending(path, &format!(".{}.part", std::process::id()));
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    });
    written.map_err(|error| {
        // Best effort: the error to report is the one of the write.
        let _ = fs::remove_file(&beside);
        FileError::io(path, "write", &error)
    })
}
