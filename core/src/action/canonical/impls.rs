//! The forms of the standard library's types and of JSON.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    marker::PhantomData,
    num::NonZero,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use serde_json::{Number, Value};

use super::{Canon, Canonical};

/// A byte string, in its own length: `#[signature(with = Bytes)]` on a `Vec<u8>`, which would be a list of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes<'a>(
    /// The bytes.
    pub &'a [u8],
);

impl Canonical for Bytes<'_> {
    fn canonical(&self, form: &mut Canon) {
        form.run(b'b', self.0);
    }
}

impl Canonical for str {
    fn canonical(&self, form: &mut Canon) {
        form.run(b's', self.as_bytes());
    }
}

impl Canonical for String {
    fn canonical(&self, form: &mut Canon) {
        self.as_str().canonical(form);
    }
}

impl Canonical for char {
    fn canonical(&self, form: &mut Canon) {
        self.encode_utf8(&mut [0; 4]).canonical(form);
    }
}

impl Canonical for bool {
    fn canonical(&self, form: &mut Canon) {
        form.tag(if *self { b't' } else { b'f' });
    }
}

macro_rules! integers {
    ($($unsigned:ty, $signed:ty;)*) => {
        $(
            impl Canonical for $unsigned {
                fn canonical(&self, form: &mut Canon) {
                    form.tag(b'+');
                    form.number(*self as u128);
                }
            }
            impl Canonical for $signed {
                fn canonical(&self, form: &mut Canon) {
                    form.tag(if *self < 0 { b'-' } else { b'+' });
                    form.number(self.unsigned_abs() as u128);
                }
            }
            impl Canonical for NonZero<$unsigned> {
                fn canonical(&self, form: &mut Canon) {
                    self.get().canonical(form);
                }
            }
            impl Canonical for NonZero<$signed> {
                fn canonical(&self, form: &mut Canon) {
                    self.get().canonical(form);
                }
            }
        )*
    };
}

integers! {
    u8, i8;
    u16, i16;
    u32, i32;
    u64, i64;
    u128, i128;
    usize, isize;
}

impl Canonical for f64 {
    fn canonical(&self, form: &mut Canon) {
        const MOST: f64 = (1_u128 << 127) as f64;
        // A fraction of zero: whole and finite. Within these ends, the casts are exact.
        if self.fract() == 0.0 && (0.0..2.0 * MOST).contains(self) {
            (*self as u128).canonical(form);
        } else if self.fract() == 0.0 && (-MOST..0.0).contains(self) {
            (*self as i128).canonical(form);
        } else {
            form.tag(b'd');
            let bits = if self.is_nan() { 0x7ff8_0000_0000_0000 } else { self.to_bits() };
            form.bytes.extend_from_slice(&bits.to_be_bytes());
        }
    }
}

impl Canonical for f32 {
    fn canonical(&self, form: &mut Canon) {
        f64::from(*self).canonical(form);
    }
}

impl Canonical for () {
    fn canonical(&self, form: &mut Canon) {
        form.tag(b'n');
    }
}

impl<T: ?Sized> Canonical for PhantomData<T> {
    fn canonical(&self, form: &mut Canon) {
        ().canonical(form);
    }
}

impl<T: Canonical> Canonical for Option<T> {
    fn canonical(&self, form: &mut Canon) {
        match self {
            Some(value) => value.canonical(form),
            None => ().canonical(form),
        }
    }
}

macro_rules! what_it_holds {
    ($($holder:ty),*) => {
        $(
            impl<T: Canonical + ?Sized> Canonical for $holder {
                fn canonical(&self, form: &mut Canon) {
                    (**self).canonical(form);
                }
            }
        )*
    };
}

what_it_holds!(&T, &mut T, Box<T>, Rc<T>, Arc<T>);

impl<T: Canonical + ToOwned + ?Sized> Canonical for Cow<'_, T> {
    fn canonical(&self, form: &mut Canon) {
        (**self).canonical(form);
    }
}

impl<T: Canonical> Canonical for [T] {
    fn canonical(&self, form: &mut Canon) {
        list(self, form);
    }
}

