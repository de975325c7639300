// Sentences as the server gives them (output=json), and their lines in the CoNLL-U format.

/** A sentence of the server's JSON: its words, and its multiword tokens by their first words, apart. */
export function asSentence({ sent_id, text, tokens }) {
  const words = tokens.filter((token) => !Array.isArray(token.id));
  const several = new Map(
    tokens.filter((token, i) => Array.isArray(token.id) && tokens[i + 1]?.id === token.id[0]).map((token) => [token.id[0], token]),
  );
  return { sent_id, text, words, several };
}

const OF_PARSER = ["Confidence", "HeadConfidence", "Margin", "NextHead"];

/** MISC without what the parser said of itself. */
function ownMisc({ misc = "_" }) {
  return misc.split("|").filter((entry) => !OF_PARSER.includes(entry.split("=")[0])).join("|") || "_";
}

/**
 * A sentence in the CoNLL-U format.
 *
 * @param {object} sentence of `asSentence`
 * @param {Map<number, number>} [heads] if given, only these heads are written, without relations
 */
export function toConllu(sentence, heads) {
  const lines = [];
  if (sentence.sent_id !== undefined) lines.push(`# sent_id = ${sentence.sent_id}`);
  lines.push(`# text = ${sentence.text}`);
  for (const word of sentence.words) {
    const token = sentence.several.get(word.id);
    if (token) lines.push([token.id.join("-"), token.text, ...Array(7).fill("_"), token.misc ?? "_"].join("\t"));
    const head = heads ? (heads.get(word.id) ?? "_") : (word.head ?? "_");
    lines.push(
      [
        word.id,
        word.text,
        word.lemma ?? "_",
        word.upos ?? "_",
        word.xpos ?? "_",
        word.feats ?? "_",
        head,
        heads ? "_" : (word.deprel ?? "_"),
        "_",
        ownMisc(word),
      ].join("\t"),
    );
  }
  return lines.join("\n") + "\n\n";
}

/** Whether a text is written from right to left, by its first letter. */
export function isRightToLeft(text) {
  const letter = text.match(/\p{L}/u);
  return letter !== null && /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u.test(letter[0]);
}
