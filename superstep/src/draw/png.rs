//! Draws a graph as a picture of pixels.
//!
//! Text is drawn as lines, by the built-in [`strokes`], never by a font of the system: the pixels are the same on every
//! machine, and a machine without fonts draws labels too.

mod strokes;

use std::error::Error;

use resvg::{tiny_skia, usvg};

use super::{Drawing, svg};

/// The most pixels a picture may have: beyond, it would take gigabytes.
const MOST_PIXELS: f64 = 2.0e8;

/// Why a drawing could not become a picture.
///
/// ```
/// use superstep::{DrawError, DrawnNode, Drawing};
///
/// let drawing = Drawing::new([DrawnNode::new("a")], []);
/// let error = drawing.to_png(0.0).unwrap_err();
/// assert!(matches!(error, DrawError::Scale { .. }));
/// assert_eq!(error.to_string(), "scale `0` is not a positive number");
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum DrawError {
    /// The scale is zero, negative, or not a number.
    #[error("scale `{scale}` is not a positive number")]
    Scale {
        /// The scale asked for.
        scale: f32,
    },
    /// The picture would have too many pixels, or none.
    #[error("a picture of {width} by {height} pixels cannot be drawn; choose another scale")]
    Size {
        /// The width asked for, in pixels.
        width: u64,
        /// The height asked for, in pixels.
        height: u64,
    },
    /// The vectors could not be turned into pixels.
    #[error("cannot render the picture")]
    Render(#[source] Box<dyn Error + Send + Sync>),
}

crate::error::shown_in_words!(DrawError);

impl Drawing {
    /// The graph as a PNG picture on white, `scale` pixels for each pixel of the SVG picture.
    ///
    /// Letters outside ASCII and the common accents are shown as a box with their code.
    ///
    /// ```
    /// use superstep::{DrawnEdge, DrawnNode, Drawing};
    ///
    /// let drawing = Drawing::new([DrawnNode::new("a"), DrawnNode::new("b")], [DrawnEdge::new("a", "b")]);
    /// let png = drawing.to_png(2.0)?;
    /// assert!(png.starts_with(b"\x89PNG"));
    /// # Ok::<(), superstep::DrawError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the scale is not a positive number, or makes the picture too large to draw.
    pub fn to_png(&self, scale: f32) -> Result<Vec<u8>, DrawError> {
        if !(scale.is_finite() && scale > 0.0) {
            return Err(DrawError::Scale { scale });
        }
        let picture = svg::picture(self, svg::Background::White, &strokes::write);
        let tree = usvg::Tree::from_str(&picture.svg, &usvg::Options::default())
            .map_err(|error| DrawError::Render(error.into()))?;
        let mut pixels = pixmap(picture.size, scale)?;
        resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| DrawError::Render(error.into()))
    }
}

fn pixmap((width, height): (i32, i32), scale: f32) -> Result<tiny_skia::Pixmap, DrawError> {
    let scaled = |length: i32| (f64::from(length) * f64::from(scale)).ceil();
    let (width, height) = (scaled(width), scaled(height));
    let too_large = || DrawError::Size { width: width as u64, height: height as u64 };
    if width * height > MOST_PIXELS {
        return Err(too_large());
    }
    tiny_skia::Pixmap::new(width as u32, height as u32).ok_or_else(too_large)
}
