//! A message of OTLP, built once and written as protobuf or as JSON, so that the two say the same. OTLP needs five kinds of
//! fields of protobuf, which is less than any library for it brings.

use serde_json::{Map, Value, json};

use crate::base::text::hex;

/// A message: its fields, in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WireMessage {
    fields: Vec<WireField>,
}

#[derive(Clone, Debug, PartialEq)]
struct WireField {
    number: u32,
    name: &'static str,
    value: WireValue,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum WireValue {
    /// `string`
    Text(String),
    /// `bytes`, which JSON has in hexadecimal digits: so does OTLP, and only for ids.
    Id(Vec<u8>),
    /// `bool`
    Flag(bool),
    /// An `enum`, which JSON has as its number.
    Choice(u64),
    /// `int64`, which JSON has as a text.
    Whole(i64),
    /// `fixed64`, which JSON has as a text.
    Fixed(u64),
    /// `double`
    Real(f64),
    /// `repeated fixed64`, packed.
    FixedList(Vec<u64>),
    /// `repeated double`, packed.
    RealList(Vec<f64>),
    /// Another message.
    Message(WireMessage),
    /// `repeated` messages.
    Messages(Vec<WireMessage>),
}

/// How a field begins: the wire types of protobuf.
#[derive(Clone, Copy, Debug)]
enum WireType {
    Varint = 0,
    Eight = 1,
    Sized = 2,
}

impl WireMessage {
    /// Adds a field.
    #[must_use]
    pub fn with(mut self, number: u32, name: &'static str, value: WireValue) -> Self {
        self.fields.push(WireField { number, name, value });
        self
    }

    /// Adds a text, unless it is empty, which is what a missing one is.
    #[must_use]
    pub fn with_text(self, number: u32, name: &'static str, text: &str) -> Self {
        if text.is_empty() { self } else { self.with(number, name, WireValue::Text(text.to_owned())) }
    }

    /// Adds messages.
    #[must_use]
    pub fn with_messages(
        self,
        number: u32,
        name: &'static str,
        messages: impl IntoIterator<Item = Self>,
    ) -> Self {
        self.with(number, name, WireValue::Messages(messages.into_iter().collect()))
    }

    /// Writes it as JSON.
    pub fn json(&self) -> Value {
        let field = |field: &WireField| (field.name.to_owned(), field.value.json());
        Value::Object(self.fields.iter().map(field).collect::<Map<_, _>>())
    }

    /// Writes it as protobuf.
    pub fn protobuf(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for WireField { number, value, .. } in &self.fields {
            value.write(*number, &mut out);
        }
        out
    }
}

impl WireValue {
    fn json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Id(bytes) => json!(hex(bytes)),
            Self::Flag(flag) => json!(flag),
            Self::Choice(number) => json!(number),
            Self::Whole(number) => json!(number.to_string()),
            Self::Fixed(number) => json!(number.to_string()),
            Self::Real(number) => json!(number),
            Self::FixedList(numbers) => numbers.iter().map(|number| json!(number.to_string())).collect(),
            Self::RealList(numbers) => json!(numbers),
            Self::Message(message) => message.json(),
            Self::Messages(messages) => messages.iter().map(WireMessage::json).collect(),
        }
    }

    fn write(&self, field: u32, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => write_sized(field, text.as_bytes(), out),
            Self::Id(bytes) => write_sized(field, bytes, out),
            Self::Flag(flag) => write_number(field, u64::from(*flag), out),
            Self::Choice(number) => write_number(field, *number, out),
            // Negative ones are written as the same 64 bits.
            Self::Whole(number) => write_number(field, u64::from_ne_bytes(number.to_ne_bytes()), out),
            Self::Fixed(number) => write_eight(field, number.to_le_bytes(), out),
            Self::Real(number) => write_eight(field, number.to_le_bytes(), out),
            Self::FixedList(numbers) => {
                write_sized(
                    field,
                    &numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>(),
                    out,
                );
            }
            Self::RealList(numbers) => {
                write_sized(
                    field,
                    &numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>(),
                    out,
                );
            }
            Self::Message(message) => write_sized(field, &message.protobuf(), out),
            Self::Messages(messages) => {
                for message in messages {
                    write_sized(field, &message.protobuf(), out);
                }
            }
        }
    }
}

fn write_tag(field: u32, kind: WireType, out: &mut Vec<u8>) {
    write_varint(u64::from(field) << 3 | kind as u64, out);
}

fn write_number(field: u32, number: u64, out: &mut Vec<u8>) {
    write_tag(field, WireType::Varint, out);
    write_varint(number, out);
}

fn write_eight(field: u32, bytes: [u8; 8], out: &mut Vec<u8>) {
    write_tag(field, WireType::Eight, out);
    out.extend_from_slice(&bytes);
}

fn write_sized(field: u32, bytes: &[u8], out: &mut Vec<u8>) {
    write_tag(field, WireType::Sized, out);
    write_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Writes a number in groups of seven bits, the lowest first, each but the last with the highest bit set.
fn write_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7f).expect("seven bits are a byte") | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).expect("what is below 128 is a byte"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_same_in_both_forms() {
        let inner = WireMessage::default().with(1, "flag", WireValue::Flag(true));
        let message = WireMessage::default()
            .with(1, "number", WireValue::Whole(150))
            .with_text(2, "text", "testing")
            .with_text(3, "empty", "")
            .with_messages(4, "inner", [inner.clone(), inner]);
        assert_eq!(
            message.json(),
            json!({"number": "150", "text": "testing", "inner": [{"flag": true}, {"flag": true}]})
        );
        // The examples of the guide to the encoding, and two messages.
        let expected = b"\x08\x96\x01\x12\x07testing\x22\x02\x08\x01\x22\x02\x08\x01";
        assert_eq!(message.protobuf(), expected);
    }

    #[test]
    fn a_negative_number_has_ten_bytes() {
        let message = WireMessage::default().with(1, "number", WireValue::Whole(-2));
        assert_eq!(message.protobuf(), b"\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    }
}
