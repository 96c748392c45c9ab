//! Describes steps of the chain in words.

use afterimage_analyses::why::{End, Entry, Link, Made, Move, Moved, Spot, Step, ValType};
use afterimage_present::document::objects::{MemoryRange, TypedValue};
use afterimage_present::{
    WhyEnd, WhyEntry, WhyHow, WhyMade, WhyMove, WhyOperand, counted, value_text,
};
use afterimage_replay::steps::Range;
use anyhow::Result;

use super::ends::{end, none};
use super::start::Start;
use crate::explain::Scene;

/// Describes steps, and keeps the current value from step to step.
pub struct Teller<'t, 'a> {
    pub scene: &'t Scene<'t, 'a>,
    /// The current value.
    pub value: String,
    /// The type of the value.
    pub ty: Option<ValType>,
    /// The place of the value in the last description.
    pub last: Option<Spot>,
    /// The place in `last`, if the value is the result of its statement.
    pub spot: Option<Spot>,
    /// Whether the end of the chain was described.
    pub ended: bool,
}

impl<'t, 'a> Teller<'t, 'a> {
    pub fn new(scene: &'t Scene<'t, 'a>, start: &Start) -> Result<Self> {
        Ok(Self {
            scene,
            value: start.value.clone(),
            ty: start.ty,
            last: start.place(scene)?,
            spot: start.spot,
            ended: false,
        })
    }

    /// Describes an entry of the chain, and adds the description to `told`.
    pub fn tell(&mut self, entry: Entry, told: &mut Vec<WhyEntry>) -> Result<()> {
        match entry {
            Entry::Step(step) => self.step(step, told),
            Entry::Again {
                period,
                times,
                last,
            } => {
                if let Link::Made(made) = &last.link {
                    let back = self.made(made)?;
                    told.push(WhyEntry::Again {
                        period,
                        times,
                        back,
                    });
                }
                Ok(())
            }
        }
    }

    fn step(&mut self, step: Step, told: &mut Vec<WhyEntry>) -> Result<()> {
        let (mut moves, mut read) = (Vec::new(), None);
        for moved in &step.moves {
            let told = self.moved(moved)?;
            if moved.address_computed && read.is_none() {
                read = Some(told.place.clone());
            }
            moves.push(told);
        }
        if !moves.is_empty() {
            let more = step.more_moves;
            told.push(WhyEntry::Moved { moves, more });
        }
        match &step.link {
            Link::Made(made) => told.push(WhyEntry::Made(self.made(made)?)),
            Link::Cut => {}
            Link::End(of) => {
                self.ended = true;
                let mut end = end(self, *of)?;
                if let End::Memory(_) | End::Host { .. } = of {
                    end.read = read;
                }
                told.push(WhyEntry::End(end));
            }
        }
        Ok(())
    }

    fn moved(&mut self, moved: &Moved) -> Result<WhyMove> {
        let place = self.scene.place(moved.spot)?;
        let (operands, results) = self.types(moved.spot);
        let ty = match moved.how {
            Move::Load(_) | Move::GlobalGet(_) | Move::Select(_) => results.first(),
            Move::Lanes { operand, .. } => operands.get(operand),
            Move::Store(_) | Move::Fill(_) => operands.get(1),
            Move::GlobalSet(_) => operands.first(),
            Move::Copy { .. } => None,
        };
        let typed = ty.zip(moved.value);
        let typed = typed.map(|(&ty, bits)| (ty, TypedValue::new(ty, bits)));
        let mut value = String::new();
        if let Some((ty, typed)) = &typed {
            value.clone_from(&typed.text);
            (self.value, self.ty) = (value.clone(), Some(*ty));
        }
        let (how, what) = match moved.how {
            Move::Load(range) => ("loaded", memory(range)),
            Move::Store(range) => ("stored", memory(range)),
            Move::Copy { from, .. } => ("copied", memory(from)),
            Move::Fill(range) => ("filled in", memory(range)),
            Move::GlobalGet(global) => ("read", format!("global {global}")),
            Move::GlobalSet(global) => ("written", format!("global {global}")),
            Move::Select(true) => ("selected", "the first of two".to_owned()),
            Move::Select(false) => ("selected", "the second of two".to_owned()),
            Move::Lanes { operand, bytes } => {
                let last = bytes.first + bytes.length.saturating_sub(1);
                let which = match bytes.length {
                    0 | 1 => format!("byte {last}"),
                    _ => format!("bytes {}..{last}", bytes.first),
                };
                let what = format!("{which} of operand {}", operand + 1);
                ("moved between lanes", what)
            }
        };
        let range = match moved.how {
            Move::Load(range) | Move::Store(range) | Move::Fill(range) => Some(range),
            Move::Copy { from, .. } => Some(from),
            _ => None,
        };
        (self.last, self.spot) = (Some(moved.spot), Some(moved.spot));
        Ok(WhyMove {
            how: how.to_owned(),
            what,
            memory: range.map(MemoryRange::from),
            value,
            typed: typed.map(|(_, typed)| typed),
            place,
            besides: moved.besides,
        })
    }

    fn types(&self, spot: Spot) -> (Vec<ValType>, Vec<ValType>) {
        let types = self.scene.types.of(spot.function, spot.op);
        types.unwrap_or_default()
    }

    fn made(&mut self, made: &Made) -> Result<WhyMade> {
        let place = self.scene.place(made.spot)?;
        let (types, results) = self.types(made.spot);
        let typed = results.first().map(|&ty| TypedValue::new(ty, made.value));
        let value = typed
            .as_ref()
            .map_or(String::new(), |typed| typed.text.clone());
        let operands = made.operands.iter().zip(&types);
        let operands = operands.enumerate().map(|(i, (operand, &ty))| WhyOperand {
            role: operand.role.to_owned(),
            value: value_text(ty, operand.value),
            typed: TypedValue::new(ty, operand.value),
            constant: operand.constant,
            elsewhere: operand.elsewhere,
            followed: made.followed == Some(i),
        });
        let operands = Vec::from_iter(operands);
        if let Some(followed) = made.followed
            && let Some(operand) = operands.get(followed)
        {
            self.value = operand.value.clone();
            self.ty = types.get(followed).copied();
        } else {
            self.ended = true;
        }
        (self.last, self.spot) = (Some(made.spot), Some(made.spot));
        Ok(WhyMade {
            step: if made.lookup {
                WhyHow::LookedUp
            } else {
                WhyHow::Computed
            },
            value,
            typed,
            operands,
            place,
        })
    }

    /// Describes the end of a chain that was not followed to its origin. `further` says how to see
    /// more at once.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged.
    pub fn stopped(&self, links: u64, further: &str) -> Result<WhyEnd> {
        let last = self.last.map(|spot| self.scene.place(spot)).transpose()?;
        let at = last.map_or(String::new(), |place| place.at);
        Ok(WhyEnd {
            remark: Some(match links {
                0 => further.to_owned(),
                _ => format!("to continue from here, ask why about {at}; {further}"),
            }),
            ..none(
                "stopped",
                format!(
                    "… stopped after {}, before the beginning",
                    counted(links, "step")
                ),
            )
        })
    }
}

/// Describes bytes of memory.
pub fn memory(range: Range) -> String {
    let of = match range.memory {
        0 => "memory".to_owned(),
        other => format!("memory {other},"),
    };
    match range.length {
        0 | 1 => format!("{of} 0x{:x}", range.address),
        length => {
            let last = range.address.wrapping_add(length - 1);
            format!("{of} 0x{:x}..0x{last:x}", range.address)
        }
    }
}
