//! Messages write times and counts in groups of three digits.

use std::convert::Infallible;

use afterimage_replay::state::StateError;
use afterimage_replay::steps::{MachineError, StepsError};
use afterimage_replay::whole_path::{NumberError, PositionError};

#[test]
fn long_numbers_are_grouped() {
    let time = 1_234_567;
    let outside = PositionError::<Infallible>::Outside {
        text: "t=9".to_owned(),
        length: time,
        nearest: time,
    };
    let fewer = PositionError::<Infallible>::Fewer {
        what: "line 7".to_owned(),
        happened: "reached",
        count: 4_321,
        number: time,
    };
    let texts = [
        outside.to_string(),
        fewer.to_string(),
        PositionError::<Infallible>::Time("x".to_owned(), time).to_string(),
        NumberError::Fewer {
            number: time,
            of: 4_321,
        }
        .to_string(),
        StateError::NoMoment(time).to_string(),
        MachineError::LogEnds { time }.to_string(),
        MachineError::Diverged { time, what: "" }.to_string(),
        StepsError::<Infallible>::Outside {
            memory: 0,
            size: time,
            address: 0x12_3456,
        }
        .to_string(),
    ];
    for text in texts {
        assert!(text.contains("1,234,567"), "{text}");
        assert!(!text.contains("1234567"), "{text}");
        assert!(!text.contains("4321"), "{text}");
    }
}
