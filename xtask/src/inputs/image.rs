//! Generates a synthetic photograph with smooth shading, edges and grain, in 8-bit RGB.

use super::rng::Rng;

/// Generates `width` × `height` pixels of three bytes each, row by row. Uses only integer
/// arithmetic, so every machine generates the same image.
pub fn generate(seed: u64, width: usize, height: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let discs: Vec<[usize; 6]> = (0..24)
        .map(|_| {
            [
                rng.below(width),
                rng.below(height),
                8 + rng.below(width / 6),
                rng.below(256),
                rng.below(256),
                rng.below(256),
            ]
        })
        .collect();
    let mut pixels = Vec::with_capacity(width * height * 3);
    for y in 0..height {
        for x in 0..width {
            let mut colour = [
                x * 255 / width,
                y * 255 / height,
                (x + y) * 255 / (width + height),
            ];
            for [centre_x, centre_y, radius, red, green, blue] in &discs {
                if centre_x.abs_diff(x).pow(2) + centre_y.abs_diff(y).pow(2) < radius.pow(2) {
                    colour = [*red, *green, *blue];
                }
            }
            let grain = rng.below(12);
            pixels.extend(colour.map(|channel| (channel + grain).min(255) as u8));
        }
    }
    pixels
}
