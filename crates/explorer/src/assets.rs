//! Holds the files of the page, which are embedded in the program.

/// A file of the page.
pub(crate) struct Asset {
    /// The part of its address after the token.
    pub name: &'static str,
    pub content_type: &'static str,
    pub bytes: &'static [u8],
}

macro_rules! assets {
    ($($name:literal: $kind:literal),+ $(,)?) => {
        /// All files of the page.
        pub(crate) const ASSETS: &[Asset] = &[
            $(Asset {
                name: $name,
                content_type: $kind,
                bytes: include_bytes!(concat!("../assets/", $name)),
            }),+
        ];
    };
}

assets! {
    "index.html": "text/html; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "api.js": "text/javascript; charset=utf-8",
    "dom.js": "text/javascript; charset=utf-8",
    "flame.js": "text/javascript; charset=utf-8",
    "focus.js": "text/javascript; charset=utf-8",
    "function.js": "text/javascript; charset=utf-8",
    "graph.js": "text/javascript; charset=utf-8",
    "keys.js": "text/javascript; charset=utf-8",
    "main.js": "text/javascript; charset=utf-8",
    "moves.js": "text/javascript; charset=utf-8",
    "names.js": "text/javascript; charset=utf-8",
    "notes.js": "text/javascript; charset=utf-8",
    "overview.js": "text/javascript; charset=utf-8",
    "plot.js": "text/javascript; charset=utf-8",
    "search.js": "text/javascript; charset=utf-8",
    "source.js": "text/javascript; charset=utf-8",
    "state.js": "text/javascript; charset=utf-8",
    "timeline.js": "text/javascript; charset=utf-8",
    "wat.js": "text/javascript; charset=utf-8",
    "why.js": "text/javascript; charset=utf-8",
}

/// Returns the file with this name.
pub(crate) fn asset(name: &str) -> Option<&'static Asset> {
    let name = if name.is_empty() { "index.html" } else { name };
    ASSETS.iter().find(|asset| asset.name == name)
}
