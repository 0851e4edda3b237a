//! Gets this crate's part of the weights: cut from the model beside it in the repository, or else as it was packaged.
//!
//! All five crates have this same file. `scripts/split_model.py` cuts alike, before packaging.

use std::path::Path;

const N_PARTS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (whole, packaged) = (Path::new("../model.safetensors"), Path::new("weights.part"));
    let bytes = if whole.exists() {
        println!("cargo::rerun-if-changed={}", whole.display());
        let weights = std::fs::read(whole)?;
        let name = std::env::var("CARGO_PKG_NAME")?;
        let number: usize = name.rsplit('-').next().unwrap_or_default().parse()?;
        let size = weights.len().div_ceil(N_PARTS);
        let rest = &weights[(number - 1) * size..];
        rest[..size.min(rest.len())].to_vec()
    } else if packaged.exists() {
        println!("cargo::rerun-if-changed={}", packaged.display());
        std::fs::read(packaged)?
    } else {
        return Err(
            "packaged without its part of the weights: run scripts/split_model.py first".into()
        );
    };
    let out = Path::new(&std::env::var("OUT_DIR")?).join("weights.part");
    Ok(std::fs::write(out, bytes)?)
}
