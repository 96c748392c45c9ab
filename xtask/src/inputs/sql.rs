//! Generates a SQL script with bulk and single inserts, indexes, joins, aggregates, updates and
//! full-text search.

use super::rng::Rng;
use super::words::{sentence, snake};
use std::fmt::Write;

/// Generates a script that fills a database with about `rows` rows and queries them. It uses no
/// clock and no random function, so the text determines every answer.
pub fn generate(seed: u64, rows: usize) -> String {
    let mut rng = Rng::new(seed);
    let (people, notes) = (rows / 50, rows / 100);
    let orders = rows - people - notes;
    let mut out = String::from(
        "PRAGMA temp_store = memory;\n\
         CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, born INTEGER);\n\
         CREATE TABLE purchase(id INTEGER PRIMARY KEY, person INTEGER REFERENCES person(id), item INTEGER, price REAL, day INTEGER);\n\
         CREATE VIRTUAL TABLE note USING fts5(title, body);\n\
         BEGIN;\n",
    );
    // Writing to a `String` cannot fail, so the results of `write!` are dropped.
    for id in 1..=people {
        let (name, city, born) = (snake(&mut rng), snake(&mut rng), 1930 + rng.below(80));
        let _ = writeln!(
            out,
            "INSERT INTO person VALUES({id}, '{name} {id}', '{city}', {born});"
        );
    }
    for _ in 0..notes {
        let (title, body) = (snake(&mut rng), sentence(&mut rng, 20));
        let _ = writeln!(out, "INSERT INTO note VALUES('{title}', '{body}');");
    }
    // A linear congruential step replaces random numbers, so that bulk rows need no text in the
    // script.
    let _ = writeln!(
        out,
        "WITH RECURSIVE step(n, x) AS (SELECT 1, {seed} UNION ALL SELECT n + 1, (x * 1103515245 + 12345) % 2147483648 FROM step WHERE n < {orders})\n\
         INSERT INTO purchase SELECT n, 1 + x % {people}, (x >> 7) % 500, ((x >> 3) % 10000) / 100.0, (x >> 11) % 3650 FROM step;\n\
         COMMIT;\n\
         CREATE INDEX purchase_person ON purchase(person, day);\n\
         CREATE INDEX purchase_item ON purchase(item);\n\
         CREATE INDEX person_city ON person(city);\n\
         SELECT count(*), round(sum(price), 2), max(day) FROM purchase;\n\
         SELECT city, count(*), round(avg(price), 4) FROM person JOIN purchase ON purchase.person = person.id GROUP BY city ORDER BY 2 DESC, 1 LIMIT 10;\n\
         SELECT item, count(DISTINCT person) AS buyers FROM purchase WHERE day BETWEEN 100 AND 900 GROUP BY item ORDER BY buyers DESC, item LIMIT 10;\n\
         SELECT a.name, b.name FROM person a JOIN person b ON a.city = b.city AND a.born = b.born AND a.id < b.id ORDER BY 1, 2 LIMIT 10;\n\
         SELECT name, price, rank() OVER (PARTITION BY city ORDER BY price DESC, purchase.id) FROM person JOIN purchase ON purchase.person = person.id WHERE day > 3600 ORDER BY 2 DESC, 1 LIMIT 10;\n\
         UPDATE purchase SET price = price * 1.01 WHERE item IN (SELECT item FROM purchase GROUP BY item HAVING count(*) % 7 = 0);\n\
         DELETE FROM purchase WHERE person IN (SELECT id FROM person WHERE born < 1950);\n\
         SELECT count(*), round(sum(price), 2) FROM purchase;\n\
         SELECT title, snippet(note, 1, '<', '>', '…', 6) FROM note WHERE note MATCH 'node AND (edge OR buffer)' ORDER BY rank, rowid LIMIT 5;\n\
         SELECT substr(name, 1, 3), count(*) FROM person WHERE name LIKE '%ta%' OR name GLOB 'n*[0-9]' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10;\n\
         PRAGMA integrity_check;",
    );
    out
}
