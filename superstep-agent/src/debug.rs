//! How types are shown that hold functions and models.

/// Implements `Debug` by a type's name and the parts that can be shown.
macro_rules! debug_parts {
    ([$($generics:tt)*] $type:ty, $name:literal, $this:ident => { $($part:ident: $value:expr),* $(,)? }) => {
        impl<$($generics)*> std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                f.debug_struct($name)$(.field(stringify!($part), &$value))*.finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use debug_parts;
