//! What images cost: by their pixels, never by their bytes read as text.

use std::num::NonZeroU32;

use super::{CounterError, TokenCount, TokenCounter};

/// An image to be counted: its file, and its size in pixels as it is sent.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    bytes: &'a [u8],
    width: NonZeroU32,
    height: NonZeroU32,
}

impl<'a> Image<'a> {
    /// An image of `width` by `height` pixels. The file is not looked into.
    ///
    /// # Errors
    /// A width or a height of 0 would cost nothing, so it is refused.
    pub fn new(bytes: &'a [u8], width: u32, height: u32) -> Result<Self, CounterError> {
        let (Some(width), Some(height)) = (NonZeroU32::new(width), NonZeroU32::new(height)) else {
            return Err(CounterError::new(format!(
                "an image of {width} by {height} pixels: give its size as it is sent, or push it as plain bytes"
            )));
        };
        Ok(Self { bytes, width, height })
    }

    /// The file, for a backend that bills bytes.
    pub const fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// In pixels.
    pub const fn width(self) -> u32 {
        self.width.get()
    }

    /// In pixels.
    pub const fn height(self) -> u32 {
        self.height.get()
    }
}

/// How a provider prices an image by its size, as its guide says. Providers change the numbers with their models, so
/// the constants are where to begin; for a backend that bills bytes, write a [`TokenCounter`] of your own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageCost {
    /// One token for each square of `side` pixels that covers it, at most `most`, times `percent` / 100. A larger image
    /// is scaled down by the provider until it fits `most`.
    Patches {
        /// The side of a patch, in pixels.
        side: NonZeroU32,
        /// The most patches that an image is cut into.
        most: u32,
        /// 100, or the model's multiplier: 162 for GPT-4.1 mini.
        percent: u32,
    },
    /// Scaled down to fit 2,048 by 2,048 pixels, then to 768 on the short side; `base`, and `tile` for each square of
    /// 512 pixels that covers it.
    Tiles {
        /// Tokens for any image.
        base: u32,
        /// Tokens for each tile.
        tile: u32,
    },
}

const fn pixels(side: u32) -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(side.saturating_sub(1))
}

/// The side of OpenAI's tiles.
const TILE: NonZeroU32 = pixels(512);

impl ImageCost {
    /// Claude: patches of 28 pixels (width x height / 750, nearly), at most 4,784; before Opus 4.7, fewer than 1,600.
    pub const ANTHROPIC: Self = Self::Patches { side: pixels(28), most: 4_784, percent: 100 };
    /// GPT-4o, GPT-4.1 and GPT-4.5 at high detail. GPT-5 has 70 and 140; GPT-4o mini has 2,833 and 5,667.
    pub const OPENAI: Self = Self::Tiles { base: 85, tile: 170 };
    /// The OpenAI models that are priced by patches of 32 pixels, at most 1,536, before a model's multiplier.
    pub const OPENAI_PATCHES: Self = Self::Patches { side: pixels(32), most: 1_536, percent: 100 };

    /// The cost of `image` for the model whose numbers these are: an upper bound, since each scaling is rounded up.
    ///
    /// # Errors
    /// Numbers that multiply to more than a count holds.
    pub fn count(self, image: Image<'_>) -> Result<TokenCount, CounterError> {
        let (width, height) = (u64::from(image.width()), u64::from(image.height()));
        let tokens = match self {
            Self::Patches { side, most, percent } => {
                let patches = squares(width, height, side).min(u64::from(most));
                patches.saturating_mul(u64::from(percent)).div_ceil(100)
            }
            Self::Tiles { base, tile } => {
                let (short, long) = scaled(width.min(height), width.max(height));
                squares(short, long, TILE).saturating_mul(u64::from(tile)).saturating_add(u64::from(base))
            }
        };
        let tokens = u32::try_from(tokens).map_err(|_| CounterError::new("the price of an image is out of range"))?;
        Ok(TokenCount::upper_bound(tokens))
    }

    /// As [`count`](Self::count), where the model is not known.
    pub(super) fn guess(self, image: Image<'_>) -> Result<TokenCount, CounterError> {
        self.count(image).map(|count| TokenCount::estimate(count.tokens()))
    }
}

/// How many squares of `side` cover a rectangle.
fn squares(width: u64, height: u64, side: NonZeroU32) -> u64 {
    let side = u64::from(side.get());
    width.div_ceil(side).saturating_mul(height.div_ceil(side))
}

/// A rectangle's sides after both of OpenAI's scalings, rounded up.
fn scaled(short: u64, long: u64) -> (u64, u64) {
    let (short, long) = if long > 2_048 { (shrunk(short, 2_048, long), 2_048) } else { (short, long) };
    if short > 768 { (768, shrunk(long, 768, short)) } else { (short, long) }
}

/// `side` when what is `from` long becomes `to` long, rounded up.
fn shrunk(side: u64, to: u64, from: u64) -> u64 {
    side.saturating_mul(to).div_ceil(from.max(1))
}

/// A counter with the image prices of the model in use.
#[derive(Clone, Copy, Debug)]
pub struct WithImages<C> {
    counter: C,
    cost: ImageCost,
}

impl<C: TokenCounter> WithImages<C> {
    /// Text and bytes as `counter` counts them, images as `cost` prices them.
    pub const fn new(counter: C, cost: ImageCost) -> Self {
        Self { counter, cost }
    }
}

impl<C: TokenCounter> TokenCounter for WithImages<C> {
    fn text(&self, text: &str) -> Result<TokenCount, CounterError> {
        self.counter.text(text)
    }

    fn bytes(&self, bytes: &[u8]) -> Result<TokenCount, CounterError> {
        self.counter.bytes(bytes)
    }

    fn image(&self, image: Image<'_>) -> Result<TokenCount, CounterError> {
        self.cost.count(image)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn tokens(cost: ImageCost, width: u32, height: u32) -> u32 {
        cost.count(Image::new(b"", width, height).unwrap()).unwrap().tokens()
    }

    /// The examples of the providers' guides.
    #[test]
    fn prices_are_the_published_ones() {
        for (cost, width, height, want) in [
            (ImageCost::OPENAI, 1_024, 1_024, 765),
            (ImageCost::OPENAI, 2_048, 4_096, 1_105),
            (ImageCost::OPENAI, 128, 64, 255),
            (ImageCost::OPENAI_PATCHES, 1_024, 1_024, 1_024),
            (ImageCost::OPENAI_PATCHES, 1_800, 2_400, 1_536), // 1,452 after scaling
            (ImageCost::ANTHROPIC, 1_092, 1_092, 1_521),
            (ImageCost::ANTHROPIC, 1_280, 720, 1_196),
            (ImageCost::ANTHROPIC, 200, 200, 64),
        ] {
            assert_eq!(tokens(cost, width, height), want, "{cost:?} {width} x {height}");
        }
        let mini = ImageCost::Patches { side: pixels(32), most: 1_536, percent: 162 };
        assert_eq!(tokens(mini, 1_024, 1_024), 1_659);
    }

    #[test]
    fn no_size_is_free_or_out_of_bounds() {
        assert!(Image::new(b"", 0, 720).is_err());
        assert_eq!(tokens(ImageCost::OPENAI, 1, 1), 255);
        assert_eq!(tokens(ImageCost::OPENAI, u32::MAX, 1), 85 + 4 * 170);
        assert_eq!(tokens(ImageCost::ANTHROPIC, u32::MAX, u32::MAX), 4_784);
        let dear = ImageCost::Tiles { base: 1, tile: u32::MAX };
        assert!(dear.count(Image::new(b"", 1, 1).unwrap()).is_err());
    }
}
