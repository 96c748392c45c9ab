//! Writes the part of the Protocol Buffers wire format that a profile needs. A code generator was
//! rejected, because it would be larger than this module.

/// A message being written.
#[derive(Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    /// Writes a field of an integer type. Omits zero, which is the default.
    pub(crate) fn integer(&mut self, field: u32, value: u64) -> &mut Self {
        if value != 0 {
            self.tag(field, 0);
            varint(&mut self.0, value);
        }
        self
    }

    /// Writes a field of text or bytes, even if it is empty, so that no element of a list is lost.
    pub(crate) fn bytes(&mut self, field: u32, value: &[u8]) -> &mut Self {
        self.tag(field, 2);
        varint(&mut self.0, value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// Writes a field that contains a message.
    pub(crate) fn message(&mut self, field: u32, value: &Message) -> &mut Self {
        self.bytes(field, &value.0)
    }

    /// Writes a packed list of integers.
    pub(crate) fn packed(&mut self, field: u32, values: &[u64]) -> &mut Self {
        let mut list = Vec::new();
        values.iter().for_each(|&value| varint(&mut list, value));
        self.bytes(field, &list)
    }

    fn tag(&mut self, field: u32, wire_type: u32) {
        varint(&mut self.0, u64::from(field << 3 | wire_type));
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
