//! Writes a table to a Parquet file: collects rows by column, and writes them in groups.

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::schema::{Coding, Column, Table, Type, VERSION};

/// The number of rows in a group.
const GROUP: usize = 1 << 20;

/// The compression level. Higher levels take much longer and save few bytes.
const LEVEL: i32 = 3;

/// The Parquet file of a table that is being written.
pub(crate) struct TableFile {
    file: SerializedFileWriter<File>,
    columns: Vec<Cells>,
    rows: usize,
    written: u64,
}

/// The cells of a column that have not been written yet.
pub(crate) struct Cells {
    data: Data,
    /// For a column that may lack values: 1 for a value, 0 for a missing value. For lists: 1 for an
    /// element, 0 for an empty list.
    levels: Vec<i16>,
    /// For lists: 0 for the first element of a list, 1 for the others.
    repeats: Vec<i16>,
    optional: bool,
}

enum Data {
    Int(Vec<i32>),
    Long(Vec<i64>),
    Double(Vec<f64>),
    Bool(Vec<bool>),
    Text(Vec<ByteArray>),
}

impl Cells {
    fn new(column: &Column) -> Self {
        Self {
            data: match column.ty {
                Type::Int => Data::Int(Vec::new()),
                Type::Long | Type::Longs => Data::Long(Vec::new()),
                Type::Double => Data::Double(Vec::new()),
                Type::Bool => Data::Bool(Vec::new()),
                Type::Text => Data::Text(Vec::new()),
            },
            levels: Vec::new(),
            repeats: Vec::new(),
            optional: column.optional,
        }
    }

    #[inline]
    fn present(&mut self) {
        if self.optional {
            self.levels.push(1);
        }
    }

    /// Adds an integer to a column of integers. No run produces integers that are too large for
    /// their column.
    #[inline]
    pub fn put(&mut self, value: impl Into<i64>) {
        let value = value.into();
        self.present();
        match &mut self.data {
            Data::Long(values) => values.push(value),
            Data::Int(values) => values.push(value as i32),
            _ => debug_assert!(false, "a column of a different type"),
        }
    }

