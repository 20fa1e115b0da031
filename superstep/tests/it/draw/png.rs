//! Drawings as PNG.

use superstep::{DrawError, Drawing, DrawnNode};

use super::{agent_loop, branch};

/// The pixels of a PNG picture that are dark, counted. Text is the only dark thing in a picture.
fn dark_pixels(png: &[u8]) -> usize {
    let image = resvg::tiny_skia::Pixmap::decode_png(png).expect("a picture");
    image.pixels().iter().filter(|pixel| pixel.red() < 90 && pixel.green() < 90 && pixel.blue() < 90).count()
}

#[test]
fn labels_leave_ink_without_any_font() {
    let labelled = dark_pixels(&branch().to_png(2.0).unwrap());
    let mut blank = branch();
    blank.nodes.iter_mut().for_each(|node| node.label = " ".repeat(node.label.len()));
    blank.edges.iter_mut().for_each(|edge| edge.label = None);
    assert_eq!(dark_pixels(&blank.to_png(2.0).unwrap()), 0);
    assert!(labelled > 1000, "only {labelled} dark pixels");
}

#[test]
fn every_ascii_letter_and_any_other_leaves_ink() {
    for c in ('!'..='~').chain("éÅñ→日🎉".chars()) {
        let drawing = Drawing::new([DrawnNode::new("x").label(c)], []);
        assert!(dark_pixels(&drawing.to_png(3.0).unwrap()) > 0, "no ink for `{c}`");
    }
}

#[test]
fn the_scale_is_the_scale_of_the_pixels() {
    let size = |scale| {
        let image = resvg::tiny_skia::Pixmap::decode_png(&agent_loop().to_png(scale).unwrap()).unwrap();
        (image.width(), image.height())
    };
    let (width, height) = size(1.0);
    assert_eq!(size(3.0), (3 * width, 3 * height));
}

#[test]
fn a_scale_that_makes_no_picture_is_refused() {
    assert!(matches!(agent_loop().to_png(f32::NAN), Err(DrawError::Scale { .. })));
    assert!(matches!(agent_loop().to_png(-1.0), Err(DrawError::Scale { .. })));
    assert!(matches!(agent_loop().to_png(1e6), Err(DrawError::Size { .. })));
}
