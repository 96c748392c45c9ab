//! Reads lines such as `Ada 12 15 9`, prints each mean, and how many pupils have which grade.

use std::io::{self, BufRead};

/// Marks go from 0 to 15.
const HIGHEST: i32 = 15;

struct Pupil {
    name: String,
    marks: Vec<i32>,
    trend: i32,
}

impl Pupil {
    fn read(line: &str) -> Pupil {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or("nobody").to_owned();
        let marks: Vec<i32> = words.map(|word| word.parse().unwrap_or(0)).collect();
        let trend = trend(&marks);
        Pupil { name, marks, trend }
    }

    /// The mean, in tenths.
    fn mean(&self) -> i32 {
        let mut sum = 0;
        for mark in &self.marks[1..] {
            sum += mark * 10;
        }
        sum / self.marks.len() as i32
    }
}

/// How much better the last mark is than the first.
fn trend(marks: &[i32]) -> i32 {
    let mut change = 0;
    for pair in marks.windows(2) {
        change += pair[1] - pair[0];
    }
    change
}

/// 1 is the best, 4 the worst.
fn grade(mean: i32) -> usize {
    if mean > HIGHEST * 10 {
        1
    } else if mean >= 100 {
        2
    } else if mean >= 50 {
        3
    } else {
        4
    }
}

fn main() {
    let mut grades = [0; 5];
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let pupil = Pupil::read(&line);
        let mean = pupil.mean();
        let arrow = if pupil.trend < 0 { "down" } else { "up" };
        println!("{:8} {:2}.{} {arrow}", pupil.name, mean / 10, mean % 10);
        grades[grade(mean)] += 1;
    }
    for (grade, pupils) in grades.iter().enumerate().skip(1) {
        println!("grade {grade}: {pupils}");
    }
}
