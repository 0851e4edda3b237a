//! One fuzzing program for all that reads what others wrote: no input may make it panic, hang or take endless memory.
//!
//! libFuzzer mutates the inputs of a corpus and keeps those that reach new code. `scripts/fuzz.py` builds this with a
//! stable compiler and runs the targets in turn; `FEWTAG_FUZZ` names the target of one run:
//!
//! ```text
//! readers   conll episodes hf spacy doccano labelstudio gliner rasa snips snips-yaml inline, and any (format unknown)
//! models    tokenizer vocabulary encoder_config safetensors fewtag_json domain_file npy glove train_toml
//! server    bodies (what a handler makes of JSON), server (the whole of it, behind its router)
//! ```

#![no_main]

mod models;
mod readers;
mod server;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

/// What is done with an input.
type Target = Box<dyn Fn(&[u8]) + Send + Sync>;

static TARGET: OnceLock<Target> = OnceLock::new();

fuzz_target!(
    init: {
        let name = std::env::var("FEWTAG_FUZZ").expect("FEWTAG_FUZZ names a target");
        let target = target(&name).unwrap_or_else(|| panic!("there is no target `{name}`"));
        assert!(TARGET.set(target).is_ok(), "this runs once");
    },
    |bytes: &[u8]| TARGET.get().expect("set at the start")(bytes)
);

fn target(name: &str) -> Option<Target> {
    readers::target(name).or_else(|| models::target(name)).or_else(|| server::target(name))
}