impl<T: Canonical, const N: usize> Canonical for [T; N] {
    fn canonical(&self, form: &mut Canon) {
        list(self, form);
    }
}

impl<T: Canonical> Canonical for Vec<T> {
    fn canonical(&self, form: &mut Canon) {
        list(self, form);
    }
}

impl<T: Canonical> Canonical for VecDeque<T> {
    fn canonical(&self, form: &mut Canon) {
        list(self, form);
    }
}

fn list<'a, T: Canonical + 'a>(values: impl IntoIterator<Item = &'a T>, form: &mut Canon) {
    form.list();
    values.into_iter().for_each(|value| value.canonical(form));
    form.end();
}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {
        $(
            impl<$($name: Canonical),*> Canonical for ($($name,)*) {
                fn canonical(&self, form: &mut Canon) {
                    #[allow(non_snake_case, reason = "one name for a member and its type")]
                    let ($($name,)*) = self;
                    form.list();
                    $($name.canonical(form);)*
                    form.end();
                }
            }
        )*
    };
}

tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
}

/// Allocates a list of the members' places, and their forms once more where they are not in order yet.
impl<T: Canonical> Canonical for BTreeSet<T> {
    fn canonical(&self, form: &mut Canon) {
        set(self.iter(), form);
    }
}

/// Allocates a list of the members' places, and their forms once more where they are not in order yet.
impl<T: Canonical, S> Canonical for HashSet<T, S> {
    fn canonical(&self, form: &mut Canon) {
        set(self.iter(), form);
    }
}

fn set<'a, T: Canonical + 'a>(members: impl ExactSizeIterator<Item = &'a T>, form: &mut Canon) {
    form.list();
    form.sorted(members, |form, member| {
        member.canonical(form);
        form.bytes.len()
    });
    form.end();
}

/// Allocates a list of the entries' places, and their forms once more where they are not in order yet.
impl<K: Canonical, V: Canonical> Canonical for BTreeMap<K, V> {
    fn canonical(&self, form: &mut Canon) {
        map(self.iter(), form);
    }
}

/// Allocates a list of the entries' places, and their forms once more where they are not in order yet.
impl<K: Canonical, V: Canonical, S> Canonical for HashMap<K, V, S> {
    fn canonical(&self, form: &mut Canon) {
        map(self.iter(), form);
    }
}

fn map<'a, K: Canonical + 'a, V: Canonical + 'a>(
    entries: impl ExactSizeIterator<Item = (&'a K, &'a V)>,
    form: &mut Canon,
) {
    form.open();
    form.sorted(entries, |form, (key, value)| form.entry(key, value));
    form.close();
}

impl Canonical for Duration {
    fn canonical(&self, form: &mut Canon) {
        form.open();
        form.field("nanos", &self.subsec_nanos());
        form.field("secs", &self.as_secs());
        form.close();
    }
}

impl Canonical for Value {
    fn canonical(&self, form: &mut Canon) {
        match self {
            Self::Null => ().canonical(form),
            Self::Bool(value) => value.canonical(form),
            Self::Number(value) => value.canonical(form),
            Self::String(value) => value.canonical(form),
            Self::Array(values) => values.canonical(form),
            Self::Object(entries) => entries.canonical(form),
        }
    }
}

/// The integer, or the nearest `f64`. A number that is beyond both (which only serde_json's `arbitrary_precision` keeps)
/// is its text.
impl Canonical for Number {
    fn canonical(&self, form: &mut Canon) {
        if let Some(value) = self.as_u128() {
            value.canonical(form);
        } else if let Some(value) = self.as_i128() {
            value.canonical(form);
        } else if let Some(value) = self.as_f64() {
            value.canonical(form);
        } else {
            self.to_string().canonical(form);
        }
    }
}

/// Allocates only where the keys are not in order, as under serde_json's `preserve_order`.
impl Canonical for serde_json::Map<String, Value> {
    fn canonical(&self, form: &mut Canon) {
        if !self.keys().is_sorted() {
            return map(self.iter(), form);
        }
        form.open();
        self.iter().for_each(|(key, value)| form.field(key, value));
        form.close();
    }
}
