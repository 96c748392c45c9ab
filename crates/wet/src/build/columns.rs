//! Collects the data of inputs before coding.

use std::collections::hash_map::Entry;

use super::buffers::{Buffers, Column, Copies, Executions, Label, Room};
use super::patterns::Part;
use super::sites::Def;

/// The columns of all nodes' inputs in the current epoch.
pub(super) struct Columns {
    /// The position of the next label of each input.
    labels: Vec<Room>,
    /// The position of each input's column, plus 1.
    of_input: Vec<u32>,
    /// The parts of the current read.
    parts: Vec<Part>,
    buffers: Buffers,
}

impl Columns {
    /// Creates columns for this many inputs.
    pub(super) fn new(inputs: usize) -> Self {
        Self {
            labels: vec![Room::default(); inputs],
            of_input: vec![0; inputs],
            parts: Vec::new(),
            buffers: Buffers::default(),
        }
    }

    /// Returns the count of numbers that wait to be written.
    #[inline(always)]
    pub(super) fn size(&self) -> usize {
        self.buffers.size
    }

    /// Returns the data to be written, and continues with the buffers in `empty`.
    pub(super) fn take(&mut self, empty: Buffers) -> Buffers {
        for column in &mut self.buffers.columns {
            let input = column.input as usize;
            self.of_input[input] = 0;
            column.end = std::mem::take(&mut self.labels[input]).filled();
        }
        std::mem::replace(&mut self.buffers, empty)
    }

    /// Returns the column of an input. `execution` is the current execution of the input's node.
    #[inline]
    fn column(&mut self, input: u32, execution: u64) -> &mut Column {
        let place = &mut self.of_input[input as usize];
        let columns = &mut self.buffers.columns;
        if *place == 0 {
            columns.push(Column {
                input,
                first: execution,
                ..Column::default()
            });
            *place = columns.len() as u32;
        }
        &mut columns[*place as usize - 1]
    }

    /// Records the writer of a read, or several writers as a pattern.
    #[inline(always)]
    pub(super) fn label(&mut self, input: u32, execution: u64, label: Label) {
        let room = &mut self.labels[input as usize];
        if !self.buffers.labels.fits(label, room) {
            self.append(input, execution, label);
        }
        self.buffers.size += 1;
    }

    #[inline(never)]
    fn append(&mut self, input: u32, execution: u64, label: Label) {
        let mut chunks = std::mem::take(&mut self.column(input, execution).chunks);
        let room = &mut self.labels[input as usize];
        self.buffers.labels.append(label, room, &mut chunks);
        self.column(input, execution).chunks = chunks;
    }

    /// Records several writers of a read. Each part has the number of its bytes, its definition,
    /// and the number of executions of the defining node so far.
    pub(super) fn labels(&mut self, input: u32, execution: u64, parts: &[(u8, Def, u64)]) {
        let places = parts.iter().map(|&(length, def, _)| (length, def.place()));
        self.parts.clear();
        self.parts.extend(places);
        let pattern = self.buffers.patterns.number(&self.parts);
        let Some((&(_, first, count), others)) = parts.split_first() else {
            return;
        };
        let label = Label {
            pattern,
            execution: first.execution(),
            age: count.wrapping_sub(first.execution()),
        };
        self.label(input, execution, label);
        let column = self.column(input, execution);
        if column.parts.len() < others.len() {
            column.parts.resize(others.len(), Executions::default());
        }
        for (part, &(_, def, count)) in column.parts.iter_mut().zip(others) {
            part.push(def.execution(), count);
        }
        self.buffers.size += others.len();
    }

    /// Records the distant definition of a variable, if it differs from the last recorded one. The
    /// definition is the defining node, its execution, and the number of the node's executions so
    /// far.
    #[inline]
    pub(super) fn far(&mut self, input: u32, execution: u64, (node, by, count): (u32, u64, u64)) {
        let column = self.column(input, execution);
        if column.far_nodes.last() != Some(&node) || column.far.absolute.last() != Some(&by) {
            column.far_at.push(execution);
            column.far_nodes.push(node);
            column.far.push(by, count);
            self.buffers.size += 1;
        }
    }

    /// Records a value, with its upper half if it has one.
    #[inline]
    pub(super) fn keep(&mut self, input: u32, execution: u64, low: u64, high: Option<u64>) {
        let column = self.column(input, execution);
        column.cut_at.push(execution);
        column.cut.push(low);
        column.cut_high.extend(high);
        self.buffers.size += 1;
    }

    /// Records a copy at a site. `add` appends the copy's runs.
    pub(super) fn copy(&mut self, site: u32, execution: u64, add: impl FnOnce(&mut Copies)) {
        let copies = &mut self.buffers.copies;
        let place = match self.buffers.of_site.entry(site) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(vacant) => {
                copies.push(Copies {
                    site,
                    ..Copies::default()
                });
                *vacant.insert(copies.len() - 1)
            }
        };
        let copies = &mut self.buffers.copies[place];
        let before = copies.runs.len();
        add(copies);
        copies.at.push(execution);
        let count = copies.runs.len() - before;
        copies.counts.push(count as u64);
        self.buffers.size += count + 1;
    }
}
