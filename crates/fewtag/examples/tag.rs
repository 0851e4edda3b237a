//! From five labelled sentences to spans: `cargo run --release -p fewtag --features built-in --example tag`.

#![expect(clippy::print_stdout, reason = "an example shows its answers")]

use fewtag::{Result, SupportSet, Tagger};

fn main() -> Result<()> {
    let support = SupportSet::parse(
        "play [nina simone](artist)\n\
         put [take five](track) by [dave brubeck](artist) on repeat\n\
         i want to hear [blue in green](track) [tonight](time)\n\
         start my [road trip](playlist) list [at noon](time)\n\
         add [ella fitzgerald](artist) to my [sunday morning](playlist) list",
    )?;
    let music = Tagger::built_in()?.adapt(&support)?;
    let answer = music.tag_text("could you play some billie holiday this evening")?;
    for span in &answer.spans {
        println!(
            "{}..{} {} = {} ({:.2})",
            span.start, span.end, span.text, span.label, span.probability
        );
    }
    Ok(())
}
