//! Writes the table of the playground's files, so that a file in `web/` is served without being listed anywhere.

use std::fmt::Write;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=web");
    let web = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("web");
    let mut names: Vec<String> = std::fs::read_dir(web)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<std::io::Result<_>>()?;
    names.retain(|name| [".html", ".css", ".js", ".svg"].iter().any(|kind| name.ends_with(kind)));
    names.sort();
    let mut table = String::from("[\n");
    for name in names {
        // Where the crate lies is asked when it is compiled: another copy of it may share the target directory.
        let path = format!("/web/{name}");
        writeln!(
            table,
            "    ({name:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {path:?}))),"
        )?;
    }
    table.push_str("]\n");
    let out = Path::new(&std::env::var("OUT_DIR")?).join("web.rs");
    Ok(std::fs::write(out, table)?)
}
