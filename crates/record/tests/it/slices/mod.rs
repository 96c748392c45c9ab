//! Backward slices are what the definition says: everything that can be reached over dependences that were written down one by one. And they suffice: executed again without
//! all else, they give the same.

mod altered;
mod follow;
mod naive;

pub use follow::{agree, agree_on_few};
