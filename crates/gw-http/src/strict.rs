//! JSON deserialization that never silently drops a member that a client sent (HD33, decision 61).
//!
//! [`Strict`] wraps a deserializer. It knows the members of every derived struct, because serde passes them to
//! `deserialize_struct`. So wire structs need no attribute for it, and none can be forgotten.
//!
//! - A member that its struct does not have is an error that names it and the nearest known name.
//! - A list is no struct.
//! - Where a list is expected, `null` is the empty list (RTO1). For an `Option` of a list, `null` keeps the meaning
//!   that the field documents.

use crate::nearest::unknown_member;
use core::fmt;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer as _, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};

/// A deserializer that rejects unknown members.
pub(crate) struct Strict<D>(pub(crate) D);

/// The kind of value that a visitor expects.
#[derive(Clone, Copy)]
enum ExpectedValue {
    /// Any value.
    Any,
    /// A list.
    List,
    /// A struct with these members.
    Struct(&'static [&'static str]),
}

/// A visitor that passes on what `visitor` expects, and wraps nested values in [`Strict`].
struct StrictVisitor<V> {
    visitor: V,
    expected: ExpectedValue,
}

impl<V> StrictVisitor<V> {
    const fn any(visitor: V) -> Self {
        Self {
            visitor,
            expected: ExpectedValue::Any,
        }
    }
}

macro_rules! forward {
    ($($method:ident($($name:ident: $kind:ty),*);)*) => {
        $(fn $method<V: Visitor<'de>>(self, $($name: $kind,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($name,)* StrictVisitor::any(visitor))
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Strict<D> {
    type Error = D::Error;

    forward! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_option();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_map();
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }

    /// Uses `deserialize_any`, so that `null` reaches the visitor.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(StrictVisitor {
            visitor,
            expected: ExpectedValue::List,
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(
            name,
            fields,
            StrictVisitor {
                visitor,
                expected: ExpectedValue::Struct(fields),
            },
        )
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! visit {
    ($($method:ident: $kind:ty;)*) => {
        $(fn $method<E: Error>(self, value: $kind) -> Result<V::Value, E> {
            self.visitor.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for StrictVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    visit! {
        visit_bool: bool;
        visit_i8: i8;
        visit_i16: i16;
        visit_i32: i32;
        visit_i64: i64;
        visit_i128: i128;
        visit_u8: u8;
        visit_u16: u16;
        visit_u32: u32;
        visit_u64: u64;
        visit_u128: u128;
        visit_f32: f32;
        visit_f64: f64;
        visit_char: char;
        visit_str: &str;
        visit_borrowed_str: &'de str;
        visit_string: String;
        visit_bytes: &[u8];
        visit_borrowed_bytes: &'de [u8];
        visit_byte_buf: Vec<u8>;
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(Strict(inner))
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        match self.expected {
            ExpectedValue::List => self.visitor.visit_seq(Empty(core::marker::PhantomData)),
            ExpectedValue::Any | ExpectedValue::Struct(_) => self.visitor.visit_unit(),
        }
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_newtype_struct(Strict(inner))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        match self.expected {
            // Derived structs also accept their values in a list, by position: no client means that.
            ExpectedValue::Struct(_) => Err(A::Error::invalid_type(Unexpected::Seq, &"an object")),
            ExpectedValue::Any | ExpectedValue::List => self.visitor.visit_seq(Items(inner)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        let fields = match self.expected {
            ExpectedValue::Struct(fields) => Some(fields),
            ExpectedValue::Any | ExpectedValue::List => None,
        };
        self.visitor.visit_map(Members { inner, fields })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_enum(Variants(inner))
    }
}

/// The items of a list.
struct Items<A>(A);

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Items<A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, A::Error> {
        self.0.next_element_seed(StrictSeed(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

/// A list without items, for a `null` in place of a list.
struct Empty<E>(core::marker::PhantomData<E>);

impl<'de, E: Error> SeqAccess<'de> for Empty<E> {
    type Error = E;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, _: T) -> Result<Option<T::Value>, E> {
        Ok(None)
    }
}

/// The members of an object; with `fields`, only these.
struct Members<A> {
    inner: A,
    fields: Option<&'static [&'static str]>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Members<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let Some(fields) = self.fields else {
            return self.inner.next_key_seed(StrictSeed(seed));
        };
        let Some(name) = self.inner.next_key::<String>()? else {
            return Ok(None);
        };
        if !fields.contains(&name.as_str()) {
            return Err(A::Error::custom(unknown_member(&name, fields)));
        }
        seed.deserialize(name.into_deserializer()).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.inner.next_value_seed(StrictSeed(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

/// A seed for a nested value.
struct StrictSeed<T>(T);

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for StrictSeed<T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<T::Value, D::Error> {
        self.0.deserialize(Strict(inner))
    }
}

/// The variants of an enum.
struct Variants<A>(A);

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Variants<A> {
    type Error = A::Error;
    type Variant = Variants<A::Variant>;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self::Variant), A::Error> {
        self.0
            .variant_seed(seed)
            .map(|(value, variant)| (value, Variants(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Variants<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, A::Error> {
        self.0.newtype_variant_seed(StrictSeed(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, StrictVisitor::any(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(
            fields,
            StrictVisitor {
                visitor,
                expected: ExpectedValue::Struct(fields),
            },
        )
    }
}
