//! The patch tree: recursive METIS bisection, ownership for any rank count, numbering and halo lists.
