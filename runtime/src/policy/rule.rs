//! The common part of all rules: a name, a table in which it is found, equality by name.

/// Implements for a value that holds a reference to a rule what its name gives: the search in a
/// table of values, the name and a line about it, equality, and `Debug`.
macro_rules! value_of_a_rule {
    ($value:ident, $table:ident) => {
        impl $value {
            #[doc = concat!("Finds the rule of this name in [`", stringify!($table), "`].")]
            #[must_use]
            pub fn by_name(name: &str) -> Option<Self> {
                let mut rules = $table.iter().copied();
                rules.find(|rule| rule.name() == name)
            }

            /// Returns its name.
            #[must_use]
            pub fn name(self) -> &'static str {
                self.0.name()
            }

            /// Returns a line about it.
            #[must_use]
            pub fn about(self) -> &'static str {
                self.0.about()
            }
        }

        impl PartialEq for $value {
            fn eq(&self, other: &Self) -> bool {
                self.name() == other.name()
            }
        }

        impl Eq for $value {}

        impl std::fmt::Debug for $value {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

pub(super) use value_of_a_rule;
