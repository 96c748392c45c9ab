//! Tests many clients, and clients that disconnect.

use std::io::{Read, Write};
use std::thread;

use crate::client::Answer;
use crate::served;

#[test]
fn clients_that_go_away_disturb_nobody() {
    let (_folder, client) = served();
    let whole = format!(
        "GET {}api/state?at=50% HTTP/1.1\r\nHost: {}\r\n\r\n",
        client.path, client.host
    );
    for length in 0..whole.len() {
        let mut stream = client.connect();
        let _ = stream.write_all(&whole.as_bytes()[..length]);
    }
    for _ in 0..100 {
        // This client sends a request, and does not wait for the answer.
        let _ = client.connect().write_all(whole.as_bytes());
    }
    // Connections that are still being closed may exhaust the limit for a moment.
    let answered = (0..1000).any(|_| client.get("api/progress").status == 200);
    assert!(answered);
    assert_eq!(client.get("api/state?at=50%25").status, 200);
}

/// The number of requests, and of the clients that send them at once.
const REQUESTS: usize = 10_000;
const CLIENTS: usize = 50;

#[test]
fn ten_thousand_requests_are_answered() {
    let (_folder, client) = served();
    let answered: usize = thread::scope(|scope| {
        let all = (0..CLIENTS).map(|number| {
            let client = client.clone();
            scope.spawn(move || {
                let mut stream = client.connect();
                let mut answered = 0;
                for turn in 0..REQUESTS / CLIENTS {
                    let time = 1 + (number * 7 + turn) % 383;
                    let question = match turn % 3 {
                        0 => "api/page".to_owned(),
                        1 => format!("api/moment?at=t%3D{time}"),
                        _ => "style.css".to_owned(),
                    };
                    let request = format!(
                        "GET {}{question} HTTP/1.1\r\nHost: {}\r\n\r\n",
                        client.path, client.host
                    );
                    stream.write_all(request.as_bytes()).unwrap();
                    answered += usize::from(next(&mut stream).status == 200);
                }
                answered
            })
        });
        let all = Vec::from_iter(all);
        all.into_iter().map(|one| one.join().unwrap()).sum()
    });
    assert_eq!(answered, REQUESTS);
}

/// Reads one answer from a connection that stays open.
fn next(stream: &mut impl Read) -> Answer {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        bytes.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let length = head.split("Content-Length: ").nth(1).unwrap();
    let length = length.split("\r\n").next().unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    bytes.extend(body);
    Answer::read(&bytes)
}

#[test]
fn more_connections_than_there_is_room_for_are_told_so() {
    let (_folder, client) = served();
    let held = Vec::from_iter((0..200).map(|_| client.connect()));
    // The first connections exhaust the limit.
    for mut stream in &held[150..] {
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        assert!(
            text.contains("503") && text.contains("too many connections"),
            "{text}"
        );
    }
    drop(held);
    let answered = (0..1000).any(|_| client.get("api/page").status == 200);
    assert!(answered);
}

#[test]
fn clients_that_are_refused_can_read_why() {
    let (_folder, client) = served();
    // These connections exhaust the limit.
    let held = Vec::from_iter((0..64).map(|_| client.connect()));
    for _ in 0..300 {
        client.get("api/page").refusal(503, "too many connections");
    }
    drop(held);
}

#[test]
fn the_same_question_has_the_same_answer_and_says_what_it_cost() {
    let (_folder, client) = served();
    let first = client.get("api/state?at=50%25");
    let second = client.get("api/state?at=50%25");
    assert_eq!(first.body, second.body);
    assert!(
        first
            .head
            .contains("X-Afterimage-Command: afterimage state --at 50%25 "),
        "{}",
        first.head
    );
    assert!(second.head.contains("; kept"), "{}", second.head);
}
