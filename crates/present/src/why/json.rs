//! The way back as JSON; `docs/JSON.md` describes it.

use serde_json::{Value, json};

use super::{WhyEnd, WhyEntry, WhyMade, WhyMove, WhyPlace};

/// An entry as JSON.
pub fn why_json(entry: &WhyEntry) -> Value {
    match entry {
        WhyEntry::Led { frames, more } => {
            let frames = frames.iter().map(|frame| {
                let branch = frame.branch.as_ref().map(|(branch, decided)| {
                    json!({ "place": place(branch), "value": decided, "followed": frame.chosen })
                });
                json!({ "place": place(&frame.place), "branch": branch, "own": frame.own })
            });
            json!({ "step": "led", "frames": Vec::from_iter(frames), "more": more })
        }
        WhyEntry::Moved { moves, more } => {
            let moves = moves.iter().map(moved);
            json!({ "step": "moved", "moves": Vec::from_iter(moves), "more": more })
        }
        WhyEntry::Made(it) => made(it),
        WhyEntry::Again {
            period,
            times,
            back,
        } => json!({ "step": "again", "steps": period, "times": times, "back": made(back) }),
        WhyEntry::End(it) => end(it),
    }
}

fn place(place: &WhyPlace) -> Value {
    json!({
        "function": place.function,
        "line": (!place.line.is_empty()).then_some(&place.line),
        "around": place.around,
        "source": place.text,
        "operator": place.operator,
        "at": place.at,
        "time": place.time,
    })
}

fn moved(one: &WhyMove) -> Value {
    json!({
        "how": one.how,
        "what": one.what,
        "value": (!one.value.is_empty()).then_some(&one.value),
        "besides": one.besides,
        "place": place(&one.place),
    })
}

fn made(made: &WhyMade) -> Value {
    let operands = made.operands.iter().enumerate().map(|(i, operand)| {
        json!({
            "role": operand.role,
            "value": operand.value,
            "constant": operand.constant,
            "followed": made.followed == Some(i),
        })
    });
    json!({
        "step": if made.lookup { "looked up" } else { "computed" },
        "value": made.value,
        "operands": Vec::from_iter(operands),
        "place": place(&made.place),
    })
}

fn end(end: &WhyEnd) -> Value {
    json!({
        "step": "end",
        "kind": end.kind,
        "what": end.what,
        "file": end.file,
        "offset": end.offset,
        "bytes": end.bytes,
        "remark": end.remark,
        "led": end.led.as_deref().map(|(branch, decided)| json!({ "place": place(branch), "value": decided })),
        "read": end.read.as_ref().map(place),
        "place": end.place.as_ref().map(place),
    })
}
