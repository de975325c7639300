// Sentences as the server gives them (output=json), and their lines in the CoNLL-U format.

function column(entries) {
  const written = Object.entries(entries ?? {}).map(([name, value]) => (value === null ? name : `${name}=${value}`));
  return written.join("|") || "_";
}

const OF_PARSER = ["Confidence", "HeadConfidence", "Margin", "NextHead"];

/** MISC without what the parser said of itself. */
function ownMisc(word) {
  return column(Object.fromEntries(Object.entries(word.misc).filter(([name]) => !OF_PARSER.includes(name))));
}

/**
 * A sentence in the CoNLL-U format.
 *
 * @param {object} sentence as in the server's JSON
 * @param {Map<number, number>} [heads] if given, only these heads are written, without relations
 */
export function toConllu(sentence, heads) {
  const lines = [];
  if (sentence.sent_id !== null) lines.push(`# sent_id = ${sentence.sent_id}`);
  lines.push(`# text = ${sentence.text}`);
  const several = new Map(sentence.tokens.filter((token) => token.last > token.first).map((token) => [token.first, token]));
  for (const word of sentence.words) {
    const token = several.get(word.id);
    if (token) lines.push([`${token.first}-${token.last}`, token.form, ...Array(7).fill("_"), token.misc].join("\t"));
    const head = heads ? (heads.get(word.id) ?? "_") : (word.head ?? "_");
    lines.push(
      [
        word.id,
        word.form,
        word.lemma ?? "_",
        word.upos ?? "_",
        word.xpos ?? "_",
        column(word.feats),
        head,
        heads ? "_" : (word.deprel ?? "_"),
        "_",
        ownMisc(word),
      ].join("\t"),
    );
  }
  return lines.join("\n") + "\n\n";
}

/** The next best head of a word, and what it costs; null if the parser did not say. */
export function runnerUp(word) {
  return word.misc.NextHead === undefined ? null : { head: Number(word.misc.NextHead), margin: Number(word.misc.Margin) };
}

/** Whether a text is written from right to left, by its first letter. */
export function isRightToLeft(text) {
  const letter = text.match(/\p{L}/u);
  return letter !== null && /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u.test(letter[0]);
}
