//! Codes a stream of many blocks, as a directory of their sizes followed by the blocks.

use crate::{BLOCK, StreamError, bits, varint};

/// The position of each block.
#[derive(Clone, Debug)]
pub(crate) struct Directory<'a> {
    /// The concatenated blocks.
    blocks: &'a [u8],
    ends: Ends,
}

#[derive(Clone, Debug)]
enum Ends {
    /// The common length of all blocks.
    Equal(u64),
    /// The end of each block.
    Each(Box<[u64]>),
}

/// Appends a directory and the blocks.
pub(crate) fn encode(blocks: &[Vec<u8>], out: &mut Vec<u8>) {
    let sizes: Vec<_> = blocks.iter().map(|block| block.len() as u64).collect();
    let (least, most) = sizes.iter().fold((u64::MAX, 0), |(least, most), &size| {
        (least.min(size), most.max(size))
    });
    let width = bits::length(most - least);
    varint::put(out, least);
    out.push(width as u8);
    bits::pack(sizes.iter().map(|size| size - least), width, out);
    blocks.iter().for_each(|block| out.extend_from_slice(block));
}

impl<'a> Directory<'a> {
    /// Decodes the directory of a stream of `len` values, and locates its blocks.
    ///
    /// Time and memory: linear in the number of blocks, which the available bytes limit.
    pub(crate) fn decode(input: &mut &'a [u8], len: u64) -> Result<Self, StreamError> {
        let count = len.div_ceil(BLOCK as u64);
        let least = varint::get(input)?;
        let width = u32::from(varint::byte(input)?);
        if least == 0 || width > 32 {
            return Err(StreamError::Malformed("sizes that no block has"));
        }
        let size = bits::packed_size(count, width).ok_or(StreamError::Truncated)?;
        let mut packed = varint::bytes(input, size)?;
        let (ends, total) = if width == 0 {
            let total = least.checked_mul(count).ok_or(StreamError::Truncated)?;
            (Ends::Equal(least), total)
        } else {
            let mut ends = vec![0; count as usize];
            bits::unpack(&mut packed, width, &mut ends, |size| size)?;
            let mut end = 0u64;
            for slot in &mut ends {
                end = slot
                    .checked_add(least)
                    .and_then(|size| end.checked_add(size))
                    .ok_or(StreamError::Truncated)?;
                *slot = end;
            }
            (Ends::Each(ends.into()), end)
        };
        let blocks = varint::bytes(input, total)?;
        Ok(Self { blocks, ends })
    }

    /// Returns the bytes of a block.
    pub(crate) fn block(&self, index: u64) -> &'a [u8] {
        let (start, end) = match &self.ends {
            Ends::Equal(size) => (size * index, size * (index + 1)),
            Ends::Each(ends) => {
                let index = index as usize;
                (if index == 0 { 0 } else { ends[index - 1] }, ends[index])
            }
        };
        &self.blocks[start as usize..end as usize]
    }
}
