//! Integration tests of the grammar.

mod builder;
mod builder_check;
mod call_graph;
mod codec;
mod codec_sizes;
mod codec_support;
mod cursor;
mod find;
mod format;
mod marks;
mod oracle;
mod searches;
mod twpp_contradictions;
mod twpp_figures;
mod twpp_files;
mod twpp_laws;
mod twpp_of_path;
mod twpp_scale;
mod twpp_support;
