// A small domain to start with, the same as examples/music.txt.

const example = (marked) => {
  const spans = [];
  let text = "";
  for (const [, plain, inner, label] of marked.matchAll(/([^[]*)(?:\[([^\]]+)\]\(([^)]+)\))?/g)) {
    text += plain;
    if (!label) continue;
    spans.push({ start: text.length, end: text.length + inner.length, label });
    text += inner;
  }
  return { text, spans };
};

export const MUSIC = [
  "play [nina simone](artist)",
  "put [take five](track) by [dave brubeck](artist) on repeat",
  "i want to hear [blue in green](track) [tonight](time)",
  "add [ella fitzgerald](artist) to my [sunday morning](playlist) list",
  "start my [road trip](playlist) list [at noon](time)",
].map(example);
