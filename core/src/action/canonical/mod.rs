//! One form for one request, whatever wrote it: the same for a struct and for the JSON object with its fields, on every
//! machine, after fields have moved or types have been renamed.
//!
//! # The bytes
//!
//! A signature is the SHA-256 of this, which any language can write:
//!
//! ```text
//! form  = "keepspan action 1" 00  text  value      the text is the action's name, the value the request
//! value = 'n'                                      null
//!       | 't' | 'f'                                true, false
//!       | '+' n                                    the integer n, below 2^128
//!       | '-' n                                    the integer -n, from -1 to -2^127
//!       | 'd' 8 bytes                              any other number: IEEE 754 binary64, big-endian
//!       | text
//!       | 'b' n  n bytes                           bytes
//!       | '[' value.. ']'                          a list
//!       | '{' (value value).. '}'                  a map: keys, each with its value
//! text  = 's' n  n bytes                           UTF-8
//! n     = LEB128: seven bits a byte, lowest first, the top bit set on all bytes but the last, as short as can be
//! ```
//!
//! No form is the start of another, and two values have one form only where the next section says so.
//!
//! # What is the same
//!
//! - **Numbers** are told apart by their value alone: `1_u8`, `1_i64`, `1.0` and the JSON `1` are one, as are `0.0` and
//!   `-0.0`. A float with a whole value from -2^127 to below 2^128 is that integer; an `f32` is widened; every NaN is
//!   `7ff8000000000000`.
//! - **Text** is its UTF-8, byte for byte: `str`, `String`, `Cow`, `char`. Nothing is normalized, trimmed or lower-cased;
//!   `#[signature(with = ..)]` is for that.
//! - **References and boxes** are what they hold.
//! - **`None`**, `()`, `PhantomData` and the JSON `null` are null; `Some(x)` is `x`, so `Some(None)` is null too.
//! - **Records and maps** are one: a struct is the map from its fields' names to their values. An entry whose value is
//!   null is left out, so that an optional field added later leaves old signatures as they are; where null asks for
//!   something that absence does not, give the field a form `with` an enum. Entries are in the order of their keys: two
//!   texts by their UTF-8 bytes, other keys by the bytes of their forms, entries of one key by their values' forms.
//! - **Lists** are arrays, slices, `Vec`, `VecDeque` and tuples, in order. A set is the list of its members, in the order
//!   that keys have. `Vec<u8>` is a list of integers as any other; [`Bytes`] is shorter.
//! - **Structs**: no field is the empty map. `struct Id(u64)` is its `u64`, other tuple structs are lists. A type's own name
//!   is in no form.
//! - **Enums** are as serde writes them: a variant without fields is the text of its name; any other is the map of one
//!   entry, from its name to its one value, its list, or its map. This entry stays where the value is null.
//! - **`Duration`** is the map of `nanos` and `secs`.
//!
//! A `SystemTime` and an `Instant` have no form, since no repeated request has the same.

mod impls;

pub use self::impls::Bytes;
use crate::Digest;

/// A value with one form: what a request's signature is made of. `#[derive(Canonical)]` writes it, and
/// `#[derive(Action)]` does for a request.
///
/// By hand, write what stands for the value, once: `self.path.to_lowercase().canonical(form)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no canonical form, so no signature can be made of it",
    label = "a type of your own takes `#[derive(Canonical)]`; a field of another takes `#[signature(with = form)]`",
    note = "`form` is a function from the field, by reference, to what has a form: `fn form(path: &PathBuf) -> String`",
    note = "what differs each time, as a clock or a nonce, is no part of the request: `#[signature(skip)]`"
)]
pub trait Canonical {
    /// Writes the form.
    fn canonical(&self, form: &mut Canon);
}

/// What the form begins with: another form would have another number.
const DOMAIN: &[u8] = b"keepspan action 1\0";
/// Room for a usual request, so that its form is allocated once.
const CAPACITY: usize = 2048;

/// The form of a request, as it is written.
#[derive(Debug)]
pub struct Canon {
    bytes: Vec<u8>,
}

impl Canon {
    pub(super) fn new(name: &str) -> Self {
        let mut form = Self { bytes: Vec::with_capacity(CAPACITY) };
        form.bytes.extend_from_slice(DOMAIN);
        name.canonical(&mut form);
        form
    }

    pub(super) fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }

    fn tag(&mut self, tag: u8) {
        self.bytes.push(tag);
    }

    /// LEB128.
    fn number(&mut self, mut number: u128) {
        while number > 0x7f {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn run(&mut self, tag: u8, bytes: &[u8]) {
        self.tag(tag);
        self.number(bytes.len() as u128);
        self.bytes.extend_from_slice(bytes);
    }

    /// Begins a map; its entries follow in order, then [`close`](Self::close).
    #[doc(hidden)]
    pub fn open(&mut self) {
        self.tag(b'{');
    }

    /// An entry of a map.
    #[doc(hidden)]
    pub fn field(&mut self, name: &str, value: &(impl Canonical + ?Sized)) {
        self.entry(name, value);
    }

    /// Ends a map.
    #[doc(hidden)]
    pub fn close(&mut self) {
        self.tag(b'}');
    }

    /// Begins the map of a variant with content; this follows as one value, then [`close`](Self::close).
    #[doc(hidden)]
    pub fn variant(&mut self, name: &str) {
        self.open();
        name.canonical(self);
    }

    /// Begins a list; its values follow, then [`end`](Self::end).
    #[doc(hidden)]
    pub fn list(&mut self) {
        self.tag(b'[');
    }

    /// Ends a list.
    #[doc(hidden)]
    pub fn end(&mut self) {
        self.tag(b']');
    }

    /// Writes an entry, none for null; where its key ends.
    fn entry(&mut self, key: &(impl Canonical + ?Sized), value: &(impl Canonical + ?Sized)) -> usize {
        let start = self.bytes.len();
        key.canonical(self);
        let end = self.bytes.len();
        value.canonical(self);
        if self.bytes.get(end..) == Some(b"n") {
            self.bytes.truncate(start);
        }
        end
    }

    /// Writes what comes in no order, in that of the keys. `write` gives the place where a member's key ends.
    fn sorted<T>(&mut self, members: impl ExactSizeIterator<Item = T>, mut write: impl FnMut(&mut Self, T) -> usize) {
        let first = self.bytes.len();
        let mut parts = Vec::with_capacity(members.len());
        for member in members {
            let start = self.bytes.len();
            let key = write(self, member);
            if self.bytes.len() > start {
                parts.push([start, key, self.bytes.len()].map(|at| at.saturating_sub(first)));
            }
        }
        let written = self.bytes.get(first..).unwrap_or_default();
        let order = |[start, key, end]: &[usize; 3]| {
            let part = |from: usize, to: usize| written.get(from..to).unwrap_or_default();
            (content(part(*start, *key)), part(*key, *end))
        };
        if parts.is_sorted_by_key(order) {
            return;
        }
        let written = written.to_vec();
        parts.sort_unstable_by(|one, other| order(one).cmp(&order(other)));
        self.bytes.truncate(first);
        for [start, _, end] in parts {
            self.bytes.extend_from_slice(written.get(start..end).unwrap_or_default());
        }
    }
}

/// What a key is ordered by: its tag, then for a text what is behind its length.
fn content(key: &[u8]) -> (Option<u8>, &[u8]) {
    let Some((tag, rest)) = key.split_first() else { return (None, key) };
    let text = if *tag == b's' { rest.split_inclusive(|byte| *byte < 0x80).next().map_or(0, <[u8]>::len) } else { 0 };
    (Some(*tag), rest.get(text..).unwrap_or_default())
}
