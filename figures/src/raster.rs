//! plotters' bitmap backend with text of its own.
//!
//! plotters' rasteriser of fonts without system libraries drops the bearings of the glyphs and
//! places the baseline elsewhere than its SVG backend does; here both agree.

use plotters::{backend::BitMapBackend, prelude::DrawingBackend};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingErrorKind,
    text_anchor::{HPos, VPos},
};

use crate::{FigureError, font};

pub(crate) struct Raster<'a>(BitMapBackend<'a>);

type DrawingOutcome<'a> =
    Result<(), DrawingErrorKind<<BitMapBackend<'a> as DrawingBackend>::ErrorType>>;

impl<'a> Raster<'a> {
    /// `pixels` holds three bytes per pixel.
    pub(crate) fn new(pixels: &'a mut [u8], size: (u32, u32)) -> Self {
        Raster(BitMapBackend::with_buffer(pixels, size))
    }
}

impl<'a> DrawingBackend for Raster<'a> {
    type ErrorType = <BitMapBackend<'a> as DrawingBackend>::ErrorType;

    fn get_size(&self) -> (u32, u32) {
        self.0.get_size()
    }

    fn ensure_prepared(&mut self) -> DrawingOutcome<'a> {
        self.0.ensure_prepared()
    }

    fn present(&mut self) -> DrawingOutcome<'a> {
        self.0.present()
    }

    fn draw_pixel(&mut self, point: BackendCoord, color: BackendColor) -> DrawingOutcome<'a> {
        self.0.draw_pixel(point, color)
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> DrawingOutcome<'a> {
        self.0.draw_line(from, to, style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        upper_left: BackendCoord,
        bottom_right: BackendCoord,
        style: &S,
        fill: bool,
    ) -> DrawingOutcome<'a> {
        self.0.draw_rect(upper_left, bottom_right, style, fill)
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> DrawingOutcome<'a> {
        self.0.draw_path(path, style)
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> DrawingOutcome<'a> {
        self.0.fill_polygon(corners, style)
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        center: BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> DrawingOutcome<'a> {
        self.0.draw_circle(center, radius, style, fill)
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        pos: BackendCoord,
    ) -> DrawingOutcome<'a> {
        let em = font::em(style.size());
        let broken = |error: FigureError| DrawingErrorKind::FontError(Box::new(error));
        let (glyphs, width) = font::lay_out(text, em).map_err(broken)?;
        let left = match style.anchor().h_pos {
            HPos::Left => 0.0,
            HPos::Center => -width / 2.0,
            HPos::Right => -width,
        };
        let color = style.color();
        for mut glyph in glyphs {
            glyph.position.x += left as f32;
            glyph.position.y += baseline(style.anchor().v_pos, em) as f32;
            let Some(outline) = font::outline(glyph).map_err(broken)? else { continue };
            let corner = outline.px_bounds().min;
            let mut outcome = Ok(());
            outline.draw(|x, y, coverage| {
                let place = (x as i32 + corner.x as i32, y as i32 + corner.y as i32);
                let (x, y) = style.transform().transform(place.0, place.1);
                let alpha = color.alpha * f64::from(coverage.clamp(0.0, 1.0));
                let pixel = self
                    .0
                    .draw_pixel((pos.0 + x, pos.1 + y), BackendColor { rgb: color.rgb, alpha });
                if pixel.is_err() {
                    outcome = pixel;
                }
            });
            outcome?;
        }
        Ok(())
    }
}

/// Where the baseline lies below the anchor: as plotters' SVG backend writes it, in em of this font
/// (whose x-height is 0.547 em).
fn baseline(anchor: VPos, em: f64) -> f64 {
    match anchor {
        VPos::Top => 0.76 * em,
        VPos::Center => 0.5 * 0.547 * em,
        VPos::Bottom => -0.5 * 0.547 * em,
    }
}
