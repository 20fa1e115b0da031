//! Drawings as SVG.

use super::{branch, chain, hostile};

#[test]
fn a_hostile_name_stays_text_in_svg() {
    let svg = hostile().to_svg();
    assert!(svg.contains(">say &quot;hi&quot;]</text>"), "{svg}");
    assert!(svg.contains(r"a\nb;\u{1b}[31m"), "{svg}");
    assert!(!svg.contains("<b>") && !svg.contains('\u{1b}'), "{svg}");
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
}

#[test]
fn svg_dashes_conditional_edges_only() {
    assert_eq!(chain().to_svg().matches("stroke-dasharray").count(), 0);
    assert_ne!(branch().to_svg().matches("stroke-dasharray").count(), 0);
}
