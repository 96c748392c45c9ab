//! Tests access control and refusals.

use afterimage_explorer::{Explorer, Options};

use crate::{recording, serve, served};

#[test]
fn the_page_comes_with_what_keeps_it_apart_from_others() {
    let (_folder, client) = served();
    let page = client.get("");
    assert_eq!(page.status, 200);
    assert!(page.body.starts_with("<!doctype html>"));
    for header in [
        "Content-Security-Policy: default-src 'none'; script-src 'self';",
        "X-Content-Type-Options: nosniff",
        "Referrer-Policy: no-referrer",
        "Cache-Control: no-store",
    ] {
        assert!(page.head.contains(header), "{header}: {}", page.head);
    }
    assert!(client.get("main.js").head.contains("text/javascript"));
    // All files that the page loads exist, and are on this server.
    for part in page
        .body
        .split(['"', '\''])
        .filter(|part| part.ends_with(".js") || part.ends_with(".css"))
    {
        assert_eq!(client.get(part).status, 200, "{part}");
        assert!(!part.contains("//"), "{part}");
    }
}

#[test]
fn the_token_has_128_bits_and_is_another_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let at = recording(&folder);
    let open = || Explorer::open(&at, Options::default()).unwrap().url();
    let (one, other) = (open(), open());
    let token = |url: &str| {
        url.trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(token(&one).len(), 32);
    assert!(token(&one).bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_ne!(token(&one), token(&other));
}

#[test]
fn whoever_does_not_know_the_token_gets_nothing() {
    let (_folder, client) = served();
    let host = format!("Host: {}", client.host);
    let wrong = format!("/{}/api/info", "0".repeat(32));
    for path in ["/", "/api/info", &wrong, "//", "/../", &client.path[..20]] {
        let answer = client.send("GET", path, &[&host], "");
        answer.refusal(403, "token");
    }
}

#[test]
fn another_host_another_page_and_another_site_are_refused() {
    let (_folder, client) = served();
    let info = format!("{}api/info", client.path);
    let host = format!("Host: {}", client.host);
    let get = |headers: &[&str]| client.send("GET", &info, headers, "");
    get(&[]).refusal(403, "another host");
    get(&["Host: evil.example"]).refusal(403, "another host");
    get(&[&host, &host]).refusal(403, "another host");
    get(&[&host, "Origin: http://evil.example"]).refusal(403, "another page");
    get(&[&host, "Origin: null"]).refusal(403, "another page");
    get(&[&host, "Sec-Fetch-Site: cross-site"]).refusal(403, "another page");
    get(&[&host, "Sec-Fetch-Site: same-site"]).refusal(403, "another page");
    let own = format!("Origin: http://{}", client.host);
    assert_eq!(
        get(&[&host, &own, "Sec-Fetch-Site: same-origin"]).status,
        200
    );
    // The page itself may be opened from a link.
    let page = client.send(
        "GET",
        &client.path,
        &[&host, "Sec-Fetch-Site: cross-site"],
        "",
    );
    assert_eq!(page.status, 200);
}

#[test]
fn methods_and_paths_that_are_none_are_refused() {
    let (_folder, client) = served();
    let host = format!("Host: {}", client.host);
    let send =
        |method, path: &str| client.send(method, &format!("{}{path}", client.path), &[&host], "");
    for method in ["PUT", "DELETE", "OPTIONS", "PATCH"] {
        send(method, "api/info").refusal(405, "GET");
    }
    send("POST", "api/info").refusal(405, "notes");
    for path in ["../Cargo.toml", "%2e%2e/secret", "style.css/", "nothing.js"] {
        send("GET", path).refusal(404, "no such part");
    }
    send("GET", "api/nothing").refusal(404, "no question");
    let head = send("HEAD", "style.css");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

#[test]
fn questions_that_are_none_are_refused_in_one_sentence() {
    let (_folder, client) = served();
    client.get("api/state").refusal(400, "at is missing");
    client.get("api/state?at=1&depth=x").refusal(400, "depth x");
    client.get("api/state?at=1&at=2").refusal(400, "twice");
    client.get("api/state?at=%ff").refusal(400, "encoded");
    client
        .get("api/state?at=1&frame=0&colour=red")
        .refusal(400, "colour has no meaning");
    client
        .get("api/trace?level=lines")
        .refusal(400, "block or path");
    client.get("api/why").refusal(400, "one of at, stdout");
    client.get("api/export").refusal(400, "format is missing");
    client.get("api/calls?call=1").refusal(400, "a function");
    client.get("api/memory?address=x").refusal(400, "address x");
}

#[test]
fn questions_without_an_answer_succeed_with_the_reason() {
    let (_folder, client) = served();
    client.get("api/state?at=nowhere").unanswered("nowhere");
    client
        .get("api/state?at=t%3D384")
        .unanswered("there is no t=384");
    client.get("api/state?at=1&frame=9").unanswered("frame");
    client
        .get("api/source?file=/etc/passwd")
        .unanswered("no code of the program comes from");
}

#[test]
fn ranges_that_are_none_are_refused_in_one_sentence() {
    let (_folder, client) = served();
    for (range, part) in [
        ("from=t%3D9&to=t%3D3", "the stretch is empty"),
        ("from=t%3D0", "there is no t=0"),
        ("to=t%3D384", "there is no t=384"),
        ("from=200%25", "not a share of the run"),
        ("to=nowhere", "nowhere"),
    ] {
        for question in ["export?format=collapsed", "flow?function=func[0]"] {
            client
                .get(&format!("api/{question}&{range}"))
                .unanswered(part);
        }
    }
    assert_eq!(
        client
            .get("api/export?format=collapsed&from=t%3D383")
            .status,
        200
    );
}

#[test]
fn requests_that_are_too_large_or_none_are_refused() {
    let (_folder, client) = served();
    client
        .raw(b"nonsense\r\n\r\n")
        .refusal(400, "not an HTTP/1.1 request");
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(40_000));
    client.raw(long.as_bytes()).refusal(431, "16 KiB");
    // The limit also applies to a head that arrives in one piece.
    let long = format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "b".repeat(16_500));
    client.raw(long.as_bytes()).refusal(431, "16 KiB");
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(100));
    client.raw(many.as_bytes()).refusal(431, "64 headers");
    client
        .raw(b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n")
        .refusal(413, "1 MiB");
    client
        .raw(b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n")
        .refusal(400, "not a number");
    client
        .raw(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        .refusal(400, "chunks");
}

#[test]
fn notes_are_kept_for_the_page_alone() {
    let (folder, client) = served();
    let notes = format!("{}api/notes", client.path);
    let host = format!("Host: {}", client.host);
    let own = format!("Origin: http://{}", client.host);
    let body = r#"{"notes":[{"title":"Here","at":"t=3","text":"It counts."}],"before":""}"#;
    client
        .send("POST", &notes, &[&host], body)
        .refusal(403, "no Origin");
    let other = "Origin: http://evil.example";
    client
        .send("POST", &notes, &[&host, other], body)
        .refusal(403, "another page");
    client
        .send("POST", &notes, &[&host, &own], "{}")
        .refusal(400, "not notes");
    assert_eq!(
        client.send("POST", &notes, &[&host, &own], body).status,
        200
    );
    let kept = std::fs::read_to_string(folder.path().join("forever.aft.notes.md")).unwrap();
    assert_eq!(
        kept,
        "# Notes on forever.aft\n\n## Here\nat: `t=3`\n\nIt counts.\n\n"
    );
    // A client that has not seen the current contents does not overwrite them.
    client
        .send("POST", &notes, &[&host, &own], body)
        .unanswered("changed in the meantime");
    assert!(client.get("api/notes").body.contains("It counts."));

    let options = Options {
        read_only: true,
        ..Options::default()
    };
    let client = serve(&folder.path().join("forever.aft"), options);
    let own = format!("Origin: http://{}", client.host);
    let (notes, host) = (
        format!("{}api/notes", client.path),
        format!("Host: {}", client.host),
    );
    client
        .send("POST", &notes, &[&host, &own], body)
        .refusal(403, "--read-only");
}

#[test]
fn a_port_that_is_in_use_is_named_and_the_next_one_is_taken_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let at = recording(&folder);
    let first = Explorer::open(&at, Options::default()).unwrap();
    let second = Explorer::open(&at, Options::default()).unwrap();
    assert_ne!(first.url(), second.url());
    let port = first
        .url()
        .split([':', '/'])
        .nth(4)
        .unwrap()
        .parse()
        .unwrap();
    let options = Options {
        port: Some(port),
        ..Options::default()
    };
    let refused = Explorer::open(&at, options).err().unwrap().to_string();
    assert!(refused.contains(&format!("port {port}")), "{refused}");
    assert!(refused.contains("--port"), "{refused}");
}
