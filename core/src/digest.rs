//! The SHA-256 under which a span's bytes are stored and verified (rules R2, R7).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

/// SHA-256 of a span's bytes: its address in the store. Shown as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Hashes `bytes`; O(length).
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Hashes two texts as one; O(length).
    pub(crate) fn of_two(one: &[u8], other: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(one);
        hash.update(other);
        Self(hash.finalize().into())
    }

    /// A digest read back from a store key or a signature computed elsewhere.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 raw bytes, as backends use them for keys.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first eight hex digits, for pointers and reports; never used to look anything up.
    pub(crate) fn short(&self) -> impl fmt::Display {
        Hex::<8>::of(&self.0)
    }

    pub(crate) fn parse(hex: &str) -> Option<Self> {
        let mut bytes = [0_u8; 32];
        // `from_str_radix` would take a sign as well.
        if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex::<64>::of(&self.0).fmt(f)
    }
}

/// Hex digits on the stack: a digest is written for every tombstone and pointer, and one `write!` a byte would cost
/// more than the rest of them.
struct Hex<const N: usize>([u8; N]);

impl<const N: usize> Hex<N> {
    fn of(bytes: &[u8]) -> Self {
        let mut digits = [0; N];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        Self(digits)
    }
}

/// The hex digit of a number below 16.
fn digit(number: u8) -> u8 {
    number.saturating_add(if number < 10 { b'0' } else { b'a'.saturating_sub(10) })
}

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.0).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// Hex where people read it, bytes elsewhere.
impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_bytes(&self.0);
        }
        match std::str::from_utf8(&Hex::<64>::of(&self.0).0) {
            Ok(hex) => serializer.serialize_str(hex),
            Err(_) => Err(serde::ser::Error::custom("hex digits are ASCII")),
        }
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return deserializer.deserialize_bytes(Bytes);
        }
        let hex = String::deserialize(deserializer)?;
        Self::parse(&hex).ok_or_else(|| serde::de::Error::custom("expected 64 hex digits of a SHA-256"))
    }
}

/// Reads a digest from its bytes.
struct Bytes;

impl de::Visitor<'_> for Bytes {
    type Value = Digest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the 32 bytes of a SHA-256")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Digest, E> {
        bytes.try_into().map(Digest).map_err(|_| E::invalid_length(bytes.len(), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_value_and_round_trip() {
        let digest = Digest::of(b"abc");
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), hex);
        assert_eq!(Digest::parse(hex), Some(digest));
        assert_eq!(Digest::parse("ba78"), None);
        assert_eq!(Digest::parse(&"g".repeat(64)), None);
        assert_eq!(Digest::parse(&"+a".repeat(32)), None);
    }
}