    /// Adds a count.
    #[inline]
    pub fn count(&mut self, value: u64) {
        self.put(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// Adds an integer, or a missing value.
    #[inline]
    pub fn maybe(&mut self, value: Option<impl Into<i64>>) {
        match value {
            Some(value) => self.put(value),
            None => self.none(),
        }
    }

    /// Adds a missing value.
    #[inline]
    pub fn none(&mut self) {
        debug_assert!(self.optional, "a column that cannot lack a value");
        self.levels.push(0);
    }

    /// Adds a floating-point number.
    #[inline]
    pub fn number(&mut self, value: f64) {
        self.present();
        if let Data::Double(values) = &mut self.data {
            values.push(value);
        }
    }

    /// Adds a truth value.
    #[inline]
    pub fn truth(&mut self, value: bool) {
        self.present();
        if let Data::Bool(values) = &mut self.data {
            values.push(value);
        }
    }

    /// Adds text.
    pub fn text(&mut self, value: &str) {
        self.present();
        if let Data::Text(values) = &mut self.data {
            values.push(value.into());
        }
    }

    /// Adds text that many rows share.
    #[inline]
    pub fn shared(&mut self, value: &ByteArray) {
        self.present();
        if let Data::Text(values) = &mut self.data {
            values.push(value.clone());
        }
    }

    /// Adds a list.
    pub fn list(&mut self, list: impl IntoIterator<Item = i64>) {
        let Data::Long(values) = &mut self.data else {
            return;
        };
        let before = values.len();
        values.extend(list);
        let count = values.len() - before;
        self.repeats.push(0);
        self.levels.push(i16::from(count > 0));
        self.repeats.extend((1..count).map(|_| 1));
        self.levels.extend((1..count).map(|_| 1));
    }

    fn clear(&mut self) {
        self.levels.clear();
        self.repeats.clear();
        match &mut self.data {
            Data::Int(values) => values.clear(),
            Data::Long(values) => values.clear(),
            Data::Double(values) => values.clear(),
            Data::Bool(values) => values.clear(),
            Data::Text(values) => values.clear(),
        }
    }

    fn write(&self, to: &mut ColumnWriter<'_>) -> Result<()> {
        let levels = (!self.levels.is_empty()).then_some(&self.levels[..]);
        let repeats = (!self.repeats.is_empty()).then_some(&self.repeats[..]);
        match (to, &self.data) {
            (ColumnWriter::Int32ColumnWriter(to), Data::Int(values)) => {
                to.write_batch(values, levels, repeats)?
            }
            (ColumnWriter::Int64ColumnWriter(to), Data::Long(values)) => {
                to.write_batch(values, levels, repeats)?
            }
            (ColumnWriter::DoubleColumnWriter(to), Data::Double(values)) => {
                to.write_batch(values, levels, repeats)?
            }
            (ColumnWriter::BoolColumnWriter(to), Data::Bool(values)) => {
                to.write_batch(values, levels, repeats)?
            }
            (ColumnWriter::ByteArrayColumnWriter(to), Data::Text(values)) => {
                to.write_batch(values, levels, repeats)?
            }
            _ => bail!("the type of a column differs from that in its table"),
        };
        Ok(())
    }
}

impl TableFile {
    /// Creates the file of a table, which must not exist yet.
    pub fn create(at: &Path, table: &'static Table) -> Result<Self> {
        let file = File::create_new(at).with_context(|| at.display().to_string())?;
        let schema = parse_message_type(&message(table))?;
        let properties = properties(table)?;
        let file = SerializedFileWriter::new(file, Arc::new(schema), properties)?;
        Ok(Self {
            file,
            columns: table.columns.iter().map(Cells::new).collect(),
            rows: 0,
            written: 0,
        })
    }

    /// Begins the next row, and returns the cells of all columns. The caller must add one cell to
    /// each column.
    #[inline]
    pub fn row<const N: usize>(&mut self) -> Result<&mut [Cells; N]> {
        self.rows_soon(1)?;
        self.rows += 1;
        self.cells()
    }

    /// Returns the cells of all columns for adding several rows. The caller must then count these
    /// rows with [`added`](Self::added).
    #[inline]
    pub fn cells<const N: usize>(&mut self) -> Result<&mut [Cells; N]> {
        match self.columns.first_chunk_mut() {
            Some(cells) => Ok(cells),
            None => bail!("a table and its rows have different columns"),
        }
    }

    /// Makes room for more rows.
    #[inline]
    pub fn rows_soon(&mut self, rows: usize) -> Result<()> {
        if self.rows + rows > GROUP {
            self.flush()?;
        }
        Ok(())
    }

    /// Counts rows that were added to the cells.
    #[inline]
    pub fn added(&mut self, rows: usize) {
        self.rows += rows;
    }

    fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for cells in &mut self.columns {
            if let Some(mut column) = group.next_column()? {
                cells.write(column.untyped())?;
                column.close()?;
            }
            cells.clear();
        }
        group.close()?;
        self.written += self.rows as u64;
        self.rows = 0;
        Ok(())
    }

    /// Writes the remaining rows. Returns the total number of rows and of bytes.
    pub fn finish(mut self) -> Result<(u64, u64)> {
        self.flush()?;
        let file = self.file.into_inner()?;
        Ok((self.written, file.metadata()?.len()))
    }
}

/// Returns the schema of a table, in Parquet's form.
fn message(table: &Table) -> String {
    let mut text = format!("message {} {{", table.name);
    for column in table.columns {
        let repetition = if column.optional {
            "OPTIONAL"
        } else {
            "REQUIRED"
        };
        let name = column.name;
        let _ = match column.ty {
            Type::Int => write!(text, "{repetition} INT32 {name};"),
            Type::Long => write!(text, "{repetition} INT64 {name};"),
            Type::Double => write!(text, "{repetition} DOUBLE {name};"),
            Type::Bool => write!(text, "{repetition} BOOLEAN {name};"),
            Type::Text => write!(text, "{repetition} BYTE_ARRAY {name} (UTF8);"),
            Type::Longs => write!(
                text,
                "{repetition} GROUP {name} (LIST) {{ REPEATED GROUP list {{ REQUIRED INT64 element; }} }}"
            ),
        };
    }
    text + "}"
}

fn properties(table: &Table) -> Result<WriterPropertiesPtr> {
    let own = KeyValue::new("afterimage.version".to_owned(), VERSION.to_string());
    let mut all = WriterProperties::builder()
        .set_created_by(format!("afterimage {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![own]))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
        .set_max_row_group_row_count(Some(GROUP));
    if table
        .columns
        .first()
        .is_some_and(|first| first.name == "ts")
    {
        all = all.set_sorting_columns(Some(vec![SortingColumn {
            column_idx: 0,
            descending: false,
            nulls_first: false,
        }]));
    }
    for column in table.columns {
        let path = match column.ty {
            Type::Longs => [column.name, "list", "element"].map(str::to_owned).to_vec(),
            _ => vec![column.name.to_owned()],
        };
        let path = ColumnPath::new(path);
        let has_dictionary = column.coding == Coding::Dictionary;
        all = all.set_column_dictionary_enabled(path.clone(), has_dictionary);
        if column.coding == Coding::Delta {
            all = all.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(Arc::new(all.build()))
}
